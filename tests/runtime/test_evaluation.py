"""A kept evaluation decides what an evaluation from scratch decides, whatever happened in between."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mooring.config import load_config
from mooring.errors import InvariantError
from mooring.explain.matrix import matrix_of
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import Depends
from mooring.objects.node import Node
from mooring.objects.pod import (
    Affinity,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodCondition,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from mooring.objects.selectors import LabelSelector, NodeSelectorTerm, SelectorRequirement
from mooring.objects.taints import Taint, Toleration
from mooring.runtime.evaluations import MOST_EVALUATIONS
from mooring.scheduler.choosing import SeededSpread, first_by_name
from mooring.scheduler.node_search import NodeSearch
from tests.decisions import assert_same_decision
from tests.engine import Engine
from tests.makers import HOSTNAME, ZONE, make_node, make_pod

#: Pods come as copies of a few shapes, as controllers make them.
SHAPES: list[Callable[[str], Pod]] = [
    lambda name: make_pod(name, cpu="500m", memory="512Mi", labels={"app": "a"}),
    lambda name: make_pod(name, cpu="1", memory="128Mi", labels={"app": "b"}, image="app:1"),
    lambda name: make_pod(name, labels={"app": "c"}),
    lambda name: make_pod(
        name, cpu="250m", labels={"app": "d"}, tolerations=[Toleration(operator="Exists")]
    ),
    lambda name: make_pod(name, cpu="250m", node_selector={"disk": "ssd"}, ports=[80]),
    lambda name: make_pod(
        name,
        cpu="100m",
        affinity=Affinity(
            node_affinity=NodeAffinity(
                preferred=[
                    PreferredSchedulingTerm(
                        weight=7,
                        preference=NodeSelectorTerm(
                            match_expressions=[
                                SelectorRequirement(key="disk", operator="In", values=["ssd"])
                            ]
                        ),
                    )
                ]
            )
        ),
    ),
    lambda name: make_pod(
        name,
        cpu="100m",
        labels={"app": "spread"},
        spread=[_spread(ZONE, "DoNotSchedule"), _spread(HOSTNAME, "ScheduleAnyway")],
    ),
    lambda name: make_pod(
        name,
        cpu="100m",
        labels={"app": "apart"},
        affinity=Affinity(
            pod_anti_affinity=PodAffinity(required=[_term(HOSTNAME, "apart")]),
            pod_affinity=PodAffinity(
                preferred=[WeightedPodAffinityTerm(weight=30, pod_affinity_term=_term(ZONE, "a"))]
            ),
        ),
    ),
]


def _spread(key: str, when: str) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        max_skew=1,
        topology_key=key,
        when_unsatisfiable=when,
        label_selector=LabelSelector(match_labels={"app": "spread"}),
    )


def _term(key: str, app: str) -> PodAffinityTerm:
    return PodAffinityTerm(
        topology_key=key, label_selector=LabelSelector(match_labels={"app": app})
    )


#: The same but for their images.
OTHER_IMAGES: list[Callable[[str], Pod]] = [
    lambda name: make_pod(name, cpu="1", memory="128Mi", labels={"app": "b"}, image="web:1"),
    lambda name: make_pod(name, cpu="500m", memory="512Mi", labels={"app": "a"}, image="web:1"),
]


#: Without the plugin that looks at all nodes: then a change of one node outdates its row alone.
WITHOUT_IMAGES = load_config(
    {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "ImageLocality"}]}}}],
    }
)


class Story:
    """A random life of a cluster; each pod is decided on with kept answers and from scratch."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        tie_break = first_by_name if self.random.random() < 0.5 else SeededSpread(seed)
        config = WITHOUT_IMAGES if self.random.random() < 0.3 else None
        self.engine = Engine(tie_break=tie_break, config=config)
        self.count = 0
        shapes = [*SHAPES, *OTHER_IMAGES]
        #: Few shapes of pods on many small equal nodes: rows come to states in which others were before.
        self.alike = self.random.random() < 0.3
        self.shapes = self.random.sample(shapes, 3) if self.alike else shapes
        #: Equal nodes, many of which stay empty.
        self.even = self.alike or self.random.random() < 0.4
        least, most = (30, 45) if self.alike else (9, 20) if self.even else (1, 8)
        for _ in range(self.random.randrange(least, most)):
            self.engine.handlers.added(self._node(self._new_name("node")))

    def step(self) -> None:
        act = self.random.choices(
            [
                self.place_some if self.alike else self.place,
                self.place_one_off,
                self.remove_pod,
                self.change_pod,
                self.add_node,
                self.change_node,
                self.remove_node,
                self.place_out_of_sight,
            ],
            weights=[12, 5, 3, 3, 1, 4 if self.alike else 1, 0.5, 0.5],
        )[0]
        act()

    def validate(self) -> None:
        """Not after each step: what is kept is to follow whether or not somebody looks at it."""
        self.engine.scheduler.validate()

    def place_some(self) -> None:
        """More rows change than are judged one by one until the next shape has its turn."""
        shape = self.random.choice(self.shapes)
        for _ in range(self.random.randrange(1, 12)):
            self.place(shape)

    def place(self, shape: Callable[[str], Pod] | None = None) -> None:
        shape = shape or self.random.choice(self.shapes)
        pod = shape(self._new_name("pod"))
        scheduler = self.engine.scheduler
        snapshot = scheduler.cluster.snapshot()
        if not len(snapshot):
            return
        framework = scheduler.frameworks["default-scheduler"]
        keeping = scheduler.searches["default-scheduler"]
        from_scratch = NodeSearch(keeping.tie_break)
        states = CycleState(), CycleState()
        expected = from_scratch.schedule_pod(framework, states[0], pod, snapshot)
        got = keeping.schedule_pod(framework, states[1], pod, snapshot)
        assert_same_decision(got, expected)
        assert states[1].skip_filter == states[0].skip_filter
        if expected.scored is not None:
            assert states[1].skip_score == states[0].skip_score
        if got.node_name is not None:
            self.engine.handlers.added(pod.placed_on(got.node_name))

    def place_one_off(self) -> None:
        """A pod that requests what no other does: its kind is met for the first time."""
        shape = self.random.choice(self.shapes)
        amounts = self.random.randrange(400), self.random.randrange(2**30)

        def one_off(name: str) -> Pod:
            pod = shape(name)
            requests = make_pod("other", cpu=f"{amounts[0]}m", memory=amounts[1]).spec.containers
            containers = [
                msgspec.structs.replace(container, resources=requests[0].resources)
                for container in pod.spec.containers
            ]
            return msgspec.structs.replace(
                pod, spec=msgspec.structs.replace(pod.spec, containers=containers)
            )

        self.place(one_off)

    def remove_pod(self) -> None:
        pods = list(self.engine.scheduler.cluster.pods.values())
        if pods:
            self.engine.handlers.deleted(self.random.choice(pods))

    def change_pod(self) -> None:
        """Its status alone, which most changes are; its labels; or its requests, in place."""
        pods = list(self.engine.scheduler.cluster.pods.values())
        if not pods:
            return
        old = self.random.choice(pods)
        new = old.with_status(phase="Running", conditions=[PodCondition(type="Ready")])
        change = self.random.random()
        if change < 0.2:
            labels = {"app": self.random.choice("abc")}
            metadata = msgspec.structs.replace(old.metadata, labels=labels)
            new = msgspec.structs.replace(old, metadata=metadata)
        elif change < 0.4:
            cpu = f"{self.random.randrange(1, 10)}00m"
            containers = make_pod(old.name, cpu=cpu, memory="64Mi").spec.containers
            spec = msgspec.structs.replace(old.spec, containers=containers)
            new = msgspec.structs.replace(old, spec=spec)
        self.engine.handlers.updated(old, new)

    def place_out_of_sight(self) -> None:
        """A pod is seen before its node."""
        pod = self.random.choice(SHAPES)(self._new_name("pod"))
        self.engine.handlers.added(pod.placed_on(self._new_name("unseen")))

    def add_node(self) -> None:
        self.engine.handlers.added(self._node(self._new_name("node")))

    def change_node(self) -> None:
        if old := self._some_node():
            self.engine.handlers.updated(old, self._node(old.name))

    def remove_node(self) -> None:
        if node := self._some_node():
            self.engine.handlers.deleted(node)

    def _some_node(self) -> Node | None:
        nodes = [info.node for info in self.engine.scheduler.cluster.infos.values() if info.node]
        return self.random.choice(nodes) if nodes else None

    def _node(self, name: str) -> Node:
        chance = self.random.random
        labels = {HOSTNAME: name}
        if chance() < 0.8:
            labels[ZONE] = self.random.choice("xyz")
        if chance() < 0.5:
            labels["disk"] = self.random.choice(["ssd", "hdd"])
        taints = []
        if chance() < 0.3:
            taints.append(
                Taint(key="k", effect=self.random.choice(["NoSchedule", "PreferNoSchedule"]))
            )
        images = [name for name in ("app:1", "web:1") if chance() < (0.1 if self.even else 0.3)]
        node = make_node(
            name,
            cpu="1" if self.alike else "4" if self.even else str(self.random.randrange(1, 5)),
            memory="4Gi",
            labels=labels,
            taints=taints,
            images=dict.fromkeys(images, 400 * 2**20),
        )
        spec = msgspec.structs.replace(node.spec, unschedulable=chance() < 0.1)
        return msgspec.structs.replace(node, spec=spec)

    def _new_name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}-{self.count}"


