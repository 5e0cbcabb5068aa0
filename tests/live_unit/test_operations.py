"""What probes and scrapers are told, over a real socket on the loopback interface."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from mooring.config import default_config, load_config
from mooring.live.operations import (
    HANDLERS_NOT_SYNCED,
    SHUTTING_DOWN,
    Endpoints,
    HealthHistory,
    Listen,
    ListenError,
    OperationsServer,
    configz,
    health_checks,
    health_text,
)


class State:
    election: str | None = None
    stopping = False
    synced = True


@pytest.fixture
def state() -> State:
    return State()


@pytest.fixture
def server(state: State) -> Iterator[OperationsServer]:
    checks = health_checks(
        leader_election=lambda: state.election,
        shutdown=lambda: SHUTTING_DOWN if state.stopping else None,
        handlers_synced=lambda: None if state.synced else HANDLERS_NOT_SYNCED,
    )
    endpoints = Endpoints(checks, lambda: b"up 1\n", lambda: b"pods 1\n", default_config)
    serving = OperationsServer(endpoints, Listen(port=0))
    serving.start()
    yield serving
    serving.close()


def get(server: OperationsServer, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/shutdown"])
def test_all_is_well(server, path):
    assert get(server, path) == (200, "ok")


def test_verbose_lists_the_checks(server):
    assert get(server, "/readyz?verbose") == (
        200,
        "[+]leaderElection ok\n[+]shutdown ok\n[+]sched-handler-sync ok\nreadyz check passed\n",
    )


def test_a_process_that_is_stopping_is_alive_but_not_ready(server, state):
    state.stopping = True

    assert get(server, "/livez") == (200, "ok")
    assert get(server, "/readyz") == (
        500,
        "[+]leaderElection ok\n[-]shutdown failed: reason withheld\n[+]sched-handler-sync ok\n"
        "readyz check failed\n",
    )
    assert get(server, "/readyz?exclude=shutdown") == (200, "ok")


def test_a_single_check_gives_its_reason(server, state):
    state.synced = False

    assert get(server, "/readyz/sched-handler-sync") == (
        500,
        "internal server error: handlers are not fully synchronized\n",
    )
    assert get(server, "/readyz/unheard-of")[0] == 404


def test_a_leader_that_does_not_renew_is_unhealthy(server, state):
    state.election = "failed election to renew leadership on lease kube-scheduler"

    assert get(server, "/healthz")[0] == 500
    assert get(server, "/livez")[0] == 200


def test_metrics_and_configuration_are_served(server):
    assert get(server, "/metrics") == (200, "up 1\n")
    status, body = get(server, "/configz")
    assert status == 200
    assert json.loads(body)["componentconfig"]["kind"] == "KubeSchedulerConfiguration"


def test_without_election_healthz_is_a_ping():
    checks = health_checks(
        leader_election=None, shutdown=lambda: None, handlers_synced=lambda: None
    )

    assert list(checks["healthz"]) == ["ping"]
    assert list(checks["readyz"]) == ["shutdown", "sched-handler-sync"]


def test_a_check_that_raises_has_failed():
    def broken() -> str | None:
        raise RuntimeError("no")

    status, _ = health_text(
        "livez", {"ping": broken}, HealthHistory(), verbose=False, excluded=frozenset()
    )
    assert status == 500


def test_a_port_that_is_taken_is_an_error_with_advice(server):
    other = OperationsServer(Endpoints({}, bytes, bytes, default_config), Listen(port=server.port))

    with pytest.raises(ListenError, match="--port"):
        other.start()


def test_private_keys_are_not_shown():
    config = load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "extenders": [
                {
                    "urlPrefix": "https://example.test",
                    "filterVerb": "filter",
                    "enableHTTPS": True,
                    "tlsConfig": {"certData": "Y2VydA==", "keyData": "c2VjcmV0"},
                }
            ],
        }
    )

    assert b"c2VjcmV0" not in configz(config)


def test_what_pods_ask_for_has_a_page_of_its_own(server):
    assert get(server, "/metrics/resources") == (200, "pods 1\n")


def test_the_answers_of_checks_are_counted(server, state):
    get(server, "/readyz")
    state.synced = False
    get(server, "/readyz?exclude=shutdown")

    lines = get(server, "/metrics/slis")[1].splitlines()

    sync = 'name="sched-handler-sync"'
    assert f'kubernetes_healthcheck{{{sync},type="readyz"}} 0.0' in lines
    assert f'kubernetes_healthchecks_total{{{sync},status="success",type="readyz"}} 1.0' in lines
    assert f'kubernetes_healthchecks_total{{{sync},status="error",type="readyz"}} 1.0' in lines
    shutdown = 'kubernetes_healthchecks_total{name="shutdown",status="success",type="readyz"}'
    assert f"{shutdown} 1.0" in lines
