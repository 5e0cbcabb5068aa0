"""Make nodes and pods from the rows of a trace."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

from mooring.objects.defaults import Defaults
from mooring.objects.generated_names import generated_uid
from mooring.objects.meta import ObjectMeta, OwnerReference, ResourceList
from mooring.objects.node import Node, NodeSpec, NodeStatus
from mooring.objects.pod import Container, Pod, PodSpec, ResourceRequirements
from mooring.objects.taints import Taint
from mooring.objects.well_known import HOSTNAME

NAMESPACE = "default"


def make_node(
    name: str,
    allocatable: ResourceList,
    labels: Mapping[str, str],
    taints: list[Taint] | None = None,
) -> Node:
    return Node(
        api_version="v1",
        kind="Node",
        metadata=ObjectMeta(
            name=name,
            uid=generated_uid("", "Node", "", name),
            labels={HOSTNAME: name, **labels},
        ),
        spec=NodeSpec(taints=taints or []),
        status=NodeStatus(allocatable=allocatable, capacity=allocatable),
    )


def make_spec(requests: ResourceList, **fields: object) -> PodSpec:
    resources = ResourceRequirements(requests=requests, limits=_extended(requests))
    return PodSpec(containers=[Container(name="main", resources=resources)], **fields)  # type: ignore[arg-type]


def _extended(requests: ResourceList) -> ResourceList:
    """Extended resources; for these, an API server requires a limit that equals the request."""
    return {name: amount for name, amount in requests.items() if "/" in name}


class PodMaker:
    """Makes pods. Pods of one shape share their spec, because traces have few shapes."""

    def __init__(self) -> None:
        self._defaults = Defaults()
        self._specs: dict[Hashable, PodSpec] = {}
        #: Shape and namespace → the first pod that has them.
        self._first: dict[tuple[Hashable, str], Pod] = {}

    def make(
        self,
        name: str,
        shape: Hashable,
        spec: Callable[[], PodSpec],
        *,
        namespace: str = NAMESPACE,
        labels: Mapping[str, str] | None = None,
        workload: str = "",
    ) -> Pod:
        """`spec` is called once for each shape. Pods of one workload have the same controller."""
        if shape not in self._specs:
            self._specs[shape] = self._defaults.spec(spec())
        pod = Pod(
            api_version="v1",
            kind="Pod",
            metadata=ObjectMeta(
                name=name,
                namespace=namespace,
                uid=generated_uid("", "Pod", namespace, name),
                labels=dict(labels or {}),
                owner_references=[_controller(namespace, workload)] if workload else [],
            ),
            spec=self._specs[shape],
        )
        pod.take_derived_from(self._first.setdefault((shape, namespace), pod))
        return pod


def _controller(namespace: str, workload: str) -> OwnerReference:
    return OwnerReference(
        api_version="apps/v1",
        kind="ReplicaSet",
        name=workload,
        uid=generated_uid("apps", "ReplicaSet", namespace, workload),
        controller=True,
    )
