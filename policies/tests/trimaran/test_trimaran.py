"""The plugins of Trimaran score as those of scheduler-plugins: their tables, with their numbers."""

import json
import math
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec
import numpy as np
import pytest

from mooring.objects.meta import ObjectMeta
from mooring.plugin import CycleState
from mooring_policies.trimaran import (
    LoadVariationRiskBalancing,
    LowRiskOverCommitment,
    Peaks,
    TargetLoadPacking,
)
from mooring_policies.trimaran.beta import Beta, max_variance, probability_below
from mooring_policies.trimaran.load import (
    AVERAGE,
    CPU,
    DEVIATION,
    LATEST,
    MEMORY,
    Data,
    HostMetrics,
    Load,
    Metric,
    Window,
)
from mooring_policies.trimaran.low_risk import Committed
from mooring_policies.trimaran.objects import NODE_METRICS, NodeMetrics
from mooring_policies.trimaran.peaks import PowerModel, power_jump
from mooring_policies.trimaran.sources import MetricsServer, Unmeasured, read_load
from policies.tests.world import START, World
from tests.makers import make_container, make_node, make_pod, resources

MEGA = 1024 * 1024
NODE = make_node("node-1", cpu="1000m", memory="1Gi")
NO_CONTAINERS = make_pod("p", containers=[])


class Fixed:
    """A source that always says the same."""

    def __init__(self, load):
        self.load = load

    def current(self):
        return self.load


def load_of(*metrics, node="node-1", window=None):
    by_node = {node: HostMetrics(tuple(Metric(*metric) for metric in metrics))}
    return Load(window=window or Window(), data=Data(by_node))


def scored(policy, load, pod, *objects, args=None, node=NODE):
    it = World(policy, node, *objects, args=args)
    plugin = policy(args, it.scheduler.parts._make_handle("x"), Fixed(load))
    return plugin.score(CycleState(), pod, it.snapshot.get(node.name))


def asking(*cpus, overhead=None, memory=None):
    containers = [
        make_container(f"c{i}", cpu=f"{cpu}m", memory=memory) for i, cpu in enumerate(cpus)
    ]
    return make_pod("p", containers=containers, overhead=overhead)


# TargetLoadPacking


@pytest.mark.parametrize(
    ("load", "pod", "score"),
    [
        pytest.param(load_of((CPU, LATEST, 0)), NO_CONTAINERS, 40, id="a new node"),
        # 40 * (100 - 50) / (100 - 40) = 33.3
        pytest.param(load_of((CPU, LATEST, 50)), NO_CONTAINERS, 33, id="a hot node"),
        # 30 % + 1.5 * 1000m = 180 %
        pytest.param(load_of((CPU, LATEST, 30)), asking(1000), 0, id="too much"),
        pytest.param(Load(), NO_CONTAINERS, 0, id="no answer"),
        pytest.param(load_of((MEMORY, LATEST, 30)), NO_CONTAINERS, 0, id="no CPU"),
        # 10 % + 1.5 * 100m + 50m = 30 %: 60 * 30 / 40 + 40 = 85
        pytest.param(
            load_of((CPU, AVERAGE, 10)), asking(100, overhead={"cpu": "50m"}), 85, id="below"
        ),
    ],
)
def test_nodes_are_packed_up_to_the_target(load, pod, score):
    assert scored(TargetLoadPacking, load, pod) == score


def test_a_container_uses_its_limit_or_more_than_its_request_or_the_default():
    it = World(TargetLoadPacking, NODE, args={"defaultRequests": {"cpu": "700m"}})
    containers = [
        make_container("a", requests={"cpu": "100m"}, limits={"cpu": "300m"}),
        make_container("b", cpu="101m"),
        make_container("c"),
    ]

    # 101 * 1.5 = 151.5, and halves are rounded up.
    assert it.policy.usage_of(make_pod("p", containers=containers)) == 300 + 152 + 700


