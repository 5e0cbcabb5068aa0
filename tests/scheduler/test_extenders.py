"""Extenders, each a real HTTP server: what they hear, what their word counts, and what if they fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from mooring.cli.main import cli
from mooring.cluster.cache import Cluster
from mooring.config import KubeSchedulerConfiguration, load_config
from mooring.errors import ConfigError, ExtenderError
from mooring.framework.silent_writer import SilentWriter
from mooring.framework.status import Code, Status, unresolvable, unschedulable
from mooring.plugins.registry import default_registry
from mooring.runtime.metrics import Metrics
from mooring.scheduler.decision import Decision
from mooring.scheduler.dependencies import Dependencies
from mooring.scheduler.engine import Engine
from mooring.scheduler.extenders import Extenders, bare
from mooring.scheduler.extenders.extender import Answer
from mooring.sim.simulation import SimOptions, Simulation
from mooring.webhook import HttpTransport
from tests.clock import FakeClock
from tests.engine import discard
from tests.makers import make_container, make_node, make_pod
from tests.webhook_server import CERTIFICATES, HANG, Reply, Webhook, server_tls

#: Before the first backoff ends: every pod is tried once.
ONE_ATTEMPT_S = 0.5

NAMES = {"nodeCacheCapable": True}


def config_with(*extenders: dict[str, Any], **fields: Any) -> KubeSchedulerConfiguration:
    return load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "extenders": list(extenders),
            **fields,
        }
    )


def waiting_for(answer: object) -> dict[str, Any]:
    """A short timeout where it must run out, and a long one where it must not."""
    return {"httpTimeout": "100ms" if answer is HANG else "30s"}


class Run:
    """A simulation, and what it decided."""

    def __init__(self, simulation: Simulation, decisions: list[Decision]) -> None:
        self.simulation = simulation
        self.decisions = decisions

    def node_of(self, name: str = "p") -> str:
        pod = self.simulation.scheduler.observed_pods[f"default/{name}"]
        return pod.node_name

    def message(self, name: str = "p") -> str:
        return self.simulation.summary.records[f"default/{name}"].last_failure

    def rejected_by(self, name: str = "p") -> set[str]:
        queued = self.simulation.scheduler.queue.get(f"default/{name}")
        assert queued is not None
        return queued.unschedulable_plugins

    def reason(self, name: str = "p") -> str:
        condition = self.simulation.scheduler.observed_pods[f"default/{name}"].condition(
            "PodScheduled"
        )
        assert condition is not None
        return condition.reason


@contextmanager
def simulated(
    *objects: Any, extenders: list[dict[str, Any]], until_s: float = ONE_ATTEMPT_S, **fields: Any
) -> Iterator[Run]:
    decisions: list[Decision] = []
    options = SimOptions(config=config_with(*extenders, **fields), on_decision=decisions.append)
    with Simulation(options) as simulation:
        simulation.load(objects)
        simulation.run(until_s=until_s)
        assert simulation.errors == []
        yield Run(simulation, decisions)


def two_nodes():
    return make_node("a"), make_node("b")


# Filter


def test_an_extender_with_its_own_cache_hears_names_and_answers_with_names():
    with (
        Webhook(filter=lambda args: {"NodeNames": ["b"]}) as extender,
        simulated(*two_nodes(), make_pod("p"), extenders=[extender.config(**NAMES)]) as run,
    ):
        assert run.node_of() == "b"
        (args,) = extender.questions("filter")
        assert list(args) == ["Pod", "Nodes", "NodeNames"]
        assert (args["Nodes"], args["NodeNames"]) == (None, ["a", "b"])
        assert args["Pod"]["metadata"]["name"] == "p"
        assert run.decisions[0].diagnosis.removed_by == {"a": extender.url}


def test_an_extender_without_a_cache_hears_whole_nodes_and_answers_with_nodes():
    def only_b(args):
        return {"nodes": {"items": [n for n in args["Nodes"]["items"] if _name(n) == "b"]}}

    nodes = (
        make_node("a", cpu="1500m", labels={"rack": "1"}),
        make_node("b", taints=["x:NoExecute"]),
    )
    pod = make_pod("p", cpu="250m", tolerations=[])
    with (
        Webhook(filter=only_b) as extender,
        simulated(
            *nodes,
            pod,
            extenders=[extender.config()],
            profiles=[_without("TaintToleration")],
        ) as run,
    ):
        assert run.node_of() == "b"
        (args,) = extender.questions("filter")
        assert args["NodeNames"] is None
        assert args["Nodes"]["metadata"] == {}
        a, b = args["Nodes"]["items"]
        assert a["metadata"]["labels"] == {"kubernetes.io/hostname": "a", "rack": "1"}
        assert a["status"]["allocatable"]["cpu"] == "1500m"
        assert b["spec"]["taints"] == [{"key": "x", "effect": "NoExecute"}]
        requests = args["Pod"]["spec"]["containers"][0]["resources"]["requests"]
        assert requests == {"cpu": "250m"}


def _name(node: dict[str, Any]) -> str:
    name: str = node["metadata"]["name"]
    return name


def _without(*plugins: str) -> dict[str, Any]:
    disabled = [{"name": name} for name in plugins]
    return {"plugins": {"multiPoint": {"disabled": disabled}}}


def echo_nodes(args: Any) -> Any:
    return {"Nodes": args["Nodes"]}


def echo_names(args: Any) -> Any:
    return {"NodeNames": args["NodeNames"]}


@pytest.mark.parametrize(
    ("echo", "options", "node"),
    [
        pytest.param(echo_names, NAMES, "b", id="by name: a is fuller than b"),
        pytest.param(echo_nodes, {}, "a", id="as objects: both look empty"),
    ],
)
def test_nodes_that_come_back_as_objects_are_scored_as_if_they_were_empty(echo, options, node):
    """The reference makes node infos of them that know of no pods and no images."""
    full = make_pod("full", cpu=3, memory="4Gi", node="a")
    pod = make_pod("p", cpu="500m", memory="100Mi", image="app:1")
    nodes = make_node("a"), make_node("b", images={"app:1": 500_000_000})
    with (
        Webhook(filter=echo) as extender,
        simulated(*nodes, full, pod, extenders=[extender.config(**options)]) as run,
    ):
        assert run.node_of() == node
        assert run.decisions[0].bare is (node == "a")


def test_a_node_that_answers_with_nothing_leaves_no_node():
    with (
        Webhook(filter={}) as extender,
        simulated(*two_nodes(), make_pod("p"), extenders=[extender.config(**NAMES)]) as run,
    ):
        assert run.node_of() == ""
        # Nodes that were removed without a word give no reason, and preemption does not help there.
        assert run.message() == (
            "0/2 nodes are available: no new claims to deallocate, preemption: 0/2 nodes are"
            " available: 2 Preemption is not helpful for scheduling."
        )
        assert run.rejected_by() == {"Extender"}
        assert run.reason() == "Unschedulable"


def test_what_an_extender_says_of_nodes_is_what_users_read():
    answer = {
        "NodeNames": [],
        "FailedNodes": {"a": "no driver", "b": "busy", "c": "busy"},
        "FailedAndUnresolvableNodes": {"b": "wrong rack"},
    }
    nodes = [make_node("a"), make_node("b"), make_node("c"), make_node("d", cpu=1)]
    with (
        Webhook(filter=answer) as extender,
        simulated(*nodes, make_pod("p", cpu=2), extenders=[extender.config(**NAMES)]) as run,
    ):
        assert run.message().startswith(
            "0/4 nodes are available: 1 Insufficient cpu, 1 busy, 1 no driver, 1 wrong rack. "
        )
        assert run.rejected_by() == {"Extender", "NodeResourcesFit"}
        diagnosis = run.decisions[0].diagnosis
        assert diagnosis.get("a") == unschedulable("no driver")
        assert diagnosis.get("b") == unresolvable("wrong rack")
        assert [n.name for n in diagnosis.nodes_with(Code.UNSCHEDULABLE)] == ["a", "c"]


def test_what_is_said_of_nodes_that_were_not_asked_about_counts_too():
    """A plugin's verdict is overruled, and a node that does not exist makes the absent fewer."""
    answer = {"FailedNodes": {"a": "no driver", "refused": "no driver", "unknown": "no driver"}}
    nodes = [make_node("a"), make_node("refused", cpu=1)]
    with (
        Webhook(filter=answer) as extender,
        simulated(*nodes, make_pod("p", cpu=2), extenders=[extender.config(**NAMES)]) as run,
    ):
        assert run.decisions[0].diagnosis.fit_error == "0/2 nodes are available: 3 no driver."


