"""`mooring capacity`: how many more pods fit, how many nodes to add, which nodes can be lost?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from mooring.cli import output
from mooring.cli.inputs import ClusterInput, naming, read_cluster, read_config, refusals
from mooring.cli.options import (
    cluster_input,
    config_option,
    number_option,
    output_option,
    seed_option,
)
from mooring.cli.output import Cell, Column, Page, counted
from mooring.cli.progress import Progress
from mooring.cli.simulate import placing_pods
from mooring.errors import InputError
from mooring.explain.capacity import (
    NodesToAdd,
    Room,
    Settled,
    Template,
    how_many_more,
    nodes_to_add,
    settle,
)
from mooring.explain.drain import Survival, nodes_of_zone, without_nodes
from mooring.garbage import seldom_collecting
from mooring.objects.kinds import PriorityClass
from mooring.objects.manifests import Manifests, read_manifests
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.sim.report import Pending
from mooring.sim.simulation import SimOptions

_MOST_REASONS = 3


@dataclass(frozen=True, slots=True)
class Answer:
    """One row of the table."""

    question: str
    answer: str
    #: Whether the answer is good: the exit code is 0 if all are.
    yes: bool
    because: str
    data: dict[str, Any]


@click.command()
@cluster_input
@config_option
@click.option(
    "--pod",
    "pods",
    multiple=True,
    metavar="FILE[:N]",
    help="How many more copies of the pod in this file fit? Several --pod make a mix: a round adds N of"
    " each.",
)
@click.option(
    "--add-node",
    "templates",
    multiple=True,
    metavar="NAME|FILE",
    help="How many nodes like this one, or like the one in this file, must be added to place all pods?",
)
@click.option(
    "--drain",
    "drained",
    multiple=True,
    metavar="NODE[,NODE…]",
    help="Do all pods fit without these nodes? Each --drain is a separate question.",
)
@click.option(
    "--lose",
    "lost",
    multiple=True,
    metavar="ZONE|LABEL=VALUE",
    help="Do all pods fit without this zone, or without the nodes with this label?",
)
@seed_option
@number_option(
    "--limit", default=100_000, help="The maximum number of pods, or rounds of a mix, to add."
)
@number_option(
    "--max-nodes",
    help="The maximum number of nodes to add; by default twice the number of pending pods.",
)
@output_option("table", "json")
def capacity(
    cluster: ClusterInput,
    config_path: str | None,
    pods: tuple[str, ...],
    templates: tuple[str, ...],
    drained: tuple[str, ...],
    lost: tuple[str, ...],
    seed: int | None,
    limit: int,
    max_nodes: int | None,
    form: str,
) -> None:
    """Show how many more pods fit, how many nodes to add, and which nodes the cluster can lose.

    mooring first places the pending pods that fit. Then it simulates each question: it adds pods until
    one does not fit, searches for the smallest number of nodes, or removes nodes and places their pods
    again. Pods never finish, even if they have a run time.

    Exits 0 if every answer is good (one more pod fits, a number of nodes is enough, all pods fit on the
    remaining nodes), 1 if not, 2 if the input is invalid.

    \b
    Examples:
      mooring capacity -f cluster/ --pod web.yaml
      mooring capacity -f cluster/ --pod web.yaml:3 --pod worker.yaml:1
      mooring capacity -f cluster/ --add-node node-7 --drain node-1,node-2 --lose eu-west-1a
    """
    if not (pods or templates or drained or lost):
        raise click.UsageError("no question: give --pod, --add-node, --drain or --lose")
    manifests = read_cluster(cluster)
    mix = [_template(text, manifests) for text in pods]
    nodes = [_node(text, manifests) for text in templates]
    options = SimOptions(config=read_config(config_path), seed=seed)
    with naming(config_path), placing_pods(manifests.pods, options) as watched:
        settled = settle(manifests.objects, watched)
    with seldom_collecting():
        answers = list(
            _answers(
                settled,
                mix=mix,
                nodes=nodes,
                drained=drained,
                lost=lost,
                limit=limit,
                max_nodes=max_nodes,
            )
        )
    output.answer(
        form,
        yes=all(each.yes for each in answers),
        data=lambda: _data(settled, answers),
        table=lambda: _write_table(settled, answers),
    )


# Questions


def _template(text: str, cluster: Manifests) -> Template:
    path, colon, count = text.rpartition(":")
    if not colon or not (count.isascii() and count.isdigit()):
        path, count = text, "1"
    if not path:
        raise click.BadParameter(f"{text!r} names no file", param_hint="--pod")
    if not int(count):
        raise click.BadParameter(f"{text!r}: the number must be 1 or more", param_hint="--pod")
    found = _read_beside(path, cluster).pods
    if not found:
        raise InputError([f"{path}: contains no pod and no workload that creates pods"])
    if len({pod.metadata.controller for pod in found}) > 1 or (
        len(found) > 1 and found[0].metadata.controller is None
    ):
        raise InputError([f"{path}: contains several pods; give each pod its own file and --pod"])
    return Template(found[0], int(count))


def _read_beside(path: str, cluster: Manifests) -> Manifests:
    """A file that may refer to the cluster's priority classes."""
    classes = [obj for obj in cluster.objects if isinstance(obj, PriorityClass)]
    found = read_manifests([path], among=classes)
    if found.refused:
        raise InputError(list(refusals(found.refused)))
    return found


