"""What changes if…: the same pods under several configurations, or on several clusters, side by side.

Every variant is simulated in full. The first variant is the baseline; the others are compared with it. Then
the few decisions to be explained are taken once more, this time in full, for the scores that led to them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from mooring.errors import ConfigError
from mooring.explain.device_measures import measure_devices
from mooring.explain.matrix import Matrix
from mooring.explain.measures import Measures, measure, shapes_of
from mooring.explain.past_decision import RunInput, run_again
from mooring.explain.what_if import DecisionView
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.scheduler.decision import Decision
from mooring.scheduler.journal import Decided
from mooring.sim.build_report import build_report
from mooring.sim.report import Pending, SimulationReport

PENDING = "pending"
#: For a pod that asks for a scheduler that the configuration does not have.
OTHER = "other scheduler"
#: For a pod that a variant does not have.
ABSENT = "-"

#: How many nodes to show of each explained decision, beside those that were taken.
_TOP_NODES = 3


@dataclass(frozen=True, slots=True)
class Variant:
    """One side of a comparison."""

    name: str
    source: RunInput


@dataclass(frozen=True, slots=True)
class Run:
    """What came of a variant."""

    variant: Variant
    report: SimulationReport
    measures: Measures
    decisions: list[Decided]
    #: On the wall clock, and so not the same each time.
    decisions_per_s: float
    #: Pod → the node where it is or ended, `pending`, or how it went.
    where: dict[str, str]

    @property
    def name(self) -> str:
        return self.variant.name

    @property
    def preempted(self) -> int:
        return sum(len(each.victims) for each in self.report.preemptions)

    @property
    def pending(self) -> dict[str, Pending]:
        return {each.pod: each for each in self.report.pending}


@dataclass(frozen=True, slots=True)
class NodeScores:
    """A node that was compared with others."""

    node: str
    total: int
    #: Plugin → its weighted score.
    by_plugin: dict[str, int]


@dataclass(frozen=True, slots=True)
class Side:
    """How one variant came to its decision."""

    variant: str
    #: None if the pod fits nowhere.
    node: str | None
    feasible: int
    #: The best nodes, then those that were taken by either side; empty if there was nothing to compare.
    scores: tuple[NodeScores, ...]
    #: Why the pod fits nowhere.
    message: str = ""


@dataclass(frozen=True, slots=True)
class Divergence:
    """A decision that came out otherwise, and why."""

    pod: str
    #: Whether both sides saw the same cluster; if not, earlier differences have their part in this one.
    same_state: bool
    sides: tuple[Side, Side]


@dataclass(frozen=True, slots=True)
class Difference:
    """A variant compared with the baseline."""

    variant: str
    #: Pods that end elsewhere: pod, where by the baseline, where by the variant.
    moved: tuple[tuple[str, str, str], ...]
    only_pending_before: tuple[str, ...]
    only_pending_here: tuple[str, ...]
    why: tuple[Divergence, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """All variants; the first is the baseline."""

    runs: tuple[Run, ...]
    #: For every variant but the first.
    differences: tuple[Difference, ...]

    def to_data(self) -> dict[str, Any]:
        return {
            "baseline": self.runs[0].name,
            "variants": [
                {
                    "name": run.name,
                    "values": {key: value for key, _, value in values_of(run)},
                    "measures": run.measures.to_data(),
                    "pending": [
                        {"pod": each.pod, "state": each.state, "message": each.message}
                        for each in run.report.pending
                    ],
                    "otherSchedulers": [each.pod for each in run.report.other_schedulers],
                }
                for run in self.runs
            ],
            "differences": [
                {
                    "variant": each.variant,
                    "moved": [
                        {"pod": pod, "baseline": before, "variant": after}
                        for pod, before, after in each.moved
                    ],
                    "onlyPendingInBaseline": list(each.only_pending_before),
                    "onlyPendingInVariant": list(each.only_pending_here),
                    "why": [divergence_data(divergence) for divergence in each.why],
                }
                for each in self.differences
            ],
        }


Stopwatch = Callable[[], float]
OnProgress = Callable[[str, int], None]


def compare(
    variants: Sequence[Variant],
    *,
    explained: int = 3,
    on_progress: OnProgress | None = None,
    stopwatch: Stopwatch = time.perf_counter,
) -> Comparison:
    """Simulate all and hold them against the first. Raises InputError and ConfigError.

    `explained` decisions of each variant are explained; `on_progress` is told the variant and how many
    decisions it has taken.
    """
    runs = tuple(_run(variant, on_progress, stopwatch) for variant in variants)
    return Comparison(runs, tuple(_difference(runs[0], run, explained) for run in runs[1:]))


def values_of(run: Run) -> list[tuple[str, str, float | None]]:
    """Everything that is one number: a key, words for it, the value. None: does not apply."""
    return [
        *values_of_report(run.report, run.measures, len(run.decisions)),
        ("decisionsPerSecond", "decisions per second", round(run.decisions_per_s, 1)),
    ]


def values_of_report(
    report: SimulationReport, measures: Measures, attempts: int
) -> list[tuple[str, str, float | None]]:
    """The numbers that a run always repeats."""
    spread = measures.spread
    values: list[tuple[str, str, float | None]] = [
        ("placed", "placed", len(report.placements)),
        ("pending", "pending", len(report.pending)),
        ("otherSchedulers", "for other schedulers", len(report.other_schedulers)),
        ("preempted", "preempted", sum(len(each.victims) for each in report.preemptions)),
        ("nodesInUse", "nodes in use", measures.nodes_in_use),
    ]
    for each in measures.resources:
        name = each.resource
        values += [
            (f"utilisation.{name}", f"{name} utilisation", each.utilisation),
            (f"imbalance.{name}", f"{name} imbalance between nodes", each.imbalance),
            (f"fragmentation.{name}", f"{name} fragmentation", each.fragmentation),
        ]
    return [
        *values,
        ("zoneSkew.mean", "mean zone skew of workloads", spread.mean_zone_skew),
        ("zoneSkew.max", "largest zone skew of a workload", spread.max_zone_skew),
        ("nodeShare.mean", "mean share of a workload on one node", spread.mean_node_share),
        ("attempts", "attempts", attempts),
        ("elapsedSeconds", "virtual seconds", report.elapsed_s),
    ]


# Running a variant


def _run(variant: Variant, on_progress: OnProgress | None, stopwatch: Stopwatch) -> Run:
    def note(decision: Decision) -> None:
        if on_progress is not None:
            on_progress(variant.name, simulation.summary.decisions)

    with _naming(variant), variant.source.simulation(note) as simulation:
        started = stopwatch()
        simulation.run(until_s=variant.source.until_s)
        took_s = stopwatch() - started
        report = build_report(simulation)
        shapes = shapes_of(obj for obj in variant.source.objects if isinstance(obj, Pod))
        cluster = simulation.scheduler.cluster
        measures = measure(cluster.infos.values(), shapes, measure_devices(cluster))
    decisions = simulation.journal.decisions
    return Run(
        variant=variant,
        report=report,
        measures=measures,
        decisions=decisions,
        decisions_per_s=len(decisions) / took_s if took_s > 0 else 0.0,
        where=where_pods_are(variant.source.objects, report),
    )


@contextmanager
def _naming(variant: Variant) -> Iterator[None]:
    """Begin every line of a ConfigError with the variant that it is about."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError([f"{variant.name}: {line}" for line in error.problems]) from error


