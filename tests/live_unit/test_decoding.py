"""Answers that make no sense: what decodes them raises what its callers expect, and nothing else."""

from __future__ import annotations

import msgspec
import pytest

from mooring.errors import ServerUnavailable, Unanswered
from mooring.live.client import error_of
from mooring.live.decoding import decode_answer, decode_event, decode_identities, decode_page
from mooring.live.leader_election import decode_lease
from mooring.objects.kinds import KIND_OF
from mooring.objects.pod import Pod

NONSENSE = [
    pytest.param(b"", id="nothing"),
    pytest.param(b"{", id="cut"),
    pytest.param(b"[]", id="a list"),
    pytest.param(b"5", id="a number"),
    pytest.param(b'{"metadata":{"resourceVersion":"\xff"}}', id="no UTF-8"),
    pytest.param(b"[" * 100_000, id="nested without end"),
]


@pytest.mark.parametrize("decode", [decode_event, decode_page, decode_identities])
@pytest.mark.parametrize("text", NONSENSE)
def test_nonsense_is_an_error_of_decoding(decode, text):
    with pytest.raises(msgspec.DecodeError):
        decode(text)


@pytest.mark.parametrize("text", NONSENSE)
def test_a_write_that_is_answered_with_nonsense_may_be_done(text):
    with pytest.raises(Unanswered) as caught:
        decode_answer(text, KIND_OF[Pod])
    assert caught.value.maybe_done


@pytest.mark.parametrize("text", NONSENSE)
def test_a_lease_that_makes_no_sense_is_no_answer(text):
    with pytest.raises(Unanswered):
        decode_lease(text)


@pytest.mark.parametrize("text", NONSENSE)
def test_a_failure_is_told_whatever_its_text_is(text):
    assert isinstance(error_of(500, text), ServerUnavailable)