def _node(text: str, cluster: Manifests) -> Node:
    known = {node.name: node for node in cluster.nodes}
    if text in known:
        return known[text]
    if not Path(text).exists():
        some = ", ".join(sorted(known)[:10]) or "none"
        raise InputError([f"no node and no file is called {text!r}; the cluster's nodes: {some}"])
    found: list[KubeObject] = [
        obj for obj in read_manifests([text]).objects if isinstance(obj, Node)
    ]
    if len(found) != 1 or not isinstance(found[0], Node):
        raise InputError([f"{text}: contains {counted(len(found), 'node')}; give a file with one"])
    return found[0]


# Answering


def _answers(
    settled: Settled,
    *,
    mix: Sequence[Template],
    nodes: Sequence[Node],
    drained: Sequence[str],
    lost: Sequence[str],
    limit: int,
    max_nodes: int | None,
) -> Iterator[Answer]:
    # Check the names first, before anything that takes long.
    zones = {zone: nodes_of_zone(settled, zone) for zone in lost}
    drains = [_names(text) for text in drained]
    if mix:
        with Progress("adding pods") as progress:
            room = how_many_more(settled, mix, limit=limit, on_progress=progress.update)
        yield _room_answer(mix, room)
    survivals = [(f"drain {', '.join(names)}", without_nodes(settled, names)) for names in drains]
    survivals += [(f"lose {zone}", without_nodes(settled, zones[zone])) for zone in lost]
    for template in nodes:
        with Progress("trying numbers of nodes") as progress:
            found = nodes_to_add(settled, template, most=max_nodes, on_progress=progress.update)
        yield _nodes_answer(found)
    for question, survival in survivals:
        yield _survival_answer(question, survival)


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise click.BadParameter(f"{text!r} names no node", param_hint="--drain")
    return names


def _room_answer(mix: Sequence[Template], room: Room) -> Answer:
    names = " + ".join(f"{each.count} × {each.pod.name}" for each in mix)
    one = len(mix) == 1 and mix[0].count == 1
    question = f"more of {mix[0].pod.name}" if one else f"more rounds of {names}"
    number = f"{room.rounds:,}"
    because = f"the next {room.stopped_at}: {room.stopped_by}"
    if room.limited:
        number, because = f"{room.rounds:,} or more", "the search stopped at --limit"
    return Answer(
        question,
        number,
        room.rounds > 0,
        because,
        {
            "kind": "room",
            "rounds": room.rounds,
            "limited": room.limited,
            "pods": room.pods,
            "stoppedAt": room.stopped_at,
            "stoppedBy": room.stopped_by,
            "nodes": room.nodes,
        },
    )


