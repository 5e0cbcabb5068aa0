"""Extended resources that device classes serve: the claim that stands for them.

A pod may request `example.com/gpu: 2` and get two devices of a class. For this the scheduler makes
one claim for all such resources of the pod. Which of them devices serve depends on the node: what a
device plugin offers there needs no device. So the requests of the claim are made node by node, and
the claim itself is created when its node is known.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from mooring.objects.devices import (
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from mooring.objects.meta import ObjectMeta, OwnerReference
from mooring.objects.pod import Container, ContainerExtendedResourceRequest, Pod
from mooring.objects.resource_claims import EXTENDED_RESOURCE_CLAIM
from mooring.plugin.devices import DeviceClassNames, is_counted

#: The name of the claim until it is created. No claim can be called like this.
IN_MEMORY = "<extended-resources>"

_UIDS = uuid.UUID("6d6f6f72-696e-4672-8000-000000000000")


class CannotFit(Exception):
    """A resource that the node does not have, and no device class serves."""


def new_claim(pod: Pod) -> ResourceClaim:
    """The claim for a pod, without requests. Its name differs from the claims of other pods."""
    uid = str(uuid.uuid5(_UIDS, pod.uid))
    owner = OwnerReference(
        api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True
    )
    metadata = ObjectMeta(
        name=f"{IN_MEMORY}{uid}",
        namespace=pod.namespace,
        uid=uid,
        generate_name=f"{pod.name}-extended-resources-",
        owner_references=[owner],
        annotations={EXTENDED_RESOURCE_CLAIM: "true"},
    )
    return ResourceClaim(api_version="resource.k8s.io/v1", kind="ResourceClaim", metadata=metadata)


def is_in_memory(claim: ResourceClaim) -> bool:
    return claim.name.startswith(IN_MEMORY)


def requested(pod: Pod) -> tuple[str, ...]:
    """The resources that devices may serve, if a class does."""
    return tuple(name for name, amount in pod.requests.items() if amount != 0 and is_counted(name))


def served_by_devices(
    resources: Iterable[str], allocatable: dict[str, int], classes: DeviceClassNames
) -> tuple[str, ...]:
    """The resources that devices must serve on a node, sorted. Raises CannotFit."""
    served = []
    for name in resources:
        if name in classes and not allocatable.get(name, 0):
            served.append(name)
        elif name not in allocatable:
            raise CannotFit(name)
    return tuple(sorted(served))


def requests_for(
    pod: Pod, resources: Sequence[str], classes: DeviceClassNames
) -> tuple[list[DeviceRequest], list[ContainerExtendedResourceRequest]]:
    """Device requests for these resources, sorted by name, and who uses which of them.

    Init containers that end before others start use the devices of those, as far as they go. One
    request covers what all of them need beyond that.
    """
    containers = [*pod.spec.init_containers, *pod.spec.containers]
    stays = [
        index >= len(pod.spec.init_containers) or container.restartable
        for index, container in enumerate(containers)
    ]
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(resources):
        served_by = classes.get(resource)
        if served_by is None:
            continue
        made = _Requests(containers, resource, served_by.name)
        for index, container in enumerate(containers):
            if stays[index]:
                made.add_long_lived(index, container)
        for index, container in enumerate(containers):
            if not stays[index]:
                made.add_short_lived(index, container)
        requests += made.requests()
        mappings += made.mappings()
    return sorted(requests, key=lambda request: request.name), mappings


class _Requests:
    """The requests for one resource."""

    def __init__(self, containers: Sequence[Container], resource: str, class_name: str) -> None:
        self._resource = resource
        self._class_name = class_name
        #: By container: the request of one that stays; None if it has none.
        self._long_lived: list[DeviceRequest | None] = [None] * len(containers)
        #: The largest request of a container that ends, and the names of all of them.
        self._largest: DeviceRequest | None = None
        self._short_lived_names: set[str] = set()
        self._long_mappings: list[ContainerExtendedResourceRequest] = []
        self._short_mappings: list[ContainerExtendedResourceRequest] = []

    def add_long_lived(self, index: int, container: Container) -> None:
        count = self._count(container)
        if count:
            request = self._request(index, container, count)
            self._long_lived[index] = request
            self._long_mappings.append(self._mapping(container, request.name))

    def add_short_lived(self, index: int, container: Container) -> None:
        count = self._count(container)
        if not count:
            return
        for other in self._long_lived[index:]:
            if other is not None and other.exactly is not None:
                self._short_mappings.append(self._mapping(container, other.name))
                count -= other.exactly.count
                if count <= 0:
                    return
        request = self._request(index, container, count)
        self._short_mappings.append(self._mapping(container, request.name))
        self._short_lived_names.add(request.name)
        if self._largest is None or _count_of(self._largest) < count:
            self._largest = request

    def requests(self) -> list[DeviceRequest]:
        short_lived = [] if self._largest is None else [self._largest]
        return [*short_lived, *(each for each in self._long_lived if each is not None)]

    def mappings(self) -> list[ContainerExtendedResourceRequest]:
        largest = self._largest
        short = [
            replace(mapping, request_name=largest.name)
            if largest is not None and mapping.request_name in self._short_lived_names
            else mapping
            for mapping in self._short_mappings
        ]
        return [*self._long_mappings, *short]

    def _count(self, container: Container) -> int:
        quantity = container.resources.requests.get(self._resource)
        return 0 if quantity is None else quantity.value

    def _request(self, index: int, container: Container, count: int) -> DeviceRequest:
        position = sorted(container.resources.requests).index(self._resource)
        return DeviceRequest(
            name=f"container-{index}-request-{position}",
            exactly=ExactDeviceRequest(
                device_class_name=self._class_name, allocation_mode="ExactCount", count=count
            ),
        )

    def _mapping(self, container: Container, request: str) -> ContainerExtendedResourceRequest:
        return ContainerExtendedResourceRequest(
            container_name=container.name, resource_name=self._resource, request_name=request
        )


def claim_with(claim: ResourceClaim, requests: list[DeviceRequest]) -> ResourceClaim:
    return replace(claim, spec=ResourceClaimSpec(devices=DeviceClaim(requests=requests)))


def _count_of(request: DeviceRequest) -> int:
    return 0 if request.exactly is None else request.exactly.count
