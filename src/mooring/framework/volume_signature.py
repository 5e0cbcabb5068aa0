"""The part that a pod's volumes have in its signature: all plugins that look at volumes share it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mooring.framework.status import Status, unschedulable
from mooring.objects.claims import claim_name
from mooring.objects.csi_translation import plugin_of
from mooring.objects.pod import Pod

_KEY = "v1.Pod.Spec.Volumes.NonSyntheticSources()"

#: What becomes of these volumes depends on claims, volumes and attachments, which change without any
#: node changing; and Filter has to run, since it chooses volumes while it judges.
NOT_SIGNABLE = unschedulable("signature disabled for pods whose volumes depend on other objects")


def sign_volumes(pod: Pod) -> Mapping[str, object] | Status:
    """Of all other volumes only disks matter, and by what they are, not by what they are called.

    The reference signs claims too, by name: its batching filters again before it relies on a
    signature, a kept ranking does not.
    """
    disks = []
    for volume in pod.spec.volumes:
        if claim_name(pod, volume) is not None or plugin_of(volume) is not None:
            return NOT_SIGNABLE
        if volume.rbd is not None or volume.iscsi is not None:
            disks.append(msgspec.json.encode((volume.rbd, volume.iscsi)))
    return {_KEY: tuple(sorted(disks))}
