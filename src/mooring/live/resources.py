"""Which kinds a scheduler has to watch."""

from __future__ import annotations

from mooring.framework.events import EventResource
from mooring.objects.kinds import KIND_OF, KINDS, Kind
from mooring.objects.pod import Pod
from mooring.scheduler.engine import Engine
from mooring.scheduler.extenders import EXTENDER_EVENTS

PODS = KIND_OF[Pod]


def kinds_to_watch(scheduler: Engine) -> list[Kind]:
    """Those that every scheduler needs, and those that plugins of any profile declare or register for.

    Kinds behind a feature gate are watched if the gate is on: without it, an API server may not have them.
    """
    registered: set[str] = {
        registered.event.resource
        for framework in scheduler.frameworks.values()
        for _, registered in framework.events_to_register()
    }
    if scheduler.config.extenders:
        registered.update(event.event.resource for event in EXTENDER_EVENTS)
    everything = EventResource.WILDCARD in registered
    gates = scheduler.config.gates
    custom = (kind for framework in scheduler.frameworks.values() for kind in framework.kinds())
    needed = [
        kind
        for kind in KINDS
        if kind.always_watched
        or (kind.gate and kind.listed and gates.enabled(kind.gate))
        or (kind.events and not kind.gate and (everything or kind.event_resource in registered))
    ]
    return [*needed, *dict.fromkeys(custom)]
