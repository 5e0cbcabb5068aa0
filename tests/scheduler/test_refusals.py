"""A pod that fits nowhere: while that is true, pods that are alike are not evaluated."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mooring.config import load_config
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import Depends
from mooring.framework.status import Status, unschedulable
from mooring.objects.kinds import Namespace
from mooring.objects.meta import ObjectMeta
from mooring.objects.pod import Pod
from mooring.runtime.evaluation import Filtered
from mooring.scheduler.refusals import MOST_REFUSALS
from tests.engine import Engine
from tests.makers import make_node, make_pod

CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Refuses"}]}}}],
}


class Undeclared:
    """Refuses every node, and does not say what makes it do so."""

    name = "Refuses"
    calls = 0

    def filter(self, state: CycleState, pod: Pod, node: object) -> Status:
        type(self).calls += 1
        return unschedulable("node(s) are refused")


class Declared(Undeclared):
    def depends_on(self, pod: Pod) -> Depends:
        return Depends.CLUSTER


def engine_with(kind: type[Undeclared]) -> tuple[Engine, type[Undeclared]]:
    plugin = type("Refuses", (kind,), {"calls": 0})
    engine = Engine(make_node("n"), config=load_config(CONFIG), plugins={"Refuses": plugin})
    return engine, plugin


def attempt(engine: Engine, pod: Pod) -> str:
    """What the pod is told."""
    engine.handlers.added(pod)
    assert engine.scheduler.schedule_one()
    return engine.decisions[-1].diagnosis.message


def test_the_nodes_of_a_known_refusal_come_in_the_order_that_they_have_now():
    """A node moved to another zone. The refusal kept the order of before, in which victims are looked for.

    In the default profile ImageLocality looks at all nodes, so nothing is known after such a change.
    """
    disabled = {"disabled": [{"name": "ImageLocality"}]}
    config = load_config(CONFIG | {"profiles": [{"plugins": {"multiPoint": disabled}}]})
    zones = {"n1": "a", "n2": "a", "n3": "b"}
    engine = Engine(*(make_node(name, zone=zone) for name, zone in zones.items()), config=config)
    attempt(engine, make_pod("p1", cpu="100"))
    orders = []
    # The second pod of a kind is the first one whose verdicts are kept.
    for name, zone in (("p2", "c"), ("p3", "a")):
        old = engine.scheduler.cluster.infos["n3"].node
        engine.handlers.updated(old, make_node("n3", zone=zone))
        attempt(engine, make_pod(name, cpu="100"))
        orders.append(engine.decisions[-1].diagnosis.snapshot.order)

    assert orders == [["n1", "n3", "n2"], ["n1", "n2", "n3"]]


def test_a_twin_is_told_the_same_without_being_looked_at():
    engine, plugin = engine_with(Declared)

    first, second = (attempt(engine, make_pod(name, cpu="1")) for name in ("p1", "p2"))

    assert second == first
    assert "1 node(s) are refused" in first
    assert "No preemption victims found" in first
    assert plugin.calls == 1
    assert engine.decisions[-1].pod.name == "p2"
    assert engine.scheduler.queue.counts().unschedulable == 2


def test_plugins_that_do_not_say_what_they_depend_on_are_asked_each_time():
    engine, plugin = engine_with(Undeclared)

    attempt(engine, make_pod("p1", cpu="1"))
    before = plugin.calls
    attempt(engine, make_pod("p2", cpu="1"))

    assert plugin.calls > before


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda e: e.handlers.added(make_node("other")), id="a node"),
        pytest.param(lambda e: e.handlers.added(make_pod("x", node="n")), id="a placed pod"),
        pytest.param(
            lambda e: e.scheduler.cluster.listers.put(_namespace()),
            id="an object that is looked up",
        ),
    ],
)
def test_after_a_change_everything_is_found_out_afresh(change: Callable[[Engine], None]):
    engine, plugin = engine_with(Declared)
    attempt(engine, make_pod("p1", cpu="1"))

    change(engine)
    before = plugin.calls
    attempt(engine, make_pod("p2", cpu="1"))

    assert plugin.calls > before


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(make_pod("p2", cpu="2"), id="another request"),
        pytest.param(make_pod("p2", cpu="1", labels={"app": "b"}), id="another label"),
        pytest.param(make_pod("p2", cpu="1", annotations={"a": "b"}), id="another annotation"),
        pytest.param(make_pod("p2", cpu="1", namespace="other"), id="another namespace"),
        pytest.param(make_pod("p2", cpu="1", priority=7), id="another priority"),
    ],
)
def test_a_pod_that_differs_is_looked_at(other: Pod):
    engine, plugin = engine_with(Declared)
    attempt(engine, make_pod("p1", cpu="1"))

    before = plugin.calls
    attempt(engine, other)

    assert plugin.calls > before


def test_only_so_many_are_remembered():
    engine, _ = engine_with(Declared)
    for i in range(MOST_REFUSALS + 10):
        attempt(engine, make_pod(f"p{i}", labels={"n": str(i)}))

    refusals = engine.scheduler.searches["default-scheduler"].refusals
    assert refusals is not None
    assert refusals.recall(CycleState(), make_pod("late", labels={"n": "0"})) is None
    known = make_pod("late", labels={"n": str(MOST_REFUSALS)})
    assert refusals.recall(CycleState(), known) is not None


@pytest.mark.long
@example(seed=8850)
@given(seed=st.integers(0, 2**32))
def test_whatever_happens_pods_are_told_what_they_are_told_without_a_memory(seed):
    """Two engines live through the same: one remembers, the other never does."""
    keeping, forgetting = Engine(one_for_all=False), Engine(keep_answers=False)
    chance = random.Random(seed)
    for number in range(60):
        happens = _something(chance, number)
        for engine in (keeping, forgetting):
            happens(engine)
        assert _told(keeping) == _told(forgetting)
        if not number % 6:
            keeping.scheduler.validate()
    assert keeping.placements() == forgetting.placements()
    assert keeping.scheduler.queue.counts() == forgetting.scheduler.queue.counts()


def _something(chance: random.Random, number: int) -> Callable[[Engine], None]:
    match chance.choices(("pod", "node", "leave", "placed"), weights=(12, 2, 1, 1))[0]:
        case "node":
            cpu = str(chance.randrange(1, 4))
            return lambda engine: engine.handlers.added(make_node(f"n{number}", cpu=cpu))
        case "placed":
            pod = make_pod(f"placed{number}", cpu="500m", node=f"n{chance.randrange(60)}")
            return lambda engine: engine.handlers.added(pod)
        case "leave":
            place = chance.random()
            return lambda engine: _leave(engine, place)
        case _:
            size, priority = chance.choice(("500m", "2", "3")), chance.choice((0, 0, 0, 5))
            pod = make_pod(f"p{number}", cpu=size, priority=priority)
            return lambda engine: _try(engine, pod)


def _told(engine: Engine) -> list[tuple[str, str | None, str, str]]:
    """What came of each attempt since this was last asked."""
    told = [
        (d.pod.key, d.node_name, "" if d.node_name else d.diagnosis.message, repr(d.post_filter))
        for d in engine.decisions
    ]
    engine.decisions.clear()
    return told


def _try(engine: Engine, pod: Pod) -> None:
    engine.handlers.added(pod)
    engine.scheduler.schedule_one()


def _leave(engine: Engine, place: float) -> None:
    pods = sorted(engine.scheduler.cluster.pods.values(), key=lambda pod: pod.key)
    if pods:
        engine.handlers.deleted(pods[int(place * len(pods))])


def _namespace() -> Namespace:
    return Namespace(metadata=ObjectMeta(name="another"))


def test_pods_that_wait_hold_no_verdicts_of_nodes():
    """Each waiting pod once held the verdicts of all nodes: 5,000 pods and nodes took a gigabyte."""
    engine, _ = engine_with(Undeclared)
    before = _evaluations()

    for index in range(20):
        attempt(engine, make_pod(f"waits-{index}"))
    engine.decisions.clear()

    assert engine.scheduler.queue.counts().unschedulable == 20
    assert _evaluations() - before <= 1


def _evaluations() -> int:
    gc.collect()
    return sum(isinstance(each, Filtered) for each in gc.get_objects())