# In the first two, a node changes and moves no image: a refusal that is still right knew the nodes in
# another order, and the first pod of a kind that fits was scored with what the kinds share of before.
@pytest.mark.long
@example(seed=934)
@example(seed=1205)
@given(seed=st.integers(0, 2**32))
def test_a_kept_evaluation_decides_what_one_from_scratch_decides(seed):
    story = Story(seed)

    for _ in range(40):
        story.step()
        if story.random.random() < 0.3:
            story.validate()
    story.validate()


class CountsCalls:
    """A third-party plugin that depends on whatever it says it does."""

    name = "CountsCalls"
    depends = Depends.CLUSTER
    calls = 0

    def depends_on(self, pod: Pod) -> Depends:
        return self.depends

    def sign(self, pod: Pod) -> dict[str, object]:
        return {}

    def filter(self, state: CycleState, pod: Pod, node: object) -> None:
        type(self).calls += 1


def engine_with(plugin: type[CountsCalls]) -> Engine:
    config = load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "CountsCalls"}]}}}],
        }
    )
    nodes = [make_node(f"n{i}") for i in range(4)]
    return Engine(*nodes, config=config, plugins={"CountsCalls": plugin})


@pytest.mark.parametrize(
    ("depends", "calls"),
    [
        pytest.param(Depends.CLUSTER, 12, id="anything: all nodes, for each pod"),
        pytest.param(Depends.USAGE, 9, id="its pods too: all nodes for two pods, then one"),
        pytest.param(Depends.NODE, 4, id="the node: all nodes once"),
    ],
)
def test_a_plugin_is_asked_again_only_where_what_it_depends_on_changed(depends, calls):
    plugin = type("CountsCalls", (CountsCalls,), {"depends": depends, "calls": 0})
    engine = engine_with(plugin)

    for i in range(3):
        engine.handlers.added(make_pod(f"p{i}", cpu="100m"))
        engine.scheduler.schedule_one()

    assert plugin.calls == calls


