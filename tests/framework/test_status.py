"""Verdicts: their codes, reasons and meaning."""

from __future__ import annotations

import pytest

from mooring.framework.status import (
    SUCCESS,
    Code,
    Status,
    failure,
    pending,
    unresolvable,
    unschedulable,
    wait,
)


@pytest.mark.parametrize(
    ("number", "title", "rejected"),
    [
        (0, "Success", False),
        (1, "Error", False),
        (2, "Unschedulable", True),
        (3, "UnschedulableAndUnresolvable", True),
        (4, "Wait", False),
        (5, "Skip", False),
        (6, "Pending", True),
    ],
)
def test_codes_have_the_numbers_and_names_of_the_reference(number, title, rejected):
    status = Status(Code(number))

    assert status.code.title == title
    assert status.rejected is rejected
    assert status.ok is (number == 0)


def test_an_error_is_the_first_reason():
    status = failure(ValueError("broken"), "while trying")

    assert status.code == Code.ERROR
    assert status.all_reasons == ("broken", "while trying")
    assert status.message == "broken, while trying"


def test_reasons_are_joined_for_people():
    assert unschedulable("one", "two").message == "one, two"
    assert SUCCESS.message == ""


def test_a_status_is_signed_without_being_changed():
    plain = unschedulable("why")
    signed = plain.by("X")

    assert (plain.plugin, signed.plugin) == ("", "X")
    assert signed.by("X") is signed
    assert signed == Status(Code.UNSCHEDULABLE, ("why",), "X")
    assert signed != plain


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (unschedulable, Code.UNSCHEDULABLE),
        (unresolvable, Code.UNRESOLVABLE),
        (pending, Code.PENDING),
        (wait, Code.WAIT),
    ],
)
def test_the_short_names_make_the_codes_they_name(make, code):
    assert make("a", "b") == Status(code, ("a", "b"))
