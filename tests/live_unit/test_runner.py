"""The driver keeps going, whatever happens to a task, and stops when it is told to."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import ClassVar

import pytest
from msgspec.structs import replace

from mooring.config import default_config, load_config
from mooring.errors import ApiError, CredentialsError, Forbidden, NamespaceTerminating
from mooring.framework.interface import PreFlight
from mooring.framework.status import SUCCESS
from mooring.live.connection import Connection
from mooring.live.dump import dump, log_dump
from mooring.live.operations import Listen
from mooring.live.reload import ConfigSource
from mooring.live.runner import RunOptions, run
from mooring.objects.pod import Pod
from mooring.scheduler.choosing import SeededSpread
from tests.live_unit.loop_api import Cluster
from tests.makers import make_node, make_pod


async def test_pods_are_bound_and_confirmed_by_the_watch():
    cluster = Cluster(make_node("a"), make_pod("p"))
    cluster.driver.start()

    await cluster.until(lambda: cluster.node_of("p") == "a")
    await cluster.until(lambda: not cluster.driver.scheduler.cluster.assumed_pods())

    assert 'result="scheduled"} 1.0' in cluster.metrics.exposition().decode()
    cluster.driver.close()


async def test_nothing_is_placed_before_the_start_nor_after_the_stop():
    cluster = Cluster(make_node("a"), make_pod("early"))
    await cluster.turns()
    assert cluster.node_of("early") == ""

    cluster.driver.start()
    await cluster.until(lambda: cluster.node_of("early") == "a")
    cluster.driver.stop()
    cluster.api.create(make_pod("late"))
    await cluster.turns()

    assert cluster.node_of("late") == ""
    cluster.driver.close()


async def test_nothing_is_placed_without_the_lease():
    leads = True
    cluster = Cluster(make_node("a"), may_write=lambda: leads)
    cluster.driver.start()
    leads = False

    cluster.api.create(make_pod("p"))
    await cluster.turns()

    assert cluster.node_of("p") == ""
    cluster.driver.close()


async def test_the_loop_has_its_turn_while_many_pods_wait():
    loop = asyncio.get_running_loop()

    def slowly() -> bool:
        """Half of the driver's turn passes before each pod, so at most two pods fit in one."""
        until = loop.time() + 0.001
        while loop.time() < until:
            pass
        return True

    pods = [make_pod(f"p{i}", cpu=0) for i in range(50)]
    cluster = Cluster(make_node("a", pods=1000), *pods, may_write=slowly)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.ensure_future(count())
    cluster.driver.start()
    await cluster.until(lambda: all(cluster.node_of(pod.name) for pod in pods))
    counting.cancel()

    assert turns >= 25
    cluster.driver.close()


class Holds:
    """Reserves something for a pod, and has something to do before its binding."""

    name = "Holds"
    held: ClassVar[list[str]] = []

    def reserve(self, state, pod, node_name):
        self.held.append(pod.name)

    def unreserve(self, state, pod, node_name):
        if pod.name in self.held:
            self.held.remove(pod.name)

    def pre_bind_pre_flight(self, state, pod, node_name):
        return PreFlight()

    def pre_bind(self, state, pod, node_name):
        return SUCCESS


HOLDS = load_config(
    {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Holds"}]}}}],
    }
)


class Crash:
    """A writer with a bug, which shows once, at the first write of a kind."""

    def __init__(self, api, write: str) -> None:
        self._api = api
        self._write = write

    def __getattr__(self, name):
        if name == self._write:
            self._write = ""
            raise KeyError("a bug")
        return getattr(self._api, name)


@pytest.mark.parametrize(
    "write",
    [
        pytest.param("patch_pod_status", id="outside of plugins"),
        pytest.param("bind", id="in a plugin"),
    ],
)
async def test_a_pod_whose_binding_crashed_leaves_nothing_reserved_and_is_tried_again(
    caplog, write
):
    """The nomination before PreBind is written by the scheduler itself, outside of any plugin call."""
    holds = type("Holds", (Holds,), {"held": []})
    cluster = Cluster(
        make_node("a"),
        make_pod("p"),
        writer=lambda api: Crash(api, write),
        plugins={"Holds": holds},
        config=HOLDS,
    )
    cluster.driver.start()
    scheduler = cluster.driver.scheduler
    await cluster.until(lambda: "a bug" in caplog.text)
    await cluster.until(lambda: not scheduler.cluster.assumed_pods())
    assert holds.held == []
    assert not scheduler.binding

    scheduler.queue.activate({"default/p": cluster.api.get(Pod, "default/p")})
    await cluster.until(lambda: cluster.node_of("p") == "a")

    assert holds.held == ["p"]
    assert cluster.fatal == []
    cluster.driver.close()


class Stumbles(SeededSpread):
    """A tie-break with a bug, which shows once."""

    crashes = 1

    def keys(self, snapshot):
        if self.crashes:
            self.crashes -= 1
            raise RuntimeError("a bug")
        return super().keys(snapshot)

    def __call__(self, rows, snapshot):
        if self.crashes:
            self.crashes -= 1
            raise RuntimeError("a bug")
        return super().__call__(rows, snapshot)


async def test_a_crash_in_the_attempt_itself_gives_the_pod_back(caplog):
    cluster = Cluster(make_node("a"), make_node("b"), make_pod("p"), tie_break=Stumbles(1))
    scheduler = cluster.driver.scheduler
    cluster.driver.start()
    await cluster.until(lambda: "ended unexpectedly" in caplog.text)
    scheduler.queue.activate({"default/p": cluster.api.get(Pod, "default/p")})

    await cluster.until(lambda: cluster.node_of("p"))

    assert cluster.fatal == []
    cluster.driver.close()


