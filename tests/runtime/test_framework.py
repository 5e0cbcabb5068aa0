"""What each extension point makes of each answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import numpy as np
import pytest

from mooring.config.extension_points import ExtensionPoint as Point
from mooring.framework.cycle_state import CycleState
from mooring.framework.events import (
    DEFAULT_EVENTS,
    Action,
    ClusterEvent,
    EventResource,
    EventWithHint,
)
from mooring.framework.interface import Nomination, PostFilterResult, PreFilterResult, PreFlight
from mooring.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    Status,
    failure,
    pending,
    unresolvable,
    unschedulable,
    wait,
)
from mooring.runtime.metrics import Metrics
from mooring.runtime.nominator import Nominator
from mooring.runtime.plugin_calls import PluginFailure
from tests.clock import FakeClock
from tests.makers import make_pod
from tests.runtime.frameworks import (
    framework_of,
    make_plugin,
    run_filters,
    run_pre_filters,
    run_scores,
    snapshot_of,
)

POD = make_pod("p", uid="uid")

NODES = snapshot_of("a", "b", "c")
EVERY = NODES.columns.alive[: NODES.columns.size]
FEASIBLE = np.array([0, 1, 2], np.intp)

#: One status of each code, as a plugin would give it.
ANSWERS = {
    Code.SUCCESS: SUCCESS,
    Code.ERROR: failure(RuntimeError("boom")),
    Code.UNSCHEDULABLE: unschedulable("why"),
    Code.UNRESOLVABLE: unresolvable("why"),
    Code.WAIT: wait("why"),
    Code.SKIP: Status(Code.SKIP, ("why",)),
    Code.PENDING: pending("why"),
}
#: What a failure says after its colon when a plugin answered with that code.
SAID = {code: "boom" if code == Code.ERROR else "why" for code in Code}


def raises(*_: object) -> None:
    raise ValueError("boom")


# One pod, one plugin, one answer: what the point makes of it


def pre_filter(framework):
    return run_pre_filters(framework, CycleState(), POD, NODES).status


def filter_(framework):
    return run_filters(framework, CycleState(), POD, NODES, EVERY).status(0)


def filter_one_node(framework):
    return framework.filter_node(CycleState(), POD, NODES.at(0), NODES)


def post_filter(framework):
    return framework.run_post_filters(CycleState(), POD, None)[1]


def pre_score(framework):
    run_scores(framework, CycleState(), POD, NODES, FEASIBLE)
    return SUCCESS


def normalize(framework):
    run_scores(framework, CycleState(), POD, NODES, FEASIBLE)
    return SUCCESS


def add_pod(framework):
    framework.run_add_pod(CycleState(), POD, make_pod("q"), NODES.at(0))
    return SUCCESS


def remove_pod(framework):
    framework.run_remove_pod(CycleState(), POD, make_pod("q"), NODES.at(0))
    return SUCCESS


def reserve(framework):
    return framework.run_reserve(CycleState(), POD, "a")


def permit(framework):
    return framework.run_permit(CycleState(), POD, "a")


def pre_flight(framework):
    return framework.run_pre_bind_pre_flights(CycleState(), POD, "a")


def pre_bind(framework):
    return asyncio.run(framework.run_pre_bind(CycleState(), POD, "a"))


def bind(framework):
    return asyncio.run(framework.run_bind(CycleState(), POD, "a"))


@dataclass(frozen=True)
class PointCase:
    """A point, how to run it, and what it does with each status."""

    method: str
    run: object
    #: Codes that are passed on with the plugin's name; those that count as success; the rest fail.
    kept: tuple[Code, ...]
    fails_as: str
    passes: tuple[Code, ...] = (Code.SUCCESS,)
    #: Methods that the plugin needs beside.
    beside: dict = field(default_factory=dict)
    wrap: object = staticmethod(lambda status: status)


REJECTIONS = (Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING)

POINTS = [
    PointCase(
        "pre_filter",
        pre_filter,
        kept=(Code.UNSCHEDULABLE, Code.UNRESOLVABLE),
        passes=(Code.SUCCESS, Code.SKIP),
        fails_as='running PreFilter plugin "X"',
    ),
    PointCase("filter", filter_, kept=REJECTIONS, fails_as='running "X" filter plugin'),
    PointCase("filter", filter_one_node, kept=REJECTIONS, fails_as='running "X" filter plugin'),
    PointCase(
        "pre_score",
        pre_score,
        kept=(),
        passes=(Code.SUCCESS, Code.SKIP),
        fails_as='running PreScore plugin "X"',
    ),
    PointCase(
        "normalize_scores",
        normalize,
        kept=(),
        fails_as='running Normalize on Score plugins: plugin "X" failed with',
        beside={"score": 1},
    ),
    PointCase(
        "add_pod",
        add_pod,
        kept=(),
        fails_as='running AddPod on PreFilter plugin "X"',
        beside={"pre_filter": None},
    ),
    PointCase(
        "remove_pod",
        remove_pod,
        kept=(),
        fails_as='running RemovePod on PreFilter plugin "X"',
        beside={"pre_filter": None},
    ),
    PointCase("reserve", reserve, kept=REJECTIONS, fails_as='running Reserve plugin "X"'),
    PointCase("pre_bind", pre_bind, kept=REJECTIONS, fails_as='running PreBind plugin "X"'),
]


def _id(case: object) -> str:
    return case.run.__name__ if isinstance(case, PointCase) else getattr(case, "title", None)


@pytest.mark.parametrize("code", list(Code), ids=lambda code: code.title)
@pytest.mark.parametrize("point", POINTS, ids=_id)
def test_a_point_passes_keeps_or_fails_each_code_as_the_contract_says(point, code):
    plugin = make_plugin(**{point.method: ANSWERS[code], **point.beside})

    status = outcome(point.run, framework_of(plugin))

    if code in point.passes:
        assert status.ok
    elif code in point.kept:
        assert status == ANSWERS[code].by("X")
    else:
        assert (status.code, status.plugin) == (Code.ERROR, "X")
        assert status.message == f"{point.fails_as}: {SAID[code]}"


@pytest.mark.parametrize("point", POINTS, ids=_id)
def test_nothing_returned_is_success(point):
    plugin = make_plugin(**{point.method: None, **point.beside})

    assert outcome(point.run, framework_of(plugin)).ok


RAISING = [
    *((point.method, point.run, point.fails_as, point.beside) for point in POINTS),
    ("post_filter", post_filter, 'running PostFilter plugin "X"', {}),
    ("score", normalize, 'running Score plugins: plugin "X" failed with', {}),
    ("score_rows", normalize, 'running Score plugins: plugin "X" failed with', {}),
    ("filter_rows", filter_, 'running "X" filter plugin', {}),
    ("filter_rows", filter_one_node, 'running "X" filter plugin', {}),
    ("permit", permit, 'running Permit plugin "X"', {}),
    ("pre_bind_pre_flight", pre_flight, 'running PreBindPreFlight "X"', {"pre_bind": None}),
    ("bind", bind, 'running Bind plugin "X"', {}),
]


@pytest.mark.parametrize("kind", [ValueError, SystemExit, asyncio.CancelledError])
@pytest.mark.parametrize(
    ("method", "run", "fails_as", "beside"),
    RAISING,
    ids=[f"{method} in {run.__name__}" for method, run, _, _ in RAISING],
)
def test_a_plugin_that_raises_is_named_with_its_point_and_what_it_raised(
    method, run, fails_as, beside, kind
):
    """What would end the process or its task is a failure of the plugin as well."""

    def boom(*_: object) -> None:
        raise kind("boom")

    plugin = make_plugin(**{method: boom, **beside})

    status = outcome(run, framework_of(plugin))

    assert (status.code, status.plugin) == (Code.ERROR, "X")
    assert status.message == f"{fails_as}: {kind.__name__}: boom"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(False, id="False"),
        pytest.param(True, id="True"),
        pytest.param([], id="an empty list"),
        pytest.param("yes", id="text"),
        pytest.param(np.zeros(3, np.bool_), id="an array"),
    ],
)
@pytest.mark.parametrize(
    ("method", "run", "fails_as", "beside"),
    RAISING,
    ids=[f"{method} in {run.__name__}" for method, run, _, _ in RAISING],
)
def test_an_answer_of_a_wrong_type_is_an_error_that_says_what_to_return(
    method, run, fails_as, beside, answer
):
    """`return False` in a Filter used to let the pod pass; text in Reserve was an internal error."""
    if method == "score":
        answer = f"{answer}"  # A bool is an int.
    plugin = make_plugin(**{method: lambda *_: answer, **beside})

    status = outcome(run, framework_of(plugin))

    assert (status.code, status.plugin) == (Code.ERROR, "X")
    assert status.message.startswith(fails_as)
    if method != "score":
        assert "return" in status.message


def test_a_method_that_may_not_be_a_coroutine_is_told_so():
    async def answer(state, pod, node_name):
        return None

    status = reserve(framework_of(make_plugin(reserve=answer)))

    assert status.message == (
        'running Reserve plugin "X": only pre_bind, bind and post_bind may be `async def`'
    )


def outcome(run, framework) -> Status:
    """What a point comes to; a failure that it raises, as the cycles make a status of it."""
    try:
        return run(framework)
    except PluginFailure as error:
        return error.as_status()


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(7.5, id="a number that is no integer"),
        pytest.param(None, id="nothing"),
        pytest.param("9", id="text"),
        pytest.param(2**63, id="more than 64 bits"),
    ],
)
def test_a_score_that_is_no_integer_fails_the_attempt(answer):
    with pytest.raises(PluginFailure, match='plugin "X" failed with'):
        normalize(framework_of(make_plugin(score=answer)))


# PreFilter: who goes on, and which nodes are left


def test_a_plugin_that_skips_in_pre_filter_is_not_asked_again():
    asked = []
    skips = make_plugin(
        "Skips",
        pre_filter=SKIP,
        add_pod=lambda *_: asked.append("AddPod"),
        remove_pod=lambda *_: asked.append("RemovePod"),
        filter=lambda *_: asked.append("Filter"),
    )
    framework, state = framework_of(skips), CycleState()

    assert run_pre_filters(framework, state, POD, NODES).status.ok
    run_filters(framework, state, POD, NODES, EVERY)
    framework.filter_node(state, POD, NODES.at(0), NODES)
    framework.run_add_pod(state, POD, make_pod("q"), NODES.at(0))
    framework.run_remove_pod(state, POD, make_pod("q"), NODES.at(0))

    assert state.skip_filter == {"Skips"}
    assert asked == []


def narrowing(name: str, *nodes: str) -> object:
    return make_plugin(name, pre_filter=PreFilterResult(frozenset(nodes)))


@pytest.mark.parametrize(
    ("plugins", "left", "narrowed_by", "message"),
    [
        pytest.param([make_plugin(pre_filter=None)], None, set(), "", id="all nodes"),
        pytest.param([narrowing("A", "a")], {"a"}, {"A"}, "", id="one narrows"),
        pytest.param(
            [narrowing("A", "a", "b"), make_plugin(pre_filter=SUCCESS), narrowing("B", "b", "c")],
            {"b"},
            {"A", "B"},
            "",
            id="two narrow, and agree on one node",
        ),
        pytest.param(
            [narrowing("A")],
            set(),
            {"A"},
            "node(s) didn't satisfy plugin A",
            id="one leaves nothing",
        ),
        pytest.param(
            [narrowing("B", "b"), narrowing("A", "a")],
            set(),
            {"A", "B"},
            "node(s) didn't satisfy plugin(s) [A B] simultaneously",
            id="two leave nothing together, named in order of name",
        ),
    ],
)
def test_pre_filter_leaves_the_nodes_on_which_all_plugins_agree(
    plugins, left, narrowed_by, message
):
    result = run_pre_filters(framework_of(*plugins), CycleState(), POD, NODES)

    assert result.node_names == left
    assert result.narrowed_by == narrowed_by
    assert result.status == (unresolvable(message) if message else SUCCESS)


def test_once_no_node_is_left_pre_filter_asks_nobody_else():
    asked = []
    after = make_plugin("After", pre_filter=lambda *_: asked.append("After"))

    run_pre_filters(framework_of(narrowing("A"), after), CycleState(), POD, NODES)

    assert asked == []


def test_after_unschedulable_the_other_pre_filters_run_and_the_last_rejection_counts():
    """Preemption needs what they compute."""
    asked = []
    plugins = [
        make_plugin("First", pre_filter=unschedulable("first")),
        make_plugin("Between", pre_filter=lambda *_: asked.append("Between")),
        make_plugin("Last", pre_filter=unschedulable("last")),
        make_plugin("Skips", pre_filter=SKIP),
    ]
    state = CycleState()

    result = run_pre_filters(framework_of(*plugins), state, POD, NODES)

    assert result.status == unschedulable("last").by("Last")
    assert asked == ["Between"]
    assert state.skip_filter == {"Skips"}


@pytest.mark.parametrize("before", [SUCCESS, unschedulable("before")])
def test_after_unresolvable_no_other_pre_filter_runs_and_nobody_narrowed(before):
    asked = []
    plugins = [
        narrowing("Narrows", "a"),
        make_plugin("Before", pre_filter=before),
        make_plugin("Ends", pre_filter=unresolvable("end")),
        make_plugin("After", pre_filter=lambda *_: asked.append("After")),
    ]

    result = run_pre_filters(framework_of(*plugins), CycleState(), POD, NODES)

    assert result.status == unresolvable("end").by("Ends")
    assert (result.node_names, result.narrowed_by) == (None, frozenset())
    assert asked == []


# Filter with pods nominated to the node


def counts_pods(state, pod, node):
    """At most one pod to a node."""
    return unschedulable("full") if node.pods else SUCCESS


def nominated(*pods, node="a"):
    known = {pod.key: pod for pod in pods}
    nominator = Nominator(queued_pod=known.get)
    for pod in pods:
        nominator.add(pod, Nomination(node))
    return nominator


@pytest.mark.parametrize(
    ("other", "refused"),
    [
        pytest.param(make_pod("q", priority=5), True, id="as important"),
        pytest.param(make_pod("q", priority=6), True, id="more important"),
        pytest.param(make_pod("q", priority=4), False, id="less important"),
        pytest.param(make_pod("q", uid="uid", priority=9), False, id="the pod itself"),
    ],
)
def test_a_nominated_pod_counts_on_its_node_unless_it_is_less_important(other, refused):
    framework = framework_of(make_plugin(filter=counts_pods), nominator=nominated(other))
    pod = make_pod("p", uid="uid", priority=5)

    matrix = run_filters(framework, CycleState(), pod, NODES, EVERY)

    expected = unschedulable("full").by("X") if refused else SUCCESS
    assert [matrix.status(row) for row in range(3)] == [expected, SUCCESS, SUCCESS]
    assert matrix.feasible.tolist() == [not refused, True, True]
    assert framework.filter_node(CycleState(), pod, NODES.at(0), NODES) == expected
    assert not NODES.at(0).pods, "the pass with nominated pods works on a copy"


def test_a_node_that_passes_with_nominated_pods_must_pass_without_them_too():
    """The pod needs another beside it, and the nominated one may never come."""

    def needs_company(state, pod, node):
        return SUCCESS if node.pods else unschedulable("alone")

    framework = framework_of(make_plugin(filter=needs_company), nominator=nominated(make_pod("q")))

    matrix = run_filters(framework, CycleState(), POD, NODES, EVERY)

    assert not matrix.feasible.any()
    status = framework.filter_node(CycleState(), POD, NODES.at(0), NODES)
    assert status == unschedulable("alone").by("X")


def test_nominated_pods_are_told_to_pre_filter_plugins_on_a_clone_of_the_state():
    class Told:
        def __init__(self, names=()):
            self.names = list(names)

        def clone(self):
            return Told(self.names)

    def add(state, pod, added, node):
        state.read("told", Told).names.append(added.name)

    def refuse_if_told(state, pod, node):
        told = state.read("told", Told).names
        return unschedulable(*told) if told else SUCCESS

    plugin = make_plugin(pre_filter=None, add_pod=add, filter=refuse_if_told)
    nominator = nominated(make_pod("q"), make_pod("r"))
    framework, state = framework_of(plugin, nominator=nominator), CycleState()
    state.write("told", Told())

    matrix = run_filters(framework, state, POD, NODES, EVERY)

    assert matrix.status(0) == unschedulable("q", "r").by("X")
    assert state.read("told", Told).names == []


def test_a_plugin_that_cannot_take_a_nominated_pod_in_fails_the_attempt():
    plugin = make_plugin(pre_filter=None, add_pod=raises, filter=None)
    framework = framework_of(plugin, nominator=nominated(make_pod("q")))

    with pytest.raises(PluginFailure, match=r'running AddPod on PreFilter plugin "X": .*boom'):
        run_filters(framework, CycleState(), POD, NODES, EVERY)


def test_a_node_that_is_not_looked_at_is_not_judged_for_its_nominated_pods():
    framework = framework_of(
        make_plugin(filter=counts_pods), nominator=nominated(make_pod("q"), node="b")
    )
    only_a = np.array([True, False, False])

    matrix = run_filters(framework, CycleState(), POD, NODES, only_a)

    assert matrix.feasible.tolist() == [True, False, False]
    assert list(matrix.refusals()) == []


# PostFilter

HELP = PostFilterResult(Nomination("a"))
NO_OP = PostFilterResult()


@pytest.mark.parametrize(
    ("answers", "result", "status"),
    [
        pytest.param(
            [(None, unschedulable("1")), (HELP, SUCCESS), (None, raises)],
            HELP,
            SUCCESS,
            id="the first success is the answer",
        ),
        pytest.param(
            [(NO_OP, unresolvable("1")), (HELP, SUCCESS)],
            NO_OP,
            unresolvable("1").by("P0"),
            id="unresolvable ends it",
        ),
        pytest.param(
            [(None, unschedulable("1", "2")), (None, pending("3")), (NO_OP, unschedulable("4"))],
            None,
            unschedulable("1", "2", "3", "4").by("P0"),
            id="all reject: every reason, and the first is to blame",
        ),
        pytest.param(
            [(HELP, unschedulable()), (NO_OP, unschedulable()), (None, unschedulable())],
            HELP,
            unschedulable().by("P0"),
            id="the last result that nominates is kept",
        ),
        pytest.param([(HELP, None)], HELP, SUCCESS, id="no status is success"),
    ],
)
def test_post_filters_are_asked_in_order_until_one_settles_it(answers, result, status):
    plugins = [make_plugin(f"P{i}", post_filter=answer) for i, answer in enumerate(answers)]

    assert framework_of(*plugins).run_post_filters(CycleState(), POD, None) == (result, status)


def test_a_post_filter_that_nominates_by_a_name_alone_is_told():
    plugin = make_plugin("P", post_filter=(PostFilterResult("node-1"), SUCCESS))

    _, status = framework_of(plugin).run_post_filters(CycleState(), POD, None)

    assert (status.code, status.plugin) == (Code.ERROR, "P")
    assert "the nomination of a PostFilterResult must be a Nomination or None" in status.message


@pytest.mark.parametrize("code", [Code.ERROR, Code.WAIT, Code.SKIP], ids=lambda code: code.title)
def test_a_post_filter_that_neither_helps_nor_rejects_is_an_error_without_a_result(code):
    plugins = [
        make_plugin("P0", post_filter=(HELP, unschedulable("kept"))),
        make_plugin("P1", post_filter=(HELP, ANSWERS[code])),
    ]

    result, status = framework_of(*plugins).run_post_filters(CycleState(), POD, None)

    assert result is None
    assert (status.code, status.plugin, status.message) == (Code.ERROR, "P1", SAID[code])


# Score


def test_a_plugin_that_skips_in_pre_score_does_not_score():
    skips = make_plugin("Skips", pre_score=SKIP, score=raises)
    framework, state = framework_of(skips, make_plugin("Scores", score=3)), CycleState()

    matrix = run_scores(framework, state, POD, NODES, FEASIBLE)

    assert matrix.plugins == ["Scores"]
    assert matrix.total.tolist() == [3, 3, 3]


# Reserve


def test_reserve_stops_at_the_first_failure_and_unreserve_runs_for_all_last_first():
    calls = []

    def noted(name, answer=None):
        def reserve(*_):
            calls.append(f"+{name}")
            return answer

        return make_plugin(name, reserve=reserve, unreserve=lambda *_: calls.append(f"-{name}"))

    framework = framework_of(noted("A"), noted("B", unschedulable("no")), noted("C"))

    status = framework.run_reserve(CycleState(), POD, "a")
    framework.run_unreserve(CycleState(), POD, "a")

    assert status == unschedulable("no").by("B")
    assert calls == ["+A", "+B", "-C", "-B", "-A"]


def test_a_plugin_that_raises_in_unreserve_keeps_no_other_from_it(caplog):
    undone = []
    plugins = [
        make_plugin("A", unreserve=lambda *_: undone.append("A")),
        make_plugin("B", unreserve=raises),
    ]

    framework_of(*plugins).run_unreserve(CycleState(), POD, "a")

    assert undone == ["A"]
    assert 'running Unreserve plugin "B": ValueError: boom' in caplog.text


# Permit


@pytest.mark.parametrize("code", REJECTIONS, ids=lambda code: code.title)
def test_a_rejection_by_permit_ends_it_and_nobody_waits(code):
    asked = []
    framework = framework_of(
        make_plugin("Waits", permit=wait()),
        make_plugin("Rejects", permit=ANSWERS[code]),
        make_plugin("After", permit=lambda *_: asked.append("After")),
    )

    assert permit(framework) == ANSWERS[code].by("Rejects")
    assert asked == []
    assert len(framework.waiting_pods) == 0


@pytest.mark.parametrize("seconds", [-5, float("nan")])
def test_permit_cannot_wait_for_less_than_no_time(seconds):
    status = permit(framework_of(make_plugin(permit=(wait(), seconds))))

    assert status.code == Code.ERROR
    assert status.message == f'running Permit plugin "X": permit cannot wait for {seconds} seconds'


@pytest.mark.parametrize("code", [Code.ERROR, Code.SKIP], ids=lambda code: code.title)
def test_an_answer_that_permit_does_not_know_is_an_error(code):
    status = permit(framework_of(make_plugin(permit=ANSWERS[code])))

    assert (status.code, status.plugin) == (Code.ERROR, "X")
    assert status.message == f'running Permit plugin "X": {SAID[code]}'


@pytest.mark.parametrize(
    "answer",
    [None, SUCCESS, (SUCCESS, 3.0), (None, 0)],
    ids=["nothing", "success", "with a timeout", "nothing, with a timeout"],
)
def test_a_permit_that_has_nothing_against_it_lets_the_pod_pass(answer):
    framework = framework_of(make_plugin(permit=answer))

    assert permit(framework) == SUCCESS
    assert len(framework.waiting_pods) == 0


def test_wait_makes_a_waiting_pod_for_all_who_asked_for_it():
    framework = framework_of(
        make_plugin("A", permit=(wait(), 5.0)),
        make_plugin("B", permit=None),
        make_plugin("C", permit=(wait(), 7.0)),
    )

    assert permit(framework) == wait("one or more plugins asked to wait and no plugin rejected pod")
    waiting = framework.waiting_pods.get("uid")
    assert (waiting.pod, waiting.node_name) == (POD, "a")
    assert waiting.pending_plugins() == ["A", "C"]


@pytest.mark.parametrize(
    ("answer", "waits_s", "said"),
    [
        pytest.param((wait(), 3.0), 3.0, "3s", id="as long as it says"),
        pytest.param((wait(), 3600.0), 900.0, "15m0s", id="never longer than 15 minutes"),
        pytest.param(wait(), 900.0, "15m0s", id="15 minutes if it does not say"),
        pytest.param((wait(), 0.0), 0.0, "0s", id="0: rejected at once"),
    ],
)
async def test_a_wait_ends_by_itself(answer, waits_s, said):
    clock = FakeClock()
    framework = framework_of(make_plugin(permit=answer), clock=clock)
    permit(framework)
    waiting = framework.waiting_pods.get("uid")

    if waits_s:
        clock.advance(waits_s - 0.001)
        assert not waiting.decided
    clock.advance(0.001)

    assert await framework.wait_on_permit(POD) == Status(
        Code.UNSCHEDULABLE, (f"rejected due to timeout after waiting {said} at plugin X",), "X"
    )
    assert framework.waiting_pods.get("uid") is None


async def test_a_pod_that_nobody_holds_back_does_not_wait():
    assert await framework_of().wait_on_permit(POD) == SUCCESS


async def test_a_pod_preempted_while_it_waits_fails_with_the_plugin_kept():
    framework = framework_of(make_plugin(permit=wait()))
    permit(framework)
    framework.waiting_pods.get("uid").preempt("Evictor", "preempted")

    status = await framework.wait_on_permit(POD)

    assert (status.code, status.plugin) == (Code.ERROR, "Evictor")
    assert status.message == "waiting on permit for pod: preempted"


# PreBindPreFlight


@pytest.mark.parametrize(
    ("answers", "code", "skipped", "parallel"),
    [
        pytest.param([], Code.SKIP, set(), set(), id="no plugin: nothing to do"),
        pytest.param([SKIP, SKIP], Code.SKIP, {"P0", "P1"}, set(), id="all skip"),
        pytest.param([SKIP, None], Code.SUCCESS, {"P0"}, set(), id="one has something to do"),
        pytest.param([SUCCESS, SKIP], Code.SUCCESS, {"P1"}, set(), id="said as a status"),
        pytest.param(
            [PreFlight(allow_parallel=True), PreFlight()],
            Code.SUCCESS,
            set(),
            {"P0"},
            id="one may run in parallel",
        ),
    ],
)
def test_pre_flight_finds_out_which_pre_binds_have_something_to_do(
    answers, code, skipped, parallel
):
    framework = framework_of(
        *(
            make_plugin(f"P{i}", pre_bind_pre_flight=answer, pre_bind=None)
            for i, answer in enumerate(answers)
        )
    )
    state = CycleState()

    assert framework.run_pre_bind_pre_flights(state, POD, "a") == Status(code)
    assert state.skip_pre_bind == skipped
    assert state.parallel_pre_bind == parallel


def test_a_pre_bind_without_a_pre_flight_has_something_to_do():
    assert pre_flight(framework_of(make_plugin(pre_bind=None))) == SUCCESS


def test_an_error_in_pre_flight_is_passed_on_and_nothing_is_remembered():
    framework = framework_of(
        make_plugin("Skips", pre_bind_pre_flight=SKIP, pre_bind=None),
        make_plugin("Fails", pre_bind_pre_flight=ANSWERS[Code.ERROR], pre_bind=None),
    )
    state = CycleState()

    status = framework.run_pre_bind_pre_flights(state, POD, "a")

    assert (status.code, status.plugin, status.message) == (Code.ERROR, "Fails", "boom")
    assert state.skip_pre_bind == frozenset()


@pytest.mark.parametrize("code", [*REJECTIONS, Code.WAIT], ids=lambda code: code.title)
def test_pre_flight_may_not_reject_a_pod(code):
    plugin = make_plugin(pre_bind_pre_flight=ANSWERS[code], pre_bind=None)

    status = pre_flight(framework_of(plugin))

    assert (status.code, status.plugin) == (Code.ERROR, "X")
    assert status.message == (
        f'PreBindPreFlight X returned "{code.title}", which is unsupported. It is supposed to'
        " return Success, Skip, or Error status"
    )


# PreBind


class Runs:
    """PreBinds that start, wait for the test to let them go, and end; all of it taken down."""

    def __init__(self):
        self.notes = []
        self.gates = {}

    def plugin(self, name, *, parallel, skips=False, answer=None):
        self.gates[name] = asyncio.Event()

        async def pre_bind(*_):
            self.notes.append(f"+{name}")
            try:
                await self.gates[name].wait()
            except asyncio.CancelledError:
                self.notes.append(f"!{name}")
                raise
            self.notes.append(f"-{name}")
            return answer

        said = SKIP if skips else PreFlight(allow_parallel=parallel)
        return make_plugin(name, pre_bind_pre_flight=said, pre_bind=pre_bind)

    async def start(self, *plugins):
        framework, state = framework_of(*plugins), CycleState()
        framework.run_pre_bind_pre_flights(state, POD, "a")
        task = asyncio.ensure_future(framework.run_pre_bind(state, POD, "a"))
        await self.settle()
        return task

    async def settle(self):
        for _ in range(10):
            await asyncio.sleep(0)

    async def let_go(self, name):
        self.gates[name].set()
        await self.settle()


async def test_neighbours_that_allow_it_run_side_by_side_and_others_wait_for_them():
    runs = Runs()
    task = await runs.start(
        runs.plugin("A", parallel=True),
        runs.plugin("B", parallel=True),
        runs.plugin("C", parallel=False),
        runs.plugin("D", parallel=True),
    )

    assert runs.notes == ["+A", "+B"]
    await runs.let_go("B")
    await runs.let_go("A")
    assert runs.notes == ["+A", "+B", "-B", "-A", "+C"]
    await runs.let_go("C")
    await runs.let_go("D")
    assert runs.notes[5:] == ["-C", "+D", "-D"]
    assert await task == SUCCESS


async def test_a_plugin_that_is_skipped_still_stands_between_its_neighbours():
    runs = Runs()
    task = await runs.start(
        runs.plugin("A", parallel=True),
        runs.plugin("Skipped", parallel=False, skips=True),
        runs.plugin("B", parallel=True),
    )

    assert runs.notes == ["+A"]
    await runs.let_go("A")
    await runs.let_go("B")
    assert runs.notes == ["+A", "-A", "+B", "-B"]
    assert await task == SUCCESS


async def test_the_first_failure_wins_and_cancels_its_siblings():
    runs = Runs()
    task = await runs.start(
        runs.plugin("A", parallel=True),
        runs.plugin("B", parallel=True, answer=unschedulable("no")),
        runs.plugin("C", parallel=False),
    )

    await runs.let_go("B")

    assert await task == unschedulable("no").by("B")
    assert runs.notes == ["+A", "+B", "-B", "!A"]


async def test_after_a_failure_no_later_pre_bind_runs():
    runs = Runs()
    task = await runs.start(
        runs.plugin("A", parallel=False, answer=unschedulable("no")),
        runs.plugin("B", parallel=False),
    )

    await runs.let_go("A")

    assert await task == unschedulable("no").by("A")
    assert runs.notes == ["+A", "-A"]


@pytest.mark.parametrize("parallel", [False, True])
async def test_pre_bind_that_is_cancelled_leaves_nothing_running(parallel):
    runs = Runs()
    task = await runs.start(
        runs.plugin("A", parallel=parallel), runs.plugin("B", parallel=parallel)
    )

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(runs.notes) == (["!A", "!B", "+A", "+B"] if parallel else ["!A", "+A"])


# Bind


@pytest.mark.parametrize(
    ("answers", "expected", "asked"),
    [
        pytest.param([SUCCESS, SUCCESS], SUCCESS, 1, id="the first does it"),
        pytest.param([SKIP, None], SUCCESS, 2, id="one that skips leaves it to the next"),
        pytest.param([SKIP, SKIP], SKIP, 2, id="all skip"),
        pytest.param([], SKIP, 0, id="nobody binds"),
        pytest.param([unschedulable("no"), None], unschedulable("no").by("P0"), 1, id="rejected"),
    ],
)
def test_the_first_bind_plugin_that_does_not_skip_decides(answers, expected, asked):
    calls = []

    def answering(name, answer):
        def bind(*_):
            calls.append(name)
            return answer

        return make_plugin(name, bind=bind)

    plugins = [answering(f"P{i}", answer) for i, answer in enumerate(answers)]

    assert bind(framework_of(*plugins)) == expected
    assert len(calls) == asked


@pytest.mark.parametrize("code", [Code.ERROR, Code.WAIT], ids=lambda code: code.title)
def test_a_bind_that_fails_or_wants_to_wait_is_an_error(code):
    status = bind(framework_of(make_plugin(bind=ANSWERS[code])))

    assert (status.code, status.plugin) == (Code.ERROR, "X")
    assert status.message == f'running Bind plugin "X": {SAID[code]}'


# PostBind


async def test_a_plugin_that_raises_in_post_bind_is_logged_and_keeps_no_other_from_it(caplog):
    told = []

    async def tell(*_):
        told.append("B")

    framework = framework_of(make_plugin("A", post_bind=raises), make_plugin("B", post_bind=tell))

    await framework.run_post_bind(CycleState(), POD, "a")

    assert told == ["B"]
    assert 'running PostBind plugin "A": ValueError: boom' in caplog.text


# Close


def test_every_plugin_is_closed_and_every_problem_told():
    closed = []
    framework = framework_of(
        make_plugin("A", close=raises, filter=None),
        make_plugin("B", close=lambda: closed.append("B"), filter=None, score=1),
        make_plugin("C", close=raises, filter=None),
        make_plugin("D", filter=None),
    )

    assert framework.close() == [
        "A failed to close: ValueError: boom",
        "C failed to close: ValueError: boom",
    ]
    assert closed == ["B"]


# Events

NODE_ADD = EventWithHint(ClusterEvent(EventResource.NODE, Action.ADD))
NODE_TAINT = EventWithHint(ClusterEvent(EventResource.NODE, Action.UPDATE_NODE_TAINT))
POD_DELETE = EventWithHint(ClusterEvent(EventResource.POD, Action.DELETE))


@pytest.mark.parametrize("method", ["pre_enqueue", "pre_filter", "filter", "reserve", "permit"])
def test_a_plugin_that_can_reject_and_names_no_events_hears_of_everything(method):
    registered = framework_of(make_plugin(**{method: None})).events_to_register()

    assert [(name, each.event) for name, each in registered] == [
        ("X", event) for event in DEFAULT_EVENTS
    ]


@pytest.mark.parametrize("method", ["post_filter", "score", "pre_bind", "bind"])
def test_a_plugin_that_cannot_reject_registers_nothing(method):
    assert framework_of(make_plugin(**{method: None})).events_to_register() == []


@pytest.mark.parametrize(
    ("named", "registered"),
    [
        pytest.param([], [], id="none at all"),
        pytest.param([POD_DELETE], [POD_DELETE], id="as named"),
        pytest.param(
            [NODE_ADD], [NODE_ADD, NODE_TAINT], id="new nodes: also those untainted later"
        ),
        pytest.param([NODE_ADD, NODE_TAINT], [NODE_ADD, NODE_TAINT], id="taints named already"),
    ],
)
def test_a_plugin_hears_of_the_events_it_names(named, registered):
    plugin = make_plugin(filter=None, events_to_register=lambda: named)

    assert [each for _, each in framework_of(plugin).events_to_register()] == registered


def test_a_plugin_of_several_points_registers_its_events_once():
    plugin = make_plugin(filter=None, permit=None, events_to_register=lambda: [POD_DELETE])

    assert framework_of(plugin).events_to_register() == [("X", POD_DELETE)]


# Timing


class Taken(Metrics):
    def __init__(self):
        self.now = 0.0
        self.taken = []

    def timer(self):
        self.now += 1.0
        return self.now

    def plugin_duration(self, plugin, point, status, seconds):
        self.taken.append((plugin, point, status, seconds))


def test_plugins_are_timed_one_by_one_only_in_the_attempts_that_are_sampled():
    metrics = Taken()
    framework = framework_of(make_plugin(reserve=None), metrics=metrics)

    framework.run_reserve(CycleState(), POD, "a")
    assert metrics.taken == []

    framework.run_reserve(CycleState(record_plugin_metrics=True), POD, "a")
    assert metrics.taken == [("X", "Reserve", "Success", 1.0)]


def test_the_points_of_a_framework_are_found_by_the_methods_of_its_plugins():
    framework = framework_of(make_plugin("A", filter=None, score=1), make_plugin("B", filter=None))

    assert framework.names_at(Point.FILTER) == ["A", "B"]
    assert framework.names_at(Point.SCORE) == ["A"]
    assert list(framework.plugins) == ["A", "B"]
