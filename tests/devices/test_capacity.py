"""What a request consumes of a device's capacity (B6), and which devices cannot give it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.devices.capacity import consumed_capacity, exceeded
from mooring.objects.quantity import parse_quantity
from tests.devices.device_makers import make_capacity, make_device


def consumed(capacity, requested: str | None) -> str | None:
    """The amount in canonical form; None if the device is refused."""
    device = make_device("x", capacity={"mem": capacity})
    requests = {} if requested is None else {"mem": parse_quantity(requested)}
    amounts = consumed_capacity(device, requests)
    return None if isinstance(amounts, str) else amounts[0].amount.canonical


RANGE = make_capacity("10Gi", default="1Gi", least="1Gi", step="1Gi", most="4Gi")
VALUES = make_capacity("10", default="1", values=["1", "2", "5"])
MINIMUM = make_capacity("10Gi", default="2Gi", least="1Gi")


@pytest.mark.parametrize(
    ("capacity", "requested", "amount"),
    [
        pytest.param("10Gi", None, "10Gi", id="nothing requested, no policy: all of it"),
        pytest.param("10Gi", "3Gi", "3Gi", id="no policy: as requested"),
        pytest.param("10Gi", "11Gi", None, id="more than there is"),
        pytest.param(RANGE, None, "1Gi", id="the default"),
        pytest.param(RANGE, "512Mi", "1Gi", id="up to the minimum"),
        pytest.param(RANGE, "1536Mi", "2Gi", id="up to the next step"),
        pytest.param(RANGE, "3Gi", "3Gi", id="on a step"),
        pytest.param(RANGE, "5Gi", None, id="above the maximum"),
        pytest.param(MINIMUM, "1500Mi", "1500Mi", id="no step"),
        pytest.param(VALUES, "1500m", "2", id="up to the next value"),
        pytest.param(VALUES, "3", "5", id="the last value"),
        pytest.param(VALUES, "6", None, id="above all values"),
        pytest.param(make_capacity("10", values=["1"]), None, None, id="the whole is no value"),
        pytest.param(make_capacity("1", default="2"), None, None, id="the default is too much"),
        pytest.param(
            make_capacity("10Gi", default="2Gi", least="1Gi", step="2Gi"),
            None,
            "2Gi",
            id="a default need not be on a step",
        ),
        pytest.param(
            make_capacity("10Gi", least="1Gi", step="0"), "3Gi", "3Gi", id="a step of zero is none"
        ),
    ],
)
def test_the_policy_decides_what_is_consumed(capacity, requested, amount):
    assert consumed(capacity, requested) == amount


def test_a_request_for_an_unknown_capacity_is_refused_by_name():
    device = make_device("x", capacity={"mem": "1"})

    assert consumed_capacity(device, {"foo": parse_quantity("1")}) == (
        "the device has no capacity foo"
    )


MILLI = st.integers(0, 20_000)


@given(used=MILLI, more=MILLI, requested=MILLI)
def test_capacity_suffices_if_the_sum_is_within_the_value(used, more, requested):
    device = make_device("x", capacity={"mem": "20"})
    amounts = consumed_capacity(device, {"mem": parse_quantity(f"{requested}m")})

    enough = exceeded(amounts, {"mem": used * 10**6}, {"mem": more * 10**6}) is None

    assert enough == (used + more + requested <= 20_000)


@given(least=st.integers(0, 8), step=st.integers(1, 5), requested=st.integers(0, 100))
def test_an_amount_is_rounded_up_to_the_nearest_step(least, step, requested):
    capacity = make_capacity("1000", least=str(least), step=str(step))

    steps = [least + step * number for number in range(101)]

    assert consumed(capacity, str(requested)) == str(
        min(each for each in steps if each >= requested)
    )
