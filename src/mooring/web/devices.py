"""The devices of a run at its end, and who has them. API.md describes the format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from mooring.cluster.device_usage import DeviceUse, Holder, State
from mooring.explain.explanation import Explanation
from mooring.web.codes import Codes
from mooring.web.places import Places
from mooring.web.run import Run

#: The states of a device; columns have their indices.
DEVICE_STATES: tuple[str, ...] = get_args(State)
#: The most devices that are named for one reason.
_MOST_DEVICES = 20


def map_devices(
    places: Places, devices: Sequence[DeviceUse], strings: Codes[str]
) -> dict[str, Any]:
    """All devices as columns."""
    node_index = places.node_index
    return {
        "states": DEVICE_STATES,
        "name": [str(device.id) for device in devices],
        "node": [node_index.get(device.node, -1) for device in devices],
        "classes": [[strings.code(name) for name in device.classes] for device in devices],
        "state": [DEVICE_STATES.index(device.state) for device in devices],
        "holders": [
            [_holder(places, each, strings) for each in device.holders] for device in devices
        ],
    }


def _holder(places: Places, holder: Holder, strings: Codes[str]) -> dict[str, Any]:
    index = places.pod_index
    return {
        "claim": strings.code(holder.claim),
        "pods": [index[key] for key in holder.pods if key in index],
        "share": _share(holder.consumed) if holder.is_share else None,
    }


def _share(consumed: dict[str, str]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in consumed.items())


def pod_devices(run: Run, key: str, explanation: Explanation) -> dict[str, Any]:
    """What the pod has at the end, and why devices were refused if it fits nowhere."""
    return {
        "held": [
            {
                "device": each.device,
                "node": each.node,
                "claim": each.claim,
                "request": each.request,
                "share": None if each.share is None else _share(each.share),
            }
            for each in run.report.devices_held
            if key in each.pods
        ],
        "refused": [
            {
                "claim": each.claim,
                "request": each.request,
                "reason": each.reason,
                "detail": each.detail,
                "count": len(each.devices),
                "devices": each.devices[:_MOST_DEVICES],
            }
            for each in explanation.devices
        ],
        "lookedAt": explanation.device_nodes,
    }
