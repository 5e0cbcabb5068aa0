"""The report of a simulation, built from its API, its summary and its journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from mooring.cluster.cache import Cluster
from mooring.cluster.device_classes import DEVICE_CLASS_PREFIX
from mooring.cluster.device_usage import ClassUse, DeviceUsage
from mooring.cluster.node_info import NodeInfo
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.quantity import BinaryQuantity, Quantity
from mooring.objects.requests import CPU, MEMORY, PODS
from mooring.objects.storage import PersistentVolume
from mooring.objects.well_known import POD_SCHEDULED
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.scheduler.decision import NoNodesError, NoProfileError
from mooring.scheduler.journal import NOTHING, Preempted
from mooring.sim.recorder import gated_by, waits_for
from mooring.sim.report import (
    IGNORED,
    DeviceHeld,
    DeviceReport,
    Finished,
    NodeUsage,
    Pending,
    Placement,
    Preemption,
    SimulationReport,
    Usage,
    Victim,
    VolumeBound,
    unit_of,
)
from mooring.sim.simulation import SimOptions, Simulation
from mooring.sim.without_nodes import represented

#: Always reported; other resources only if a pod requests them.
_ALWAYS_REPORTED = (CPU, MEMORY, PODS)
_NO_NODES = str(NoNodesError())


def simulate_objects(
    objects: Iterable[KubeObject],
    options: SimOptions | None = None,
    *,
    until_s: float | None = None,
) -> SimulationReport:
    """Simulate a cluster from its objects. Raises InputError and ConfigError."""
    options = options or SimOptions()
    with Simulation(options) as simulation:
        if not options.tries_without_nodes and options.keeps == NOTHING:
            objects = list(objects)
            if few := represented(objects, simulation.scheduler):
                simulation.load(few.objects)
                simulation.run(until_s=until_s)
                return _with_all(build_report(simulation), few.pods)
        simulation.load(objects)
        simulation.run(until_s=until_s)
        return build_report(simulation)


def _with_all(report: SimulationReport, pods: Iterable[tuple[str, str]]) -> SimulationReport:
    """The report, with what holds for one pod said of each that it stands for."""
    return replace(
        report,
        pending=tuple(_of_each(report.pending, pods)),
        other_schedulers=tuple(_of_each(report.other_schedulers, pods)),
    )


def _of_each(pending: Iterable[Pending], pods: Iterable[tuple[str, str]]) -> Iterator[Pending]:
    known = {each.pod: each for each in pending}
    for key, first in pods:
        found = known.get(first)
        if found is not None:
            yield found if key == first else found.of_pod(key)


def build_report(simulation: Simulation) -> SimulationReport:
    """The report of a simulation that has run."""
    summary, api = simulation.summary, simulation.api
    nodes = list(api.all(Node))
    waiting = [pod for pod in api.all(Pod) if not pod.node_name and not pod.finished]
    wanted = {
        resource
        for pod in (*waiting, *(each.bound.assumed for each in summary.placements.values()))
        for resource, amount in pod.requests.items()
        if amount
    }
    unplaced = [pending_of(simulation, pod) for pod in waiting]
    cluster = simulation.scheduler.cluster
    device_usage = DeviceUsage(cluster)
    utilisation = tuple(_utilisation(cluster, nodes, wanted, device_usage))
    return SimulationReport(
        elapsed_s=_elapsed_s(simulation),
        nodes=len(nodes),
        already_placed=summary.already_placed,
        placements=tuple(
            Placement(
                pod=each.bound.pod,
                node=each.bound.node,
                at_s=each.bound.at_s,
                state=str(each.ended or "running"),
                ended_at_s=each.ended_s,
            )
            for each in summary.placements.values()
        ),
        pending=tuple(each for each in unplaced if each.state != IGNORED),
        other_schedulers=tuple(each for each in unplaced if each.state == IGNORED),
        finished=tuple(Finished(fact.pod, fact.node, fact.at_s) for fact in summary.finished),
        preemptions=tuple(_preemptions(summary.preempted)),
        volumes=tuple(_volumes(simulation)),
        utilisation=utilisation,
        totals=_totals(utilisation),
        devices=tuple(map(_device_report, device_usage.by_class().values())),
        devices_held=tuple(_devices_held(device_usage)),
        timeline=simulation.journal.timeline,
        errors=tuple(simulation.errors),
        notes=tuple(simulation.notes),
        plugin_metrics=tuple(simulation.scheduler.plugin_metrics.to_data()),
    )


def _elapsed_s(simulation: Simulation) -> float:
    """With `until_s`, the clock; otherwise the time of the last fact, because timers can run longer."""
    until_s = simulation.until_s
    return float(simulation.summary.last_s if until_s is None else simulation.clock.elapsed_s)


def pending_of(simulation: Simulation, pod: Pod) -> Pending:
    """Why the pod has no node."""
    record = simulation.summary.of(pod.uid)
    queued = simulation.scheduler.queue.get(pod.key)
    state, message = _why_pending(simulation, pod, queued, record.last_failure)
    rejectors = queued.rejectors if queued is not None else None
    return Pending(
        pod=pod.key,
        state=state,
        message=message,
        since_s=record.arrived_s,
        attempts=queued.attempts if queued is not None else record.attempts,
        plugins=tuple(sorted(rejectors - {""})) if rejectors else (),
        priority=pod.priority,
        nominated_node=pod.nominated_node_name,
    )


def _why_pending(
    simulation: Simulation, pod: Pod, queued: QueuedPodInfo | None, last_failure: str | None
) -> tuple[str, str]:
    scheduler = simulation.scheduler
    if pod.scheduler_name not in scheduler.frameworks:
        return IGNORED, str(NoProfileError(pod))
    if scheduler.cluster.is_assumed(pod):
        node_name = scheduler.cluster.pods[pod.uid].node_name
        return "waiting", f"waiting {waits_for(scheduler, pod)} to be bound to {node_name}"
    if queued is not None and queued.gated:
        return "gated", gated_by(pod, queued.gating_plugin)
    if last_failure is None:
        if not scheduler.cluster.infos:
            return "unschedulable", _NO_NODES
        return "queued", "not tried yet"
    # The condition has the whole text; the Event's text is truncated.
    condition = pod.condition(POD_SCHEDULED)
    if condition is None:
        return "error", last_failure
    state = "unschedulable" if condition.reason == "Unschedulable" else "error"
    return state, condition.message


def _preemptions(evictions: Iterable[Preempted]) -> Iterator[Preemption]:
    """Group evictions at the same time, for the same pod, on the same node."""
    together: dict[tuple[float, str, str], list[Preempted]] = {}
    for fact in evictions:
        by = fact.preemptor.uid if fact.preemptor is not None else ""
        together.setdefault((fact.at_s, by, fact.node), []).append(fact)
    for (at_s, _, node), group in together.items():
        preemptor = group[0].preemptor
        yield Preemption(
            at_s=at_s,
            preemptor=preemptor.key if preemptor is not None else "",
            priority=preemptor.priority if preemptor is not None else 0,
            node=node,
            victims=tuple(Victim(each.victim.key, each.victim.priority) for each in group),
            why=group[0].why,
        )


def _volumes(simulation: Simulation) -> Iterator[VolumeBound]:
    for bound in simulation.summary.bound_claims:
        spec = bound.claim.spec
        volume = simulation.api.get(PersistentVolume, spec.volume_name)
        capacity = volume.spec.capacity.get("storage") if volume is not None else None
        yield VolumeBound(
            at_s=bound.at_s,
            claim=bound.claim.key,
            volume=spec.volume_name,
            storage_class=spec.storage_class_name or "",
            capacity=str(capacity) if capacity is not None else "",
        )


def _utilisation(
    cluster: Cluster, nodes: Sequence[Node], wanted: AbstractSet[str], devices: DeviceUsage
) -> Iterator[NodeUsage]:
    """The usage of cpu, memory, pods, other resources that pods request, and classes of devices."""
    shown = [cluster.infos[node.name] for node in nodes]
    held = {name for info in shown for name, amount in info.requested.items() if amount}
    others = sorted((held | wanted).difference(_ALWAYS_REPORTED))
    resources = (*_ALWAYS_REPORTED, *(r for r in others if not _only_devices(cluster, r, shown)))
    on_nodes = devices.by_node_and_class()
    classes = sorted({c.name for on in on_nodes.values() for c in on.values() if c.whole})
    for info in shown:
        of_classes = on_nodes.get(info.name, {})
        yield NodeUsage(
            info.name,
            (
                *(_node_usage(info, resource) for resource in resources),
                *(_class_usage(name, of_classes.get(name)) for name in classes),
            ),
        )


def _only_devices(cluster: Cluster, resource: str, infos: Sequence[NodeInfo]) -> bool:
    """Whether devices serve the resource on all nodes: then the column of their class shows it."""
    return resource in cluster.device_classes and not any(
        info.allocatable.get(resource) for info in infos
    )


def _class_usage(name: str, use: ClassUse | None) -> Usage:
    """Devices that claims can have only for themselves; a share is no number of devices."""
    resource = DEVICE_CLASS_PREFIX + name
    if use is None:
        return Usage(resource, unit_of(resource), 0, 0)
    return Usage(resource, unit_of(resource), use.whole_in_use, use.whole)


def _device_report(use: ClassUse) -> DeviceReport:
    return DeviceReport(
        device_class=use.name,
        total=use.total,
        in_use=use.count("in use"),
        shared=use.count("shared"),
        free=use.count("free"),
        blocked=use.count("blocked"),
        capacity={
            name: {"consumed": _canonical(consumed), "total": _canonical(whole)}
            for name, (consumed, whole) in use.capacity.items()
        },
    )


def _canonical(nanos: int) -> str:
    """As people write it: amounts of memory in Gi, others in G."""
    whole, rest = divmod(nanos, 10**9)
    if whole and not rest and whole % 2**20 == 0:
        return BinaryQuantity(whole).canonical
    return Quantity(nanos, -9).canonical


def _devices_held(devices: DeviceUsage) -> Iterator[DeviceHeld]:
    for device in devices.devices:
        for holder in device.holders:
            yield DeviceHeld(
                node=device.node,
                device=str(device.id),
                classes=device.classes,
                claim=holder.claim,
                request=holder.request,
                pods=holder.pods,
                share=holder.consumed if holder.is_share else None,
            )


def node_usages(simulation: Simulation, resource: str) -> Iterator[tuple[Node, Usage]]:
    """The usage of one resource on each node."""
    infos = simulation.scheduler.cluster.infos
    for node in simulation.api.all(Node):
        yield node, _node_usage(infos[node.name], resource)


def _node_usage(info: NodeInfo, resource: str) -> Usage:
    if resource == PODS:
        return Usage(PODS, unit_of(PODS), len(info.pods), info.allowed_pods)
    requested, allocatable = info.requested.get(resource, 0), info.allocatable.get(resource, 0)
    return Usage(resource, unit_of(resource), requested, allocatable)


def _totals(utilisation: Sequence[NodeUsage]) -> tuple[Usage, ...]:
    return tuple(
        Usage(
            column[0].resource,
            column[0].unit,
            sum(usage.requested for usage in column),
            sum(usage.allocatable for usage in column),
        )
        for column in zip(*(each.usages for each in utilisation), strict=True)
    )