def test_extenders_are_asked_in_turn_each_about_what_the_last_one_left():
    with (
        Webhook(filter={"NodeNames": ["a", "b"], "FailedNodes": {"c": "one"}}) as one,
        Webhook(filter={"NodeNames": ["b"]}) as two,
        Webhook(filter={"NodeNames": []}) as three,
        Webhook(filter=echo_names) as never,
        simulated(
            *[make_node(name) for name in "abc"],
            make_pod("p"),
            extenders=[
                never.config(**NAMES, ignorable=True),
                *[each.config(**NAMES) for each in (one, two, three)],
            ],
        ) as run,
    ):
        asked = [each.questions("filter")[0]["NodeNames"] for each in (one, two, three)]
        assert asked == [["a", "b", "c"], ["a", "b"], ["b"]]
        assert never.asked == []
        assert run.decisions[0].diagnosis.fit_error == "0/3 nodes are available: 1 one."


def test_no_extender_is_asked_about_a_pod_that_the_plugins_refuse_everywhere():
    with (
        Webhook(filter=echo_names) as extender,
        simulated(
            make_node("a", cpu=1), make_pod("p", cpu=2), extenders=[extender.config()]
        ) as run,
    ):
        assert extender.asked == []
        assert run.rejected_by() == {"NodeResourcesFit"}


