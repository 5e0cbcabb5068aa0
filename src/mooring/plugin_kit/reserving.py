"""Reserve and Unreserve: after both, everything is as if neither had been called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

from msgspec.structs import replace

from mooring.framework.cycle_state import CycleState
from mooring.framework.status import Code
from mooring.objects.pod import Pod
from mooring.plugin_kit.case import Event
from mooring.plugin_kit.rules import RAISES, UNRESERVE, Broken
from mooring.plugin_kit.subject import PROFILE
from mooring.plugin_kit.world import Answer, World
from mooring.runtime.plugin_calls import describe

#: How often a pod is reserved and unreserved to see whether something grows.
_ROUNDS = 5


def applies(plugin: type) -> bool:
    return callable(getattr(plugin, "reserve", None)) or callable(
        getattr(plugin, "unreserve", None)
    )


def check(world: World, events: Sequence[Event], pods: Sequence[Pod]) -> tuple[int, Broken | None]:
    """How many reservations were undone, and what is wrong with them."""
    for event in events:
        world.apply(event)
    count = 0
    try:
        for pod in pods:
            if world.engine.gate(pod) is None:
                count += _undone(world, pod, pods)
                _grows(world, pod)
    except Broken as broken:
        return count, broken
    return count, None


def _undone(world: World, pod: Pod, pods: Sequence[Pod]) -> bool:
    state = CycleState()
    node = world.decide(pod, state).get("goes to")
    if not isinstance(node, str):
        return False
    before = _answers(world, pods)
    placed = pod.placed_on(node)
    with _assumed(world, placed):
        _unreserve(world, state, placed, node, "without a reserve before")
    _same(before, _answers(world, pods), "unreserve alone changes an answer")
    with _assumed(world, placed):
        _reserve(world, state, placed, node)
        _unreserve(world, state, placed, node, "after reserve")
        _unreserve(world, state, placed, node, "a second time")
    _same(before, _answers(world, pods), "after reserve and unreserve an answer is another one")
    return True


def _grows(world: World, pod: Pod) -> None:
    """Nothing that the plugin holds grows with every reservation that is undone."""
    state = CycleState()
    node = world.decide(pod, state).get("goes to")
    if not isinstance(node, str):
        return
    sizes = [_sizes(world.plugin)]
    for number in range(_ROUNDS):
        name = f"{pod.name}-again-{number}"
        metadata = replace(pod.metadata, name=name, uid=name)
        placed = replace(pod, metadata=metadata).placed_on(node)
        with _assumed(world, placed):
            _reserve(world, state, placed, node)
            _unreserve(world, state, placed, node, "after reserve")
        sizes.append(_sizes(world.plugin))
    for attribute, first in sizes[0].items():
        steps = [size.get(attribute, 0) for size in sizes]
        if all(a < b for a, b in pairwise(steps)):
            raise Broken(
                UNRESERVE,
                f"{attribute} grows with every reservation that is undone: from {first} to {steps[-1]}"
                f" in {_ROUNDS} of them",
            )


@contextmanager
def _assumed(world: World, placed: Pod) -> Iterator[None]:
    """As in a scheduling cycle, the pod is on its node while it is reserved and unreserved."""
    cluster = world.engine.cluster
    cluster.assume_pod(placed)
    try:
        yield
    finally:
        cluster.forget_pod(placed)


def _reserve(world: World, state: CycleState, placed: Pod, node: str) -> None:
    framework = world.engine.frameworks[PROFILE]
    status = framework.run_reserve(state, placed, node)
    if status.ok:
        status, _ = framework.ask_permit(state, placed, node)
    if status.code == Code.ERROR:
        raise Broken(RAISES, f"for pod {placed.name} on {node}: {status.message}")


def _unreserve(world: World, state: CycleState, placed: Pod, node: str, when: str) -> None:
    unreserve = world.call.unreserve
    if unreserve is None:
        raise Broken(UNRESERVE, "there is a reserve, and no unreserve that undoes it")
    try:
        unreserve(state, placed, node)
    except Exception as error:
        raise Broken(UNRESERVE, f"unreserve {when} raises {describe(error)}") from error


def _answers(world: World, pods: Sequence[Pod]) -> dict[str, Answer]:
    return {pod.name: world.decide(pod) for pod in pods}


def _same(before: dict[str, Answer], after: dict[str, Answer], problem: str) -> None:
    for pod, answer in before.items():
        if after[pod] != answer:
            raise Broken(UNRESERVE, f"{problem}, for pod {pod}")


def _sizes(plugin: object) -> dict[str, int]:
    """Attribute → the number of its elements, for those that are containers."""
    values = getattr(plugin, "__dict__", {})
    return {
        name: len(value)
        for name, value in values.items()
        if isinstance(value, dict | list | set | frozenset | tuple)
    }
