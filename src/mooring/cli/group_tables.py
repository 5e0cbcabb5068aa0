"""The explanation of a pod group as tables: its pods, where it was tried, and what would make it fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mooring.cli.output import Cell, Column, Page, counted
from mooring.explain.group_counterfactuals import GroupCounterfactuals
from mooring.explain.pod_group import GroupExplanation
from mooring.explain.story import names_in_short
from mooring.scheduler.group_questions import TriedPlacement

_MOST_PLACEMENTS = 10
_MOST_CHANGES = 10


def write_group(explanation: GroupExplanation, changes: GroupCounterfactuals | None) -> None:
    page = Page()
    page.heading(f"PodGroup {explanation.group}: {_policy(explanation)}")
    _members(page, explanation)
    if explanation.placements:
        _placements(page, explanation)
    if explanation.preemption is not None:
        _preemption(page, explanation)
    if changes is not None:
        _changes(page, changes)
    page.line()
    page.line(group_summary(explanation), "bold green" if explanation.fits else "bold yellow")
    page.write()


def group_summary(explanation: GroupExplanation) -> str:
    """The answer in one line."""
    group, chosen = explanation.group, explanation.chosen
    match explanation.state:
        case "scheduled":
            have = counted(len(explanation.scheduled), "pod")
            left = f"; {len(explanation.waiting):,} wait" if explanation.waiting else ""
            return (
                f"{group} is scheduled: {have} on {counted(len(explanation.nodes), 'node')}{left}"
            )
        case "finished":
            return f"{group} has finished: {counted(len(explanation.scheduled), 'pod')} had a node"
        case "schedulable" if chosen is not None:
            where = f" in {chosen.name}" if chosen.name else ""
            return f"{group} would fit{where}: {chosen.placed} of {len(chosen.members)} pods"
        case state:
            stopped = explanation.stopped_by
            why = f" ({stopped.pod.key}: {stopped.message})" if stopped is not None else ""
            return f"{group} is {state}: {explanation.message}{why}"


def _policy(explanation: GroupExplanation) -> str:
    pods = len(explanation.scheduled) + len(explanation.waiting)
    least = explanation.min_count
    text = counted(pods, "pod") + ("" if least is None else f", minCount {least}")
    if explanation.topology_key is not None:
        text += f", within one {explanation.topology_key}"
    return text


def _members(page: Page, explanation: GroupExplanation) -> None:
    rows: list[Sequence[str | Cell]] = []
    if explanation.scheduled:
        nodes = [f"{name} ×{n:,}" if n > 1 else name for name, n in explanation.nodes.items()]
        state = "had a node" if explanation.state == "finished" else "have a node"
        rows.append(
            (f"{len(explanation.scheduled):,}", Cell(state, "green"), names_in_short(nodes))
        )
    if explanation.waiting:
        which = names_in_short(explanation.waiting)
        rows.append((f"{len(explanation.waiting):,}", Cell("wait", "yellow"), which))
    page.table((Column("PODS", right=True), Column("STATE"), Column("WHICH", wraps=True)), rows)


def _placements(page: Page, explanation: GroupExplanation) -> None:
    again = ", if it were scheduled again" if not explanation.waiting else ""
    page.heading(f"TRIED IN {counted(len(explanation.placements), 'placement').upper()}{again}")
    best = explanation.chosen
    ranked = sorted(
        explanation.placements,
        key=lambda each: (each is not best, not each.fits, -(each.score or 0), -each.placed),
    )
    page.table(
        (
            Column("PLACEMENT"),
            Column("NODES", right=True),
            Column("PODS THAT FIT", right=True),
            Column("SCORE", right=True),
            Column("", wraps=True),
        ),
        _placement_rows(ranked[:_MOST_PLACEMENTS], best),
    )
    if len(ranked) > _MOST_PLACEMENTS:
        left = len(ranked) - _MOST_PLACEMENTS
        page.line(f"… and {left:,} more; use --output json to see all", "dim")


def _placement_rows(
    ranked: Sequence[TriedPlacement], best: TriedPlacement | None
) -> Iterator[Sequence[str | Cell]]:
    for each in ranked:
        stops = next((member for member in each.members if not member.node), None)
        if each is best:
            note = Cell("taken", "green")
        elif stops is None:
            note = Cell("fits", "green") if each.fits else Cell(each.message, "yellow")
        else:
            note = Cell(f"{stops.pod.key}: {stops.message}", "yellow")
        yield (
            each.name or "all nodes",
            f"{each.nodes:,}",
            f"{each.placed} of {len(each.members)}",
            "" if each.score is None else str(each.score),
            note,
        )


def _preemption(page: Page, explanation: GroupExplanation) -> None:
    found = explanation.preemption
    assert found is not None
    page.heading("PREEMPTION FOR THE WHOLE GROUP")
    if found.message:
        page.line(f"does not help: {found.message}")
    else:
        names = names_in_short([f"{pod} (priority {level})" for pod, level in found.victims])
        page.line(f"evicts {counted(len(found.victims), 'pod')}: {names}")
    if not found.enabled and explanation.topology_key is None:
        page.line(
            "WorkloadAwarePreemption is off: each member preempts for itself, even if the group does not fit"
            " then",
            "dim",
        )


def _changes(page: Page, changes: GroupCounterfactuals) -> None:
    page.heading("WOULD FIT IF")
    shown = changes.answers[:_MOST_CHANGES]
    if shown:
        page.table(
            (Column("YOU", wraps=True), Column("THEN IT GOES TO"), Column("PODS", right=True)),
            (
                (each.change.text, each.placement or "all nodes", f"{each.placed:,}")
                for each in shown
            ),
        )
    elif changes.complete:
        page.line("no single change makes the group fit", "yellow")
    if len(changes.answers) > len(shown):
        page.line(
            f"… and {len(changes.answers) - len(shown)} more; use --output json to see all", "dim"
        )
    if not changes.complete:
        page.line("the search ran out of time; a longer --budget may find more", "dim")