def test_a_nominated_node_has_to_pass_the_extenders_too():
    with (
        Webhook(filter={"NodeNames": [], "FailedNodes": {"b": "full"}}) as extender,
        simulated(
            *two_nodes(), make_pod("p", nominated="b"), extenders=[extender.config(**NAMES)]
        ) as run,
    ):
        asked = [args["NodeNames"] for args in extender.questions("filter")]
        assert asked[:2] == [["b"], ["a", "b"]]
        assert run.decisions[0].diagnosis.fit_error == "0/2 nodes are available: 1 full."


def test_a_failure_on_the_nominated_node_only_sends_the_search_on():
    def fails_on_one(args):
        return {"Error": "not now"} if len(args["NodeNames"]) == 1 else echo_names(args)

    with (
        Webhook(filter=fails_on_one) as extender,
        simulated(
            *two_nodes(), make_pod("p", nominated="b"), extenders=[extender.config(**NAMES)]
        ) as run,
    ):
        assert run.node_of() == "a"


def test_a_sample_of_nodes_that_the_extender_refuses_is_all_there_is():
    """With a percentage, nodes beyond the sample were not looked at, and nothing is said of them."""
    nodes = [make_node(f"n{i:03}", cpu=1 if i % 2 else 4) for i in range(400)]
    with (
        Webhook(filter={"NodeNames": []}) as extender,
        simulated(
            *nodes,
            make_pod("p", cpu=2),
            extenders=[extender.config(**NAMES)],
            percentageOfNodesToScore=25,
        ) as run,
    ):
        assert len(extender.questions("filter")[0]["NodeNames"]) == 100
        fit_error = run.decisions[0].diagnosis.fit_error
        assert fit_error == "0/400 nodes are available: 100 Insufficient cpu."


# Failures


NONSENSE = [
    pytest.param(
        Reply(b"surely not JSON"), "JSON is malformed: invalid character (byte 0)", id="no JSON"
    ),
    pytest.param(Reply(b""), "Input data was truncated", id="nothing"),
    pytest.param(Reply(b'["a"]'), "Expected `object | null`, got `array`", id="a list"),
    pytest.param({"NodeNames": "a"}, "Expected `array`, got `str`", id="names in no list"),
    pytest.param({"NodeNames": [1]}, "Expected `str | null`, got `int` - at `$[0]`", id="no names"),
    pytest.param({"Nodes": ["a"]}, "Expected `object`, got `array`", id="no nodes"),
    pytest.param(
        {"FailedNodes": {"a": 1}}, "Expected `str | null`, got `int` - at `$[...]`", id="no reason"
    ),
    pytest.param({"Error": {}}, "Expected `str`, got `object`", id="no text"),
    pytest.param(
        Reply(b'{"x":' + b"[" * 100_000),
        "maximum recursion depth exceeded while deserializing an object",
        id="too deep",
    ),
]


def failing_filters():
    at = "failed filter with extender at URL {url}/filter, "
    yield pytest.param(
        HANG,
        'Post "{url}/filter": context deadline exceeded'
        " (Client.Timeout exceeded while awaiting headers)",
        id="hangs",
    )
    yield pytest.param(Reply(code=500), f"{at}code 500", id="500")
    yield pytest.param(Reply(b"{}", code=202), f"{at}code 202", id="202")
    yield pytest.param({"Error": "out of order"}, "out of order", id="an error")
    for problem in NONSENSE:
        answer, text = problem.values
        yield pytest.param(answer, f"{at}cannot read the answer: {text}", id=problem.id)
    yield pytest.param(
        {"NodeNames": ["a", "made-up"]},
        'extender "{url}" claims a filtered node "made-up" which is not found in the input node list',
        id="an unknown node by name",
    )
    yield pytest.param(
        {"Nodes": {"items": [{"metadata": {"name": "made-up"}}]}},
        'extender "{url}" claims a filtered node "made-up" which is not found in the input node list',
        id="an unknown node",
    )
    yield pytest.param(
        {"Nodes": {"items": [{}]}},
        'extender "{url}" claims a filtered node "" which is not found in the input node list',
        id="a node without a name",
    )


