"""What a report says of a simulation."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec
import pytest

from mooring.config import load_config
from mooring.errors import InputError
from mooring.framework.cycle_state import CycleState
from mooring.framework.status import Status, wait
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.plugins.default_preemption import Candidate, PreemptionDetail
from mooring.plugins.default_preemption.choice import best
from mooring.plugins.default_preemption.node_choice import reason_for_node
from mooring.plugins.registry import default_registry
from mooring.scheduler.journal import TIMELINE
from mooring.sim.build_report import simulate_objects
from mooring.sim.report import SimulationReport, Usage
from mooring.sim.simulation import SimOptions
from tests.makers import make_node, make_pod

RUN_SECONDS = "mooring.dev/run-seconds"


def report_on(*objects: KubeObject, **options: object) -> SimulationReport:
    until_s = options.pop("until_s", None)
    return simulate_objects(objects, SimOptions(keeps=TIMELINE, **options), until_s=until_s)


def told(report: SimulationReport, pod: str) -> list[tuple[float, str]]:
    assert report.timeline is not None
    return [(each.at_s, each.what.value) for each in report.timeline if each.pod == pod]


# Who is where


def test_a_placed_pod_is_reported_with_its_node_and_its_time():
    report = report_on(make_node("n"), make_pod("p"))

    (placed,) = report.placements
    assert (placed.pod, placed.node, placed.at_s, placed.state) == (
        "default/p",
        "n",
        0.0,
        "running",
    )
    assert report.all_placed


def test_a_pod_that_came_with_its_node_is_counted_and_not_placed():
    report = report_on(make_node("n"), make_pod("p", node="n"))

    assert report.placements == ()
    assert report.already_placed == 1
    assert report.all_placed


def test_a_pod_that_runs_to_its_end_is_finished_and_makes_room_for_the_next():
    runs = {RUN_SECONDS: "90"}
    report = report_on(
        make_node("n", cpu=1),
        make_pod("first", cpu=1, annotations=runs),
        make_pod("second", cpu=1, annotations=runs),
    )

    assert [(each.pod, each.at_s) for each in report.finished] == [
        ("default/first", 90.0),
        ("default/second", 180.0),
    ]
    assert [(placed.at_s, placed.state, placed.ended_at_s) for placed in report.placements] == [
        (0.0, "finished", 90.0),
        (90.0, "finished", 180.0),
    ]
    assert told(report, "default/second") == [
        (0.0, "queued"),
        (0.0, "failed"),
        (90.0, "bound"),
        (180.0, "finished"),
    ]
    assert report.elapsed_s == 180.0


def test_until_ends_the_run_at_that_time():
    report = report_on(make_node("n"), make_pod("p", annotations={RUN_SECONDS: "90"}), until_s=30.0)

    assert report.elapsed_s == 30.0
    assert report.finished == ()


def test_a_pod_whose_end_is_not_shown_before_the_run_ends_is_running():
    """Its timer and the end of the run go off at once, so no watch tells of it any more."""
    report = report_on(make_node("n"), make_pod("p", annotations={RUN_SECONDS: "30"}), until_s=30.0)

    assert report.finished == ()
    assert [placed.state for placed in report.placements] == ["running"]


# Who waits, and why


def test_a_pod_that_fits_nowhere_is_pending_with_its_fit_error():
    report = report_on(make_node("n", cpu=1), make_pod("p", cpu=2))

    (pending,) = report.pending
    assert pending.state == "unschedulable"
    assert pending.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert (pending.attempts, pending.since_s, pending.plugins) == (1, 0.0, ("NodeResourcesFit",))
    assert not report.all_placed


def test_the_message_of_a_pending_pod_is_whole_where_the_event_is_cut_short():
    nodes = [
        make_node(f"n{i:03}", taints=[f"a-rather-long-key-{i:03}=value:NoSchedule"])
        for i in range(40)
    ]
    refusals = [make_pod("p", requests={f"example.com/resource-{i:03}": 1 for i in range(40)})]
    report = report_on(*nodes, *refusals, make_node("open"))

    (pending,) = report.pending
    assert len(pending.message) > 1024
    assert not pending.message.endswith(" ...")


def test_a_gated_pod_is_pending_with_the_names_of_its_gates():
    report = report_on(make_node("n"), make_pod("p", gates=["example.com/quota", "b"]))

    (pending,) = report.pending
    assert (pending.state, pending.attempts) == ("gated", 0)
    assert pending.message == "waiting for scheduling gates: example.com/quota, b"
    assert told(report, "default/p") == [(0.0, "gated")]


def test_a_pod_for_another_scheduler_is_counted_apart():
    report = report_on(make_node("n"), make_pod("p", scheduler="another"))

    assert not report.pending
    assert not report.all_placed
    (other,) = report.other_schedulers
    assert other.state == "ignored"
    assert other.message == "no profile has the scheduler name 'another'"
    assert report.to_data()["summary"]["otherSchedulers"] == 1
    assert report.to_data()["otherSchedulers"][0]["pod"] == "default/p"


def test_without_nodes_every_pod_is_pending():
    report = report_on(make_pod("p"))

    (pending,) = report.pending
    assert pending.message == "no nodes available to schedule pods"
    assert report.utilisation == ()
    assert report.totals == ()


class Explodes:
    name = "Explodes"

    def filter(self, state: CycleState, pod: Pod, node: object) -> Status:
        raise RuntimeError("boom")


def test_a_plugin_that_raises_is_named_in_the_message_of_the_pod():
    report = report_on(make_node("n"), make_pod("p"), **with_plugin(Explodes), until_s=60.0)

    (pending,) = report.pending
    assert pending.state == "error"
    assert "Explodes" in pending.message
    assert "boom" in pending.message


class HoldsBack:
    name = "HoldsBack"

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        return wait(), 30.0


def test_a_pod_that_waits_on_permit_says_for_whom_and_fails_when_the_time_is_up():
    report = report_on(make_node("n"), make_pod("p"), **with_plugin(HoldsBack), until_s=31.0)

    assert report.timeline is not None
    waiting = next(each for each in report.timeline if each.what == "waiting")
    assert (waiting.node, waiting.message) == ("n", "for Permit of HoldsBack")
    assert (30.0, "failed") in told(report, "default/p")


def test_a_pod_that_still_waits_on_permit_at_the_end_is_pending():
    report = report_on(make_node("n"), make_pod("p"), **with_plugin(HoldsBack), until_s=10.0)

    (pending,) = report.pending
    assert pending.state == "waiting"
    assert pending.message == "waiting for Permit of HoldsBack to be bound to n"


def test_pods_that_hold_each_other_back_for_ever_do_not_keep_a_run_from_ending():
    """Each rejection frees a place, for which the other pod is tried again, and again."""
    report = report_on(make_node("n"), make_pod("p"), make_pod("q"), **with_plugin(HoldsBack))

    assert len(report.pending) == 2
    assert 1200 < report.elapsed_s < 2400


def test_a_pod_that_only_meets_errors_does_not_keep_a_run_from_ending():
    report = report_on(make_node("n"), make_pod("p"), **with_plugin(Explodes))

    (pending,) = report.pending
    assert pending.attempts == 10


def with_plugin(plugin: type) -> dict[str, object]:
    registry = default_registry()
    registry.add(plugin.__name__, plugin)
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": plugin.__name__}]}}}],
    }
    return {"config": load_config(config), "registry": registry}


# How full the nodes are


def test_utilisation_counts_what_pods_ask_for_on_each_node_and_on_all():
    report = report_on(
        make_node("a", cpu=4, memory="8Gi", pods=10),
        make_node("b", cpu=4, memory="8Gi", pods=10),
        make_pod("p", node="a", cpu="1500m", memory="2Gi"),
    )

    assert [each.node for each in report.utilisation] == ["a", "b"]
    assert report.utilisation[0].usages == (
        Usage("cpu", "millicores", 1500, 4000),
        Usage("memory", "bytes", 2 * 2**30, 8 * 2**30),
        Usage("pods", "count", 1, 10),
    )
    assert report.totals[0] == Usage("cpu", "millicores", 1500, 8000)
    assert report.utilisation[0].usages[0].percent == 37.5


def test_further_resources_are_reported_where_a_pod_wants_them():
    gpu = "nvidia.com/gpu"
    node = make_node("n", ephemeral_storage="100Gi", **{gpu: 4})
    pod = make_pod("p", requests={gpu: 5})

    without = report_on(node, make_pod("plain"))
    with_gpu = report_on(node, pod)

    assert [usage.resource for usage in without.totals] == ["cpu", "memory", "pods"]
    assert with_gpu.totals[-1] == Usage(gpu, "count", 0, 4)


def test_nothing_is_no_share_of_nothing():
    assert Usage("cpu", "millicores", 0, 0).percent is None


# Preemption


def test_a_preemption_says_who_had_to_go_for_whom_and_where():
    report = report_on(
        make_node("a", cpu=2),
        make_node("b", cpu=2),
        make_pod("low", node="a", cpu=2, priority=1),
        make_pod("lower", node="b", cpu=2, priority=0),
        make_pod("high", cpu=2, priority=100),
    )

    (preemption,) = report.preemptions
    assert (preemption.preemptor, preemption.priority, preemption.node) == (
        "default/high",
        100,
        "b",
    )
    assert [(victim.pod, victim.priority) for victim in preemption.victims] == [
        ("default/lower", 0)
    ]
    assert preemption.why == "least important victims, of 2 nodes that could make room"
    assert told(report, "default/lower") == [
        (0.0, "preempted"),
        (0.0, "terminating"),
        (30.0, "deleted"),
    ]
    assert told(report, "default/high")[-1] == (30.0, "bound")


def started(minute: int) -> datetime:
    return datetime(2026, 1, 1, 0, minute, tzinfo=UTC)


def victim(name: str, priority: int = 0, minute: int = 0) -> Pod:
    return make_pod(name, node="n", priority=priority, started=started(minute))


@pytest.mark.parametrize(
    ("candidates", "why"),
    [
        pytest.param(
            [Candidate("a", (victim("v"),), 0)],
            "the only node where evicting pods makes room",
            id="one candidate",
        ),
        pytest.param(
            [Candidate("a", (victim("v"),), 1), Candidate("b", (victim("w", 50),), 0)],
            "fewest violations of disruption budgets, of 2 nodes that could make room",
            id="budgets come first",
        ),
        pytest.param(
            [Candidate("a", (victim("v", 2),), 0), Candidate("b", (victim("w", 1),), 0)],
            "least important victims, of 2 nodes that could make room",
            id="then the highest priority",
        ),
        pytest.param(
            [
                Candidate("a", (victim("u", 2), victim("v", 1)), 0),
                Candidate("b", (victim("w", 2), victim("x", 0)), 0),
            ],
            "fewest and least important victims, of 2 nodes that could make room",
            id="then the sum of priorities",
        ),
        pytest.param(
            [
                Candidate("a", (victim("v", minute=1),), 0),
                Candidate("b", (victim("w", minute=2),), 0),
            ],
            "victims that started last, of 2 nodes that could make room",
            id="then the start",
        ),
        pytest.param(
            [Candidate("b", (victim("v"),), 0), Candidate("a", (victim("w"),), 0)],
            "first by name of 2 equally good nodes",
            id="then the name",
        ),
    ],
)
def test_the_reason_for_a_node_is_the_first_thing_that_sets_it_apart(candidates, why):
    now = started(59)
    tied = best(candidates, now)
    detail = PreemptionDetail(
        candidates={each.node_name: each for each in candidates},
        rejected={},
        victims=tied[0].victims,
        nominated_node=tied[0].node_name,
    )

    assert reason_for_node(detail, now) == why


# The data


def test_a_report_as_data_is_plain_json_with_the_spelling_of_kubernetes():
    report = report_on(make_node("n", cpu=1), make_pod("p"), make_pod("q", cpu=2))

    data = msgspec.json.decode(msgspec.json.encode(report.to_data()))

    assert data["summary"]["placed"] == 1
    assert data["placements"][0]["atSeconds"] == 0.0
    assert data["pending"][0]["sinceSeconds"] == 0.0
    assert data["utilisation"]["total"]["pods"] == {
        "requested": 1,
        "allocatable": 110,
        "percent": 0.9,
        "unit": "count",
    }
    assert [each["what"] for each in data["timeline"]] == ["queued", "queued", "bound", "failed"]


def test_without_being_asked_for_there_is_no_timeline():
    report = simulate_objects([make_node("n"), make_pod("p")])

    assert report.timeline is None
    assert "timeline" not in report.to_data()


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_a_simulation_repeats_itself(seed):
    objects = [make_node(f"n{i}") for i in range(5)] + [make_pod(f"p{i}") for i in range(20)]

    assert report_on(*objects, seed=seed) == report_on(*objects, seed=seed)


# Run times


@pytest.mark.parametrize("text", ["soon", "", "-1", "nan", "1e9", "5m", " 5"])
def test_a_run_time_that_is_no_number_of_seconds_is_refused_by_name_of_the_pod(text):
    with pytest.raises(InputError) as caught:
        report_on(make_node("n"), make_pod("p", annotations={RUN_SECONDS: text}))

    (problem,) = caught.value.problems
    assert problem.startswith(f"pod default/p: metadata.annotations[{RUN_SECONDS}]: {text!r}")


def test_every_bad_run_time_gets_a_line():
    pods: Iterable[Pod] = [make_pod(f"p{i}", annotations={RUN_SECONDS: "soon"}) for i in range(3)]

    with pytest.raises(InputError) as caught:
        report_on(*pods)

    assert len(caught.value.problems) == 3
