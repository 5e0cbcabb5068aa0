"""The part of a pod's signature for its volumes, which all volume plugins share."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mooring.framework.status import Status, unschedulable
from mooring.objects.claims import claim_name
from mooring.objects.csi_translation import plugin_of
from mooring.objects.pod import Pod

_KEY = "v1.Pod.Spec.Volumes.NonSyntheticSources()"

#: These volumes depend on claims, volumes and attachments, which change independently of nodes. And
#: Filter must run, because it also chooses volumes.
NOT_SIGNABLE = unschedulable("signature disabled for pods whose volumes depend on other objects")


def sign_volumes(pod: Pod) -> Mapping[str, object] | Status:
    """The disks of the pod, without the names of the volumes; other volumes do not matter.

    The reference also signs claims, by name: its batching runs Filter again before it uses a
    signature; kept answers do not.
    """
    disks = []
    for volume in pod.spec.volumes:
        if claim_name(pod, volume) is not None or plugin_of(volume) is not None:
            return NOT_SIGNABLE
        if volume.rbd is not None or volume.iscsi is not None:
            disks.append(msgspec.json.encode((volume.rbd, volume.iscsi)))
    return {_KEY: tuple(sorted(disks))}
