"""`--kubeconfig` of the commands that answer questions: a real cluster is read, and never written."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest
from aiohttp import web

from tests.cli.clusters import pod
from tests.cli.running import mooring
from tests.live_unit.api_server import SERVER_NAME, ApiServer, Asked, ok, refusal
from tests.sim.scenarios.playing import HEAD
from tests.webhook_server import CERTIFICATES

NODES = [
    {
        "metadata": {"name": name, "uid": name},
        "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"}},
    }
    for name in ("real-1", "real-2")
]
PODS = [
    {
        "metadata": {"name": "waiting", "namespace": "shop", "uid": "w"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]},
    },
    {
        "metadata": {"name": "there", "namespace": "shop", "uid": "t"},
        "spec": {
            "nodeName": "real-1",
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
        },
        "status": {"phase": "Running"},
    },
]
QUOTAS = [{"metadata": {"name": "small", "namespace": "shop"}, "spec": {"hard": {"pods": "3"}}}]
LIMITS = [
    {
        "metadata": {"name": "defaults", "namespace": "batch"},
        "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "100"}}]},
    }
]
LISTS = {
    "/api/v1/nodes": NODES,
    "/api/v1/pods": PODS,
    "/api/v1/resourcequotas": QUOTAS,
    "/api/v1/limitranges": LIMITS,
}


class RealCluster:
    """An API server in a thread of its own, as commands run an event loop of theirs."""

    def __init__(self, folder: Path) -> None:
        self.kubeconfig = folder / "kubeconfig"
        self._ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    async def _serve(self) -> None:
        done = asyncio.Event()
        async with ApiServer(self._answer) as server:
            self._server = server
            self._write_kubeconfig(server.port)
            self._ready.set_result((asyncio.get_running_loop(), done))
            await done.wait()

    async def _answer(self, request: web.Request, asked: Asked) -> web.StreamResponse:
        if asked.path in LISTS:
            return ok({"metadata": {"resourceVersion": "5"}, "items": LISTS[asked.path]})
        if asked.path.endswith("/services"):
            return refusal(403, "Forbidden", "services is forbidden")
        return ok({"metadata": {"resourceVersion": "5"}, "items": []})

    def _write_kubeconfig(self, port: int) -> None:
        cluster = {
            "server": f"https://127.0.0.1:{port}",
            "certificate-authority": str(CERTIFICATES / "authority.pem"),
            "tls-server-name": SERVER_NAME,
        }
        contexts = [{"name": name, "context": {"cluster": "c", "user": "u"}} for name in ("x", "y")]
        self.kubeconfig.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "c", "cluster": cluster}],
                    "users": [{"name": "u", "user": {"token": "t"}}],
                    "contexts": contexts,
                    "current-context": "x",
                }
            )
        )

    def __enter__(self) -> RealCluster:
        self._thread.start()
        self._ready.result(timeout=30)
        return self

    def __exit__(self, *_: object) -> None:
        loop, done = self._ready.result()
        loop.call_soon_threadsafe(done.set)
        self._thread.join(timeout=30)

    @property
    def methods(self) -> set[str]:
        return {asked.method for asked in self._server.asked}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RealCluster]:
    with RealCluster(tmp_path) as cluster:
        yield cluster
        assert cluster.methods <= {"GET"}


def test_simulate_reads_a_real_cluster(cluster):
    result = mooring("simulate", "--kubeconfig", cluster.kubeconfig, "-o", "json")

    report = json.loads(result.stdout)
    assert result.exit_code == 1
    assert report["summary"]["nodes"] == 2
    assert report["summary"]["alreadyPlaced"] == 1
    assert [each["pod"] for each in report["pending"]] == ["shop/waiting"]
    assert "services are not included: cannot read them" in result.stderr


def test_files_are_added_to_a_real_cluster_and_win_over_it(cluster, tmp_path):
    smaller = pod("waiting", metadata=", namespace: shop", cpu="1500m") + pod("more")
    (tmp_path / "more.yaml").write_text(smaller)

    result = mooring(
        "simulate", tmp_path / "more.yaml", "--kubeconfig", cluster.kubeconfig, "-o", "json"
    )

    report = json.loads(result.stdout)
    assert result.exit_code == 0, result.output
    assert {each["pod"] for each in report["placements"]} == {"shop/waiting", "default/more"}


def test_quotas_and_limit_ranges_of_a_real_cluster_hold_for_files(cluster, tmp_path):
    """The two pods of the cluster count for its quota, and are left as they are."""
    added = "".join(pod(name, metadata=", namespace: shop", cpu="100m") for name in ("a", "b"))
    bare = "{name: bare, namespace: batch}, spec: {containers: [{name: c}]}"
    text = f"{added}\n---\n{{apiVersion: v1, kind: Pod, metadata: {bare}}}"
    (tmp_path / "more.yaml").write_text(text)

    result = mooring(
        "simulate", tmp_path / "more.yaml", "--kubeconfig", cluster.kubeconfig, "-o", "json"
    )

    report = json.loads(result.stdout)
    assert [each["object"] for each in report["notCreated"]] == ["shop/b"]
    assert "exceeded quota: small" in report["notCreated"][0]["reason"]
    assert "shop/a" in {each["pod"] for each in report["placements"]}
    assert {each["pod"] for each in report["pending"]} == {"shop/waiting", "batch/bare"}


def test_explain_reads_a_real_cluster(cluster):
    result = mooring("explain", "waiting", "--kubeconfig", cluster.kubeconfig, "--context", "y")

    assert result.exit_code == 1
    assert "Insufficient cpu" in result.stdout


def test_compare_reads_a_real_cluster_once(cluster):
    both = ("--config", "default", "--config", "default")
    result = mooring("compare", *both, "--kubeconfig", cluster.kubeconfig)

    assert result.exit_code == 0, result.output
    assert sum(asked.path == "/api/v1/nodes" for asked in cluster._server.asked) == 1


def test_capacity_reads_a_real_cluster(cluster):
    result = mooring("capacity", "--kubeconfig", cluster.kubeconfig, "--drain", "real-1")

    assert result.exit_code == 0, result.output


def test_a_scenario_is_played_on_a_real_cluster(cluster, tmp_path):
    path = tmp_path / "policy.scenario.yaml"
    path.write_text(
        f"{HEAD}steps: [{{delete: pod/shop/waiting}}, {{drain: real-1}}]\n"
        "expect: no pods on node real-1\n"
    )

    result = mooring("test", path, "--kubeconfig", cluster.kubeconfig)

    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("command", [["simulate"], ["explain", "waiting"]])
def test_an_unknown_context_is_refused(cluster, command):
    result = mooring(*command, "--kubeconfig", cluster.kubeconfig, "--context", "z")

    assert result.exit_code == 2
    assert "z" in result.stderr


@pytest.mark.parametrize("content", ["", "not: a kubeconfig", "\x00", "[]"])
def test_a_file_that_is_no_kubeconfig_is_refused(tmp_path, content):
    (tmp_path / "kubeconfig").write_text(content)

    result = mooring("simulate", "--kubeconfig", tmp_path / "kubeconfig")

    assert result.exit_code == 2, result.output
    assert "kubeconfig" in result.stderr


def test_without_the_live_extra_it_says_what_to_install(tmp_path):
    program = (
        "import sys; sys.modules['aiohttp'] = None; sys.argv = ['mooring', 'simulate',"
        f" '--kubeconfig', {str(tmp_path / 'kubeconfig')!r}]; from mooring.cli.main import main; main()"
    )

    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )

    assert result.returncode == 2
    assert "pip install 'mooring[live]'" in result.stderr
    assert "Traceback" not in result.stderr