def test_pods_that_are_not_measured_yet_count_beside_the_load():
    placed = make_pod("new", cpu="100m", node="node-1")
    load = lambda end: load_of((CPU, AVERAGE, 10), window=Window(end=end))  # noqa: E731

    # The clock stands at 1000. 10 % + 15 % + 0 % against 10 %: 60 * 25 / 40 + 40 = 77.5.
    assert scored(TargetLoadPacking, load(1059), NO_CONTAINERS, placed) == 78
    assert scored(TargetLoadPacking, load(1060), NO_CONTAINERS, placed) == 55


# LoadVariationRiskBalancing


@pytest.mark.parametrize(
    ("load", "pod", "score"),
    [
        pytest.param(load_of((CPU, AVERAGE, 50)), NO_CONTAINERS, 75, id="half used"),
        pytest.param(load_of((CPU, AVERAGE, 100)), NO_CONTAINERS, 50, id="all used"),
        pytest.param(
            load_of((CPU, AVERAGE, 30), (CPU, DEVIATION, 16)),
            asking(200, memory=256 * MEGA),
            67,
            id="with a deviation",
        ),
        pytest.param(
            load_of(
                (CPU, AVERAGE, 40),
                (CPU, DEVIATION, 16),
                (MEMORY, AVERAGE, 50),
                (MEMORY, DEVIATION, 10),
            ),
            asking(100, memory=512 * MEGA),
            45,
            id="memory is worse",
        ),
        pytest.param(
            load_of(
                (CPU, AVERAGE, 80),
                (CPU, DEVIATION, 20),
                (MEMORY, AVERAGE, 25),
                (MEMORY, DEVIATION, 15),
            ),
            asking(100, memory=512 * MEGA),
            45,
            id="CPU is worse",
        ),
        pytest.param(Load(), NO_CONTAINERS, 0, id="no answer"),
    ],
)
def test_a_low_and_steady_load_scores_high(load, pod, score):
    assert scored(LoadVariationRiskBalancing, load, pod) == score


@pytest.mark.parametrize(
    ("args", "score"),
    [
        pytest.param({"safeVarianceMargin": 2}, 65, id="twice the deviation"),
        pytest.param({"safeVarianceSensitivity": 2}, 55, id="its square root"),
        pytest.param({"safeVarianceSensitivity": 0}, 75, id="its infinite power"),
        pytest.param({"safeVarianceMargin": -5}, 70, id="a wrong margin is 1"),
    ],
)
def test_the_arguments_say_how_the_deviation_counts(args, score):
    load = load_of((CPU, AVERAGE, 50), (CPU, DEVIATION, 10))
    if args == {"safeVarianceSensitivity": 2}:
        load = load_of((CPU, AVERAGE, 50), (CPU, DEVIATION, 16))

    assert scored(LoadVariationRiskBalancing, load, NO_CONTAINERS, args=args) == score


# LowRiskOverCommitment


def test_a_pod_that_asks_for_nothing_has_no_score():
    assert scored(LowRiskOverCommitment, load_of((CPU, AVERAGE, 20)), NO_CONTAINERS) == 0


NODE_A = make_node("node-A", cpu="4000m", memory="4Ki")
METRICS_A = (
    Metric(CPU, AVERAGE, 80),
    Metric(CPU, DEVIATION, 0),
    Metric(MEMORY, AVERAGE, 25),
    Metric(MEMORY, DEVIATION, 0),
)


