"""The self-check finds what was lost on the way, and repairs it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from mooring.errors import NotFound
from mooring.live.reflector import Reflector
from mooring.live.resources import PODS
from mooring.live.self_check import EVERY_S, SelfCheck
from mooring.objects.kinds import KIND_OF
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.sim.clock import VirtualClock, VirtualLoop
from tests.live_unit.api_server import JumpingClock
from tests.live_unit.loop_api import Cluster
from tests.makers import make_node, make_pod


class Told:
    """A reflector that has told of these objects."""

    def __init__(self, kind: Any, *objects: KubeObject) -> None:
        self.kind = kind
        self.objects = {obj.key: obj for obj in objects}
        self.synced = asyncio.Event()
        self.synced.set()
        self.newest = 100

    def selection(self) -> dict[str, str]:
        return {}


class Api:
    """Answers with identities."""

    def __init__(self, *objects: KubeObject, version: int = 100) -> None:
        self.objects = {obj.key: obj for obj in objects}
        self.version = version

    async def request(self, method: str, path: str, **_: Any) -> bytes:
        await asyncio.sleep(0)
        if path == PODS.path:
            living = [obj for obj in self.objects.values() if obj is not FINISHED]
            items = [_document(obj) for obj in living]
            meta = {"resourceVersion": str(self.version)}
            return msgspec.json.encode({"metadata": meta, "items": items})
        for obj in self.objects.values():
            if PODS.path_of(obj.namespace, obj.name) == path:
                return msgspec.json.encode(_document(obj))
        raise NotFound("gone", status=404)


def _document(obj: KubeObject) -> dict[str, Any]:
    meta = obj.metadata
    return {
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
        }
    }


def check_of(cluster: Cluster, *reflectors: Told) -> SelfCheck:
    nothing: Any = None
    return SelfCheck(
        cluster.driver, nothing, lambda: list(reflectors), lambda _: None, JumpingClock()
    )


NODE = make_node("n").stored_as("1")
WAITING = make_pod("w").stored_as("2")
PLACED = make_pod("p", node="n").stored_as("3")
#: Not selected by lists and watches of pods.
FINISHED = make_pod("p", node="n", phase="Succeeded").stored_as("60")


def repairs(cluster: Cluster, what: str) -> float:
    found = cluster.metrics.registry.get_sample_value(
        "mooring_self_check_repairs_total", {"what": what}
    )
    assert found is not None
    return found


def looks(cluster: Cluster, *objects: KubeObject) -> None:
    """Two rounds: the first look begins with an empty one."""
    nodes = [obj for obj in objects if isinstance(obj, Node)]
    pods = [obj for obj in objects if not isinstance(obj, Node)]
    check = check_of(cluster, Told(KIND_OF[Node], *nodes), Told(PODS, *pods))
    check.check_books()
    check.check_books()


async def test_books_that_are_right_are_left_alone():
    cluster = Cluster(NODE, WAITING, PLACED)
    await cluster.turns()

    looks(cluster, NODE, WAITING, PLACED)

    assert repairs(cluster, "books") == 0


@pytest.mark.parametrize(
    ("lose", "words"),
    [
        pytest.param(lambda e: e.queue.delete(WAITING), "not in the queue", id="a pod that waits"),
        pytest.param(
            lambda e: e.cluster.remove_pod(PLACED), "p (default/p) is on node n", id="a placed pod"
        ),
        pytest.param(
            lambda e: e.cluster.remove_node("n"), "node n is not in the cache", id="a node"
        ),
        pytest.param(
            lambda e: e.cluster.add_pod(make_pod("ghost", node="n")), "but gone", id="a ghost"
        ),
        pytest.param(
            lambda e: e.queue.add(make_pod("ghost")),
            "in the queue, but gone",
            id="a ghost that waits",
        ),
        pytest.param(lambda e: e.cluster.add_node(make_node("m")), "node m is", id="a ghost node"),
    ],
)
async def test_what_the_books_have_lost_or_kept_is_repaired_and_told(
    lose: Callable[[Any], None], words: str, caplog
):
    cluster = Cluster(NODE, WAITING, PLACED)
    await cluster.turns()
    engine = cluster.driver.scheduler
    lose(engine)

    looks(cluster, NODE, WAITING, PLACED)

    assert repairs(cluster, "books") == 1
    assert words in caplog.text
    assert [pod.name for pod in engine.queue.pending_pods()[0]] == ["w"]
    assert set(engine.cluster.pods) == {PLACED.uid}
    assert [name for name, info in engine.cluster.infos.items() if info.node] == ["n"]
    engine.validate()


def watch_is_listed_again(told: list[KubeObject], stored: list[KubeObject], **api: Any) -> bool:
    """Whether the self-check has the pods listed again, within ten minutes."""
    loop = VirtualLoop()
    again: list[Reflector] = []

    async def run() -> None:
        cluster = Cluster(NODE)
        reflector: Any = Told(PODS, *told)
        client: Any = Api(*stored, **api)
        clock = VirtualClock(loop, 1_767_225_600.0)
        check = SelfCheck(cluster.driver, client, lambda: [reflector], again.append, clock)
        running = loop.create_task(check.run())
        await asyncio.sleep(600.0)
        running.cancel()

    assert EVERY_S < 600.0
    random.seed(1)
    try:
        loop.run_until_complete(run())
    finally:
        loop.close()
    return bool(again)


@pytest.mark.parametrize(
    ("told", "stored", "is_lost"),
    [
        pytest.param([WAITING], [WAITING], False, id="the same"),
        pytest.param([WAITING], [], True, id="a deletion"),
        pytest.param([], [WAITING], True, id="an addition"),
        pytest.param([WAITING], [WAITING.stored_as("50")], True, id="an update"),
        pytest.param([PLACED], [FINISHED], True, id="the end of a pod"),
        pytest.param([WAITING.stored_as("150")], [WAITING], False, id="told after the list"),
        pytest.param([WAITING.stored_as("150")], [], False, id="created after the list"),
    ],
)
def test_events_that_a_watch_has_lost_are_noticed(told, stored, is_lost):
    assert watch_is_listed_again(told, stored) is is_lost
