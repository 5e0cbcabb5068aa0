"""What happens while the clock runs: the pods of a workload meet the scheduler in one of these ways.

Each takes the pods, notes how long every attempt took by the clock, and gives back how many decisions count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.driver import Driver
from benchmarks.manifests import Template, make, make_node
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod

#: Seconds of wall time or of processor time.
Clock = Callable[[], float]
Drive = Callable[[Driver, Sequence[Pod], list[float], Clock], int]

#: How many decisions later a binding has been written and is heard of.
_ROUND_TRIP = 20

#: How many decisions there are to one thing that happens in the cluster.
_CHURN_EVERY = 50

TOO_LARGE = Template({"app": "too-large"}, cpu_milli=9000)
_TOO_LARGE_AND_IMPORTANT = Template({"app": "important"}, cpu_milli=9000, priority=10)


def decide(driver: Driver, pods: Sequence[Pod], times_s: list[float], clock: Clock) -> int:
    """The scheduling cycle alone: all pods are in the queue, and bindings have to wait."""
    schedule_one = driver.scheduler.schedule_one
    for _ in pods:
        started = clock()
        schedule_one()
        times_s.append(clock() - started)
    return len(pods)


def live_through(driver: Driver, pods: Sequence[Pod], times_s: list[float], clock: Clock) -> int:
    """Everything that the scheduler has to do with a pod, from its appearance to its confirmed binding."""
    schedule_one = driver.scheduler.schedule_one
    for start in range(0, len(pods), _ROUND_TRIP):
        driver.create(pods[start : start + _ROUND_TRIP])
        for _ in pods[start : start + _ROUND_TRIP]:
            started = clock()
            schedule_one()
            times_s.append(clock() - started)
    driver.settle()
    return len(pods)


def with_churn(driver: Driver, pods: Sequence[Pod], times_s: list[float], clock: Clock) -> int:
    """Nodes, services and pods that fit nowhere come and go meanwhile."""
    passing = [
        make_node(99_999),
        _TOO_LARGE_AND_IMPORTANT.pod("churn-pod"),
        make(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "churn-service", "namespace": "default", "uid": "churn"},
                "spec": {"selector": {"app": "churn"}},
            }
        ),
    ]

    def churn(turn: int) -> None:
        obj: KubeObject = passing[turn // 2 % len(passing)]
        if turn % 2 == 0:
            driver.create([obj])
        else:
            # What was begun for it is over before it goes.
            driver.settle()
            driver.delete([obj])

    schedule_one = driver.scheduler.schedule_one
    turn = 0
    while True:
        if len(times_s) % _CHURN_EVERY == 0:
            churn(turn)
            turn += 1
        started = clock()
        if not schedule_one():
            break
        times_s.append(clock() - started)
    if turn % 2 == 1:
        churn(turn)
    return len(times_s)


def before_a_backlog(
    driver: Driver, pods: Sequence[Pod], times_s: list[float], clock: Clock
) -> int:
    """Bindings are heard of beside pods that wait in vain, and one pod in ten joins those."""
    schedule_one = driver.scheduler.schedule_one
    too_many = [TOO_LARGE.pod(f"{pod.name}-large") for pod in pods[::10]]
    for i in range(len(pods)):
        if i % 10 == 0:
            driver.create([too_many[i // 10]])
        started = clock()
        schedule_one()
        times_s.append(clock() - started)
        if i % _ROUND_TRIP == 0:
            driver.settle()
    # Those that came last are left over.
    left = 0
    while schedule_one():
        left += 1
    driver.settle()
    return len(pods) + left


def preempt(driver: Driver, pods: Sequence[Pod], times_s: list[float], clock: Clock) -> int:
    """Each pod finds victims, waits until they are gone, and takes their place."""
    schedule_one = driver.scheduler.schedule_one
    while True:
        started = clock()
        if not schedule_one():
            return len(pods)
        times_s.append(clock() - started)
        driver.settle()


def make_backlog(count: int) -> list[Pod]:
    return [TOO_LARGE.pod(f"backlog-{i}") for i in range(count)]