class Slow:
    """A writer whose binds wait until they are let go."""

    def __init__(self, api) -> None:
        self._api = api
        self.go = asyncio.Event()

    async def bind(self, pod, node_name):
        await self.go.wait()
        await self._api.bind(pod, node_name)

    def __getattr__(self, name):
        return getattr(self._api, name)


async def test_draining_waits_for_bindings_under_way():
    slow: list[Slow] = []

    def make(api):
        slow.append(Slow(api))
        return slow[0]

    cluster = Cluster(make_node("a"), make_pod("p"), writer=make)
    cluster.driver.start()
    await cluster.until(lambda: cluster.driver.tasks)
    cluster.driver.stop()
    asyncio.get_running_loop().call_soon(slow[0].go.set)

    assert await cluster.driver.drain(5.0) == (0, 0)
    assert cluster.node_of("p") == "a"
    cluster.driver.close()


async def test_draining_gives_up_on_bindings_that_take_too_long():
    cluster = Cluster(make_node("a"), make_pod("p"), writer=Slow)
    cluster.driver.start()
    await cluster.until(lambda: cluster.driver.tasks)
    cluster.driver.stop()

    assert await cluster.driver.drain(0.0) == (1, 0)
    assert cluster.node_of("p") == ""
    cluster.driver.close()


async def test_a_handler_that_fails_is_logged_and_the_next_change_is_heard(caplog):
    cluster = Cluster()
    pod = make_pod("p")

    cluster.driver.updated(make_node("x"), pod)
    cluster.driver.added(make_node("a"))

    assert len(cluster.driver.scheduler.cluster.snapshot()) == 1
    cluster.driver.close()


async def test_a_dump_tells_what_waits_and_what_is_where(caplog):
    cluster = Cluster(make_node("a", cpu=1), make_pod("fits", cpu=1), make_pod("big", cpu=64))
    cluster.driver.start()
    await cluster.until(lambda: cluster.driver.scheduler.queue.counts().unschedulable == 1)
    await cluster.until(lambda: not cluster.driver.scheduler.cluster.assumed_pods())

    said = dump(cluster.driver.scheduler, cluster.driver.journal)

    assert said["problems"] == []
    assert said["queueSummary"] == "activeQ:0; backoffQ:0; unschedulablePods:1"
    assert said["nodes"][0]["pods"] == ["default/fits"]
    (big,) = said["queue"]["unschedulable"]
    assert big["rejectedBy"] == ["NodeResourcesFit"]
    assert [each["what"] for each in big["story"]] == ["decided", "failed"]
    assert big["story"][1]["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    fits = cluster.driver.journal.story("default/fits")
    assert [(each.what, each.node) for each in fits] == [("decided", "a"), ("bound", "a")]
    assert fits[0].number == fits[0].feasible == 1
    with caplog.at_level("INFO"):
        log_dump(cluster.driver.scheduler, cluster.driver.journal)
    assert "activeQ:0; backoffQ:0; unschedulablePods:1" in caplog.text
    cluster.driver.close()


async def test_a_bind_that_the_api_refuses_is_tried_again():
    class Refusing(Slow):
        calls = 0

        async def bind(self, pod, node_name):
            self.calls += 1
            if self.calls == 1:
                raise ApiError("not now")
            await self._api.bind(pod, node_name)

    cluster = Cluster(make_node("a"), make_pod("p"), writer=Refusing)
    cluster.driver.start()

    await cluster.until(lambda: cluster.node_of("p") == "a")
    cluster.driver.close()


@pytest.mark.parametrize(
    ("error", "warns"),
    [
        pytest.param(NamespaceTerminating("no new content"), False, id="its namespace goes away"),
        pytest.param(Forbidden("no"), True, id="nobody may bind"),
    ],
)
async def test_a_bind_that_fails_is_a_warning_unless_the_pod_goes_away(error, warns, caplog):
    class Refusing(Slow):
        calls = 0

        async def bind(self, pod, node_name):
            type(self).calls += 1
            raise error

    cluster = Cluster(make_node("a"), make_pod("p"), writer=Refusing)
    with caplog.at_level("INFO"):
        cluster.driver.start()
        await cluster.until(lambda: cluster.driver.scheduler.queue.counts().backoff)
    cluster.driver.close()

    assert Refusing.calls
    assert (
        bool([record for record in caplog.records if "p is not scheduled" in record.message])
        == warns
    )


async def nowhere() -> Connection:
    """An address where nobody listens."""
    return Connection("http://127.0.0.1:9")


def options() -> RunOptions:
    return RunOptions(source=ConfigSource(), listen=Listen(port=0))


@pytest.mark.parametrize(
    ("leader_elect", "code"),
    [
        pytest.param(True, 0, id="with election"),
        pytest.param(False, 1, id="without election, as the reference"),
    ],
)
async def test_an_api_server_that_does_not_answer_is_waited_for_until_asked_to_stop(
    leader_elect, code, caplog
):
    config = default_config()
    election = replace(config.leader_election, leader_elect=leader_elect)
    running = asyncio.ensure_future(
        run(options(), replace(config, leader_election=election), nowhere)
    )
    async with asyncio.timeout(10):
        while "is not ready" not in caplog.text:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    os.kill(os.getpid(), signal.SIGTERM)

    assert await running == code
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


async def test_credentials_that_cannot_be_had_end_the_start():
    async def connect() -> Connection:
        raise CredentialsError("no such file")

    with pytest.raises(CredentialsError):
        await run(options(), default_config(), connect)


@pytest.fixture(autouse=True)
def quiet(caplog):
    caplog.set_level("INFO")
