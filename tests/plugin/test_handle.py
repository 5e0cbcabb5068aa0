"""What the scheduler offers to plugins: dry runs, nominations, metrics, a cluster to read."""

from __future__ import annotations

import pytest

from mooring.live.metrics import LiveMetrics
from mooring.objects.kinds import Namespace
from mooring.objects.pod import Pod
from mooring.plugin import (
    SUCCESS,
    Code,
    CycleState,
    Handle,
    NodeStatuses,
    Nomination,
    PluginError,
    PluginMetrics,
    PostFilterResult,
    Status,
    unschedulable,
    wait,
)
from mooring.sim.build_report import build_report
from tests.makers import make_namespace, make_node, make_pod
from tests.plugin.worlds import engine_with, simulation_with


class Observer:
    """Takes part nowhere that matters, and has a handle."""

    name = "Observer"

    def __init__(self, args: object, handle: Handle) -> None:
        self.handle = handle

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        pass


class Displaces:
    """A PostFilter that says without which single pod another one would fit; it evicts nobody."""

    name = "Displaces"

    def __init__(self, args: object, handle: Handle) -> None:
        self._handle = handle
        self.found: list[tuple[str, str]] = []

    def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status | None]:
        dry_run = self._handle.dry_run(state, pod)
        for node in statuses.nodes_with(Code.UNSCHEDULABLE):
            for other in list(node.pods.values()):
                trial = dry_run.on_node(node)
                trial.remove(other)
                if trial.filter().ok:
                    self.found.append((node.name, other.name))
                    trial.add(other)
                    assert not trial.filter().ok
        return None, unschedulable("only looking")


def test_a_plugin_tries_a_node_without_some_of_its_pods():
    engine = engine_with(
        Displaces,
        objects=(
            make_node("a", cpu=2),
            make_pod("small", node="a", cpu="500m"),
            make_pod("large", node="a", cpu="1500m"),
            make_pod("waits", cpu=1),
        ),
    )
    framework = engine.scheduler.frameworks["default-scheduler"]

    engine.scheduler.schedule_one()

    assert framework.plugins["Displaces"].plugin.found == [("a", "large")]
    engine.scheduler.validate()


def test_rows_are_tried_without_their_pods():
    seen = []

    class Rows:
        name = "Rows"

        def __init__(self, args: object, handle: Handle) -> None:
            self._handle = handle

        def post_filter(self, state, pod, statuses):
            rows = statuses.rows_with(Code.UNSCHEDULABLE)
            trial = self._handle.dry_run(state, pod).on_rows()
            trial.columns.requested[:, trial.columns.row_of["b"]] = 0
            refused: dict[int, Status] = {}
            left = trial.refuse(rows, refused)
            names = self._handle.cluster.columns.names_of
            seen.append((names(left), [names(slice(0, 9))[row] for row in refused]))
            return None, unschedulable("only looking")

    engine = engine_with(
        Rows,
        objects=(
            make_node("a", cpu=4),
            make_node("b", cpu=4),
            make_pod("on-a", node="a", cpu=4),
            make_pod("on-b", node="b", cpu=4),
            make_pod("waits", cpu=2),
        ),
    )
    engine.scheduler.schedule_one()

    assert seen == [(["b"], ["a"])]
    engine.scheduler.validate()


def test_pods_that_are_taken_out_of_the_cluster_are_back_afterwards_in_their_order():
    engine = engine_with(
        Observer,
        objects=(
            make_node("a"),
            *(make_pod(name, node="a") for name in ("p", "q", "r")),
        ),
    )
    handle = _handle_of(engine)
    p, q, _ = pods = list(handle.cluster.infos["a"].pods.values())

    with handle.cluster_trial() as trial:
        trial.take_out(pods)
        trial.put_back([p])
        trial.take_out([p])
        trial.put_back([q])
        assert [pod.name for pod in handle.cluster.pods.values()] == ["q"]

    assert sorted(pod.name for pod in handle.cluster.infos["a"].pods.values()) == ["p", "q", "r"]
    engine.scheduler.validate()


def test_the_view_of_the_cluster_does_not_let_plugins_change_it():
    engine = engine_with(Observer, objects=(make_node("a"), make_pod("p", node="a")))
    cluster = _handle_of(engine).cluster

    for change in ("add_pod", "remove_pod", "assume_pod", "forget_pod", "add_node", "take_out"):
        assert not hasattr(cluster, change)
    with pytest.raises(TypeError):
        del cluster.infos["a"]
    with pytest.raises(TypeError):
        cluster.pods["other"] = make_pod("other")
    with pytest.raises(PluginError, match="a plugin cannot add blue"):
        cluster.listers.put(make_namespace("blue"))
    with pytest.raises(PluginError, match="a plugin cannot remove blue"):
        cluster.listers.drop(make_namespace("blue"))
    assert [info.name for info in cluster.snapshot()] == ["a"]


def test_the_view_of_the_cluster_shows_objects_that_come_later_and_tells_of_them():
    engine = engine_with(Observer)
    listers, heard = _handle_of(engine).cluster.listers, []
    listers.follow(Namespace, heard.append)
    before = listers.generation

    engine.handlers.added(make_namespace("blue", {"team": "blue"}))

    assert listers.get(Namespace, "blue").labels == {"team": "blue"}
    assert heard == ["blue"]
    assert listers.generation > before