@pytest.mark.parametrize(
    ("resource", "committed", "risk"),
    [
        # The load of 80 % is above the requests of 25 %: (0 + 1) / 2.
        (CPU, Committed(2000, 3000, 1000, 2000, 4000), 0.5),
        # Limits: (6144 - 4096) / (6144 - 2048) = 0.5; no pods yet, so the load does not count.
        (MEMORY, Committed(2048, 6144, 0, 0, 4096), 0.25),
        (CPU, Committed(4000, 5000, 3000, 4000, 4000), 1.0),
        (MEMORY, Committed(1024, 7168, 512, 6144, 4096), 0.75),
    ],
)
def test_the_risk_is_of_limits_and_of_load(resource, committed, risk):
    policy = World(LowRiskOverCommitment, NODE_A).policy

    assert policy._risk(METRICS_A, NODE_A, resource, {resource: committed}) == pytest.approx(risk)


def test_the_score_of_a_node_is_its_smaller_safety():
    placed = make_pod("q", requests={"cpu": "1", "memory": 512}, limits={"cpu": "2"}, node="node-A")
    pod = make_pod("p", requests={"cpu": "1", "memory": 512}, limits={"cpu": "4"})
    load = Load(data=Data({"node-A": HostMetrics(METRICS_A)}))

    # CPU: limits (6000 - 4000) / (6000 - 2000) = 0.5; load 80 % above 25 %: 1. Together 0.75.
    assert scored(LowRiskOverCommitment, load, pod, placed, node=NODE_A) == 25


@pytest.mark.parametrize(
    ("x", "alpha", "beta", "below"),
    [(0.5, 2, 2, 0.5), (0.0, 2, 2, 0.0), (1.0, 2, 2, 1.0), (0.25, 1, 1, 0.25), (0.5, 3, 1, 0.125)],
)
def test_the_beta_distribution(x, alpha, beta, below):
    assert Beta(alpha, beta).below(x) == pytest.approx(below, abs=1e-12)


def test_the_beta_distribution_has_the_moments_that_it_was_made_from():
    made = Beta.with_moments(0.75, 0.6)

    assert (made.alpha, made.beta) == pytest.approx((3.0, 1.0))
    assert (made.mean, made.variance) == pytest.approx((0.75, 0.0375))
    assert Beta(2, 2).density(0.5) == pytest.approx(1.5)
    assert Beta.with_moments(0.0, 0.0) is None


@pytest.mark.parametrize(("mean", "most"), [(0, 0), (1, 0), (0.5, 0.25), (-1, 0)])
def test_the_largest_variance(mean, most):
    assert max_variance(mean) == most


def test_a_load_without_deviation_is_below_a_threshold_or_not():
    assert probability_below(0.0, 0.1, 0.2) == (1.0, None)
    assert probability_below(0.2, 0.0, 0.2) == (1.0, None)
    assert probability_below(0.3, 0.0, 0.2) == (0.0, None)


# Peaks

MODEL = {"node-1": {"k0": 471.7412, "k1": -91.5, "k2": -0.0719}}


@pytest.mark.parametrize(
    ("load", "pod", "adds"),
    [
        pytest.param(load_of((CPU, LATEST, 0)), asking(1000), (0, 100), id="with a request"),
        pytest.param(load_of((MEMORY, LATEST, 0)), asking(1000), None, id="no CPU"),
        pytest.param(load_of((CPU, LATEST, 100)), asking(2000), None, id="above the capacity"),
        pytest.param(load_of((CPU, LATEST, 0), node="x"), asking(1), None, id="no such node"),
        pytest.param(Load(), asking(1000), None, id="no answer"),
    ],
)
def test_a_pod_costs_the_power_that_it_adds(load, pod, adds):
    expected = 0
    if adds is not None:
        jump = power_jump(*adds, PowerModel(**MODEL["node-1"]))
        expected = int(jump * math.pow(10, 15))

    assert scored(Peaks, load, pod, args={"NodePowerModel": MODEL}) == expected


def test_the_node_that_adds_least_scores_highest():
    policy = World(Peaks, NODE, args={"nodePowerModel": MODEL}).policy
    scores = np.array([10, 20, 40], np.int64)
    policy.normalize_scores(CycleState(), NO_CONTAINERS, scores)
    assert scores.tolist() == [100, 67, 0]

    for given, result in (([0, 0], [0, 0]), ([7, 7], [100, 100])):
        scores = np.array(given, np.int64)
        policy.normalize_scores(CycleState(), NO_CONTAINERS, scores)
        assert scores.tolist() == result