@pytest.mark.parametrize(("answer", "text"), [*failing_filters()])
def test_a_filter_that_fails_fails_the_attempt(answer, text):
    with (
        Webhook(filter=answer) as extender,
        simulated(
            *two_nodes(),
            make_pod("p"),
            extenders=[extender.config(**NAMES, **waiting_for(answer))],
        ) as run,
    ):
        assert run.node_of() == ""
        assert run.message() == text.format(url=extender.url)
        assert run.reason() == "SchedulerError"
        # Nobody is to blame, so the pod is tried again after a while, whatever happens.
        assert run.rejected_by() == set()


@pytest.mark.parametrize(("answer", "text"), [*failing_filters()])
def test_a_filter_that_may_fail_is_done_without(answer, text):
    with (
        Webhook(filter=answer) as broken,
        Webhook(filter={"NodeNames": ["b"]}) as extender,
        simulated(
            *two_nodes(),
            make_pod("p"),
            extenders=[
                broken.config(**NAMES, ignorable=True, **waiting_for(answer)),
                extender.config(**NAMES),
            ],
        ) as run,
    ):
        assert run.node_of() == "b"


def test_one_that_is_not_there_fails_the_attempt_and_is_tried_again():
    with Webhook(filter=echo_names) as extender:
        gone = extender.config(**NAMES)
    with simulated(make_node("a"), make_pod("p"), extenders=[gone], until_s=10.0) as run:
        assert run.message().startswith(f'Post "{gone["urlPrefix"]}/filter": ')
        queued = run.simulation.scheduler.queue.get("default/p")
        assert queued is not None
        assert queued.consecutive_errors_count > 2


def test_answers_may_be_null_or_in_any_case():
    answer = {
        "nodes": None,
        "NODENAMES": ["b"],
        "failedNodes": {"a": None},
        "error": None,
        "more": [1, {}],
    }
    with (
        Webhook(filter=answer) as extender,
        simulated(*two_nodes(), make_pod("p"), extenders=[extender.config(**NAMES)]) as run,
    ):
        assert run.node_of() == "b"
        assert run.decisions[0].diagnosis.by_extenders == {"a": unschedulable("")}


# Prioritize


def scores(**hosts: int) -> list[dict[str, Any]]:
    return [{"Host": host, "Score": score} for host, score in hosts.items()]


def test_the_scores_of_an_extender_are_added_by_its_weight():
    with (
        Webhook(prioritize=scores(a=10, b=4, elsewhere=10)) as one,
        Webhook(prioritize=scores(b=5)) as two,
        simulated(
            *two_nodes(),
            make_pod("p"),
            extenders=[one.config(weight=2, **NAMES), two.config(weight=3)],
        ) as run,
    ):
        matrix = run.decisions[0].scores
        assert matrix is not None
        assert matrix.plugins[-2:] == [one.url, two.url]
        assert matrix.weights[-2:] == [20, 30]
        assert [raw.tolist() for raw in matrix.raw[-2:]] == [[10, 4], [0, 5]]
        of_plugins = [
            normalized * weight
            for normalized, weight in zip(matrix.normalized, matrix.weights, strict=True)
        ][:-2]
        # a: 10·2·10; b: 4·2·10 + 5·3·10.
        assert (matrix.total - sum(of_plugins)).tolist() == [200, 230]
        assert run.node_of() == "b"
        assert one.questions("prioritize")[0]["NodeNames"] == ["a", "b"]
        assert len(two.questions("prioritize")[0]["Nodes"]["items"]) == 2


@pytest.mark.parametrize(
    ("weight", "node"),
    [pytest.param(1, "b", id="ten of a hundred"), pytest.param(100, "a", id="a thousand")],
)
def test_a_weight_decides_between_plugins_and_an_extender(weight, node):
    full = make_pod("full", cpu=3, memory="6Gi", node="a")
    with (
        Webhook(prioritize=scores(a=1)) as extender,
        simulated(
            *two_nodes(),
            full,
            make_pod("p", cpu="100m", memory="100Mi"),
            extenders=[extender.config(weight=weight, **NAMES)],
        ) as run,
    ):
        assert run.node_of() == node


def test_scores_alone_decide_where_no_plugin_scores():
    with (
        Webhook(prioritize=scores(b=1)) as extender,
        simulated(
            *two_nodes(),
            make_pod("p"),
            extenders=[extender.config(**NAMES)],
            profiles=[{"plugins": {"multiPoint": {"disabled": [{"name": "*"}], **_needed()}}}],
        ) as run,
    ):
        assert run.node_of() == "b"


def _needed() -> dict[str, Any]:
    return {"enabled": [{"name": "PrioritySort"}, {"name": "DefaultBinder"}]}


def test_a_host_that_is_named_twice_gets_the_sum():
    with (
        Webhook(prioritize=[*scores(a=1, b=2), *scores(a=2), None, {"host": "b"}]) as extender,
        simulated(*two_nodes(), make_pod("p"), extenders=[extender.config(**NAMES)]) as run,
    ):
        matrix = run.decisions[0].scores
        assert matrix is not None
        assert matrix.raw[-1].tolist() == [3, 2]


