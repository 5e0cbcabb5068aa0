"""Claims that ask for a DeviceClass that does not exist: no device will ever be allocated for them.

Warned about when all objects are together, because `--devices` makes classes, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mooring.objects.devices import DeviceClaim, DeviceClass, ResourceClaim, ResourceClaimTemplate
from mooring.objects.findings import listed
from mooring.objects.meta import KubeObject
from mooring.objects.titles import title


def missing_classes(objects: Sequence[KubeObject]) -> Iterator[str]:
    """A line for each class, with what asks for it."""
    known = {obj.name for obj in objects if isinstance(obj, DeviceClass)}
    by_class: dict[str, dict[str, None]] = {}
    for obj in objects:
        for name in _classes(obj):
            if name not in known:
                by_class.setdefault(name, {})[title(obj)] = None
    for name, titles in by_class.items():
        verb = "asks" if len(titles) == 1 else "ask"
        yield (
            f"{listed(list(titles))} {verb} for the DeviceClass {name!r}, which does not exist; "
            f"add it, or give the nodes such devices: --devices 8x{name}"
        )


def _classes(obj: KubeObject) -> Iterator[str]:
    devices = DeviceClaim()
    if isinstance(obj, ResourceClaim) and obj.status.allocation is None:
        devices = obj.spec.devices
    elif isinstance(obj, ResourceClaimTemplate):
        devices = obj.spec.spec.devices
    for request in devices.requests:
        if request.exactly is not None:
            yield request.exactly.device_class_name
        for alternative in request.first_available:
            yield alternative.device_class_name
