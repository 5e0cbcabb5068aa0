"""One control plane for all live tests, wiped after each; `make test-live` builds it first."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from control_plane import MOORING, Binaries, ControlPlane, ControlPlaneError
from plain_client import Json, PlainClient

from tests.live.cluster import Cluster
from tests.live.objects import DEFAULT_SCHEDULER
from tests.live.process import Mooring, configuration
from tests.live.proxy import Proxy

DEPLOY = Path(__file__).parents[2] / "deploy"

#: "required" where a control plane is expected: a test run that could not test must not pass.
REQUIRED = os.environ.get("MOORING_LIVE") == "required"


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    try:
        binaries = Binaries.find()
    except ControlPlaneError as error:
        if REQUIRED:
            pytest.fail(str(error))
        pytest.skip(str(error))
    with ControlPlane(binaries=binaries) as control_plane:
        # Mooring does everything here with the rights that it is shipped with.
        control_plane.kubectl("apply", "--kustomize", DEPLOY / "base")
        yield control_plane


@pytest.fixture(scope="session")
def client(control_plane: ControlPlane) -> Iterator[PlainClient]:
    with control_plane.client() as client:
        yield client


@pytest.fixture
def cluster(control_plane: ControlPlane, client: PlainClient) -> Iterator[Cluster]:
    cluster = Cluster(control_plane, client)
    yield cluster
    cluster.wipe()


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[Proxy]:
    with Proxy(cluster.control_plane) as proxy:
        yield proxy


#: Makes and starts an instance of mooring: its configuration, its name, what it reaches the API server by.
StartMooring = Callable[..., Mooring]


@pytest.fixture
def start_mooring(
    cluster: Cluster, proxy: Proxy, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[StartMooring]:
    """Every instance ends before the proxy does.

    Otherwise one that connects again while the proxy ends leaves a half-open connection behind, which a
    later test is blamed for.
    """
    instances: list[Mooring] = []

    def start(
        config: Json | None = None,
        *,
        name: str = "mooring",
        through: Proxy | None = None,
        ready: bool = True,
        arguments: Sequence[str] = (),
    ) -> Mooring:
        url = None if through is None else through.url
        kubeconfig = cluster.control_plane.kubeconfig(MOORING, server=url)
        config = config or configuration(DEFAULT_SCHEDULER)
        mooring = Mooring(name, tmp_path, kubeconfig, config, arguments)
        instances.append(mooring)
        mooring.start()
        if ready:
            mooring.wait_until_ready()
        return mooring

    yield start
    for mooring in instances:
        mooring.resume()
        mooring.kill()
        # Shown by pytest where the test failed.
        print(f"the log of {mooring.name} ends with\n{mooring.log_tail()}")


@pytest.fixture
def mooring(start_mooring: StartMooring) -> Mooring:
    """The only scheduler, with the default configuration."""
    return start_mooring()
