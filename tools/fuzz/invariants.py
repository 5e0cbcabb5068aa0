"""What must hold: at every write, at every step, and at rest.

The truth is the store. What a scheduler believes may lag behind it, but what it does must not break it. Some
things no scheduler can prevent, and they are not held against it: a write that arrives after its sender has
died or lost its lease, what other schedulers and direct changes of nodes do, and a new process that an API
server has shown the past to.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from math import inf

from mooring.cluster.node_info import HostPort
from mooring.config.extension_points import ExtensionPoint
from mooring.errors import InvariantError
from mooring.framework.status import Status
from mooring.live.status_patches import REPEAT_AFTER_S, StatusPatches, _said, _Waiting
from mooring.objects.devices import ResourceClaim
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.pod_groups import PodGroup
from mooring.objects.storage import PersistentVolume, PersistentVolumeClaim
from mooring.plugins.default_preemption import DefaultPreemption
from mooring.scheduler.engine import Engine
from tools.fuzz import memory
from tools.fuzz.scheduler import SchedulerProcess
from tools.fuzz.store import Change, Store
from tools.fuzz.swarm import Swarm

#: Where a task waits that does something for a pod.
_WORK = ("scheduler.", "plugins.", "live.writer:", "live.status_patches:", "live.claim_writer:")


class Violation(Exception):
    """Something that must not be."""


class Truth:
    """Watches every write, as it is made."""

    def __init__(self, store: Store, swarm: Swarm) -> None:
        self._store = store
        self._swarm = swarm
        #: Who makes the write under way; None for actors and controllers.
        self.writer: SchedulerProcess | None = None
        self.is_late = False
        #: Whether the sender of the write under way has given up waiting for its answer.
        self.is_abandoned = False
        #: UIDs of pods that such a write, or one of a scheduler that was not told of the bind, has
        #: nominated when they had a node already.
        self.nominated_late: set[str] = set()
        #: UIDs of pods that have preempted more than one pod at once.
        self.have_several_victims: set[str] = set()
        #: By UID: the scheduler of ours that has bound a pod in time. Then UIDs of claims it has allocated.
        self._placed: dict[str, SchedulerProcess] = {}
        self._allocated: set[str] = set()
        #: The most that a node of each name ever offered.
        self._offered: defaultdict[str, Counter[str]] = defaultdict(Counter)
        #: Ports that others gave to two pods of a node. When one of them leaves, the port counts as free, as
        #: in the reference (`NodeInfo.used_ports`).
        self._shared_ports: set[tuple[str, HostPort]] = set()
        #: Keys of volume claims that were deleted: another one of the name may be for one pod only.
        self._deleted_claims: set[str] = set()
        self._highest_pending = -1
        #: The same of members of gangs: a gang preempts before it is known which member goes where.
        self._highest_in_gang = -1
        #: Keys of gangs that lost a member, or had one bound by somebody else.
        self.disturbed: set[str] = set()
        #: UIDs of members of gangs whose binding cycle began.
        self.sent_to_bind: set[str] = set()
        #: UIDs of all pods that there ever were.
        self.known_pods: set[str] = set()
        #: By process, then by node: the highest priority of a pod that it ever held the node for.
        self._held: defaultdict[SchedulerProcess, dict[str, int]] = defaultdict(dict)
        self.counts: Counter[str] = Counter()
        store.on_change.append(self._changed)

    def _changed(self, change: Change) -> None:
        match change.obj:
            case Node() as node:
                for name, amount in _amounts(node.status.allocatable).items():
                    offered = self._offered[node.name]
                    offered[name] = max(offered[name], amount)
            case Pod() as pod:
                self._pod_changed(pod, change)
            case PersistentVolumeClaim() as gone if change.type == "DELETED":
                self._deleted_claims.add(gone.key)
            case ResourceClaim() as claim if claim.status.allocation is not None:
                self._claim_changed(claim, change)

    def _pod_changed(self, pod: Pod, change: Change) -> None:
        self.known_pods.add(pod.uid)
        if not pod.node_name:
            self._highest_pending = max(self._highest_pending, pod.priority)
            if pod.group_key:
                self._highest_in_gang = max(self._highest_in_gang, pod.priority)
        old = change.old
        if pod.group_key and self._disturbs(pod, change):
            self.disturbed.add(pod.group_key)
        is_new_there = pod.node_name and not (isinstance(old, Pod) and old.node_name)
        if is_new_there and (self.writer is None or self.is_late):
            self._shared_ports.update((pod.node_name, port) for port in pod.host_ports)
        if not isinstance(old, Pod) or self.writer is None:
            return
        if old.node_name and pod.node_name != old.node_name:
            raise Violation(f"pod {pod.key} has moved from {old.node_name} to {pod.node_name}")
        if pod.node_name and not old.node_name:
            self.counts["late bind" if self.is_late else "bind"] += 1
            if not self.is_late:
                self._placed[pod.uid] = self.writer
                self._check_node(pod)
                self._check_exclusive_claims(pod)
        if (pod.terminating and not old.terminating) or change.type == "DELETED":
            self.counts["eviction"] += 1
            if pod.priority >= self._highest_pending and not self._swarm.counts["hostile object"]:
                raise Violation(f"{self.writer.name} evicts {pod.key}, which nobody may preempt")
            self._check_plan(pod, self.writer)
        self._check_condition(pod, old)

    def _disturbs(self, pod: Pod, change: Change) -> bool:
        if change.type == "DELETED" or pod.terminating or pod.finished:
            return True
        was_bound = isinstance(change.old, Pod) and change.old.node_name == "" and pod.node_name
        return bool(was_bound) and (self.writer is None or self.is_late)

    def _check_condition(self, pod: Pod, old: Pod) -> None:
        """A pod is never told that it fits nowhere by the scheduler that gave it a node."""
        is_out_of_date = self.is_abandoned or self.is_late or self.was_lied_to
        if pod.node_name and pod.nominated_node_name:
            # Nothing can call a late write back; and who was shown the past, or was not told yet that
            # somebody else has bound the pod, may nominate it.
            if is_out_of_date or self._placed.get(pod.uid) is not self.writer:
                self.nominated_late.add(pod.uid)
        if is_out_of_date:
            return
        told, before = pod.condition("PodScheduled"), old.condition("PodScheduled")
        if pod.node_name and told is not None and told != before and told.status == "False":
            if self._placed.get(pod.uid) is self.writer:
                raise Violation(f"pod {pod.key} is on {pod.node_name}, and told {told.message!r}")

    def _ours(self) -> list[Pod]:
        return [
            pod
            for pod in self._store.all(Pod)
            if pod.uid in self._placed
            and pod.node_name
            and not pod.finished
            and self._can_be_known(pod)
        ]

    def note_held(self, process: SchedulerProcess, engine: Engine) -> None:
        """Remember which nodes were held for pods that preempt."""
        held = self._held[process]
        for node in engine.nominator.nodes():
            for pod in engine.nominator.nominated_pods_for_node(node):
                held[node] = max(held.get(node, pod.priority), pod.priority)
        for framework in engine.frameworks.values():
            for call in framework.points[ExtensionPoint.POST_FILTER]:
                if isinstance(call.plugin, DefaultPreemption):
                    self._note_victims(call.plugin)

    def _note_victims(self, plugin: DefaultPreemption) -> None:
        for eviction in plugin._evictions._under_way.values():
            if len(eviction.victims) > 1:
                self.have_several_victims.update(pod.uid for pod in eviction.preemptor.pods)

    def _check_plan(self, victim: Pod, process: SchedulerProcess) -> None:
        """A pod is evicted only where this scheduler holds the node, or held it, for a more important one."""
        held = self._held[process]
        nodes = [victim.node_name] if victim.node_name else list(held)
        highest = max([held[node] for node in nodes if node in held], default=-1)
        if self._swarm.counts["hostile object"]:
            return
        if max(highest, self._highest_in_gang) <= victim.priority:
            where = victim.node_name or "no node"
            raise Violation(f"{process.name} evicts {victim.key} from {where} for no pod: {held}")

    def note_binding(self, engine: Engine) -> None:
        """Remember which members of gangs were to be bound."""
        for attempt in engine.binding.values():
            if attempt.pod.group_key:
                self.sent_to_bind.add(attempt.pod.uid)

    def _can_be_known(self, pod: Pod) -> bool:
        """Not what the leader before has bound, as long as the watch has not shown it."""
        if self.writer is None or self._placed[pod.uid] is self.writer:
            return True
        engine = self.writer.engine
        shown = None if engine is None else engine.observed_pods.get(pod.key)
        return shown is not None and bool(shown.node_name)

    @property
    def was_lied_to(self) -> bool:
        """Whether schedulers were shown the past, or not shown the present."""
        counts = self._swarm.counts
        lies = ("stale list", "lost watch event", "garbled answer", "hostile object")
        return any(counts[lie] for lie in lies)

    def _check_node(self, pod: Pod) -> None:
        if self.was_lied_to:
            return
        name = pod.node_name
        mine = [other for other in self._ours() if other.node_name == name]
        used = Counter({"pods": len(mine)})
        for other in mine:
            used.update(_requests(other))
        for resource, amount in used.items():
            if amount > self._offered[name][resource]:
                raise Violation(
                    f"node {name} offers {self._offered[name][resource]} {resource}; with"
                    f" {pod.key} it has pods for {amount}: {[each.key for each in mine]}"
                )
        ports = Counter(
            port
            for other in mine
            for port in other.host_ports
            if (name, port) not in self._shared_ports
        )
        if ports and max(ports.values()) > 1:
            raise Violation(f"node {name}: two pods have the same port: {ports}")

    def _check_exclusive_claims(self, pod: Pod) -> None:
        if self.was_lied_to or self._swarm.has("node churn"):
            return
        users = Counter(key for other in self._ours() for key in _volume_claims(other))
        for key in set(_volume_claims(pod)) - self._deleted_claims:
            claim = self._store.get(PersistentVolumeClaim, key)
            if claim is not None and claim.spec.access_modes == ["ReadWriteOncePod"]:
                if users[key] > 1:
                    raise Violation(f"claim {key} is for one pod, and {users[key]} use it")

    def _claim_changed(self, claim: ResourceClaim, change: Change) -> None:
        old = change.old
        is_new = isinstance(old, ResourceClaim) and old.status.allocation is None
        if self.writer is not None and is_new:
            self.counts["late allocation" if self.is_late else "allocation"] += 1
            if not self.is_late:
                self._allocated.add(claim.uid)
        if self.was_lied_to or claim.uid not in self._allocated or not is_new:
            return
        users: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
        for each in self._store.all(ResourceClaim):
            if each.status.allocation is not None and each.uid in self._allocated:
                for held in each.status.allocation.devices.results:
                    users[held.driver, held.pool, held.device].add(each.key)
        for device, keys in users.items():
            if len(keys) > 1:
                raise Violation(f"device {device} is given to {sorted(keys)}")


# At every step


def check_engine(engine: Engine) -> None:
    """What is kept is what a rebuild gives."""
    try:
        engine.validate()
    except InvariantError as error:
        raise Violation(f"the books do not add up: {error}") from error
    nominator, known = engine.nominator, engine.observed_pods
    for name in list(nominator.nodes()):
        for pod in nominator.nominated_pods_for_node(name):
            live = known.get(pod.key)
            if live is None or live.uid != pod.uid:
                raise Violation(f"node {name} is held for {pod.key}, which is gone")


# At rest


def check_rest(process: SchedulerProcess, store: Store, truth: Truth) -> None:
    """Nothing is under way, and the scheduler knows what the API server knows."""
    engine = process.engine
    assert engine is not None
    check_engine(engine)
    _none("assumed", [pod.key for pod in engine.cluster.assumed_pods()])
    _none("waiting for Permit", [waiting.pod.key for waiting in engine.waiting_pods])
    _none("in flight", [pod.key for pod in engine.queue.in_flight_pods()])
    _none("being bound", list(engine.binding))
    _none("claims in flight", engine.cluster.claims._in_flight)
    _check_pods(engine, store, truth.nominated_late)
    _check_objects(engine, store)
    _check_writer(process, store)
    _check_gangs(engine, store, truth)
    _check_claims(store)
    _check_memory(process, store, truth)


def _none(what: str, found: Iterable[object]) -> None:
    found = list(found)
    if found:
        raise Violation(f"at rest, still {what}: {found}")


def _check_pods(engine: Engine, store: Store, nominated_late: set[str]) -> None:
    living = {pod.uid: pod for pod in store.all(Pod) if not pod.finished}
    placed = {uid: pod.node_name for uid, pod in living.items() if pod.node_name}
    believed = {uid: pod.node_name for uid, pod in engine.cluster.pods.items()}
    if believed != placed:
        raise Violation(f"the scheduler places pods {believed}, the API server {placed}")
    waiting = {pod.uid for pod in engine.queue.pending_pods()[0] if not pod.terminating}
    pending = {
        uid
        for uid, pod in living.items()
        if not pod.node_name and not pod.terminating and pod.scheduler_name in engine.frameworks
    }
    if waiting != pending:
        raise Violation(f"the queue has {sorted(waiting)}, the API server {sorted(pending)}")
    for pod in living.values():
        if pod.node_name and pod.nominated_node_name and pod.uid not in nominated_late:
            raise Violation(f"pod {pod.key} has a node and a nomination")


def _check_objects(engine: Engine, store: Store) -> None:
    nodes = {name: info.node for name, info in engine.cluster.infos.items() if info.node}
    known_nodes = {name: _version(node) for name, node in nodes.items()}
    stored_nodes = {node.name: _version(node) for node in store.all(Node)}
    if known_nodes != stored_nodes:
        raise Violation(f"the scheduler knows nodes {known_nodes}, the API server {stored_nodes}")
    for kind in (PersistentVolume, PersistentVolumeClaim):
        for obj in store.all(kind):
            volumes = engine.cluster.volumes
            known = (volumes.volumes if kind is PersistentVolume else volumes.claims).get(obj.key)
            if known is None or _content(known) != _content(obj):
                raise Violation(f"{kind.__name__} {obj.key} is {obj}, and seen as {known}")


def _version(obj: KubeObject) -> tuple[str, str]:
    return obj.uid, obj.metadata.resource_version


def _content(obj: KubeObject) -> tuple[object, ...]:
    """What is assumed has the version of what was read."""
    return (*_version(obj), obj.metadata.annotations, getattr(obj, "spec", None))


def _check_writer(process: SchedulerProcess, store: Store) -> None:
    assert process.runner is not None
    assert process.runner.session is not None
    writer = process.runner.session.writer
    uids = {pod.uid for pod in store.all(Pod)}
    _none("binding in the writer", writer._binding)
    _none("deleting what is gone", [uid for uid in writer._deleting if uid not in uids])
    patches = writer._patches
    _none("patches under way", patches._under_way)
    _none("patches of pods that are gone", [uid for uid in patches._waiting if uid not in uids])
    _none("written of pods that are gone", [uid for uid in patches._written if uid not in uids])
    waiting = patches._waiting.values()
    _none(
        "patches that say news", [each.pod.key for each in waiting if not _repeats(each, patches)]
    )


def _repeats(waiting: _Waiting, patches: StatusPatches) -> bool:
    """Whether it only says with other words what was written less than 20 s ago.

    Where Permit refuses for ever, pods are tried for ever, and such conditions never end.
    """
    at, said = patches._written.get(waiting.pod.uid, (-inf, None))
    due_in_s = at + REPEAT_AFTER_S - patches._clock.now()
    says = [_said(condition) for condition in waiting.conditions.values()]
    return says == [said] and not waiting.tries and due_in_s > 0.0


def _check_gangs(engine: Engine, store: Store, truth: Truth) -> None:
    """A gang is bound whole or not at all, unless a bind failed or its scheduler died, and the room was lost.

    Such a gang fits no longer, its other pods are told so, and no node is held for them.
    """
    members: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in store.all(Pod):
        if pod.group_key:
            members[pod.group_key].append(pod)
    for group in store.all(PodGroup):
        gang = group.spec.scheduling_policy.gang
        mine = members.get(group.key, [])
        if gang is None or group.key in truth.disturbed:
            continue
        bound = [pod for pod in mine if pod.node_name]
        if 0 < len(bound) < gang.min_count:
            torn = f"gang {group.key} needs {gang.min_count}, and has {len(bound)} of {len(mine)}"
            if sum(pod.uid in truth.sent_to_bind for pod in mine) < gang.min_count:
                raise Violation(torn)
            _check_torn_gang(engine, [pod for pod in mine if not pod.node_name], torn)


def _check_torn_gang(engine: Engine, waiting: list[Pod], torn: str) -> None:
    questions = engine.group_questions
    assert questions is not None
    for pod in waiting:
        told = pod.condition("PodScheduled")
        if told is None or told.status != "False":
            raise Violation(f"{torn}, and {pod.key} is told nothing")
        held = pod.nominated_node_name or engine.nominator.nominated_node(pod.uid)
        if held in engine.cluster.infos:
            raise Violation(f"{torn}, and {pod.key} holds node {held}")
    tried = questions.try_placements(questions.waiting(waiting[0].group_key))
    if not isinstance(tried, Status) and any(each.fits for each in tried):
        raise Violation(f"{torn}, though all of it fits")


def _check_claims(store: Store) -> None:
    uids = {pod.uid for pod in store.all(Pod)}
    for claim in store.all(ResourceClaim):
        for user in claim.status.reserved_for:
            if user.uid not in uids:
                raise Violation(f"claim {claim.key} is reserved for a pod that is gone: {user}")
        if claim.terminating and not claim.status.reserved_for:
            left = claim.metadata.finalizers
            raise Violation(f"claim {claim.key} was deleted, and is held by {left}")


def _check_memory(process: SchedulerProcess, store: Store, truth: Truth) -> None:
    gone = truth.known_pods - {pod.uid for pod in store.all(Pod)}
    _none("remembered, though the pods are gone", memory.remembered(process.runner, gone))
    assert process.runner is not None
    assert process.runner.session is not None
    waits = [places for places in process.waiting() if any(map(_is_work, places))]
    repeats = [places for places in waits if any(map(_is_patch, places))]
    _none("at work", [places for places in waits if places not in repeats])
    patches = process.runner.session.writer._patches
    if len(repeats) > len(patches._waiting):
        raise Violation(f"{len(repeats)} tasks wait for {len(patches._waiting)} patches")


def _is_work(place: str) -> bool:
    return place.startswith(_WORK)


def _is_patch(place: str) -> bool:
    """Of what it waits for, `_check_writer` knows."""
    return place.startswith("live.status_patches:patch:")


def check_all_are_placed(engine: Engine, truth: Truth, *, woken: bool) -> None:
    """No pod waits that would fit. If `woken`, without waiting for the flush every five minutes."""
    for queued in engine.queue.unschedulable_pods():
        pod = queued.pod
        if pod.terminating or engine.queue.gate(pod) is not None or pod.group_key:
            continue
        if "MayHold" in queued.unschedulable_plugins:
            # It fits, and Permit says no.
            continue
        was_held_back = "DefaultPreemption" in queued.unschedulable_plugins
        if woken and was_held_back and pod.uid in truth.have_several_victims:
            # What its first victims freed was told while it was held back for the last one: as in the
            # reference, where DefaultPreemption is asked about such an event, and always says no.
            continue
        if woken and "InterPodAffinity" in queued.unschedulable_plugins:
            # A new node wakes only pods with terms of their own, here as in the reference.
            terms = pod.spec.affinity
            if terms is None or (terms.pod_affinity is None and terms.pod_anti_affinity is None):
                continue
            # Where it would be the first of its kind, nobody is woken when the last one goes: the same.
            needed = pod.affinity_terms.required_affinity
            if needed and all(term.matches(pod.namespace, pod.labels, {}) for term in needed):
                continue
        if engine.fits(pod):
            why = "was not woken" if woken else "was not placed"
            raise Violation(f"pod {pod.key} fits, and {why}: {queued.unschedulable_plugins}")


def _amounts(resources: dict) -> Counter[str]:  # type: ignore[type-arg]
    return Counter(
        {
            name: amount.milli_value if name == "cpu" else amount.value
            for name, amount in resources.items()
        }
    )


def _requests(pod: Pod) -> Counter[str]:
    total: Counter[str] = Counter()
    for container in pod.spec.containers:
        total.update(_amounts(container.resources.requests))
    return total


def _volume_claims(pod: Pod) -> list[str]:
    return [
        f"{pod.namespace}/{volume.persistent_volume_claim.claim_name}"
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    ]
