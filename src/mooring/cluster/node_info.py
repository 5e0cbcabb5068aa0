"""One node and its pods as an object, which per-node rules read and dry runs change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mooring.errors import InvariantError, check_kept
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.quantity import MAX_INT64, MIN_INT64, wrap_int64
from mooring.objects.requests import PODS, Amounts, amounts
from mooring.objects.taints import Taint

#: The address, protocol and port of a host port.
HostPort = tuple[str, str, int]


class PodsOnNode:
    """Pods by UID, in the order in which the reference keeps the pods of a node.

    An added pod is the last. The last pod takes the place of a removed pod. Preemption considers
    equally important pods in this order.
    """

    __slots__ = ("_index", "_pods")

    def __init__(self) -> None:
        self._pods: list[Pod] = []
        #: UID → the pod's index in `_pods`; None until a pod other than the last is looked up. Most
        #: nodes never need it, and it takes more memory than the list.
        self._index: dict[str, int] | None = None

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[str]:
        return (pod.uid for pod in self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._indexed()

    def __getitem__(self, uid: str) -> Pod:
        return self._pods[self._indexed()[uid]]

    def values(self) -> Sequence[Pod]:
        """The pods. Do not keep the list: it changes with the node."""
        return self._pods

    def add(self, pod: Pod) -> None:
        if self._index is not None:
            self._index[pod.uid] = len(self._pods)
        self._pods.append(pod)

    def remove(self, uid: str) -> Pod:
        """Raises KeyError if the pod is not here."""
        pods = self._pods
        if pods and pods[-1].uid == uid:
            if self._index is not None:
                del self._index[uid]
            return pods.pop()
        index = self._indexed().pop(uid)
        removed, last = pods[index], pods.pop()
        pods[index] = last
        self._indexed()[last.uid] = index
        return removed

    def copy(self) -> PodsOnNode:
        other = PodsOnNode()
        other._pods = self._pods.copy()
        return other

    def validate(self) -> None:
        """Raise InvariantError unless the index has the position of every pod."""
        if self._index is not None:
            check_kept("the places of pods on a node", self._index, self._places())

    def _indexed(self) -> dict[str, int]:
        if self._index is None:
            self._index = self._places()
        return self._index

    def _places(self) -> dict[str, int]:
        return {pod.uid: index for index, pod in enumerate(self._pods)}


class NodeInfo:
    """What a node offers, and what its pods take.

    If a pod arrives before its node, `node` is None and the entry is invisible to scheduling.
    """

    __slots__ = (
        "allocatable",
        "allowed_pods",
        "generation",
        "name",
        "node",
        "non_zero_cpu",
        "non_zero_memory",
        "pods",
        "pvc_refs",
        "requested",
        "row",
        "used_ports",
    )

    def __init__(self, name: str, row: int = -1) -> None:
        self.name = name
        #: The node's row in the columns.
        self.row = row
        self.node: Node | None = None
        #: Every pod on the node (assigned or assumed), by UID.
        self.pods = PodsOnNode()
        self.allocatable: Amounts = {}
        self.allowed_pods = 0
        self.requested: Amounts = {}
        self.non_zero_cpu = 0
        self.non_zero_memory = 0
        #: A set, not a count: if two pods have the same port, removing either frees it, as
        #: upstream.
        self.used_ports: set[HostPort] = set()
        #: `namespace/name` of every claim in use here → how many pods use it.
        self.pvc_refs: dict[str, int] = {}
        #: Increases with every change; never reused, not even for a node of the same name.
        self.generation = 0

    @property
    def labels(self) -> dict[str, str]:
        return self.node.metadata.labels if self.node is not None else {}

    @property
    def taints(self) -> tuple[Taint, ...]:
        return self.node.taints if self.node is not None else ()

    def set_node(self, node: Node) -> None:
        self.node = node
        self.allocatable = amounts(node.status.allocatable)
        pods = node.status.allocatable.get(PODS)
        self.allowed_pods = pods.value if pods is not None else 0

    def drop_node(self) -> None:
        self.node = None
        self.allocatable = {}
        self.allowed_pods = 0

    def add_pod(self, pod: Pod) -> None:
        self.pods.add(pod)
        self._account(pod, 1)
        if pod.host_ports:
            self.used_ports.update(pod.host_ports)

    def remove_pod(self, pod: Pod) -> None:
        """Raises KeyError if the pod is not here."""
        held = self.pods.remove(pod.uid)
        self._account(held, -1)
        if held.host_ports:
            self.used_ports.difference_update(held.host_ports)

    def keep_ports(self, ports: Iterable[HostPort]) -> None:
        """The ports among these that pods of the node use are taken."""
        shared = set(ports)
        if shared:
            for pod in self.pods.values():
                self.used_ports.update(shared.intersection(pod.host_ports))

    def _account(self, pod: Pod, sign: int) -> None:
        requested = self.requested
        for name, amount in pod.held.items():
            total = requested.get(name, 0) + sign * amount
            # Asking first takes a fifth of the call; every pod that comes or goes passes here.
            requested[name] = total if MIN_INT64 <= total <= MAX_INT64 else wrap_int64(total)
        cpu, memory = pod.held_non_zero
        total = self.non_zero_cpu + sign * cpu
        self.non_zero_cpu = total if MIN_INT64 <= total <= MAX_INT64 else wrap_int64(total)
        total = self.non_zero_memory + sign * memory
        self.non_zero_memory = total if MIN_INT64 <= total <= MAX_INT64 else wrap_int64(total)
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                key = f"{pod.namespace}/{volume.persistent_volume_claim.claim_name}"
                count = self.pvc_refs.get(key, 0) + sign
                if count > 0:
                    self.pvc_refs[key] = count
                else:
                    self.pvc_refs.pop(key, None)

    def copy(self) -> NodeInfo:
        """A copy for dry runs. It keeps the row of the original."""
        other = NodeInfo(self.name, self.row)
        other.node = self.node
        other.pods = self.pods.copy()
        other.allocatable = self.allocatable
        other.allowed_pods = self.allowed_pods
        other.requested = dict(self.requested)
        other.non_zero_cpu = self.non_zero_cpu
        other.non_zero_memory = self.non_zero_memory
        other.used_ports = set(self.used_ports)
        other.pvc_refs = dict(self.pvc_refs)
        other.generation = self.generation
        return other

    def validate(self, rebuilt: NodeInfo) -> None:
        """Raise InvariantError unless this equals a rebuilt node with the same pods."""
        check_kept(f"node {self.name}", self._contents(), rebuilt._contents())
        # As upstream, a port of two pods is free when either leaves: so some may be missing.
        if not self.used_ports <= rebuilt.used_ports:
            extra = self.used_ports - rebuilt.used_ports
            raise InvariantError(
                f"node {self.name}, ports: {extra} are kept, and no pod takes them"
            )

    def _contents(self) -> dict[str, object]:
        return {
            "row": self.row,
            "node": self.node,
            "pods": list(self.pods),
            "allocatable": self.allocatable,
            "allowed pods": self.allowed_pods,
            "requested": {name: amount for name, amount in self.requested.items() if amount},
            "non-zero requests": (self.non_zero_cpu, self.non_zero_memory),
            "claims in use": self.pvc_refs,
        }

    def __repr__(self) -> str:
        return f"NodeInfo({self.name!r}, row={self.row}, pods={len(self.pods)})"
