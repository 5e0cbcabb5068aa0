import pytest

from mooring.objects.taints import Taint, Toleration, untolerated

TAINT = Taint(key="gpu", value="h100", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        pytest.param(
            Toleration(key="gpu", value="h100", effect="NoSchedule"), True, id="all equal"
        ),
        pytest.param(Toleration(key="gpu", value="h100", operator="Equal"), True, id="any effect"),
        pytest.param(Toleration(key="gpu", value="a100"), False, id="another value"),
        pytest.param(Toleration(key="gpu"), False, id="no value is a value"),
        pytest.param(Toleration(key="cpu", operator="Exists"), False, id="another key"),
        pytest.param(
            Toleration(key="gpu", operator="Exists", effect="NoExecute"), False, id="effect"
        ),
        pytest.param(Toleration(key="gpu", operator="Exists"), True, id="any value"),
        pytest.param(Toleration(operator="Exists"), True, id="any key"),
        pytest.param(Toleration(value="h100"), True, id="any key, equal value"),
        pytest.param(Toleration(key="gpu", value="h100", operator="Near"), False, id="no operator"),
        pytest.param(
            Toleration(key="gpu", operator="Exists", toleration_seconds=0), True, id="time"
        ),
    ],
)
def test_a_toleration_matches_by_effect_key_and_operator(toleration, tolerates):
    assert toleration.tolerates(TAINT) is tolerates


@pytest.mark.parametrize("operator", ["Gt", "Lt"])
def test_comparisons_of_numbers_never_match_while_their_gate_is_off(operator):
    taint = Taint(key="k", value="5", effect="NoSchedule")

    assert not Toleration(key="k", operator=operator, value="3").tolerates(taint)


def test_the_first_taint_that_refuses_is_named():
    soft = Taint(key="soft", effect="PreferNoSchedule")
    hard = Taint(key="hard", effect="NoExecute")

    assert untolerated([soft, TAINT, hard], [Toleration(key="gpu", operator="Exists")]) == hard
    assert untolerated([soft, TAINT, hard], [Toleration(operator="Exists")]) is None
    assert untolerated([soft], []) is None
