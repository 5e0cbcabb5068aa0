"""Columns that plugins declare: kept up to date whatever happens, and part of what makes answers outdated."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.errors import ConfigError, InvariantError
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.plugin import (
    SUCCESS,
    Columns,
    CycleState,
    Depends,
    FedColumn,
    Handle,
    Ints,
    NodeColumn,
    NodeInfo,
    PluginError,
    PodsColumn,
    Rows,
    RowVerdicts,
    Status,
    by_table,
    unschedulable,
)
from tests.engine import Engine
from tests.makers import make_node, make_pod
from tests.plugin.worlds import config_with, engine_with

BUSY = unschedulable("node(s) were too busy")
FULL = unschedulable("node(s) had too many batch pods")


def _rank(node: Node) -> int:
    return int(node.labels.get("rank", "0"))


def _is_batch(pod: Pod) -> bool:
    return pod.labels.get("kind") == "batch"


class Racks:
    """Refuses busy nodes and nodes with two batch pods; prefers a high rank and few batch pods."""

    name = "Racks"
    own_columns = (
        NodeColumn("rank", of=_rank),
        PodsColumn("batch", of=_is_batch),
        FedColumn("load", dtype=np.float64, default=0.5),
    )

    def __init__(self, args: object, handle: Handle) -> None:
        self.rank, self.batch, self.load = (
            handle.column(name) for name in ("rank", "batch", "load")
        )

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        if self.load.at(node) > 0.8:
            return BUSY
        return FULL if self.batch.at(node) >= 2 else SUCCESS

    def filter_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> RowVerdicts:
        codes = np.where(columns.own("batch")[rows] >= 2, 2, 0)
        codes[columns.own("load")[rows] > 0.8] = 1
        return by_table(codes, (SUCCESS, BUSY, FULL))

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return int(10 * self.rank.at(node) - self.batch.at(node) + 5)

    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        return 10 * columns.own("rank")[rows] - columns.own("batch")[rows] + 5

    def depends_on(self, pod: Pod) -> Depends:
        # Its columns make this USAGE.
        return Depends.NODE

    def sign(self, pod: Pod) -> dict[str, object]:
        return {}


class NodeByNode(Racks):
    """The same without the form for rows."""

    name = "NodeByNode"
    filter_rows = None
    score_rows = None


NODES = ("a", "b", "c")

_STEPS = st.one_of(
    st.tuples(st.just("node"), st.sampled_from(NODES), st.integers(0, 3)),
    st.tuples(st.just("no node"), st.sampled_from(NODES), st.just(0)),
    st.tuples(st.just("pod"), st.sampled_from(NODES), st.booleans()),
    st.tuples(st.just("no pod"), st.integers(0, 5), st.just(0)),
    st.tuples(st.just("relabel"), st.integers(0, 5), st.booleans()),
    st.tuples(st.just("feed"), st.sampled_from(NODES), st.sampled_from([0.1, 0.5, 0.9])),
    st.tuples(st.just("place"), st.booleans(), st.booleans()),
)


class World:
    """Three engines that see the same: one keeps answers, one asks each time, one has no form for rows."""

    def __init__(self) -> None:
        self.engines = [
            Engine(config=config_with("Racks"), plugins={"Racks": Racks}),
            Engine(config=config_with("Racks"), plugins={"Racks": Racks}, keep_answers=False),
            Engine(config=config_with("Racks"), plugins={"Racks": NodeByNode}),
        ]
        self.nodes: dict[str, Node] = {}
        self.pods: list[Pod] = []
        self.assumed: list[Pod] = []
        self.count = 0

    def do(self, what: str, which, how) -> None:
        getattr(self, "_" + what.replace(" ", "_"))(which, how)
        for engine in self.engines:
            engine.scheduler.validate()

    def decisions(self):
        pod = make_pod("asks", cpu="100m")
        decisions = [engine.scheduler.decide(pod) for engine in self.engines]
        return [
            (d.node_name, d.diagnosis.message if d.node_name is None else "") for d in decisions
        ]

    def _node(self, name, rank):
        node = make_node(name, cpu=10, labels={"rank": str(rank)})
        for engine in self.engines:
            if name in self.nodes:
                engine.handlers.updated(self.nodes[name], node)
            else:
                engine.handlers.added(node)
        self.nodes[name] = node

    def _no_node(self, name, _):
        node = self.nodes.pop(name, None)
        for engine in self.engines if node is not None else ():
            engine.handlers.deleted(node)

    def _pod(self, name, batch):
        self.count += 1
        pod = make_pod(
            f"p{self.count}", node=name, cpu="100m", labels={"kind": "batch"} if batch else {}
        )
        self.pods.append(pod)
        for engine in self.engines:
            engine.handlers.added(pod)

    def _no_pod(self, number, _):
        if number < len(self.pods):
            pod = self.pods.pop(number)
            for engine in self.engines:
                engine.handlers.deleted(pod)

    def _relabel(self, number, batch):
        if number < len(self.pods):
            old = self.pods[number]
            labels = {"kind": "batch"} if batch else {}
            new = make_pod(old.name, node=old.node_name, uid=old.uid, cpu="100m", labels=labels)
            self.pods[number] = new
            for engine in self.engines:
                engine.handlers.updated(old, new)

    def _feed(self, name, load):
        for engine in self.engines:
            framework = engine.scheduler.frameworks["default-scheduler"]
            plugin = framework.plugins.get("Racks") or framework.plugins["NodeByNode"]
            plugin.plugin.load.set(name, load)

    def _place(self, batch, forgets):
        """Assume a pod where it goes; forget it again if told so."""
        self.count += 1
        labels = {"kind": "batch"} if batch else {}
        pod = make_pod(f"p{self.count}", cpu="100m", labels=labels)
        for engine in self.engines if self.nodes else ():
            node_name = engine.scheduler.decide(pod).node_name
            if node_name is not None:
                placed = pod.placed_on(node_name)
                engine.scheduler.cluster.assume_pod(placed)
                engine.scheduler.validate()
                if forgets:
                    engine.scheduler.cluster.forget_pod(placed)


@given(steps=st.lists(_STEPS, max_size=12))
def test_own_columns_equal_a_rebuild_and_kept_answers_equal_new_ones(steps):
    world = World()
    for step in steps:
        world.do(*step)
        if world.nodes:
            first, *others = world.decisions()
            assert others == [first, first]


def _engine(**pods: str) -> Engine:
    nodes = (make_node("a", labels={"rank": "1"}), make_node("b", labels={"rank": "2"}))
    placed = (make_pod(name, node=node, labels={"kind": "batch"}) for name, node in pods.items())
    return engine_with(Racks, objects=(*nodes, *placed))


def _plugin(engine: Engine) -> Racks:
    return engine.scheduler.frameworks["default-scheduler"].plugins["Racks"].plugin


def test_values_are_read_by_row_and_by_node_also_on_a_copy_with_other_pods():
    engine = _engine(p="a", q="a", r="b")
    plugin, snapshot = _plugin(engine), engine.scheduler.cluster.snapshot()
    columns = snapshot.columns
    rows = [columns.row_of[name] for name in ("a", "b")]

    assert columns.own("rank")[rows].tolist() == [1, 2]
    assert columns.own("batch")[rows].tolist() == [2, 1]
    assert columns.own("load")[rows].tolist() == [0.5, 0.5]
    assert columns.own("load").dtype == np.float64
    copy = snapshot.get("a").copy()
    copy.remove_pod(next(iter(copy.pods.values())))
    assert (plugin.batch.at(snapshot.get("a")), plugin.batch.at(copy)) == (2, 1)


def test_a_fed_value_is_kept_for_a_node_that_comes_later_and_forgotten_with_the_node():
    engine = _engine()
    plugin, cluster = _plugin(engine), engine.scheduler.cluster
    plugin.load.set("later", 0.25)
    node = make_node("later")

    engine.handlers.added(node)
    assert plugin.load.at(cluster.snapshot().get("later")) == 0.25
    engine.handlers.deleted(node)
    engine.handlers.added(node)
    assert plugin.load.at(cluster.snapshot().get("later")) == 0.5


def test_a_fed_value_outdates_one_row_of_what_is_kept():
    asked: list[str] = []

    class Counting(Racks):
        name = "Racks"

        def filter(self, state, pod, node):
            asked.append(node.name)
            return super().filter(state, pod, node)

        def filter_rows(self, state, pod, columns, rows):
            asked.extend(columns.names_of(rows))
            return super().filter_rows(state, pod, columns, rows)

    engine = engine_with(Counting, objects=tuple(make_node(name) for name in "abc"))
    pod = make_pod("asks")
    for _ in range(3):
        assert engine.scheduler.decide(pod).node_name == "a"
    asked.clear()

    _plugin(engine).load.set("a", 0.9)
    assert engine.scheduler.decide(pod).node_name == "b"
    _plugin(engine).load.set("a", 0.9)
    assert engine.scheduler.decide(pod).node_name == "b"

    assert asked == ["a"]


def test_a_node_column_follows_parts_of_a_node_that_no_built_in_plugin_reads():
    class Zones:
        name = "Zones"
        own_columns = (NodeColumn("cores", of=lambda node: node.status.capacity["cpu"].value),)

        def score(self, state, pod, node):
            return 1

    old = make_node("a", cpu=4)
    new = make_node("a", cpu=4)
    old.status.capacity.update(cpu=old.status.allocatable["cpu"])
    new.status.capacity.update(cpu=make_node("x", cpu=8).status.allocatable["cpu"])
    engine = engine_with(Zones, objects=(old,))

    engine.handlers.updated(old, new)

    columns = engine.scheduler.cluster.snapshot().columns
    assert columns.own("cores")[columns.row_of["a"]] == 8
    engine.scheduler.validate()


def test_a_value_that_cannot_be_computed_fails_who_reads_it_until_the_node_changes():
    engine = _engine()
    columns = engine.scheduler.cluster.columns
    bad, good = make_node("a", labels={"rank": "high"}), make_node("a", labels={"rank": "3"})

    engine.handlers.updated(make_node("a"), bad)
    engine.handlers.added(make_pod("asks"))
    engine.scheduler.cluster.snapshot()
    with pytest.raises(PluginError, match="column 'rank' of Racks, node a: ValueError"):
        columns.own("rank")
    engine.scheduler.validate()
    engine.handlers.updated(bad, good)

    columns = engine.scheduler.cluster.snapshot().columns
    assert columns.own("rank")[columns.row_of["a"]] == 3


@pytest.mark.parametrize(
    ("column", "value", "problem"),
    [
        pytest.param("load", "much", "'much' is not a number", id="text"),
        pytest.param("load", float("nan"), "is not a number", id="not a number"),
        pytest.param("rank", 1, "is not fed", id="a column of nodes"),
        pytest.param("speed", 1, "no plugin declares a column 'speed'; declared: batch", id="typo"),
    ],
)
def test_feeding_nonsense_is_an_error(column, value, problem):
    engine = _engine()
    _plugin(engine)

    with pytest.raises(PluginError, match=problem):
        engine.scheduler.cluster.feed_column(column, "a", value)


def test_two_plugins_cannot_declare_one_name_in_different_ways():
    class Other:
        name = "Other"
        own_columns = (FedColumn("rank"),)

        def score(self, state, pod, node):
            return 1

    with pytest.raises(ConfigError, match="column 'rank' is declared in different ways, by Racks"):
        engine_with(Racks, Other)


def test_what_is_no_column_is_refused_when_the_plugin_is_built():
    class Wrong:
        name = "Wrong"

        def own_columns(self):
            return ["rank"]

        def score(self, state, pod, node):
            return 1

    with pytest.raises(ConfigError, match="own_columns has 'rank', which is no NodeColumn"):
        engine_with(Wrong)


def test_a_plugin_with_a_column_of_pods_does_not_read_usage_columns_alone():
    class Wrong(Racks):
        reads_usage_columns = True

    with pytest.raises(ConfigError, match="cannot have reads_usage_columns"):
        engine_with(Wrong)


def test_what_is_fed_within_an_attempt_counts_from_the_next_one_on():
    class Feeds(Racks):
        name = "Racks"
        fed = 0.0

        def pre_filter(self, state, pod, snapshot):
            self.fed += 0.3
            for node in snapshot:
                self.load.set(node.name, self.fed)

        def depends_on(self, pod):
            return Depends.CLUSTER

    engine = engine_with(Feeds, objects=(make_node("a"), make_node("b")))
    pod = make_pod("asks")

    outcomes = [engine.scheduler.decide(pod) for _ in range(5)]

    assert [decision.node_name for decision in outcomes] == ["a", "a", "a", None, None]
    assert outcomes[-1].diagnosis.message == "0/2 nodes are available: 2 node(s) were too busy."
    engine.scheduler.validate()


def test_a_pod_that_was_refused_is_placed_once_another_value_is_fed_and_it_is_activated():
    engine = engine_with(Racks, objects=(make_node("a"), make_pod("p"), make_pod("twin")))
    framework = engine.scheduler.frameworks["default-scheduler"]
    handle = framework.plugins["DefaultPreemption"].plugin._handle
    handle.column("load").set("a", 0.9)
    while engine.scheduler.schedule_one():
        pass
    assert engine.placements() == {}

    handle.column("load").set("a", 0.1)
    pods = {key: handle.observed_pod(key) for key in ("default/p", "default/twin")}
    handle.activate(pods)
    while engine.scheduler.schedule_one():
        pass

    assert engine.placements() == {"default/p": "a", "default/twin": "a"}
    engine.scheduler.validate()


def test_an_engine_that_takes_over_knows_what_was_fed():
    engine, other = _engine(), _engine()
    _plugin(engine).load.set("a", 0.75)

    other.scheduler.take_over(engine.scheduler)

    node = other.scheduler.cluster.snapshot().get("a")
    assert _plugin(other).load.at(node) == 0.75
    other.scheduler.validate()


@pytest.mark.parametrize("column", ["rank", "batch", "load"])
def test_validate_notices_a_spoilt_value(column):
    engine = _engine(p="a")
    cluster = engine.scheduler.cluster
    cluster.validate()

    cluster.columns.own(column)[0] += 1

    with pytest.raises(InvariantError, match=f"column {column}"):
        cluster.validate()


def test_columns_grow_with_the_cluster():
    nodes = tuple(make_node(f"n{i}", labels={"rank": str(i % 3)}) for i in range(150))
    engine = engine_with(Racks, objects=nodes)

    columns = engine.scheduler.cluster.snapshot().columns

    assert columns.own("rank")[columns.all_rows].tolist() == [i % 3 for i in range(150)]
    engine.scheduler.validate()