def test_there_is_nothing_to_prioritize_with_one_node():
    with (
        Webhook(prioritize=[]) as extender,
        simulated(make_node("a"), make_pod("p"), extenders=[extender.config()]) as run,
    ):
        assert run.node_of() == "a"
        assert extender.asked == []


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(HANG, id="hangs"),
        pytest.param(Reply(code=500), id="500"),
        pytest.param(Reply(b"<html>"), id="not JSON"),
        pytest.param({"Host": "b"}, id="no list"),
        pytest.param([["b", 1]], id="no objects"),
        pytest.param([{"Host": "b", "Score": "10"}], id="no number"),
        pytest.param([{"Host": "b", "Score": 0.5}], id="no whole number"),
        pytest.param([{"Host": "b", "Score": 2**63}], id="no int64"),
    ],
)
def test_scores_that_cannot_be_had_are_done_without(answer):
    """Even if the extender may not fail."""
    with (
        Webhook(prioritize=answer) as broken,
        Webhook(prioritize=scores(b=1)) as extender,
        simulated(
            *two_nodes(),
            make_pod("p"),
            extenders=[broken.config(**waiting_for(answer)), extender.config()],
        ) as run,
    ):
        assert run.node_of() == "b"
        matrix = run.decisions[0].scores
        assert matrix is not None
        assert broken.url not in matrix.plugins


# Bind


def test_an_extender_that_binds_is_asked_instead_of_the_plugins():
    with (
        Webhook(bind={}) as extender,
        simulated(make_node("a"), make_pod("p"), extenders=[extender.config()]) as run,
    ):
        assert extender.asked == [
            (
                "bind",
                {"PodName": "p", "PodNamespace": "default", "PodUID": "default/p", "Node": "a"},
            )
        ]
        # A simulated extender cannot reach the API, so what it says is done for it.
        assert run.node_of() == "a"
        (event,) = [event for _, event in run.simulation.api.events]
        assert event.note == "Successfully assigned default/p to a"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        pytest.param({"Error": "node is cordoned"}, "node is cordoned", id="an error"),
        pytest.param(
            Reply(code=500), "failed bind with extender at URL {url}/bind, code 500", id="500"
        ),
        pytest.param(
            HANG,
            'Post "{url}/bind": context deadline exceeded'
            " (Client.Timeout exceeded while awaiting headers)",
            id="hangs",
        ),
    ],
)
def test_a_binding_that_fails_is_undone(answer, text):
    with (
        Webhook(bind=answer) as extender,
        simulated(
            make_node("a"), make_pod("p"), extenders=[extender.config(**waiting_for(answer))]
        ) as run,
    ):
        assert run.node_of() == ""
        assert run.message() == text.format(url=extender.url)
        assert run.reason() == "SchedulerError"
        assert not run.simulation.scheduler.cluster.pods


def test_a_binding_that_may_fail_is_left_to_the_plugins():
    with (
        Webhook(bind=Reply(code=500)) as extender,
        simulated(
            make_node("a"), make_pod("p"), extenders=[extender.config(ignorable=True)]
        ) as run,
    ):
        assert run.node_of() == "a"
        assert len(extender.asked) == 1


def test_waiting_for_a_binding_can_be_done_aside():
    """As a driver does that has watches to read meanwhile."""

    async def bind_aside(extenders: Extenders) -> tuple[Status | None, bool]:
        others_went_on = asyncio.Event()
        asyncio.get_running_loop().call_soon(others_went_on.set)
        status = await extenders.bind(make_pod("p"), "a", asyncio.to_thread)
        return status, others_went_on.is_set()

    with Webhook(bind={}) as extender:
        config = config_with(extender.config())
        transport = HttpTransport(config.extenders)
        status, others_went_on = asyncio.run(bind_aside(Extenders.build(config, transport)))
        transport.close()

    assert status is not None
    assert status.ok
    assert others_went_on


# Preempt


def low(name: str, node: str, priority: int = 1) -> Any:
    return make_pod(name, cpu=3, node=node, priority=priority, grace_period_s=0)


def preempted(run: Run) -> list[str]:
    return [fact.victim.name for fact in run.simulation.summary.preempted]


HIGH = make_pod("p", cpu=3, priority=100)


def test_an_extender_with_its_own_cache_narrows_the_candidates_by_uid():
    def only_b(args):
        victims = args["NodeNameToMetaVictims"]["b"]
        return {"NodeNameToMetaVictims": {"b": victims}}

    with (
        Webhook(preempt=only_b) as extender,
        simulated(
            *two_nodes(),
            low("v1", "a"),
            low("v2", "b", priority=50),
            HIGH,
            extenders=[extender.config(**NAMES)],
        ) as run,
    ):
        (args,) = extender.questions("preempt")
        assert args["NodeNameToVictims"] is None
        assert args["NodeNameToMetaVictims"] == {
            "a": {"Pods": [{"UID": "default/v1"}], "NumPDBViolations": 0},
            "b": {"Pods": [{"UID": "default/v2"}], "NumPDBViolations": 0},
        }
        assert args["Pod"]["metadata"]["name"] == "p"
        # Left alone, the scheduler would have chosen a, whose victim matters less.
        assert preempted(run) == ["v2"]