def _nodes_answer(found: NodesToAdd) -> Answer:
    never = len(found.hopeless)
    parts = []
    if not found.waiting:
        parts.append("nothing is pending")
    elif found.count is not None:
        placed = found.waiting - never
        parts.append(f"places {counted(placed, 'pending pod')}; {found.count - 1:,} would not")
    elif found.probes:
        parts.append(f"{max(found.probes):,} are not enough: {_reasons(found.left)}")
    if never:
        pod, why = found.hopeless[0]
        parts.append(f"{counted(never, 'pod')} cannot fit on such a node, for example {pod}: {why}")
    if not found.monotone:
        tried = ", ".join(f"{n}: {'yes' if ok else 'no'}" for n, ok in sorted(found.probes.items()))
        parts.append(f"more nodes do not always help here ({tried})")
    return Answer(
        f"nodes like {found.template} to add",
        "no number" if found.count is None else f"{found.count:,}",
        found.count is not None and not never,
        "; ".join(parts),
        {
            "kind": "nodesToAdd",
            "template": found.template,
            "waiting": found.waiting,
            "count": found.count,
            "monotone": found.monotone,
            "probes": [{"nodes": n, "enough": ok} for n, ok in found.probes.items()],
            "hopeless": [{"pod": pod, "message": why} for pod, why in found.hopeless],
            "left": _pending_data(found.left),
        },
    )


def _survival_answer(question: str, survival: Survival) -> Answer:
    parts = [
        f"{counted(survival.displaced, 'pod')} to move from {counted(len(survival.nodes), 'node')}"
    ]
    if survival.gone:
        parts.append(f"{counted(survival.gone, 'DaemonSet or static pod')} removed with the nodes")
    if survival.unplaced:
        parts.append(f"{len(survival.unplaced):,} fit nowhere: {_reasons(survival.unplaced)}")
    if survival.evicted:
        parts.append(f"{counted(len(survival.evicted), 'pod')} evicted to make room")
    if survival.uncontrolled:
        parts.append(f"{len(survival.uncontrolled):,} have no controller that recreates them")
    return Answer(
        question,
        "all pods fit" if survival.holds else "not all pods fit",
        survival.holds,
        "; ".join(parts),
        {
            "kind": "survival",
            "nodes": list(survival.nodes),
            "holds": survival.holds,
            "displaced": survival.displaced,
            "gone": survival.gone,
            "uncontrolled": list(survival.uncontrolled),
            "unplaced": _pending_data(survival.unplaced),
            "evicted": list(survival.evicted),
        },
    )


def _reasons(pending: Sequence[Pending]) -> str:
    """The first pods with their messages, each message once."""
    examples: dict[str, str] = {}
    for each in pending:
        examples.setdefault(each.message, each.pod)
    return " / ".join(f"{pod}: {why}" for why, pod in list(examples.items())[:_MOST_REASONS])


def _pending_data(pending: Iterable[Pending]) -> list[dict[str, str]]:
    return [{"pod": each.pod, "message": each.message} for each in pending]


# Output


def _data(settled: Settled, answers: Sequence[Answer]) -> dict[str, Any]:
    return {
        "cluster": {
            "nodes": len(settled.nodes),
            "pending": _pending_data(settled.pending),
            "evicted": list(settled.evicted),
        },
        "answers": [
            {"question": each.question, "answer": each.answer, "yes": each.yes, **each.data}
            for each in answers
        ],
    }


def _write_table(settled: Settled, answers: Sequence[Answer]) -> None:
    page = Page()
    page.table(
        (Column("QUESTION"), Column("ANSWER"), Column("BECAUSE", wraps=True)),
        (
            (
                each.question,
                Cell(each.answer, "bold green" if each.yes else "bold red"),
                each.because,
            )
            for each in answers
        ),
    )
    page.line()
    line = f"{counted(len(settled.nodes), 'node')}, {len(settled.pending):,} pending"
    if settled.evicted:
        line += f", {len(settled.evicted):,} preempted"
    page.line(f"{line} after placing every pod that fits", "dim")
    page.write()
