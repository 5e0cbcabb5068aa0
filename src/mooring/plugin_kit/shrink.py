"""A smaller case that still breaks the same rule: fewer events, fewer pods, fewer fields."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from mooring.plugin_kit.case import Case, Event, Manifest

#: How many smaller cases are tried. Each takes a few milliseconds, and the first ones help most.
MOST_TRIES = 400

T = TypeVar("T")
_Breaks = Callable[[Case], bool]

#: Without these an object is none.
_NEEDED = {("apiVersion",), ("kind",), ("metadata",), ("spec",), ("status",)} | {
    ("metadata", field) for field in ("name", "namespace", "uid")
}
_KEPT_FIELDS = ("nodeName", "containers", "allocatable")


def shrink(case: Case, breaks: _Breaks, most_tries: int = MOST_TRIES) -> Case:
    """`breaks` says whether a case breaks the rule; it does for the given one."""
    left = [most_tries]

    def still(smaller: Case) -> bool:
        if left[0] <= 0:
            return False
        left[0] -= 1
        return breaks(smaller)

    before = None
    while before != case and left[0] > 0:
        before = case
        case = _fewer_events(case, still)
        case = _fewer_pods(case, still)
        case = _fewer_fields(case, still)
    return case


def _fewer_events(case: Case, still: _Breaks) -> Case:
    size = max(1, len(case.events) // 2)
    while True:
        start = len(case.events) - size
        while start >= 0:
            fewer = replace(case, events=_without(case.events, start, size))
            if still(fewer):
                case = fewer
            start -= size
        if size == 1:
            return case
        size //= 2


def _fewer_pods(case: Case, still: _Breaks) -> Case:
    for place in range(len(case.pods) - 1, -1, -1):
        fewer = replace(case, pods=_without(case.pods, place, 1))
        if still(fewer):
            case = fewer
    return case


def _fewer_fields(case: Case, still: _Breaks) -> Case:
    """All objects of a name lose the field together: an update must not become another one."""
    for path in sorted(_paths(case), key=len):
        fewer = Case(
            tuple(Event(_dropped(each.manifest, path), each.gone) for each in case.events),
            tuple(_dropped(pod, path) for pod in case.pods),
            case.seed,
        )
        if fewer != case and still(fewer):
            case = fewer
    for place, event in enumerate(case.events):
        for path in _fields(event.manifest, ()):
            smaller = Event(_dropped(event.manifest, path), event.gone)
            events = (*case.events[:place], smaller, *case.events[place + 1 :])
            if smaller != event and still(replace(case, events=events)):
                case, event = replace(case, events=events), smaller
    return case


def _paths(case: Case) -> set[tuple[str, ...]]:
    manifests = (*(event.manifest for event in case.events), *case.pods)
    return {path for manifest in manifests for path in _fields(manifest, ())}


def _fields(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The paths of fields that may go, to the depth of a label."""
    if not isinstance(value, dict) or len(path) > 2:
        return
    for key, inner in value.items():
        here = (*path, key)
        if here not in _NEEDED and key not in _KEPT_FIELDS:
            yield here
        yield from _fields(inner, here)


def _dropped(manifest: Manifest, path: tuple[str, ...]) -> Manifest:
    inner: Any = manifest
    for key in path[:-1]:
        inner = inner.get(key) if isinstance(inner, dict) else None
    if not isinstance(inner, dict) or path[-1] not in inner:
        return manifest
    smaller = copy.deepcopy(dict(manifest))
    inner = smaller
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return smaller


def _without(items: Sequence[T], start: int, size: int) -> tuple[T, ...]:
    return (*items[:start], *items[start + size :])
