"""Memory is bounded: at rest, a scheduler remembers a pod that is gone only where a bound says how many.

Everything that a process of mooring reaches is looked through for UIDs, so a table that somebody adds and
nobody clears is found without a check of its own.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from types import FunctionType, MethodType

from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod

#: Module, class and attribute of what may remember pods that are gone, and what bounds it.
BOUNDED = {
    "scheduler.journal:RecentFacts.facts": "the latest 10,000 facts",
    "scheduler.journal:RecentFacts._of_pod": "ten facts of each of 10,000 pods",
    "live.event_recorder:EventRecorder._known": "MOST_KNOWN, and FINISH_AFTER_S",
    "live.input_journal:RecentInputs._records": "the latest inputs, up to `most`",
    "runtime.evaluations:Evaluations._last": "_MOST_PODS",
    "plugins.default_preemption.plugin:DefaultPreemption._pods": "the pods of one snapshot",
    "plugins.node_resources_fit:NodeResourcesFit._last_pod": "one pod",
    "plugins.node_resources_balanced_allocation:NodeResourcesBalancedAllocation._last_pod": "one pod",
    "objects.pod_class:PodClasses._known": "MOST_CLASSES",
    "objects.pod_class:PodClasses._by_requests": "MOST_CLASSES",
    "runtime.evaluations:Evaluations._shared": "_MOST_SHARED",
    "objects.shared_parts:SharedParts._of": "MOST_CONTROLLERS",
    "runtime.nominated_rows:NominatedRows._kept": "_MOST_KEPT",
    "scheduler.refusals:Refusals._refusals": "MOST_REFUSALS",
    "runtime.beside_nominated:BesideNominated._known": "the rows that were held at the last look",
    "plugins.default_preemption.eviction:Evictions._deleted": "_MANY, once their victims are gone",
    "plugins.default_preemption.kept_outcomes:KeptOutcomes._kept": "_MOST_KEPT",
}


def remembered(root: object, gone: AbstractSet[str]) -> list[str]:
    """Where UIDs of these pods are kept that nothing bounds, as a path of attributes from the root."""
    found: dict[str, None] = {}
    seen = {id(root)}
    waiting = [(root, "")]
    while waiting:
        holder, path = waiting.pop()
        for name, value in _parts(holder):
            there = path + name
            if isinstance(value, str | KubeObject):
                uid = value.uid if isinstance(value, Pod) else value
                if isinstance(uid, str) and uid in gone:
                    found[there] = None
            elif id(value) not in seen:
                seen.add(id(value))
                waiting.append((value, there))
    return list(found)


def _parts(holder: object) -> Iterator[tuple[str, object]]:
    """What it holds, by how it is reached. Libraries and the world keep what they like."""
    match holder:
        case dict():
            for key, value in list(holder.items()):
                yield "[key]", key
                yield "[]", value
        case list() | tuple() | set() | frozenset() | deque():
            yield from (("[]", value) for value in list(holder))
        case MethodType():
            yield "", holder.__self__
        case FunctionType():
            cells = zip(holder.__code__.co_freevars, holder.__closure__ or (), strict=True)
            for name, cell in cells:
                # A cell is empty until its variable is set.
                if repr(cell).endswith("empty>"):
                    continue
                yield f".{name}", cell.cell_contents
        case functools.partial():
            yield from (("()", value) for value in (*holder.args, *holder.keywords.values()))
        case _ if type(holder).__module__.startswith("mooring.") and not isinstance(holder, type):
            kind = type(holder)
            of = f"{kind.__module__.removeprefix('mooring.')}:{kind.__name__}"
            for name in (*getattr(holder, "__dict__", ()), *_slots(kind)):
                if f"{of}.{name}" not in BOUNDED and hasattr(holder, name):
                    yield f".{name}", getattr(holder, name)


def _slots(kind: type) -> tuple[str, ...]:
    """Slots, and the fields of structs. A property is made from these."""
    found: list[str] = []
    for each in kind.__mro__:
        slots = each.__dict__.get("__slots__", ())
        found.extend([slots] if isinstance(slots, str) else slots)
    found.extend(getattr(kind, "__struct_fields__", ()))
    return tuple(dict.fromkeys(name for name in found if not name.startswith("__")))
