"""An explanation as tables: the story first, then scores and refusals, the answer last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mooring.cli.output import Cell, Column, Page, counted
from mooring.explain.counterfactuals import Counterfactuals
from mooring.explain.devices import MOST_NODES, DeviceReason
from mooring.explain.explanation import Explanation
from mooring.explain.matrix import Matrix, NodeView, Score
from mooring.explain.story import Step, names_in_short
from mooring.explain.workload import WorkloadExplanation
from mooring.framework.status import Code, Status

#: The width of the longest bar, in characters.
_BAR = 20
_EIGHTHS = " ▏▎▍▌▋▊▉"
_MOST_CHANGES = 10
_STYLES = {
    "passed": "green",
    "rejected": "yellow",
    "helped": "cyan",
    "reached": "dim",
    "waiting": "yellow",
}


def write_explanation(
    explanation: Explanation, changes: Counterfactuals | None, *, top: int
) -> None:
    page = Page()
    _story(page, explanation.story)
    matrix = explanation.matrix
    if matrix is not None:
        if matrix.scores and explanation.fits:
            _scores(page, explanation, matrix, top)
        refusals = matrix.refusals()
        if refusals:
            _refusals(page, matrix)
    if explanation.devices:
        some = matrix is not None and len(matrix) > MOST_NODES
        page.heading(f"DEVICES, of the first {MOST_NODES} nodes" if some else "DEVICES")
        write_devices(page, explanation.devices)
    if changes is not None:
        write_changes(page, changes)
    page.line()
    page.line(summary(explanation), "bold green" if explanation.fits else "bold yellow")
    page.write()


def write_workload(workload: WorkloadExplanation) -> None:
    """How many pods share each fate; the explanation of one of them follows."""
    page = Page()
    page.heading(f"{workload.workload}: {counted(len(workload.pods), 'pod')}")
    page.table(
        (Column("PODS", right=True), Column("STATE"), Column("WHERE OR WHY", wraps=True)),
        (
            (
                f"{len(fate.pods):,}",
                Cell(fate.state, "green" if fate.state == "placed" else "yellow"),
                _places(fate.nodes) if fate.nodes else fate.message,
            )
            for fate in workload.fates
        ),
    )
    page.line()
    page.line(f"the story of {workload.example.pod}:", "dim")
    page.line()
    page.write()


def _places(nodes: dict[str, int]) -> str:
    return names_in_short(
        [f"{name} ×{count:,}" if count > 1 else name for name, count in nodes.items()]
    )


def write_node(explanation: Explanation, name: str) -> None:
    """One node in full: the verdict and the score of every plugin."""
    view = explanation.node_view(name)
    page = Page()
    page.heading(f"FILTERS on {name}")
    page.table(
        (Column("PLUGIN"), Column("VERDICT"), Column("WHY", wraps=True)),
        (_filter_row(plugin, status) for plugin, status in view.filters),
    )
    if view.scores:
        page.heading(f"SCORES of {name}")
        _score_table(page, [view], _highest([view]))
    page.line()
    page.line(_node_summary(explanation, view), "bold green" if view.fits else "bold yellow")
    page.write()


def summary(explanation: Explanation) -> str:
    """The answer in one line."""
    pod, node = explanation.pod, explanation.node
    match explanation.state:
        case "placed":
            return f"{pod} is on {node} ({explanation.as_of})"
        case "schedulable":
            return f"{pod} would go to {node} ({explanation.as_of})"
        case "waiting":
            return f"{pod} waits to be bound to {node} ({explanation.as_of})"
        case "finished" | "preempted" | "deleted":
            return f"{pod} was on {node} and is {explanation.state} ({explanation.as_of})"
        case state:
            return f"{pod} is {state}: {explanation.message}"


def bar(value: int, highest: int) -> str:
    """`██████▌`: the value relative to the highest, to an eighth of a character."""
    if highest <= 0 or value <= 0:
        return ""
    eighths = round(value * _BAR * 8 / highest)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _story(page: Page, story: Sequence[Step]) -> None:
    page.heading("STORY")
    page.table(
        (Column("POINT"), Column(""), Column("WHAT HAPPENED", wraps=True)),
        (
            (step.point, Cell(step.outcome, _STYLES.get(step.outcome, "")), step.text)
            for step in story
        ),
    )


def _scores(page: Page, explanation: Explanation, matrix: Matrix, top: int) -> None:
    views = matrix.best(top)
    page.heading(f"BEST NODES, {len(views)} of {len(matrix.scored):,} that fit")
    _score_table(page, views, _highest(views))
    if explanation.margin is not None:
        page.line(
            f"{matrix.nodes[matrix.scored[0]]} leads by {counted(explanation.margin, 'point')}",
            "dim",
        )
    elif len(matrix.scored) > 1:
        page.line("all of them have the same score: the tie-break decides", "dim")


def _highest(views: Sequence[NodeView]) -> int:
    return max((score.weighted for view in views for score in view.scores), default=0)


def _score_table(page: Page, views: Sequence[NodeView], highest: int) -> None:
    page.table(
        (
            Column("NODE"),
            Column("PLUGIN"),
            Column("RAW", right=True),
            Column("NORMALISED", right=True),
            Column("WEIGHT", right=True),
            Column("WEIGHTED", right=True),
            Column(""),
        ),
        [row for view in views for row in _score_rows(view, highest)],
    )


def _score_rows(view: NodeView, highest: int) -> Iterator[Sequence[str | Cell]]:
    total = Cell(f"{view.total}", "bold")
    yield Cell(view.node, "bold"), Cell("total", "bold"), "", "", "", total, ""
    for score in view.scores:
        yield _score_row(score, highest)


def _score_row(score: Score, highest: int) -> Sequence[str | Cell]:
    return (
        "",
        score.plugin,
        f"{score.raw:,}",
        str(score.normalized),
        f"×{score.weight}",
        str(score.weighted),
        Cell(bar(score.weighted, highest), "cyan"),
    )


def _refusals(page: Page, matrix: Matrix) -> None:
    refusals = matrix.refusals()
    count = sum(len(each.nodes) for each in refusals)
    page.heading(f"REJECTED BY, {count:,} of {counted(len(matrix), 'node')}")
    page.table(
        (
            Column("PLUGIN"),
            Column("NODES", right=True),
            Column("WHY", wraps=True),
            Column("EVICTING PODS"),
            Column("WHICH", wraps=True),
        ),
        (
            (
                each.plugin or "-",
                f"{len(each.nodes):,}",
                Cell(", ".join(each.reasons), "yellow"),
                "may help" if each.code == Code.UNSCHEDULABLE.title else "cannot help",
                names_in_short(each.nodes),
            )
            for each in refusals
        ),
    )


def write_devices(page: Page, reasons: Sequence[DeviceReason]) -> None:
    """Why devices were refused."""
    page.table(
        (
            Column("REQUEST"),
            Column("DEVICES", right=True),
            Column("WHY", wraps=True),
            Column("WHICH", wraps=True),
        ),
        (
            (
                f"{each.claim}: {each.request}" if each.request else "-",
                f"{len(each.devices):,}",
                Cell(f"{each.reason}: {each.detail}" if each.detail else each.reason, "yellow"),
                names_in_short(each.devices),
            )
            for each in reasons
        ),
    )


def write_changes(page: Page, changes: Counterfactuals) -> None:
    """What would make the pod fit."""
    page.heading("WOULD FIT IF")
    shown = changes.answers[:_MOST_CHANGES]
    if shown:
        page.table(
            (Column("YOU", wraps=True), Column("THEN IT GOES TO"), Column("NODES", right=True)),
            ((each.text, each.node, f"{each.fitting_nodes:,}") for each in shown),
        )
    if changes.note:
        page.line(changes.note, "yellow")
    if len(changes) > len(shown):
        page.line(f"… and {len(changes) - len(shown)} more; use --output json to see all", "dim")
    if not changes.complete:
        page.line("the search ran out of time; a longer --budget may find more", "dim")


def _filter_row(plugin: str, status: Status | None) -> Sequence[str | Cell]:
    if status is None:
        return plugin, Cell("not asked", "dim"), "an earlier plugin rejected the node"
    if status.ok:
        return plugin, Cell("passes", "green"), ""
    return plugin, Cell("rejects", "yellow"), status.message


def _node_summary(explanation: Explanation, view: NodeView) -> str:
    if not view.fits:
        by = f"{view.status.plugin}: " if view.status.plugin else ""
        return f"{explanation.pod} does not fit on {view.node}: {by}{view.status.message}"
    if view.rank is None:
        return f"{explanation.pod} fits on {view.node} and on no other node"
    return (
        f"{explanation.pod} fits on {view.node}, which ranks {view.rank} with {view.total} points"
    )