@pytest.mark.parametrize(
    ("version", "calls"),
    [
        pytest.param(None, 4, id="any change of a node counts: all nodes again"),
        pytest.param(lambda _: 1, 1, id="this change moves no answers about others: one node"),
    ],
)
def test_a_plugin_that_looks_at_all_nodes_may_say_which_changes_concern_other_nodes(version, calls):
    methods = {} if version is None else {"nodes_version": version}
    plugin = type("CountsCalls", (CountsCalls,), {"depends": Depends.NODES, "calls": 0, **methods})
    engine = engine_with(plugin)
    for i in range(3):
        if i == 2:
            plugin.calls = 0
            engine.handlers.updated(make_node("n1"), make_node("n1", labels={"disk": "ssd"}))
        engine.handlers.added(make_pod(f"p{i}", cpu="100m"))
        engine.scheduler.schedule_one()

    assert plugin.calls == calls


@pytest.mark.parametrize(
    ("reads_usage_columns", "calls"),
    [
        pytest.param(False, 1, id="it may look at the pods themselves"),
        pytest.param(True, 0, id="it sees sums alone"),
    ],
)
def test_a_pod_whose_status_changes_concerns_plugins_that_look_at_pods(reads_usage_columns, calls):
    more = {"depends": Depends.USAGE, "calls": 0, "reads_usage_columns": reads_usage_columns}
    plugin = type("CountsCalls", (CountsCalls,), more)
    engine = engine_with(plugin)
    bound = make_pod("bound", cpu="100m", node="n0")
    engine.handlers.added(bound)
    for _ in range(3):
        engine.scheduler.decide(make_pod("p", cpu="100m"))
    before = plugin.calls
    engine.handlers.updated(bound, bound.with_status(phase="Running"))
    engine.scheduler.decide(make_pod("p", cpu="100m"))

    assert plugin.calls - before == calls


