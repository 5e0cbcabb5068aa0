"""What must hold of the placements of a workload, said in plain Python over names of pods and nodes.

A run that answers wrongly is not worth timing: each of these raises WrongAnswer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from benchmarks.manifests import ZONES, zone_of


class WrongAnswer(Exception):
    """A scheduler under test placed pods where they must not be, or did not place them."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Where the pods are once a workload has run."""

    #: The node of every measured pod, by `namespace/name`; a pod without one is missing.
    placed: dict[str, str]
    #: The same for the pods that were there before.
    bound: dict[str, str]
    #: How many pods were to be placed, and how many were there before.
    wanted: int
    bound_before: int


Holds = Callable[[Answer], None]


def all_placed(answer: Answer) -> None:
    _demand(len(answer.placed) == answer.wanted, f"{len(answer.placed)} of {answer.wanted} placed")


def none_placed(answer: Answer) -> None:
    _demand(not answer.placed, f"{len(answer.placed)} placed, though none fits")


def same_as(expected: dict[str, str], got: dict[str, str]) -> None:
    """Kept work must not change a choice: one by one, pods go where a full evaluation puts them."""
    for pod in sorted(expected.keys() | got.keys()):
        there, here = expected.get(pod), got.get(pod)
        _demand(there == here, f"{pod} is on {here}, but evaluated in full on {there}")


def fits(most_per_node: int) -> Holds:
    """No node holds more pods than it has room for."""

    def holds(answer: Answer) -> None:
        per_node = Counter([*answer.placed.values(), *answer.bound.values()])
        for node, count in per_node.items():
            _demand(count <= most_per_node, f"{count} pods on {node}, which has room for fewer")

    return holds


def in_zones(zones: Collection[int]) -> Holds:
    def holds(answer: Answer) -> None:
        for pod, node in answer.placed.items():
            _demand(zone_of(node) in zones, f"{pod} is on {node}, outside of zones {zones}")

    return holds


def one_a_node(is_alike: Callable[[int], bool]) -> Holds:
    """No measured pod shares its node with another, or with a bound pod that is alike."""

    def holds(answer: Answer) -> None:
        nodes = [*answer.placed.values(), *_nodes_of(answer, is_alike)]
        for node, count in Counter(nodes).items():
            _demand(count == 1, f"{count} pods that keep apart are on {node}")

    return holds


def beside_one(is_alike: Callable[[int], bool]) -> Holds:
    """Every measured pod shares its node with a bound pod that is alike."""

    def holds(answer: Answer) -> None:
        there = set(_nodes_of(answer, is_alike))
        for pod, node in answer.placed.items():
            _demand(node in there, f"{pod} is on {node}, without the company it prefers")

    return holds


def apart_while_possible(is_alike: Callable[[int], bool], nodes: int) -> Holds:
    """Measured pods share a node with their like only once there is no node without."""

    def holds(answer: Answer) -> None:
        taken = {*_nodes_of(answer, is_alike)}
        empty = nodes - len(taken)
        shared = len(answer.placed) - len(set(answer.placed.values()) - taken)
        _demand(shared <= max(0, len(answer.placed) - empty), f"{shared} pods share a node")

    return holds


def zones_within(skew: int) -> Holds:
    """The zones' counts of measured pods differ by this much at most."""

    def holds(answer: Answer) -> None:
        zones = Counter(zone_of(node) for node in answer.placed.values())
        difference = max(zones.values()) - min(zones[zone] for zone in range(ZONES))
        _demand(difference <= skew, f"zones differ by {difference} pods: {dict(zones)}")

    return holds


def victims_per_pod(count: int) -> Holds:
    """Just as many pods had to go as there had to."""

    def holds(answer: Answer) -> None:
        gone = answer.bound_before - len(answer.bound)
        _demand(
            gone == count * answer.wanted, f"{gone} pods went for {answer.wanted}, not {count} each"
        )

    return holds


def every(checks: Iterable[Holds]) -> Holds:
    checks = tuple(checks)

    def holds(answer: Answer) -> None:
        for check in checks:
            check(answer)

    return holds


def _nodes_of(answer: Answer, is_alike: Callable[[int], bool]) -> list[str]:
    """The nodes of the bound pods that are alike: the n-th is called `default/bound-n`."""
    return [node for pod, node in answer.bound.items() if is_alike(int(pod.rpartition("-")[2]))]


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise WrongAnswer(otherwise)
