"""The DaemonSet pods of nodes that join a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mooring.objects.admission import Admission
from mooring.objects.controllers import made_by_controllers
from mooring.objects.kinds import DaemonSet
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod


def daemon_pods_for(nodes: Sequence[Node], objects: Sequence[KubeObject]) -> Iterator[KubeObject]:
    """What the DaemonSets among the objects of a cluster would run on these nodes, with their claims."""
    daemon_sets = [obj for obj in objects if isinstance(obj, DaemonSet)]
    if not daemon_sets or not nodes:
        return
    pods = [obj for obj in objects if isinstance(obj, Pod)]
    admission = Admission(objects, stored=objects)
    made = made_by_controllers([*daemon_sets, *pods, *nodes], admit=admission.defaults.spec)
    for each in made[: len(daemon_sets)]:
        yield from filter(None, map(admission.create, each))
