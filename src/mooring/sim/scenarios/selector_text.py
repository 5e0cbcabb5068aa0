"""Label selectors in scenarios."""

from __future__ import annotations

from mooring.objects.selector_text import parse_selector as parse_text
from mooring.objects.selectors import Selector
from mooring.sim.scenarios.fields import FieldError


def parse_selector(value: object) -> Selector:
    """Raises FieldError."""
    if not isinstance(value, str):
        raise FieldError(f"must be a label selector such as app=web, not {value!r}")
    try:
        return parse_text(value)
    except ValueError as error:
        raise FieldError(str(error)) from error
