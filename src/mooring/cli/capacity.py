"""`mooring capacity`: how many more pods fit, how many nodes to add, which nodes can be lost?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click

from mooring.cli import output
from mooring.cli.capacity_inputs import Mix, new_objects, read_mix, read_node
from mooring.cli.config_inputs import ConfigInput, naming
from mooring.cli.inputs import ClusterInput, check_something_to_place, read_cluster
from mooring.cli.options import (
    cluster_input,
    config_input,
    number_option,
    output_option,
    seed_option,
)
from mooring.cli.output import Cell, Column, Page, counted
from mooring.cli.progress import Progress
from mooring.cli.simulate import placing_pods
from mooring.cluster.device_usage import ClassUse
from mooring.config import default_config
from mooring.explain.drain import Survival, nodes_of_zone, without_nodes
from mooring.explain.gang_room import how_many_more_gangs
from mooring.explain.nodes_to_add import NodesToAdd, nodes_to_add
from mooring.explain.room import Room, how_many_more
from mooring.explain.settled import Settled, settle
from mooring.objects.device_groups import slices_of
from mooring.objects.devices import ResourceSlice
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
@config_input
@click.option(
    "--pod",
    "pods",
    multiple=True,
    metavar="FILE[:N]",
    help="How many more copies of the pod or workload in this file fit? A file or folder with several"
    " workloads is a mix: a round adds all of their pods. Several --pod make a mix, too: a round adds N of"
    " each. Gangs are added whole, if the feature gates for them are on.",
)
@click.option(
    "--add-node",
    "templates",
    multiple=True,
    metavar="NAME|FILE|TYPE",
    help="How many nodes like this one, like the one in this file, or of this machine type (m5.xlarge or"
    " 8cpu,32Gi) must be added to place all pods?",
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
    config: ConfigInput,
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
      mooring capacity -f cluster/ --pod job.yaml --feature-gates GenericWorkload=true,GangScheduling=true
      mooring capacity -f cluster/ --add-node node-7 --drain node-1,node-2 --lose eu-west-1a
      mooring capacity --nodes 20xm5.xlarge --pod shop/
      mooring capacity -f shop/ --add-node m5.xlarge
    """
    if not (pods or templates or drained or lost):
        raise click.UsageError("no question: give --pod, --add-node, --drain or --lose")
    loaded = config.read()
    manifests = read_cluster(cluster, warns_without_nodes=not templates, kinds=loaded.kinds)
    if not pods:
        check_something_to_place(manifests, cluster.options.selector)
    mix = [read_mix(text, manifests, cluster.namespace, config.scheduler_name) for text in pods]
    nodes = [read_node(text, manifests) for text in templates]
    known = {node.name for node in manifests.nodes}
    slices = [
        piece
        for node in nodes
        if node.name not in known
        for piece in slices_of(cluster.device_groups, node)
    ]
    objects = config.choose_pods(manifests.objects, loaded)
    options = SimOptions(config=loaded.config, seed=seed)
    with naming(loaded.path), placing_pods(manifests.pods, options) as watched:
        settled = settle(objects, watched)
    answers = list(
        _answers(
            settled,
            mixes=mix,
            nodes=nodes,
            slices=slices,
            drained=drained,
            lost=lost,
            limit=limit,
            max_nodes=max_nodes,
        )
    )
    output.answer(
        form,
        yes=all(each.yes for each in answers),
        data=lambda: {**loaded.to_data(), **_data(settled, answers)},
        table=lambda: _write_table(settled, answers),
    )


# Answering


def _answers(
    settled: Settled,
    *,
    mixes: Sequence[Mix],
    nodes: Sequence[Node],
    slices: Sequence[ResourceSlice],
    drained: Sequence[str],
    lost: Sequence[str],
    limit: int,
    max_nodes: int | None,
) -> Iterator[Answer]:
    # Check the names first, before anything that takes long.
    zones = {zone: nodes_of_zone(settled.nodes, zone) for zone in lost}
    drains = [_names(text) for text in drained]
    if mixes:
        yield _room(settled, mixes, limit)
    removed = [(f"drain {', '.join(names)}", names) for names in drains]
    removed += [(f"lose {zone}", zones[zone]) for zone in lost]
    with Progress("moving pods") as progress:
        survivals = [
            (question, without_nodes(settled, names, on_progress=progress.update))
            for question, names in removed
        ]
    for template in nodes:
        with Progress("trying numbers of nodes") as progress:
            found = nodes_to_add(
                settled, template, slices=slices, most=max_nodes, on_progress=progress.update
            )
        yield _nodes_answer(found)
    for question, survival in survivals:
        yield _survival_answer(question, survival)


def _room(settled: Settled, mixes: Sequence[Mix], limit: int) -> Answer:
    gates = (settled.options.config or default_config()).gates
    gangs = [mix.gangs(gates) for mix in mixes]
    others = new_objects(settled, mixes)
    with Progress("adding pods") as progress:
        if any(gangs):
            units = [gang or mix.alone() for gang, mix in zip(gangs, mixes, strict=True)]
            room = how_many_more_gangs(
                settled, units, limit=limit, others=others, on_progress=progress.update
            )
            return _room_answer(
                [mix.as_whole(gang) for mix, gang in zip(mixes, units, strict=True)], room
            )
        room = how_many_more(
            settled,
            [template for mix in mixes for template in mix.templates],
            limit=limit,
            others=others,
            on_progress=progress.update,
        )
    return _room_answer(mixes, room)


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise click.BadParameter(f"{text!r} names no node", param_hint="--drain")
    return names


def _room_answer(mixes: Sequence[Mix], room: Room) -> Answer:
    alone = len(mixes) == 1 and mixes[0].count == 1
    question = f"more rounds of {' + '.join(mix.title for mix in mixes)}"
    if alone:
        question = f"more {'whole ' if mixes[0].whole else 'of '}{mixes[0].name}"
    number = f"{room.rounds:,}"
    because = f"the next {room.stopped_at}: {room.stopped_by}"
    if room.devices:
        because += f" Devices: {'; '.join(map(_class_text, room.devices))}."
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
            "perRound": {each.pod.key: each.count for mix in mixes for each in mix.templates},
            "stoppedAt": room.stopped_at,
            "stoppedBy": room.stopped_by,
            "devices": [_class_data(each) for each in room.devices],
            "nodes": room.nodes,
        },
    )


def _class_text(use: ClassUse) -> str:
    """`class gpu: 7 of 9 in use, 1 free, 1 blocked`."""
    if not use.total:
        return f"class {use.name}: no device"
    parts = [f"{use.count('in use'):,} of {use.total:,} in use"]
    parts += [f"{use.count(s):,} {s}" for s in ("shared", "free", "blocked") if use.count(s)]
    return f"class {use.name}: {', '.join(parts)}"


def _class_data(use: ClassUse) -> dict[str, Any]:
    return {
        "deviceClass": use.name,
        "total": use.total,
        "inUse": use.count("in use"),
        "shared": use.count("shared"),
        "free": use.count("free"),
        "blocked": use.count("blocked"),
    }


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
            "otherSchedulers": _pending_data(settled.other_schedulers),
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
    if settled.other_schedulers:
        line += f", {len(settled.other_schedulers):,} for other schedulers"
    if settled.evicted:
        line += f", {len(settled.evicted):,} preempted"
    page.line(f"{line} after placing every pod that fits", "dim")
    page.write()
