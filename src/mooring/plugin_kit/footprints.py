"""What an answer may depend on, as the plugin declares it: while that is the same, so is the answer."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from mooring.framework.interface import Depends
from mooring.framework.status import Status
from mooring.objects.pod import Pod
from mooring.plugin_kit.forms import Said, shown
from mooring.plugin_kit.rules import DEPENDS, Broken
from mooring.plugin_kit.world import World
from mooring.runtime.declared_columns import columns_of


@dataclass(frozen=True, slots=True)
class _Seen:
    """An answer, and all that it may depend on."""

    said: Said
    #: What counts for all nodes: what is declared, the signature, objects of declared kinds, other nodes.
    common: Hashable
    #: Node → what counts for it alone.
    by_node: Mapping[str, Hashable]


class Footprints:
    """The latest answer about each pod."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def check(self, world: World, pod: Pod, said: Said, after: str) -> Broken | None:
        """Compare with the answer before the event, wherever nothing happened that may change it."""
        depends: object = world.call.depends(pod)
        if not isinstance(depends, Depends):
            return Broken(DEPENDS, f"depends_on returns {depends!r}, not a member of Depends")
        if depends == Depends.CLUSTER:
            self._seen.pop(pod.uid, None)
            return None
        seen = _Seen(said, _common(world, pod, depends), _by_node(world, depends))
        before = self._seen.get(pod.uid)
        self._seen[pod.uid] = seen
        if before is None or before.common != seen.common:
            return None
        difference = _difference(before, seen)
        if difference is None:
            return None
        return Broken(
            DEPENDS,
            f"for pod {pod.name}, before and after {after}: {difference}, though nothing changed"
            f" that Depends.{depends.name} allows it to read",
        )


def _difference(before: _Seen, now: _Seen) -> str | None:
    if before.said.pre_filter != now.said.pre_filter:
        return f"PreFilter says {shown(before.said.pre_filter)} and {shown(now.said.pre_filter)}"
    for node, footprint in now.by_node.items():
        if before.by_node.get(node) != footprint:
            continue
        verdicts = before.said.verdicts.get(node), now.said.verdicts.get(node)
        if verdicts[0] != verdicts[1]:
            return f"Filter on {node} says {shown(verdicts[0])} and {shown(verdicts[1])}"
        raw = before.said.raw.get(node), now.said.raw.get(node)
        if raw[0] != raw[1] and None not in raw:
            return f"the raw score of {node} is {raw[0]} and {raw[1]}"
    return None


def _common(world: World, pod: Pod, depends: Depends) -> Hashable:
    kinds = world.call.depends_on_kinds
    objects = [repr(obj) for obj in world.objects() if isinstance(obj, kinds)]
    nodes = [_node(world, name) for name in _names(world)] if depends == Depends.NODES else []
    sign = world.call.sign
    fragment = sign(pod) if sign is not None else {}
    signature = repr(fragment) if isinstance(fragment, Status) else repr(list(fragment.items()))
    return depends, signature, tuple(sorted(objects)), tuple(nodes)


def _by_node(world: World, depends: Depends) -> dict[str, Hashable]:
    footprints: dict[str, Hashable] = {}
    for name in _names(world):
        pods: tuple[str, ...] = ()
        if depends == Depends.USAGE:
            info = world.engine.cluster.infos[name]
            pods = (*sorted(map(repr, info.pods.values())), *_fed(world, info.row))
        footprints[name] = _node(world, name), pods
    return footprints


def _fed(world: World, row: int) -> list[str]:
    """What the plugin's own columns hold; a fed value counts as usage."""
    columns = world.engine.cluster.columns
    return [repr(columns.own(spec.name)[row]) for spec in columns_of(world.plugin)]


def _node(world: World, name: str) -> str:
    return repr(world.engine.cluster.infos[name].node)


def _names(world: World) -> list[str]:
    return sorted(node.name for node in world.engine.cluster.snapshot())
