"""What an operator does to a running mooring: stop it, reload it, ask it."""

from __future__ import annotations

import json
import signal
import ssl
import urllib.error
import urllib.request

import pytest
from control_plane import ADMIN, HOST, KUBE_SCHEDULER, User
from plain_client import Json

from tests.live import objects
from tests.live.cluster import Cluster, node_name
from tests.live.conftest import DEPLOY, StartMooring
from tests.live.objects import DEFAULT_SCHEDULER
from tests.live.process import SHORT_LEASE, Mooring, configuration
from tests.live.proxy import Proxy, binds
from tests.live.waiting import hold_for, wait_for

pytestmark = pytest.mark.live


def send(mooring: Mooring, number: signal.Signals) -> None:
    assert mooring.process is not None
    mooring.process.send_signal(number)


def test_asked_to_stop_it_finishes_what_it_began(
    cluster: Cluster, start_mooring: StartMooring, proxy: Proxy
) -> None:
    cluster.add(objects.node("node-a"))
    config = configuration(DEFAULT_SCHEDULER, leaderElection=SHORT_LEASE)
    mooring = start_mooring(config, through=proxy)
    held = proxy.hold(binds)
    cluster.add(*objects.pods("web", 5))
    wait_for(lambda: len(held.met) == 5, "five binds are on their way")

    send(mooring, signal.SIGTERM)
    wait_for(lambda: mooring.read("readyz") != "ok", "it is no longer ready")
    cluster.add(objects.pod("late"))
    hold_for(lambda: mooring.running, "it waits for its binds", seconds=1)
    proxy.release(held)

    wait_for(lambda: not mooring.running, "it ended")
    assert mooring.exit_code == 0
    assert cluster.wait_until_bound(*(f"web-{number}" for number in range(5)))["late"] == ""
    assert cluster.wait_for_event("web-4", "Scheduled")
    lease = cluster.client.get("Lease", "mooring", "kube-system")
    assert not lease["spec"].get("holderIdentity"), "the lease is released"


def test_a_changed_configuration_is_used_and_a_bad_one_refused(
    cluster: Cluster, start_mooring: StartMooring
) -> None:
    mooring = start_mooring(configuration("one"))
    cluster.add(objects.node("node-a"))
    cluster.add(objects.pod("waits", scheduler="one", nodeSelector={"disk": "ssd"}))
    cluster.add(objects.pod("early", scheduler="two"))
    cluster.wait_until_refused("waits")

    mooring.config.write_text("profiles: {broken")
    send(mooring, signal.SIGHUP)
    hold_for(lambda: not node_name(cluster.pod("early")), "nothing has changed", seconds=1)
    mooring.check()
    cluster.add(objects.pod("meanwhile", scheduler="one"))
    cluster.wait_until_bound("meanwhile")

    mooring.configure(configuration("one", "two"))
    send(mooring, signal.SIGHUP)
    cluster.wait_until_bound("early")
    assert [profile["schedulerName"] for profile in configz(mooring)["profiles"]] == ["one", "two"]

    # Who waited before the change still waits, and goes.
    cluster.client.patch("Node", "node-a", {"metadata": {"labels": {"disk": "ssd"}}})
    cluster.wait_until_bound("waits", within_s=30)
    cluster.check_books()


def configz(mooring: Mooring) -> Json:
    document: Json = json.loads(mooring.read("configz"))["componentconfig"]
    return document


def test_its_metrics_count_what_it_did(cluster: Cluster, mooring: Mooring) -> None:
    cluster.add(objects.node("node-a", cpu="1"))
    cluster.add(*objects.pods("web", 4, cpu="250m"), objects.pod("big", cpu="2"))
    cluster.wait_until_bound(*(f"web-{number}" for number in range(4)))
    cluster.wait_until_refused("big")

    def attempts(result: str) -> float:
        return mooring.metric("scheduler_schedule_attempts_total", result=result)

    wait_for(lambda: attempts("scheduled") == 4, "four are counted as scheduled")
    assert attempts("unschedulable") >= 1
    wait_for(
        lambda: mooring.metric("scheduler_pending_pods", queue="unschedulable") == 1,
        "one is counted as unschedulable",
    )
    wait_for(lambda: mooring.metric("scheduler_cache_size", type="nodes") == 1, "one node")
    assert mooring.metric("scheduler_pod_scheduling_attempts_count") == 4
    assert mooring.metric("scheduler_framework_extension_point_duration_seconds_count") > 0


def test_what_pods_ask_for_is_told_by_whoever_leads(cluster: Cluster, mooring: Mooring) -> None:
    cluster.add(objects.node("node-a"), objects.pod("web", cpu="250m", memory="1Gi"))
    cluster.wait_until_bound("web")

    wait_for(
        lambda: 'node="node-a",pod="web"' in mooring.read("metrics/resources"),
        "the page tells of the pod on its node",
    )
    assert 'resource="cpu",scheduler="default-scheduler",unit="cores"} 0.25' in mooring.read(
        "metrics/resources"
    )
    assert 'kubernetes_healthcheck{name="sched-handler-sync",type="readyz"}' in mooring.read(
        "metrics/slis"
    )


def test_metrics_are_shown_only_to_those_who_may_read_them(
    cluster: Cluster, start_mooring: StartMooring
) -> None:
    control_plane = cluster.control_plane
    control_plane.kubectl("apply", "--filename", DEPLOY / "authorized" / "auth_delegator.yaml")
    certificate = control_plane.ca_file
    mooring = start_mooring(
        ready=False,
        arguments=[
            "--authorize",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={certificate.with_suffix('.key')}",
        ],
    )
    tls = ssl.create_default_context(cafile=certificate)

    def status(path: str, user: User | None = None) -> int:
        headers = {"Authorization": f"Bearer {control_plane.token(user)}"} if user else {}
        request = urllib.request.Request(f"https://{HOST}:{mooring.port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=10, context=tls) as answer:
                code: int = answer.status
                return code
        except urllib.error.HTTPError as error:
            with error:
                return error.code
        except OSError:
            return 0

    wait_for(lambda: status("/readyz") == 200, "it is ready, and says so to anybody")
    assert status("/metrics") == 401
    assert status("/metrics", KUBE_SCHEDULER) == 403
    assert status("/metrics", ADMIN) == 200
    assert status("/configz", KUBE_SCHEDULER) == 403
    reader = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "reads-metrics"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "system:monitoring",
        },
        "subjects": [{"kind": "User", "name": KUBE_SCHEDULER.name}],
    }
    bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    cluster.client.request("POST", bindings, reader)
    wait_for(lambda: status("/metrics", KUBE_SCHEDULER) == 200, "the right was given")
    cluster.client.request("DELETE", f"{bindings}/reads-metrics")


def test_it_dumps_its_queue_and_its_nodes_when_asked(cluster: Cluster, mooring: Mooring) -> None:
    cluster.add(objects.node("node-a"), objects.pod("picky", nodeSelector={"disk": "ssd"}))
    cluster.add(objects.pod("web"))
    cluster.wait_until_bound("web")
    cluster.wait_until_refused("picky")

    send(mooring, signal.SIGUSR2)

    wait_for(
        lambda: all(name in mooring.log.read_text() for name in ("node-a", "picky")),
        "the log tells of the node and of the pod that waits",
    )
