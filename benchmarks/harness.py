"""Measuring a workload: check it, warm up, repeat, and say how much the repeats differ.

Every repeat starts from a cluster of its own. Processor time stands beside wall time, since a shared
machine disturbs the second more than the first; and beside both stands a yardstick of the same moment, a
plain NumPy pass over the same columns, which is what to compare between machines.
"""

from __future__ import annotations

import gc
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks import answers, driving
from benchmarks.answers import Answer
from benchmarks.driver import Driver
from benchmarks.driving import Clock
from benchmarks.workloads import Workload
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.scheduler.engine import Engine

_YARDSTICK_PASSES = 40


@dataclass(frozen=True, slots=True)
class Size:
    """How large a measurement is."""

    nodes: int
    #: None takes as many as the workload says: mostly one a node.
    bound: int | None = None
    pods: int = 1000
    repeats: int = 3
    #: Roughly how long one repeat may take: fewer pods are measured where they take longer.
    most_s: float = 5.0


@dataclass(frozen=True, slots=True)
class Spread:
    """The middle of several repeats, and their extremes."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(
            round(statistics.median(values), 2), round(min(values), 2), round(max(values), 2)
        )


@dataclass(frozen=True, slots=True)
class Measured:
    """What is reported of one workload at one size."""

    workload: str
    nodes: int
    bound: int
    pods: int
    repeats: int
    #: Decisions per second of processor time, and of wall time.
    per_cpu_s: Spread
    per_wall_s: Spread
    #: Of single attempts, in microseconds of wall time: the middle, one in a hundred, the longest.
    attempt_us: dict[str, float]
    #: Microseconds of processor time of one yardstick, and how many of those a decision takes.
    yardstick_us: float
    passes_per_decision: float
    #: The most megabytes that were resident until the first repeat had ended.
    peak_mb: float

    def as_data(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Repeat:
    """One run of a workload."""

    decisions: int
    cpu_s: float
    wall_s: float
    attempts_s: list[float]
    yardstick_s: float
    #: Before the cluster is checked, for which it is built a second time.
    peak_mb: float


def measure(workload: Workload, size: Size) -> Measured:
    """Raises WrongAnswer if the scheduler answers wrongly, before or while it is timed."""
    objects = list(workload.objects(size.nodes, size.bound))
    warm_up = min(workload.warm_up, max(1, workload.most(size.nodes) // 4))
    trial = Trial(workload, size.nodes, objects)
    affordable = int(size.most_s / trial.agrees_with_full_evaluation(warm_up))
    count = min(size.pods, workload.most(size.nodes) - warm_up, max(warm_up, affordable))
    repeats = [trial.run(warm_up, count) for _ in range(size.repeats)]
    cpu_per_decision_s = statistics.median(r.cpu_s / r.decisions for r in repeats)
    yardstick_s = statistics.median(r.yardstick_s for r in repeats)
    attempts_s = np.concatenate([r.attempts_s for r in repeats]) * 1e6
    return Measured(
        workload=workload.name,
        nodes=size.nodes,
        bound=workload.bound_count(size.nodes) if size.bound is None else size.bound,
        pods=count,
        repeats=size.repeats,
        per_cpu_s=Spread.of([r.decisions / r.cpu_s for r in repeats]),
        per_wall_s=Spread.of([r.decisions / r.wall_s for r in repeats]),
        attempt_us={
            "median": round(float(np.median(attempts_s)), 1),
            "p99": round(float(np.percentile(attempts_s, 99)), 1),
            "longest": round(float(attempts_s.max()), 1),
        },
        yardstick_us=round(yardstick_s * 1e6, 1),
        passes_per_decision=round(cpu_per_decision_s / yardstick_s, 3),
        peak_mb=round(repeats[0].peak_mb, 1),
    )


class Trial:
    """One workload on one cluster, which is built again for every run."""

    def __init__(self, workload: Workload, nodes: int, objects: list[KubeObject]) -> None:
        self._workload = workload
        self._objects = objects
        placed = answers.all_placed if workload.fits else answers.none_placed
        self._holds = answers.every([placed, workload.holds(nodes)])

    def agrees_with_full_evaluation(self, count: int) -> float:
        """The first pods go where they go if no work is ever kept for the next.

        Returns how long a pod takes, roughly.
        """
        placed = []
        attempts_s: list[float] = []
        for keep_answers in (False, True):
            with self._build(keep_answers=keep_answers) as driver:
                pods = self._arrive(driver, "checked", count)
                attempts_s.clear()
                self._workload.drive(driver, pods, attempts_s, time.perf_counter)
                driver.settle()
                placed.append(self._checked(driver, ["checked"], count).placed)
        answers.same_as(*placed)
        # The first of a signature take longer than those that follow.
        later_s = attempts_s[-len(attempts_s) // 3 :]
        return statistics.median(later_s) * len(attempts_s) / count

    def run(self, warm_up: int, count: int, clock: Clock = time.perf_counter) -> Repeat:
        """`clock` times the attempts."""
        with self._build() as driver:
            # By other numbers, or the first pods of a make would not be the first.
            others = self._arrive(driver, "warm-up", warm_up, first=-warm_up)
            self._workload.drive(driver, others, [], time.perf_counter)
            driver.settle()
            pods = self._arrive(driver, "pod", count)
            yardsticks_s = [numpy_pass(driver.scheduler)]
            repeat = _timed(self._workload.drive, driver, pods, clock)
            driver.settle()
            yardsticks_s.append(numpy_pass(driver.scheduler))
            peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
            self._checked(driver, ["warm-up", "pod"], warm_up + count)
            driver.scheduler.cluster.validate()
        return Repeat(*repeat, statistics.median(yardsticks_s), peak_mb)

    def _build(self, *, keep_answers: bool = True) -> Driver:
        driver = Driver(self._objects, keep_answers=keep_answers)
        driver.create(driving.make_backlog(self._workload.backlog))
        while driver.scheduler.schedule_one():
            pass
        driver.settle()
        return driver

    def _arrive(self, driver: Driver, prefix: str, count: int, first: int = 0) -> list[Pod]:
        workload = self._workload
        pods = workload.pods(prefix, count, first)
        for pod in pods:
            driver.create(workload.brings(pod.name))
        if workload.queued:
            driver.create(pods)
        return pods

    def _checked(self, driver: Driver, prefixes: Sequence[str], wanted: int) -> Answer:
        placements = driver.placements()
        measured = tuple(f"default/{prefix}-" for prefix in prefixes)
        answer = Answer(
            placed={pod: node for pod, node in placements.items() if pod.startswith(measured)},
            bound={
                pod: node for pod, node in placements.items() if pod.startswith("default/bound-")
            },
            wanted=wanted,
            bound_before=sum(isinstance(obj, Pod) for obj in self._objects),
        )
        try:
            self._holds(answer)
        except answers.WrongAnswer as wrong:
            raise answers.WrongAnswer(f"{self._workload.name}: {wrong}") from None
        return answer


def _timed(
    drive: driving.Drive, driver: Driver, pods: Sequence[Pod], clock: Clock
) -> tuple[int, float, float, list[float]]:
    """Garbage of the preparation is taken out before, and collected as always meanwhile."""
    attempts_s: list[float] = []
    gc.collect()
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    decisions = drive(driver, pods, attempts_s, clock)
    cpu_s, wall_s = time.process_time() - cpu_s, time.perf_counter() - wall_s
    return decisions, cpu_s, wall_s, attempts_s


def numpy_pass(scheduler: Engine) -> float:
    """The yardstick: fit, least allocated over two resources, argmax; processor seconds."""
    columns = scheduler.cluster.snapshot().columns
    # Rows of nodes that left have nothing.
    allocatable = np.maximum(columns.allocatable[:2, : columns.size], 1)
    requested = columns.non_zero[:2, : columns.size].copy()
    request = np.array([[100], [200 << 20]])

    def one_pass() -> None:
        free = allocatable - requested
        fits = (free >= request).all(axis=0)
        scores = ((free - request) * 100 // allocatable).sum(axis=0) // 2
        np.where(fits, scores, -1).argmax()

    return statistics.median(_cpu_s(one_pass) for _ in range(_YARDSTICK_PASSES))


def _cpu_s(work: Callable[[], None]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started