def test_an_extender_without_a_cache_hears_of_whole_victims():
    def only_b(args):
        pods = [{"uid": pod["metadata"]["uid"]} for pod in args["NodeNameToVictims"]["b"]["Pods"]]
        return {"nodeNameToMetaVictims": {"b": {"pods": pods}}}

    with (
        Webhook(preempt=only_b) as extender,
        simulated(
            *two_nodes(),
            low("v1", "a"),
            low("v2", "b"),
            HIGH,
            extenders=[extender.config()],
        ) as run,
    ):
        (args,) = extender.questions("preempt")
        assert args["NodeNameToMetaVictims"] is None
        (victim,) = args["NodeNameToVictims"]["a"]["Pods"]
        assert victim["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "3"}
        assert preempted(run) == ["v2"]


def test_an_extender_may_want_other_victims_and_another_node():
    """It need not be one that it was asked about, as long as the pods are there."""
    answer = {
        "NodeNameToMetaVictims": {
            "c": {"Pods": [{"UID": "default/w2"}, {"UID": "default/w1"}], "NumPDBViolations": 1}
        }
    }
    pods = [low("v", "a"), make_pod("w1", node="c", priority=200), make_pod("w2", node="c")]
    with (
        Webhook(preempt=answer) as extender,
        simulated(
            make_node("a"),
            make_node("c", cpu=1),
            *pods,
            HIGH,
            extenders=[extender.config()],
        ) as run,
    ):
        result = run.decisions[0].post_filter
        assert result is not None
        candidate = result.detail.candidates["c"]
        assert [victim.name for victim in candidate.victims] == ["w2", "w1"]
        assert candidate.violations == 1


def failing_preemptions():
    at = "failed preempt with extender at URL {url}/preempt, "
    yield pytest.param(Reply(code=404), f"{at}code 404", id="404")
    yield pytest.param(
        {"NodeNameToMetaVictims": []},
        f"{at}cannot read the answer: Expected `object | null`, got `array`",
        id="no map",
    )
    yield pytest.param(
        {"NodeNameToMetaVictims": {"made-up": {"Pods": [{"UID": "default/v1"}]}}},
        'nodeinfo not found for node name "made-up"',
        id="an unknown node",
    )
    yield pytest.param(
        {"NodeNameToMetaVictims": {"b": {"Pods": [{"UID": "default/v1"}]}}},
        "extender: {url} claims to preempt pod (UID: &{{default/v1}}) on node: b,"
        " but the pod is not found on that node",
        id="a victim that is elsewhere",
    )


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        *failing_preemptions(),
        pytest.param(
            {"NodeNameToMetaVictims": {"b": {"Pods": []}}},
            'expected at least one victim pod on node "b"',
            id="no victim",
        ),
    ],
)
def test_a_preemption_that_an_extender_fails_does_not_happen(answer, text):
    with (
        Webhook(preempt=answer) as extender,
        simulated(
            *two_nodes(), low("v1", "a"), low("v2", "b"), HIGH, extenders=[extender.config(**NAMES)]
        ) as run,
    ):
        assert preempted(run) == []
        assert run.message().endswith(f" preemption: {text.format(url=extender.url)}")


@pytest.mark.parametrize(("answer", "text"), [*failing_preemptions()])
def test_a_preemption_goes_on_without_an_extender_that_may_fail(answer, text):
    with (
        Webhook(preempt=answer) as extender,
        simulated(
            *two_nodes(),
            low("v1", "a"),
            low("v2", "b"),
            HIGH,
            extenders=[extender.config(**NAMES, ignorable=True)],
        ) as run,
    ):
        assert preempted(run) == ["v1"]


def test_a_node_without_victims_is_dropped_if_the_extender_may_fail():
    def none_on_a(args):
        return {"NodeNameToMetaVictims": {**args["NodeNameToMetaVictims"], "a": {"Pods": None}}}

    with (
        Webhook(preempt=none_on_a) as extender,
        simulated(
            *two_nodes(),
            low("v1", "a"),
            low("v2", "b"),
            HIGH,
            extenders=[extender.config(**NAMES, ignorable=True)],
        ) as run,
    ):
        assert preempted(run) == ["v2"]


