"""Devices for tests: makers of claims and pods, and a cluster with all that DynamicResources asks for.

The examples use driver `d`, class `gpu`, pool `p` on node n1, claim `ns/c`,
request `r`.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from mooring.cluster.cache import Cluster
from mooring.config import DEFAULT_GATES
from mooring.config.args import DynamicResourcesArgs
from mooring.config.durations import seconds
from mooring.conformance.claim_stores import ListedObjects
from mooring.framework.api import Event
from mooring.framework.cycle_state import CycleState
from mooring.framework.status import Status
from mooring.objects.devices import (
    Allocation,
    ConsumerReference,
    DeviceClass,
    DeviceRequest,
    DevicesAllocation,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
)
from mooring.objects.devices import DeviceClaim as DeviceClaimPart
from mooring.objects.meta import KubeObject, ObjectMeta, OwnerReference
from mooring.objects.node import Node
from mooring.objects.pod import Pod, PodResourceClaim, PodResourceClaimStatus
from mooring.plugins.dynamic_resources import DynamicResources
from mooring.sim.claim_api import StoredClaims
from mooring.sim.clock import VirtualClock, VirtualLoop
from tests.devices.device_makers import make_class, make_held, make_node_selector, make_request
from tests.makers import make_pod

NS = "ns"
START_S = 1_767_225_600.0
GPU = "example.com/gpu"
DELETED_AT = datetime(2026, 1, 1, tzinfo=UTC)
CLAIM_KIND = {"api_version": "resource.k8s.io/v1", "kind": "ResourceClaim"}


def claim(
    name: str = "c",
    *requests: DeviceRequest,
    holds: Iterable[str] | None = None,
    on: str | None = None,
    reserved_for: Iterable[Pod] = (),
    deleting: bool = False,
    owner: Pod | None = None,
    finalizers: Iterable[str] = (),
    version: str = "1",
) -> ResourceClaim:
    """A claim for one device; `holds` names the devices of an allocated one, `on` the node it is for."""
    allocation = None
    if holds is not None:
        selector = None if on is None else make_node_selector("kubernetes.io/hostname", on)
        devices = DevicesAllocation(results=[make_held(each) for each in holds])
        allocation = Allocation(devices=devices, node_selector=selector)
    owners = []
    if owner is not None:
        owners = [OwnerReference(kind="Pod", name=owner.name, uid=owner.uid, controller=True)]
    return ResourceClaim(
        **CLAIM_KIND,
        metadata=ObjectMeta(
            name=name,
            namespace=NS,
            uid=f"uid-{name}",
            resource_version=version,
            deletion_timestamp=DELETED_AT if deleting else None,
            owner_references=owners,
            finalizers=list(finalizers),
        ),
        spec=ResourceClaimSpec(
            devices=DeviceClaimPart(requests=list(requests or [make_request()]))
        ),
        status=ResourceClaimStatus(
            allocation=allocation,
            reserved_for=[
                ConsumerReference(resource="pods", name=pod.name, uid=pod.uid)
                for pod in reserved_for
            ],
        ),
    )


def template(name: str = "t", *requests: DeviceRequest) -> ResourceClaimTemplate:
    spec = ResourceClaimSpec(devices=DeviceClaimPart(requests=list(requests or [make_request()])))
    return ResourceClaimTemplate(
        api_version="resource.k8s.io/v1",
        kind="ResourceClaimTemplate",
        metadata=ObjectMeta(name=name, namespace=NS, uid=f"uid-{name}"),
        spec=ResourceClaimTemplateSpec(spec=spec),
    )


def pod_with(
    *claims: str,
    name: str = "pod",
    templates: Mapping[str, str | None] | None = None,
    **more: Any,
) -> Pod:
    """A pod with these claims; `templates` maps entries from a template to the claims that were made."""
    entries = [PodResourceClaim(name=each, resource_claim_name=each) for each in claims]
    statuses = []
    for entry, made in (templates or {}).items():
        entries.append(PodResourceClaim(name=entry, resource_claim_template_name="t"))
        if made != "":
            statuses.append(PodResourceClaimStatus(name=entry, resource_claim_name=made))
    pod = make_pod(name, namespace=NS, resource_claims=entries, **more)
    return pod.with_status(resource_claim_statuses=statuses) if statuses else pod


def gpu_class(name: str = "gpu", *, resource: str | None = None, **metadata: Any) -> DeviceClass:
    made = make_class(name)
    return replace(
        made,
        metadata=replace(made.metadata, **metadata),
        spec=replace(made.spec, extended_resource_name=resource),
    )


class RecordingClaims(StoredClaims):
    """Notes every write, by its name and the claim's."""

    def __init__(self, store: ListedObjects) -> None:
        super().__init__(store)
        self.writes: list[str] = []
        #: Write → errors to raise instead, one call after the other.
        self.fails: dict[str, list[Exception]] = {}

    def _note(self, write: str, name: str) -> None:
        self.writes.append(f"{write} {name}")
        if self.fails.get(write):
            raise self.fails[write].pop(0)

    async def get(self, claim):
        self._note("get", claim.name)
        return await super().get(claim)

    async def create(self, claim):
        self._note("create", claim.metadata.generate_name)
        return await super().create(claim)

    async def set_finalizers(self, claim, finalizers):
        self._note("set_finalizers", claim.name)
        return await super().set_finalizers(claim, finalizers)

    async def set_status(self, claim, status):
        self._note("set_status", claim.name)
        return await super().set_status(claim, status)

    async def remove_reservation(self, claim, pod):
        self._note("remove_reservation", claim.name)
        return await super().remove_reservation(claim, pod)

    async def delete(self, claim):
        self._note("delete", claim.name)
        return await super().delete(claim)

    async def set_extended_resource_claim(self, pod, status):
        self._note("set_extended_resource_claim", pod.name)
        self.told = status
        return await super().set_extended_resource_claim(pod, status)