def where_pods_are(objects: Iterable[KubeObject], report: SimulationReport) -> dict[str, str]:
    """Pod → the node where it is or ended, `pending`, or how it went."""
    where = {
        obj.key: obj.node_name
        for obj in objects
        if isinstance(obj, Pod) and obj.node_name and not obj.finished
    }
    for placed in report.placements:
        ended = placed.state in ("preempted", "deleted")
        where[placed.pod] = placed.state if ended else placed.node
    for preemption in report.preemptions:
        where.update({victim.pod: "preempted" for victim in preemption.victims})
    where.update({each.pod: PENDING for each in report.pending})
    where.update({each.pod: OTHER for each in report.other_schedulers})
    return where


# Holding two against each other


def _difference(baseline: Run, run: Run, explained: int) -> Difference:
    """A run against another; `explained` decisions are taken again to be explained."""
    pods = list(dict.fromkeys((*baseline.where, *run.where)))
    both = ((pod, baseline.where.get(pod, ABSENT), run.where.get(pod, ABSENT)) for pod in pods)
    before, here = baseline.pending, run.pending
    return Difference(
        variant=run.name,
        moved=tuple((pod, old, new) for pod, old, new in both if old != new),
        only_pending_before=tuple(pod for pod in before if pod not in here),
        only_pending_here=tuple(pod for pod in here if pod not in before),
        why=tuple(_divergences(baseline, run, explained)),
    )


def _divergences(baseline: Run, run: Run, wanted: int) -> Iterable[Divergence]:
    """The first decisions that came out otherwise, each explained from both sides."""
    ours, theirs = _first_choices(baseline), _first_choices(run)
    both = (pod for pod in ours if pod in theirs)
    pods = [pod for pod in both if ours[pod].node != theirs[pod].node][:wanted]
    if not pods:
        return
    first = _first_difference(baseline, run)
    taken = {pod: {ours[pod].node, theirs[pod].node} for pod in pods}
    left = _explained(baseline, [ours[pod] for pod in pods], taken)
    right = _explained(run, [theirs[pod] for pod in pods], taken)
    for pod in pods:
        yield Divergence(pod, pod == first, (left[pod], right[pod]))