def test_if_no_candidate_is_left_the_next_extender_is_not_asked():
    with (
        Webhook(preempt={"NodeNameToMetaVictims": {}}) as strict,
        Webhook(preempt={}) as never,
        simulated(
            *two_nodes(),
            low("v1", "a"),
            low("v2", "b"),
            HIGH,
            extenders=[strict.config(), never.config()],
        ) as run,
    ):
        assert never.asked == []
        assert run.message().endswith(" preemption: no candidate node for preemption")


def test_what_an_extender_finds_hopeless_is_not_preempted_for():
    """Unresolvable and other words of a filter decide where preemption is tried."""
    answer = {"FailedNodes": {"a": "busy"}, "FailedAndUnresolvableNodes": {"b": "broken"}}
    nodes = [make_node("a", cpu=6), make_node("b", cpu=6)]
    with (
        Webhook(filter=answer) as extender,
        simulated(
            *nodes,
            low("v1", "a"),
            low("v2", "b"),
            HIGH,
            extenders=[extender.config(**NAMES)],
        ) as run,
    ):
        result = run.decisions[0].post_filter
        assert result is None
        # On a the pod fits without anybody leaving, as far as the plugins can tell.
        assert run.message().endswith(' preemption: expected at least one victim pod on node "a"')


# Which pods, which resources, which events


@pytest.mark.parametrize(
    ("pod", "heard"),
    [
        pytest.param(make_pod("p", cpu=1), False, id="something else"),
        pytest.param(make_pod("p", requests={"example.com/gpu": 1}), True, id="requested"),
        pytest.param(make_pod("p", limits={"example.com/gpu": 1}), True, id="limited"),
        pytest.param(
            make_pod("p", init_containers=[make_container(limits={"example.com/gpu": 1})]),
            True,
            id="in an init container",
        ),
    ],
)
def test_an_extender_that_manages_resources_hears_of_pods_that_name_one(pod, heard):
    managed = [{"name": "example.com/gpu"}, {"name": "example.com/fpga"}]
    node = make_node("a", **{"example.com/gpu": 8})
    with (
        Webhook(filter=echo_names, prioritize=[], bind={}) as extender,
        simulated(
            node,
            make_node("b", **{"example.com/gpu": 8}),
            pod,
            extenders=[extender.config(**NAMES, managedResources=managed)],
        ) as run,
    ):
        assert run.node_of() == "a"
        verbs = [verb for verb, _ in extender.asked]
        assert verbs == (["filter", "prioritize", "bind"] if heard else [])


@pytest.mark.parametrize("ignored", [True, False])
def test_a_resource_that_only_the_extender_knows_of_is_not_looked_for_on_nodes(ignored):
    managed = [{"name": "example.com/gpu", "ignoredByScheduler": ignored}]
    with (
        Webhook(filter=echo_names) as extender,
        simulated(
            make_node("a"),
            make_pod("p", requests={"example.com/gpu": 1}),
            extenders=[extender.config(**NAMES, managedResources=managed)],
        ) as run,
    ):
        assert run.node_of() == ("a" if ignored else "")


def test_a_pod_that_an_extender_rejected_is_tried_again_whatever_happens():
    open_nodes: list[str] = []
    with (
        Webhook(filter=lambda args: {"NodeNames": open_nodes}) as extender,
        simulated(
            make_node("a"), make_pod("p"), extenders=[extender.config(**NAMES)], until_s=20.0
        ) as run,
    ):
        assert run.node_of() == ""
        assert len(run.simulation.scheduler.queue.unschedulable_pods()) == 1
        open_nodes.append("a")
        # No plugin would care about such a pod.
        run.simulation.api.create(make_pod("other", node="a"))
        run.simulation.run(until_s=40.0)
        assert run.node_of() == "a"


def test_with_extenders_no_refusal_is_remembered():
    """Nobody knows what an answer depends on, so the extender is asked for every twin."""
    pods = [make_pod(f"p{i}", cpu="100m") for i in range(3)]
    with (
        Webhook(filter=echo_names) as extender,
        simulated(*two_nodes(), *pods, extenders=[extender.config(**NAMES)]) as run,
    ):
        assert run.simulation.scheduler.searches["default-scheduler"].refusals is None
        assert len(extender.asked) == 3
        # One connection for all of them.
        assert extender.connections == 1


def test_a_node_that_changed_is_sent_as_it_is():
    with (
        Webhook(filter=echo_nodes) as extender,
        simulated(make_node("a"), make_pod("p1"), extenders=[extender.config()]) as run,
    ):
        api = run.simulation.api
        api.update(make_node("a", labels={"rack": "7"}))
        api.create(make_pod("p2"))
        run.simulation.run(until_s=5.0)
        first, second = (args["Nodes"]["items"][0] for args in extender.questions("filter"))
        assert "rack" not in first["metadata"]["labels"]
        assert second["metadata"]["labels"]["rack"] == "7"


# Being reached