def test_models_may_stand_in_a_file_and_must_stand_somewhere(tmp_path, monkeypatch):
    path = tmp_path / "models.json"
    path.write_text(json.dumps(MODEL))
    monkeypatch.setenv("NODE_POWER_MODEL", str(path))
    World(Peaks, NODE)
    monkeypatch.delenv("NODE_POWER_MODEL")
    with pytest.raises(Exception, match="nodePowerModel: is missing"):
        World(Peaks, NODE)


# Where the load comes from


def test_a_file_has_what_load_watcher_answers(tmp_path):
    answer = {
        "timestamp": 1556987522,
        "window": {"duration": "15m", "start": 1556984522, "end": 1556985422},
        "source": "InfluxDB",
        "data": {
            "NodeMetricsMap": {
                "node-1": {
                    "metrics": [
                        {
                            "name": "cpu",
                            "type": "CPU",
                            "operator": "AVG",
                            "rollup": "15m",
                            "value": 20,
                        }
                    ],
                    "tags": {},
                    "metadata": {"dataCenter": "d"},
                }
            }
        },
    }
    path = tmp_path / "load.json"
    path.write_text(json.dumps(answer))
    it = World(TargetLoadPacking, NODE, args={"watcherAddress": f"file:{path}"})

    # 60 * 20 / 40 + 40
    assert it.policy.score(CycleState(), NO_CONTAINERS, it.snapshot.get("node-1")) == 70
    assert read_load(path.read_bytes()).window.end == 1556985422


def test_a_cluster_that_nobody_measures_uses_what_its_pods_request_or_say():
    it = World(
        TargetLoadPacking,
        make_node("n", cpu=4, memory=1000),
        make_pod("a", cpu=1, memory=100, node="n"),
        make_pod("b", cpu=1, node="n", annotations={"mooring.dev/usage-cpu": "200m"}),
    )

    load = Unmeasured(it.scheduler.parts._make_handle("x")).current()

    values = {(m.type, m.operator): m.value for m in load.of("n")}
    assert values[CPU, AVERAGE] == pytest.approx(30.0)
    assert values[MEMORY, AVERAGE] == pytest.approx(10.0)


def usage(name, cpu, memory, at=START):
    return NodeMetrics(
        api_version="metrics.k8s.io/v1beta1",
        kind="NodeMetrics",
        metadata=ObjectMeta(name=name),
        timestamp=at,
        usage=resources({"cpu": cpu, "memory": memory}),
    )


def test_the_metrics_server_says_what_nodes_use():
    """In percent of their capacity, as the latest value; nodes that it does not measure are unknown."""
    it = World(
        TargetLoadPacking,
        make_node("n", cpu=4, memory=1000),
        make_node("unmeasured", cpu=4, memory=1000),
        make_pod("a", cpu=4, memory=100, node="n"),
        usage("n", "1200m", 100),
    )

    load = MetricsServer(it.scheduler.parts._make_handle("x")).current()

    assert load.of("n") == [Metric(CPU, LATEST, 30.0), Metric(MEMORY, LATEST, 10.0)]
    assert load.of("unmeasured") is None
    assert load.window == Window(100, 1000)


def test_the_metrics_server_is_followed():
    it = World(TargetLoadPacking, make_node("n", cpu=4, memory=1000))
    load = MetricsServer(it.scheduler.parts._make_handle("x")).current()
    assert load.of("n")[0] == Metric(CPU, AVERAGE, 0.0)

    it.add(usage("n", 1, 100))
    assert load.of("n")[0] == Metric(CPU, LATEST, 25.0)
    it.scheduler.updated(usage("n", 1, 100), usage("n", 2, 100))
    assert load.of("n")[0] == Metric(CPU, LATEST, 50.0)
    it.scheduler.deleted(usage("n", 2, 100))
    assert load.of("n")[0] == Metric(CPU, AVERAGE, 0.0)