def test_a_nominated_pod_counts_on_its_node_for_pods_of_lower_priority():
    engine = engine_with(
        Observer, objects=(make_node("a", cpu=1), make_pod("important", cpu=1, priority=10))
    )
    handle = _handle_of(engine)
    handle.nominate(handle.observed_pod("default/important"), "a")

    engine.handlers.added(low := make_pod("low", cpu=1))

    assert [pod.name for pod in handle.nominated_pods("a")] == ["important"]
    assert engine.scheduler.decide(low).node_name is None
    handle.nominate(handle.observed_pod("default/important"), "")
    assert engine.scheduler.decide(low).node_name == "a"


class Counts:
    name = "Counts"

    def __init__(self, args: object, handle: Handle) -> None:
        metrics = handle.metrics
        self._seen = metrics.counter("counts_seen_total", "Pods that were filtered.", "size")
        self._last = metrics.gauge("counts_last", "The priority of the last pod.")
        self._cpu = metrics.histogram("counts_cpu", "CPU of pods.", bounds=(500, 1000))

    def pre_filter(self, state, pod, snapshot):
        self._seen.inc("large" if pod.requests["cpu"] > 1000 else "small")
        self._last.set(pod.priority)
        self._cpu.observe(pod.requests["cpu"])
        return SUCCESS


_PODS = (
    make_node("a", cpu=8),
    make_pod("p", cpu=1, priority=3),
    make_pod("q", cpu="1500m", priority=2),
    make_pod("r", cpu="200m", priority=1),
)


def test_metrics_of_a_plugin_are_part_of_a_simulation_report():
    with simulation_with(Counts, objects=_PODS) as simulation:
        simulation.run()
        metrics = build_report(simulation).to_data()["pluginMetrics"]

    by_name = {metric["name"]: metric["values"] for metric in metrics}
    assert by_name["counts_seen_total"] == [
        {"labels": {"size": "small"}, "value": 2},
        {"labels": {"size": "large"}, "value": 1},
    ]
    assert by_name["counts_last"] == [{"labels": {}, "value": 1}]
    (cpu,) = by_name["counts_cpu"]
    assert cpu["value"] == {"buckets": {"500": 1, "1000": 2}, "count": 3, "sum": 2700.0}


def test_a_report_without_plugin_metrics_does_not_mention_them():
    with simulation_with(objects=_PODS) as simulation:
        simulation.run()
        assert "pluginMetrics" not in build_report(simulation).to_data()


def test_metrics_of_plugins_are_shown_to_prometheus():
    metrics, shown = PluginMetrics(), LiveMetrics()
    shown.show_plugin_metrics(metrics)
    metrics.counter("mine_total", "Mine.", "kind").inc("a", by=2)
    metrics.gauge("level", "Level.").set(7)
    metrics.histogram("took", "Took.", bounds=(1, 2)).observe(1.5)

    text = shown.exposition().decode()

    assert 'mine_total{kind="a"} 2.0' in text
    assert "level 7.0" in text
    assert 'took_bucket{le="1"} 0.0' in text
    assert 'took_bucket{le="+Inf"} 1.0' in text
    assert "took_sum 1.5" in text


def test_two_plugins_share_a_metric_of_one_name_and_cannot_disagree_about_it():
    metrics = PluginMetrics()

    assert metrics.counter("n_total", "N.") is metrics.counter("n_total", "N.")
    with pytest.raises(PluginError, match="exists as a counter"):
        metrics.gauge("n_total", "N.")
    with pytest.raises(PluginError, match="does not begin with"):
        metrics.gauge("scheduler_pending_pods", "Not mine.")
    with pytest.raises(PluginError, match="ends in _total"):
        metrics.counter("n", "N.")
    with pytest.raises(PluginError, match="label values"):
        metrics.counter("n_total", "N.").inc("extra")
    with pytest.raises(PluginError, match="cannot go down"):
        metrics.counter("n_total", "N.").inc(by=-1)


def _handle_of(engine):
    """The handle of the only profile, as a plugin gets it."""
    return engine.scheduler.frameworks["default-scheduler"].plugins["Observer"].plugin.handle


def test_a_nomination_is_what_a_post_filter_returns():
    class Nominates:
        name = "Nominates"

        def post_filter(self, state, pod, statuses):
            return PostFilterResult(Nomination("a")), SUCCESS

    engine = engine_with(
        Nominates,
        Observer,
        objects=(make_node("a", cpu=1), make_pod("p", cpu=2, preemption_policy="Never")),
    )
    engine.scheduler.schedule_one()

    assert [pod.name for pod in _handle_of(engine).nominated_pods("a")] == ["p"]


@pytest.mark.parametrize("seconds", [0, 0.001])
def test_a_simulation_ends_though_permit_lets_pods_go_as_soon_as_they_wait(seconds):
    """Each pod that is rejected frees a place, for which the others are tried at once."""

    class Impatient:
        name = "Impatient"

        def permit(self, state, pod, node_name):
            return wait("for a friend"), seconds

    with simulation_with(Impatient, objects=_PODS) as simulation:
        simulation.run()

        assert not simulation.summary.placements
        assert simulation.loop.time() < 60
