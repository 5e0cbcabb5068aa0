"""Label selectors in one line."""

from __future__ import annotations

import pytest

from mooring.sim.scenarios.fields import FieldError
from mooring.sim.scenarios.selector_text import parse_selector


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("app=web", {"app": "web"}, True),
        ("app==web", {"app": "web"}, True),
        ("app = web", {"app": "web"}, True),
        ("app=web", {"app": "cart"}, False),
        ("app!=web", {"app": "cart"}, True),
        ("app!=web", {}, True),
        ("app=", {"app": ""}, True),
        ("app", {"app": "x"}, True),
        ("!app", {"app": "x"}, False),
        ("!app", {}, True),
        ("app in (web, cart)", {"app": "cart"}, True),
        ("app notin (web,cart)", {"app": "cart"}, False),
        ("app=web,tier in (a,b),!spot", {"app": "web", "tier": "b"}, True),
        ("app=web,tier in (a,b),!spot", {"app": "web", "tier": "b", "spot": ""}, False),
        ("", {"anything": "goes"}, True),
    ],
)
def test_a_selector_matches_as_kubectl_s_does(text, labels, matches):
    assert parse_selector(text).matches(labels) == matches


@pytest.mark.parametrize("text", ["=", "a b", "app=web,", "app in ()x", "-a=b", "a=b c", 5, None])
def test_what_is_not_a_selector_is_refused(text):
    with pytest.raises(FieldError):
        parse_selector(text)
