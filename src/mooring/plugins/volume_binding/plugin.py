"""The plugin: look up claims, judge nodes, choose, reserve and bind volumes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mooring.objects.claims import claim_name, claim_not_found, ownership_problem
from mooring.objects.pod import Pod
from mooring.objects.storage import PersistentVolumeClaim, Volume
from mooring.plugin import (
    SKIP,
    SUCCESS,
    Columns,
    CycleState,
    Depends,
    EventWithHint,
    Handle,
    Ints,
    NodeInfo,
    PluginError,
    PreFlight,
    Refusals,
    Rows,
    RowVerdicts,
    Snapshot,
    Status,
    Suggestion,
    by_mask,
    row_count,
    unresolvable,
)
from mooring.plugin.args import VolumeBindingArgs
from mooring.plugin.changes import Change
from mooring.plugin.storage import sign_volumes
from mooring.plugins.resource_scoring import curve_of
from mooring.plugins.volume_binding import hints, reservation
from mooring.plugins.volume_binding.binding import bind_pod_volumes
from mooring.plugins.volume_binding.capacity_score import capacity_score
from mooring.plugins.volume_binding.missing_storage import missing_storage
from mooring.plugins.volume_binding.search import (
    PodClaims,
    PodVolumes,
    classify,
    find_pod_volumes,
)

UNBOUND_IMMEDIATE = unresolvable("pod has unbound immediate PersistentVolumeClaims")
WAITING_FOR_CLAIM = (
    'waiting for ephemeral volume controller to create the persistentvolumeclaim "{}"'
)
LOST = 'persistentvolumeclaim "{}" bound to non-existent persistentvolume "{}"'
DELETED = 'persistentvolumeclaim "{}" is being deleted'

_STATE = "VolumeBinding"
_NO_CLAIMS = PodClaims()


@dataclass(slots=True)
class _PodState:
    """The state of one attempt. It is not cloned: what dry runs find on a node holds in general."""

    claims: PodClaims = _NO_CLAIMS
    #: Node name → what to do there, for nodes that passed Filter.
    by_node: dict[str, PodVolumes] = field(default_factory=dict)
    #: Whether all claims are bound on the chosen node; known after Reserve.
    all_bound: bool = False


class VolumeBinding:
    name = "VolumeBinding"
    #: See `framework.interface.DependsPlugin`.
    signature_fields = ("spec.volumes",)

    def __init__(self, args: VolumeBindingArgs | None, handle: Handle) -> None:
        args = args or VolumeBindingArgs()
        self._handle = handle
        self._listers = handle.cluster.listers
        self._cache = handle.cluster.volumes
        self._bind_timeout_s = args.bind_timeout_seconds
        #: None unless the gate StorageCapacityScoring is on: only then is there a shape.
        self._curve: Ints | None = curve_of(args.shape) if args.shape else None

    def pre_filter(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> Status:
        claims: list[PersistentVolumeClaim] = []
        for volume in pod.spec.volumes:
            name = claim_name(pod, volume)
            if name is None:
                continue
            claim = self._listers.get(PersistentVolumeClaim, f"{pod.namespace}/{name}")
            if claim is None:
                missing = WAITING_FOR_CLAIM.format(name) if volume.ephemeral else None
                return unresolvable(missing or claim_not_found(name))
            if problem := _problem(pod, volume, claim):
                return unresolvable(problem)
            claims.append(self._cache.claims.latest(claim))
        if not claims:
            state.write(_STATE, _PodState())
            return SKIP
        classified = classify(claims, self._cache, self._listers)
        if classified is None:
            return UNBOUND_IMMEDIATE
        state.write(_STATE, _PodState(classified))
        return SUCCESS

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        pod_state = _read(state)
        found = find_pod_volumes(pod_state.claims, node, self._listers)
        if not isinstance(found, PodVolumes):
            return unresolvable(*found)
        pod_state.by_node[node.name] = found
        return SUCCESS

    def filter_rows(
        self, state: CycleState, pod: Pod, columns: Columns, rows: Rows
    ) -> RowVerdicts | None:
        """All nodes at once, if all claims are bound and every node can use their volumes."""
        claims = _read(state).claims
        if self._curve is not None or claims.delayed:
            return None
        if not all(volume.is_everywhere for volume in claims.bound):
            return None
        return by_mask(np.ones(row_count(rows), np.bool_), SUCCESS)

    def pre_score(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> Status:
        return SKIP if self._curve is None else SUCCESS

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        volumes = _read(state).by_node.get(node.name)
        if volumes is None or self._curve is None:
            return 0
        return capacity_score(volumes, self._curve)

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Raises AssumeError if a volume or claim has changed since Filter."""
        pod_state = _read(state)
        volumes = pod_state.by_node.get(node_name)
        if volumes is None or not pod_state.claims.delayed:
            pod_state.all_bound = True
        else:
            pod_state.by_node[node_name] = reservation.assume(volumes, node_name, self._cache)

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        volumes = self.pod_volumes(state, node_name)
        if volumes is not None:
            reservation.restore(volumes, self._cache)

    def pre_bind_pre_flight(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> PreFlight | Status:
        pod_state = _read(state)
        if pod_state.all_bound:
            return SKIP
        _on_node(pod_state, node_name)
        return PreFlight(allow_parallel=True)

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        pod_state = _read(state)
        if not pod_state.all_bound:
            volumes = _on_node(pod_state, node_name)
            await bind_pod_volumes(pod, volumes, self._handle, timeout_s=self._bind_timeout_s)

    def events_to_register(self) -> Sequence[EventWithHint]:
        return hints.EVENTS

    def suggest(self, pod: Pod, refusals: Refusals) -> Iterator[Suggestion]:
        """The storage objects that the pod's claims lack, as one change: each is necessary."""
        missing: Change | None = missing_storage(refusals.snapshot.listers, pod)
        if missing is not None:
            yield Suggestion.fixed(missing)

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.CLUSTER if pod.spec.volumes else Depends.NODE

    def sign(self, pod: Pod) -> Mapping[str, object] | Status:
        return sign_volumes(pod)

    def pod_volumes(self, state: CycleState, node_name: str) -> PodVolumes | None:
        """What to do for the pod's claims on a node, for explanations; None if unknown."""
        pod_state = state.read(_STATE, _PodState)
        return None if pod_state is None else pod_state.by_node.get(node_name)


def _problem(pod: Pod, volume: Volume, claim: PersistentVolumeClaim) -> str | None:
    """Why an existing claim cannot be used."""
    if claim.status.phase == "Lost":
        return LOST.format(claim.name, claim.spec.volume_name)
    if claim.terminating:
        return DELETED.format(claim.name)
    return ownership_problem(pod, claim) if volume.ephemeral is not None else None


def _read(state: CycleState) -> _PodState:
    pod_state = state.read(_STATE, _PodState)
    if pod_state is None:
        raise PluginError("not found")
    return pod_state


def _on_node(pod_state: _PodState, node_name: str) -> PodVolumes:
    volumes = pod_state.by_node.get(node_name)
    if volumes is None:
        raise PluginError(f'no pod volume found for node "{node_name}"')
    return volumes