def test_pods_that_differ_only_for_other_plugins_share_a_plugins_answers():
    plugin = type("CountsCalls", (CountsCalls,), {"depends": Depends.NODE, "calls": 0})
    engine = engine_with(plugin)

    for i in range(3):
        engine.handlers.added(make_pod(f"p{i}", cpu=f"{i + 1}00m", labels={"app": str(i)}))
        engine.scheduler.schedule_one()

    assert plugin.calls == 4


def test_reasons_cannot_be_asked_for_once_the_cluster_has_changed():
    engine = Engine(*(make_node(f"n{i}") for i in range(3)))
    for i in range(3):
        engine.handlers.added(make_pod(f"p{i}", cpu="100m"))
        engine.scheduler.schedule_one()

    with pytest.raises(InvariantError, match="after the cluster had changed"):
        engine.decisions[-1].diagnosis.matrix  # noqa: B018


def test_reasons_that_were_asked_for_stay_as_they_were():
    """The first kept scores of a kind of pods were also those of the matrix, and changed in it later."""
    engine = Engine(*(make_node(f"n{i}", cpu="4") for i in range(3)))

    class WithReasons(list):
        def append(self, decision):
            decision.keep_reasons()
            super().append(decision)

    engine.decisions = WithReasons()

    def scores() -> list[list[int]]:
        return [raw.tolist() for raw in engine.decisions[1].scores.raw]

    for i in range(4):
        engine.handlers.added(make_pod(f"p{i}", cpu="1"))
        engine.scheduler.schedule_one()
        if i == 1:
            before = scores()

    assert scores() == before


