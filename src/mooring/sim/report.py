"""The report of a simulation, as plain data: placed pods, pending pods and why, and the usage of nodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from mooring.objects.admission import Refused
from mooring.objects.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from mooring.scheduler.journal import Fact

#: The state of a pod that asks for a scheduler that the configuration does not have.
IGNORED = "ignored"

_UNITS = {CPU: "millicores", MEMORY: "bytes", EPHEMERAL_STORAGE: "bytes", PODS: "count"}


@dataclass(frozen=True, slots=True)
class Placement:
    """A pod that the scheduler bound."""

    #: `namespace/name`.
    pod: str
    node: str
    #: Seconds of virtual time since the start.
    at_s: float
    #: running, finished, preempted or deleted.
    state: str = "running"
    ended_at_s: float | None = None


@dataclass(frozen=True, slots=True)
class Pending:
    """A pod that has no node at the end."""

    pod: str
    #: unschedulable, gated, ignored (no such profile), waiting (for Permit or its binding), error.
    state: str
    #: For an unschedulable pod, the message that `kubectl describe` shows.
    message: str
    since_s: float
    attempts: int
    #: The plugins that rejected it, sorted.
    plugins: tuple[str, ...] = ()
    priority: int = 0
    nominated_node: str = ""

    def of_pod(self, key: str) -> Pending:
        """The same of another pod."""
        return Pending(
            key,
            self.state,
            self.message,
            self.since_s,
            self.attempts,
            self.plugins,
            self.priority,
            self.nominated_node,
        )


@dataclass(frozen=True, slots=True)
class Finished:
    """A pod that finished."""

    pod: str
    node: str
    at_s: float


@dataclass(frozen=True, slots=True)
class Usage:
    """One resource of one node, or of all nodes together."""

    resource: str
    #: The unit of `requested` and `allocatable`: millicores, bytes or count.
    unit: str
    requested: int
    allocatable: int

    @property
    def percent(self) -> float | None:
        """None if nothing is allocatable."""
        if self.allocatable <= 0:
            return None
        return round(100 * self.requested / self.allocatable, 1)


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """The usage of a node. All nodes of a report have the same resources in the same order."""

    node: str
    usages: tuple[Usage, ...]

    @property
    def fullest_percent(self) -> float:
        return max((usage.percent or 0.0 for usage in self.usages), default=0.0)


@dataclass(frozen=True, slots=True)
class Victim:
    pod: str
    priority: int


@dataclass(frozen=True, slots=True)
class Preemption:
    """The pods that one pod preempted on one node."""

    at_s: float
    preemptor: str
    priority: int
    node: str
    victims: tuple[Victim, ...]
    #: Why preemption chose this node.
    why: str


@dataclass(frozen=True, slots=True)
class VolumeBound:
    """A claim that was bound to a volume during the run."""

    at_s: float
    #: `namespace/name`.
    claim: str
    volume: str
    storage_class: str
    capacity: str


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """The devices of one class, on all nodes."""

    device_class: str
    total: int
    in_use: int
    #: Devices of which claims have shares, and of which more can be had.
    shared: int
    free: int
    #: Devices that no claim has, whose counters are used up by others.
    blocked: int
    #: Devices that can be shared: capacity → what is consumed and what there is, as quantities.
    capacity: dict[str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class DeviceHeld:
    """A device, or a share of one, that a claim has at the end."""

    #: "" if the device is not of one node alone.
    node: str
    #: `driver/pool/device`.
    device: str
    classes: tuple[str, ...]
    #: `namespace/name`.
    claim: str
    request: str
    pods: tuple[str, ...]
    #: The share: capacity → amount.
    share: dict[str, str] | None


@dataclass(frozen=True, slots=True)
class NotCreated:
    """An object that the API server would refuse, so that it does not exist in the simulation."""

    kind: str
    #: `namespace/name`, or the name alone for a cluster-scoped object.
    object: str
    #: The kind and name of its controller: `ReplicaSet web-5d9f8`; "" without one.
    owner: str
    #: As the API server words it.
    reason: str

    @classmethod
    def of(cls, refused: Refused) -> NotCreated:
        owner = refused.object.metadata.controller
        return cls(
            kind=refused.object.kind,
            object=refused.object.key,
            owner="" if owner is None else f"{owner.kind} {owner.name}",
            reason=refused.reason,
        )


@dataclass(frozen=True, slots=True)
class SimulationReport:
    """A finished simulation. Times are seconds of virtual time since its start."""

    elapsed_s: float
    nodes: int
    #: The number of pods that had a node before the simulation started.
    already_placed: int
    placements: tuple[Placement, ...]
    pending: tuple[Pending, ...]
    #: Pods that ask for a scheduler that the configuration does not have.
    other_schedulers: tuple[Pending, ...]
    finished: tuple[Finished, ...]
    preemptions: tuple[Preemption, ...]
    volumes: tuple[VolumeBound, ...]
    utilisation: tuple[NodeUsage, ...]
    totals: tuple[Usage, ...]
    #: By class, sorted; none if there are no devices.
    devices: tuple[DeviceReport, ...]
    devices_held: tuple[DeviceHeld, ...]
    #: None if the journal does not keep it.
    timeline: tuple[Fact, ...] | None
    #: Errors that concern no pod: background tasks of plugins that failed.
    errors: tuple[str, ...]
    not_created: tuple[NotCreated, ...] = ()
    #: How the input was understood, where that may surprise.
    notes: tuple[str, ...] = ()
    #: What plugins counted about themselves, one entry a metric.
    plugin_metrics: tuple[dict[str, Any], ...] = ()

    @property
    def unplaced(self) -> tuple[Pending, ...]:
        """All pods without a node."""
        return (*self.pending, *self.other_schedulers)

    @property
    def all_placed(self) -> bool:
        return not self.unplaced and not self.not_created

    def without(self, refused: Iterable[Refused]) -> SimulationReport:
        """The report, with the objects that were refused before the simulation."""
        return replace(self, not_created=tuple(map(NotCreated.of, refused)))

    def to_data(self) -> dict[str, Any]:
        """For JSON and YAML."""
        data: dict[str, Any] = {
            "summary": {
                "nodes": self.nodes,
                "alreadyPlaced": self.already_placed,
                "placed": len(self.placements),
                "pending": len(self.pending),
                "notCreated": len(self.not_created),
                "otherSchedulers": len(self.other_schedulers),
                "finished": len(self.finished),
                "preempted": sum(len(p.victims) for p in self.preemptions),
                "elapsedSeconds": self.elapsed_s,
            },
            "placements": _records(self.placements),
            "pending": _records(self.pending),
            "notCreated": _records(self.not_created),
            "otherSchedulers": _records(self.other_schedulers),
            "finished": _records(self.finished),
            "preemptions": _records(self.preemptions),
            "volumes": _records(self.volumes),
            "utilisation": {
                "total": _by_resource(self.totals),
                "nodes": [
                    {"node": each.node, "resources": _by_resource(each.usages)}
                    for each in self.utilisation
                ],
            },
        }
        if self.devices:
            data["devices"] = {
                "classes": _records(self.devices),
                "held": _records(self.devices_held),
            }
        if self.timeline is not None:
            data["timeline"] = [fact.to_data() for fact in self.timeline]
        if self.errors:
            data["errors"] = list(self.errors)
        if self.notes:
            data["notes"] = list(self.notes)
        if self.plugin_metrics:
            data["pluginMetrics"] = list(self.plugin_metrics)
        return data


def unit_of(resource: str) -> str:
    """The unit of a resource's amounts."""
    if resource.startswith("hugepages-"):
        return "bytes"
    return _UNITS.get(resource, "count")


def _records(records: Iterable[Any]) -> list[dict[str, Any]]:
    return [_named(asdict(record)) for record in records]


def _named(value: Any) -> Any:
    """Keys in camel case: `at_s` becomes `atSeconds`."""
    if isinstance(value, dict):
        return {_camel(key): _named(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_named(item) for item in value]
    return value


def _camel(name: str) -> str:
    first, *others = (f"{name}econds" if name.endswith("_s") else name).split("_")
    return first + "".join(word.capitalize() for word in others)


def _by_resource(usages: Iterable[Usage]) -> dict[str, Any]:
    return {
        usage.resource: {
            "requested": usage.requested,
            "allocatable": usage.allocatable,
            "percent": usage.percent,
            "unit": usage.unit,
        }
        for usage in usages
    }