class World:
    """A cluster, the plugin, and an API that shows what is written at once. It is its own handle."""

    def __init__(self, *objects: KubeObject, **args: int) -> None:
        self.loop = VirtualLoop()
        self.clock = VirtualClock(self.loop, START_S)
        self.cluster = Cluster()
        self.profile_name = "default-scheduler"
        self.gates = DEFAULT_GATES
        self.pods: dict[str, Pod] = {}
        self.store = ListedObjects(self.cluster.listers, self.pods)
        self.claims = RecordingClaims(self.store)
        self.writer = self
        self.events: list[Event] = []
        self.activated: list[str] = []
        self._spawned: list[Coroutine[Any, Any, None]] = []
        for obj in objects:
            self.put(obj)
        wanted = {"filter_timeout": 10, "binding_timeout": 600, **args}
        durations = {name: seconds(value) for name, value in wanted.items()}
        self.plugin = DynamicResources(DynamicResourcesArgs(**durations), self)

    def put(self, obj: KubeObject) -> None:
        if isinstance(obj, Node):
            self.cluster.add_node(obj)
        elif isinstance(obj, Pod):
            self.pods[obj.key] = obj
        else:
            self.cluster.listers.put(obj)

    def drop(self, obj: KubeObject) -> None:
        self.cluster.listers.drop(obj)

    def claim(self, name: str = "c") -> ResourceClaim:
        found = self.cluster.listers.get(ResourceClaim, f"{NS}/{name}")
        assert found is not None
        return found

    # The handle

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self._spawned.append(work)

    def activate(self, pods: Mapping[str, Pod]) -> None:
        self.activated += pods

    def record_event(self, event: Event) -> None:
        self.events.append(event)

    def settle(self) -> None:
        """Carry out what was begun beside the scheduling cycle."""
        while self._spawned:
            self.loop.run_until_complete(self._spawned.pop(0))

    # The points

    def pre_filter(self, pod: Pod, state: CycleState | None = None) -> Status:
        return self.plugin.pre_filter(state or CycleState(), pod, self.cluster.snapshot())

    def filter(self, pod: Pod) -> tuple[CycleState, dict[str, Status]]:
        """The verdict on each node, one by one; PreFilter must succeed."""
        state, snapshot = CycleState(), self.cluster.snapshot()
        assert self.plugin.pre_filter(state, pod, snapshot).ok
        return state, {node.name: self.plugin.filter(state, pod, node) for node in snapshot}

    def filter_rows(self, pod: Pod) -> tuple[CycleState, dict[str, Status] | None]:
        """The verdict on each node, all at once; None if the plugin wants to be asked node by node."""
        state, snapshot = CycleState(), self.cluster.snapshot()
        assert self.plugin.pre_filter(state, pod, snapshot).ok
        columns = snapshot.columns
        verdicts = self.plugin.filter_rows(state, pod, columns, columns.all_rows)
        if verdicts is None:
            return state, None
        return state, {node.name: verdicts.status(node.row) for node in snapshot}

    def post_filter(self, state: CycleState, pod: Pod) -> Status:
        result, status = self.plugin.post_filter(state, pod, None)
        assert result is None
        return status

    def reserve(self, pod: Pod, node: str = "n1") -> CycleState:
        self.pods[pod.key] = pod
        state, statuses = self.filter(pod)
        assert statuses[node].ok, statuses
        self.plugin.reserve(state, pod, node)
        return state

    def pre_bind(self, state: CycleState, pod: Pod, node: str = "n1") -> None:
        self.loop.run_until_complete(self.plugin.pre_bind(state, pod, node))

    def unreserve(self, state: CycleState, pod: Pod, node: str = "n1") -> None:
        self.plugin.unreserve(state, pod, node)
        self.settle()

    def close(self) -> None:
        for work in self._spawned:
            work.close()
        self.loop.close()