def test_validate_notices_a_verdict_or_a_score_that_is_out_of_date():
    for corrupt in (
        lambda kept: kept._verdicts.ok.__setitem__(0, False),
        lambda kept: kept._verdicts.refused_by.__setitem__(0, 0),
        lambda kept: kept._kept_scores._rest.__setitem__(1, 7),
        lambda kept: kept._kept_scores._key.__setitem__(1, 7),
        lambda kept: kept._shared.verdicts.ok.__setitem__(0, False),
        lambda kept: kept._shared.verdicts.refused_by.__setitem__(0, 0),
        lambda kept: kept._shared._scores._rest.__setitem__(1, 7),
        lambda kept: kept._kept["NodeResourcesFit"].raw.__setitem__(1, 7),
        lambda kept: kept._kept["TaintToleration"].verdicts.codes.__setitem__(2, 1),
    ):
        engine = Engine(*(make_node(f"n{i}") for i in range(3)))
        for i in range(3):
            engine.handlers.added(make_pod(f"p{i}", cpu="100m"))
            engine.scheduler.schedule_one()
        engine.scheduler.validate()
        search = engine.scheduler.searches["default-scheduler"]
        snapshot = engine.scheduler.cluster.snapshot()
        pod = make_pod("p9", cpu="100m")
        search.schedule_pod(
            engine.scheduler.frameworks["default-scheduler"], CycleState(), pod, snapshot
        )
        engine.scheduler.validate()

        corrupt(search.evaluations.of(pod))

        with pytest.raises(InvariantError):
            engine.scheduler.validate()


def test_validate_notices_a_state_of_rows_whose_answers_are_not_those_that_are_kept():
    def score_wrongly(kept, states):
        kept._kept_scores._by_state.update(dict.fromkeys(states, 7))

    def pass_all(kept, states):
        kept._verdicts._passing.update(states)

    for corrupt in (score_wrongly, pass_all):
        engine = Engine(*(make_node(f"n{i}", pods=2) for i in range(12)))
        for i in range(15):
            engine.handlers.added(make_pod(f"p{i}", cpu="100m"))
            engine.scheduler.schedule_one()
        engine.scheduler.validate()
        evaluations = engine.scheduler.searches["default-scheduler"].evaluations

        corrupt(
            evaluations.of(make_pod("p99", cpu="100m")),
            engine.scheduler.cluster.columns.states.keys,
        )

        with pytest.raises(InvariantError, match="state"):
            engine.scheduler.validate()


def test_validate_looks_at_what_kinds_share_though_no_kind_is_kept():
    engine = Engine(*(make_node(f"n{i}") for i in range(3)))
    for i in range(3):
        engine.handlers.added(make_pod(f"p{i}", cpu=f"{i + 1}00m"))
        engine.scheduler.schedule_one()
    evaluations = engine.scheduler.searches["default-scheduler"].evaluations
    ((on_nodes, _),) = evaluations._shared.values()
    engine.scheduler.validate()

    on_nodes.shared.verdicts.ok[0] = False

    with pytest.raises(InvariantError):
        engine.scheduler.validate()


@pytest.mark.parametrize(
    ("others", "kept"),
    [
        pytest.param(1, True, id="after another kind"),
        pytest.param(MOST_EVALUATIONS, False, id="after more kinds than are kept"),
    ],
)
def test_what_is_found_out_for_a_kind_is_kept_if_it_soon_returns(others, kept):
    engine = Engine(*(make_node(f"n{i}") for i in range(3)))
    for i, cpu in enumerate([1, *range(2, others + 2), 1]):
        engine.handlers.added(make_pod(f"p{i}", cpu=f"{cpu}m"))
        engine.scheduler.schedule_one()

    evaluations = engine.scheduler.searches["default-scheduler"].evaluations

    assert len(evaluations._evaluations) == int(kept)


def test_a_profile_without_filters_shows_its_matrix_after_a_node_has_gone():
    """The free row of a node that is gone was looked up in a table that had one entry: IndexError."""
    plugins = {"disabled": [{"name": "*"}], "enabled": [{"name": "DefaultBinder"}]}
    sort = {"enabled": [{"name": "PrioritySort"}]}
    config = load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"multiPoint": plugins, "queueSort": sort}}],
        }
    )
    engine = Engine(*(make_node(f"n{i}") for i in range(3)), config=config)
    engine.handlers.deleted(make_node("n1"))

    matrix = matrix_of(engine.scheduler.decide(make_pod("p")))

    assert matrix.feasible == ("n0", "n2")
