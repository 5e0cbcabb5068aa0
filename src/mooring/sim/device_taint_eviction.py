"""The device taint eviction controller of a simulated cluster.

A pod on a node that uses a device with a NoExecute taint is deleted, unless its claim tolerates the taint;
with `tolerationSeconds`, it is deleted so long after the taint was added. Taints come from slices, and from
DeviceTaintRules if their feature gate is on.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from mooring.cluster.device_taint_rules import may_select, selects
from mooring.framework.api import Event
from mooring.framework.clock import Clock
from mooring.objects.devices import (
    DeviceAllocationResult,
    DeviceTaint,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.objects.resource_claims import (
    ClaimProblem,
    claim_name,
    is_owned_by,
    is_pod_group,
    is_reserved_for,
    is_reserved_for_group_of,
    tolerates_taint,
)
from mooring.sim.api import SimApi

_NO_EXECUTE = "NoExecute"

#: The name of a slice or a rule, of a device (empty for a rule), and the key of the taint.
_TaintKey = tuple[str, str, str]


@dataclass(slots=True)
class DeviceTaintEviction:
    """Watches pods, claims, slices and rules; register it with `SimApi.watch`."""

    api: SimApi
    clock: Clock
    #: Whether DeviceTaintRules count.
    has_rules: bool
    #: Slices with NoExecute taints, and rules that add one, by name.
    _slices: dict[str, ResourceSlice] = field(default_factory=dict)
    _rules: dict[str, DeviceTaintRule] = field(default_factory=dict)
    #: When taints without `timeAdded` were first seen, in seconds since the epoch.
    _seen_at: dict[_TaintKey, float] = field(default_factory=dict)
    #: UIDs of pods → when they will be looked at again.
    _due: dict[str, float] = field(default_factory=dict)

    def added(self, obj: KubeObject) -> None:
        match obj:
            case ResourceSlice():
                self._slice_changed(obj)
            case DeviceTaintRule() if self.has_rules:
                self._rule_changed(obj)
            case ResourceClaim() if self._slices or self._rules:
                self._look_at_users(obj)
            case Pod() if obj.spec.resource_claims and (self._slices or self._rules):
                self._look_at(obj.key)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        self.added(new)

    def deleted(self, obj: KubeObject) -> None:
        if isinstance(obj, ResourceSlice):
            self._slices.pop(obj.name, None)
            self._forget_taints(obj.name)
        elif isinstance(obj, DeviceTaintRule):
            self._rules.pop(obj.name, None)
            self._forget_taints(obj.name)

    # Taints

    def _slice_changed(self, piece: ResourceSlice) -> None:
        evicting = {
            (piece.name, device.name, taint.key)
            for device in piece.spec.devices
            for taint in device.taints
            if taint.effect == _NO_EXECUTE
        }
        self._slices.pop(piece.name, None)
        self._forget_taints(piece.name, but=evicting)
        if evicting:
            self._slices[piece.name] = piece
            self._note_taints(evicting)

    def _rule_changed(self, rule: DeviceTaintRule) -> None:
        self._rules.pop(rule.name, None)
        if rule.spec.taint.effect != _NO_EXECUTE:
            self._forget_taints(rule.name)
            return
        self._rules[rule.name] = rule
        key = (rule.name, "", rule.spec.taint.key)
        self._forget_taints(rule.name, but={key})
        self._note_taints({key})

    def _note_taints(self, evicting: set[_TaintKey]) -> None:
        for key in evicting:
            self._seen_at.setdefault(key, self.clock.now())
        for claim in self.api.all(ResourceClaim):
            self._look_at_users(claim)

    def _forget_taints(self, name: str, but: set[_TaintKey] | None = None) -> None:
        kept = but or set()
        for key in [key for key in self._seen_at if key[0] == name and key not in kept]:
            del self._seen_at[key]

    def _taints_of(self, result: DeviceAllocationResult) -> list[tuple[DeviceTaint, float]]:
        """The NoExecute taints of an allocated device, and when they were added."""
        found = []
        for piece in self._slices.values():
            if (piece.spec.driver, piece.spec.pool.name) != (result.driver, result.pool):
                continue
            for device in piece.spec.devices:
                if device.name == result.device:
                    found += [
                        (taint, self._added_at((piece.name, device.name, taint.key), taint))
                        for taint in device.taints
                        if taint.effect == _NO_EXECUTE
                    ]
        for rule in self._rules.values():
            if may_select(rule, result.driver, result.pool) and selects(rule, result.device):
                taint = rule.spec.taint
                found.append((taint, self._added_at((rule.name, "", taint.key), taint)))
        return found

    def _added_at(self, key: _TaintKey, taint: DeviceTaint) -> float:
        return self._seen_at[key] if taint.time_added is None else taint.time_added.timestamp()

    # Pods

    def _look_at_users(self, claim: ResourceClaim) -> None:
        for user in claim.status.reserved_for:
            if user.resource == "pods" and not user.api_group:
                self._look_at(f"{claim.namespace}/{user.name}")
            elif is_pod_group(user):
                group_key = f"{claim.namespace}/{user.name}"
                for pod in list(self.api.all(Pod)):
                    if pod.group_key == group_key:
                        self._look_at(pod.key)

    def _look_at(self, key: str) -> None:
        """Delete the pod, or come back when its time is over."""
        pod = self.api.get(Pod, key)
        if pod is None or not pod.node_name or pod.finished or pod.terminating:
            return
        when = self._eviction_time(pod)
        if when is None:
            return
        now = self.clock.now()
        if when <= now:
            self._evict(pod)
        elif self._due.get(pod.uid) != when:
            self._due[pod.uid] = when
            self.api.running += 1
            uid = pod.uid
            self.api.later(when - now, lambda: self._come_back(key, uid, when))

    def _come_back(self, key: str, uid: str, when: float) -> None:
        self.api.running -= 1
        if self._due.get(uid) == when:
            del self._due[uid]
        self._look_at(key)

    def _evict(self, pod: Pod) -> None:
        self.api.record_event(
            Event(
                regarding=pod,
                type="Normal",
                reason="DeviceTaintManagerEviction",
                action="",
                note="Marking for deletion",
                reporting_controller="device-taint-eviction",
            )
        )
        self.api.terminate(pod)

    def _eviction_time(self, pod: Pod) -> float | None:
        times = []
        for entry in pod.spec.resource_claims:
            with suppress(ClaimProblem):
                name, must_own = claim_name(pod, entry)
                claim = name and self.api.get(ResourceClaim, f"{pod.namespace}/{name}")
                if not claim:
                    continue
                by_group = is_reserved_for_group_of(claim, pod)
                if not by_group and not is_reserved_for(claim, pod):
                    continue
                if not must_own or by_group or is_owned_by(claim, pod):
                    times += self._times_of(claim)
        return min(times, default=None)

    def _times_of(self, claim: ResourceClaim) -> list[float]:
        """For each taint that the claim does not tolerate for ever: when its pods have to go."""
        if claim.status.allocation is None:
            return []
        times = []
        for result in claim.status.allocation.devices.results:
            for taint, added_at in self._taints_of(result):
                tolerated = [
                    each.toleration_seconds
                    for each in result.tolerations
                    if each.effect == _NO_EXECUTE and tolerates_taint(each, taint)
                ]
                if None not in tolerated:
                    seconds = [max(0, each) for each in tolerated if each is not None]
                    times.append(added_at + min(seconds, default=0))
        return times