def _first_choices(run: Run) -> dict[str, Decided]:
    choices: dict[str, Decided] = {}
    for decided in run.decisions:
        choices.setdefault(decided.pod, decided)
    return choices


def _first_difference(baseline: Run, run: Run) -> str | None:
    """The pod of the first attempt that differs, if both made it for the same pod on the same cluster."""
    same_cluster = baseline.variant.source.objects is run.variant.source.objects
    for decided, other in zip(baseline.decisions, run.decisions, strict=False):
        if decided.pod != other.pod:
            return None
        if decided.node != other.node:
            return decided.pod if same_cluster else None
    return None


def _explained(
    run: Run, decisions: Iterable[Decided], taken: dict[str, set[str]]
) -> dict[str, Side]:
    """These decisions, made again; `taken` are the nodes to show of each pod in any case."""
    return {
        decided.pod: side_of(run.name, look, taken[decided.pod])
        for decided, look in run_again(run.variant.source, decisions).items()
    }


def side_of(variant: str, look: DecisionView, taken: set[str]) -> Side:
    """How a variant decided; `taken` are the nodes to show in any case."""
    return Side(
        variant=variant,
        node=look.chosen,
        feasible=len(look.matrix.feasible),
        scores=_top(look.matrix, taken),
        message=look.fit_error,
    )


def _top(matrix: Matrix, taken: set[str]) -> tuple[NodeScores, ...]:
    if not matrix.scores:
        return ()
    names = [matrix.nodes[node] for node in matrix.scored.tolist()]
    in_order = sorted(range(len(names)), key=lambda i: (-int(matrix.totals[i]), names[i]))
    shown = [i for place, i in enumerate(in_order) if place < _TOP_NODES or names[i] in taken]
    return tuple(
        NodeScores(
            node=names[i],
            total=int(matrix.totals[i]),
            by_plugin={column.plugin: column.cell(i).weighted for column in matrix.scores},
        )
        for i in shown
    )


def divergence_data(divergence: Divergence) -> dict[str, Any]:
    return {
        "pod": divergence.pod,
        "sameState": divergence.same_state,
        "sides": [
            {
                "variant": side.variant,
                "node": side.node,
                "feasible": side.feasible,
                "message": side.message,
                "scores": [
                    {"node": each.node, "total": each.total, "byPlugin": each.by_plugin}
                    for each in side.scores
                ],
            }
            for side in divergence.sides
        ],
    }


# Thresholds


@dataclass(frozen=True, slots=True)
class Threshold:
    """How far a value may rise: to `amount`, or by `amount` (or so many percent) over the baseline."""

    #: A key of `values_of`; one that ends in `.` holds for all that begin so.
    key: str
    amount: float
    relative: bool = True
    percent: bool = False

    def allowed(self, baseline: float) -> float:
        if not self.relative:
            return self.amount
        return baseline + (baseline * self.amount / 100 if self.percent else self.amount)


@dataclass(frozen=True, slots=True)
class Regression:
    """A value that is worse than it may be."""

    variant: str
    what: str
    baseline: float
    value: float
    allowed: float


def parse_threshold(key: str, text: str) -> Threshold:
    """`+0` and `+10%` are over the baseline, `5` is a limit of its own. Raises ValueError."""
    relative, percent = text.startswith("+"), text.endswith("%")
    amount = float(text.removeprefix("+").removesuffix("%"))
    if not 0 <= amount < float("inf") or (percent and not relative):
        raise ValueError(f"{text!r} is not a threshold")
    return Threshold(key, amount, relative, percent)


def regressions(comparison: Comparison, thresholds: Iterable[Threshold]) -> list[Regression]:
    limits = list(thresholds)
    baseline = {key: value for key, _, value in values_of(comparison.runs[0])}
    found = []
    for run in comparison.runs[1:]:
        for key, what, value in values_of(run):
            before = baseline.get(key) or 0.0
            for limit in limits:
                if value is None or not _is_about(limit, key):
                    continue
                # Shares are rounded to four digits; what cannot be seen is no regression.
                if value > limit.allowed(before) + 1e-9:
                    allowed = round(limit.allowed(before), 4)
                    found.append(Regression(run.name, what, before, value, allowed))
    return found


def regression_data(regression: Regression) -> dict[str, Any]:
    return asdict(regression)


def _is_about(limit: Threshold, key: str) -> bool:
    return key.startswith(limit.key) if limit.key.endswith(".") else key == limit.key