def test_an_extender_is_reached_over_tls():
    tls = {"caFile": str(CERTIFICATES / "authority.pem"), "serverName": "extender.test"}
    with Webhook(tls=server_tls(), filter={"NodeNames": ["b"]}) as extender:
        trusting = extender.config(**NAMES, enableHTTPS=True)
        knowing = {**trusting, "tlsConfig": tls}
        mistaken = {**trusting, "tlsConfig": {**tls, "serverName": "another.test"}}
        for config in (trusting, knowing):
            with simulated(*two_nodes(), make_pod("p"), extenders=[config]) as run:
                assert run.node_of() == "b"
        with simulated(*two_nodes(), make_pod("p"), extenders=[mistaken]) as run:
            assert "Hostname mismatch" in run.message()


def test_a_slash_at_the_end_of_the_url_is_not_doubled():
    with Webhook(filter={"NodeNames": ["b"]}) as extender:
        config = {**extender.config(**NAMES), "urlPrefix": f"{extender.url}/scheduler//"}
        with simulated(*two_nodes(), make_pod("p"), extenders=[config]) as run:
            assert run.node_of() == "b"


class FakeTransport:
    """Another way to reach them: a test plugs in whatever it wants."""

    def __init__(self) -> None:
        self.urls: list[str] = []

    def post(self, url: str, body: bytes, *, timeout_s: float, tls: object) -> Answer:
        self.urls.append(url)
        if url.endswith("/bind"):
            raise ExtenderError("no route")
        return Answer(200, json.dumps({"NodeNames": ["b"]}).encode())


def test_a_simulation_takes_any_transport():
    transport = FakeTransport()
    extender = {"urlPrefix": "http://x/", "filterVerb": "filter", "bindVerb": "bind", **NAMES}
    options = SimOptions(config=config_with(extender), transport=transport)
    with Simulation(options) as simulation:
        simulation.load([*two_nodes(), make_pod("p")])
        simulation.run(until_s=ONE_ATTEMPT_S)

        assert transport.urls == ["http://x/filter", "http://x/bind"]
        assert simulation.summary.records["default/p"].last_failure == "no route"


def test_before_an_extender_binds_the_writes_of_the_pods_status_are_settled():
    """Liveness seed 3100041, aimed: a refused pod was bound, and after that told that it fits nowhere."""
    transport, work, settled = FakeTransport(), [], []

    async def settle(pod):
        settled.append((pod.name, list(transport.urls)))

    deps = Dependencies(
        clock=FakeClock(),
        writer=SilentWriter(),
        spawn=work.append,
        registry=default_registry(),
        metrics=Metrics(),
        transport=transport,
        before_bind_by_extender=settle,
    )
    extender = {"urlPrefix": "http://x/", "filterVerb": "filter", "bindVerb": "bind", **NAMES}
    engine = Engine(config_with(extender), deps)
    engine.load([*two_nodes(), make_pod("p")])

    assert engine.schedule_one()
    for each in work:
        asyncio.run(each)

    assert settled == [("p", ["http://x/filter"])]
    assert transport.urls == ["http://x/filter", "http://x/bind"]


def test_without_a_transport_extenders_cannot_be_configured():
    deps = Dependencies(
        clock=FakeClock(),
        writer=SilentWriter(),
        spawn=discard,
        registry=default_registry(),
        metrics=Metrics(),
    )
    with pytest.raises(ConfigError, match="no transport"):
        Engine(config_with({"urlPrefix": "http://x"}), deps)


def test_simulate_asks_the_extenders_of_the_configuration(tmp_path):
    cluster, config = tmp_path / "cluster.yaml", tmp_path / "scheduler.yaml"
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
        }
        for name in "ab"
    ]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    cluster.write_text(yaml.safe_dump_all([*nodes, pod]))
    with Webhook(filter={"NodeNames": ["b"]}) as extender:
        config.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "kubescheduler.config.k8s.io/v1",
                    "kind": "KubeSchedulerConfiguration",
                    "extenders": [extender.config(**NAMES)],
                }
            )
        )
        result = CliRunner().invoke(
            cli, ["simulate", str(cluster), "--config", str(config), "-o", "json"]
        )

    assert result.exit_code == 0, result.output
    (placed,) = json.loads(result.stdout)["placements"]
    assert placed["node"] == "b"


def test_extenders_do_not_change_what_is_known_of_the_cluster():
    """Bare nodes are made for scoring alone."""
    cluster = Cluster()
    cluster.add_node(make_node("a", images={"i:1": 1}))
    cluster.add_pod(make_pod("q", node="a", cpu=1))
    snapshot = cluster.snapshot()

    (node,) = bare(snapshot, snapshot.rows)

    assert (list(node.pods), node.requested, node.node.status.images) == ([], {}, [])
    assert len(snapshot.at(0).pods) == 1
    assert snapshot.at(0).node.status.images