@pytest.mark.parametrize(
    ("args", "is_read"),
    [
        ({}, True),
        ({"metricProvider": {"type": "KubernetesMetricsServer"}}, True),
        ({"watcherAddress": "file:/nowhere"}, False),
    ],
)
def test_the_metrics_server_is_read_if_nothing_else_is_configured(args, is_read):
    it = World(TargetLoadPacking, args=args)

    assert (NODE_METRICS in it.framework.kinds()) == is_read


@pytest.mark.parametrize(
    ("policy", "args", "problem"),
    [
        (
            TargetLoadPacking,
            {"metricProvider": {"type": "Graphite"}},
            "invalid MetricProvider.Type",
        ),
        (TargetLoadPacking, {"defaultRequestsMultiplier": "much"}, "DefaultRequestsMultiplier"),
        (LowRiskOverCommitment, {"riskLimitWeight": {}}, "riskLimitWeight"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(policy, args, problem):
    with pytest.raises(Exception, match=problem):
        World(policy, args=args)


CERTIFICATES = Path(__file__).parents[3] / "tests" / "certificates"


class Answers(BaseHTTPRequestHandler):
    """load-watcher and Prometheus, on one port."""

    def do_GET(self):
        url = urlsplit(self.path)
        if url.path == "/watcher":
            self._answer(msgspec.json.encode(load_of(("CPU", "AVG", 20.0))))
        elif url.path == "/api/v1/query" and self.headers["Authorization"] == "Bearer secret":
            (query,) = parse_qs(url.query)["query"]
            value = "0.05" if query.startswith("stddev") else "0.2"
            result = [{"metric": {"instance": "node-1"}, "value": [1556985422.5, value]}]
            self._answer(json.dumps({"status": "success", "data": {"result": result}}).encode())
        else:
            self.send_error(404)

    def _answer(self, text):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_): ...


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_load_watcher_is_asked_over_the_network(server):
    it = World(TargetLoadPacking, NODE, args={"watcherAddress": server})

    # 60 * 20 / 40 + 40
    assert it.policy.score(CycleState(), NO_CONTAINERS, it.snapshot.get("node-1")) == 70


def test_prometheus_is_asked_with_its_token(server):
    provider = {"type": "Prometheus", "address": server, "token": "secret"}
    it = World(TargetLoadPacking, NODE, args={"metricProvider": provider})

    assert it.policy.score(CycleState(), NO_CONTAINERS, it.snapshot.get("node-1")) == 70


@pytest.mark.parametrize(("skips", "score"), [(True, 70), (False, 0)])
def test_a_certificate_that_nobody_signed_is_accepted_only_if_asked(skips, score):
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATES / "server.pem", CERTIFICATES / "server.key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            provider = {
                "type": "Prometheus",
                "address": f"https://127.0.0.1:{server.server_port}",
                "token": "secret",
                "insecureSkipVerify": skips,
            }
            it = World(TargetLoadPacking, NODE, args={"metricProvider": provider})
        finally:
            server.shutdown()
            thread.join()

    assert it.policy.score(CycleState(), NO_CONTAINERS, it.snapshot.get("node-1")) == score


@pytest.mark.parametrize("address", ["{}/elsewhere", "http://127.0.0.1:1"])
def test_a_server_that_does_not_answer_is_told_and_all_nodes_score_0(server, address, caplog):
    it = World(TargetLoadPacking, NODE, args={"watcherAddress": address.format(server)})

    assert it.policy.score(CycleState(), NO_CONTAINERS, it.snapshot.get("node-1")) == 0
    assert "the load of nodes cannot be fetched" in caplog.text
