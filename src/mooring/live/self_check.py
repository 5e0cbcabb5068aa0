"""The self-check: does the engine have what the watches showed, and did the watches show everything?

    API server ──lists, a page at a time──▶ the reflectors' objects ──▶ the engine's books
                       (b)                                    (a)

(a) The engine has every pod and node that a reflector has, in the right place, and no others. Where they
    differ, the engine gets the object again.
(b) The reflectors have the names, UIDs and versions that the API server has. Watches lag behind, so where
    they differ, the API server is asked again later. If they still differ, an event was lost, and the kind is
    listed again.

Neither check should ever find anything. Findings are logged with the object, and counted in
`mooring_self_check_repairs_total`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import NoReturn

import msgspec

from mooring.errors import ApiError, NotFound
from mooring.framework.clock import Clock, sleep
from mooring.live.client import ApiClient
from mooring.live.decoding import Identity, decode_identities, decode_identity
from mooring.live.driver import Driver
from mooring.live.reflector import Reflector, version_number
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.scheduler.engine import Engine

_LOG = logging.getLogger(__name__)

#: How often something is checked: so many objects of the books, and one page of a list.
EVERY_S = 5.0
_PODS_AT_ONCE = 2_000
_PAGE_SIZE = 500

#: How long a watch may lag behind before it counts as silent.
PATIENCE_S = 120.0
#: How many objects are asked for one by one; more than this are surely not a matter of lag.
_MOST_QUESTIONS = 20

#: Only `metadata` comes back, which is a small part of most objects.
_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"


class SelfCheck:
    """Run `run` as a task."""

    def __init__(
        self,
        driver: Driver,
        client: ApiClient,
        reflectors: Callable[[], list[Reflector]],
        list_again: Callable[[Reflector], None],
        clock: Clock,
    ) -> None:
        self._driver = driver
        self._client = client
        self._reflectors = reflectors
        self._list_again = list_again
        self._clock = clock
        #: The round under way over the pods.
        self._round: Iterator[str | Pod] = iter(())
        #: What a new list did not help: an object that cannot be read, for example.
        self._given_up: set[Identity] = set()

    async def run(self) -> NoReturn:
        while True:
            for reflector in self._reflectors():
                await self._pause()
                try:
                    await self._check_watch(reflector)
                except (ApiError, msgspec.DecodeError) as error:
                    _LOG.debug("self-check: %s: %s", reflector.kind.plural, error)
            await self._pause()

    async def _pause(self) -> None:
        await sleep(self._clock, EVERY_S)
        self.check_books()

    # (a) The books and what was told

    def check_books(self, most: int = _PODS_AT_ONCE) -> None:
        """Check all nodes and some pods; what differs is repaired."""
        by_struct = {each.kind.struct: each for each in self._reflectors() if each.synced.is_set()}
        nodes, pods = by_struct.get(Node), by_struct.get(Pod)
        if nodes is None or pods is None:
            return
        engine = self._driver.scheduler
        self._check_nodes(engine, nodes.objects)
        in_flight = {pod.uid for pod in engine.queue.in_flight_pods()}
        checked = 0
        for item in islice(self._round, most):
            checked += 1
            if isinstance(item, Pod):
                self._check_kept(engine, item, pods.objects)
            else:
                self._check_pod(engine, pods.objects.get(item), in_flight)
        if checked < most:
            kept = [*engine.cluster.pods.values(), *engine.queue.pending_pods()[0]]
            self._round = iter([*pods.objects, *kept])

    def _check_nodes(self, engine: Engine, told: dict[str, KubeObject]) -> None:
        infos = engine.cluster.infos
        for name, node in told.items():
            info = infos.get(name)
            if info is None or info.node is None or info.node.uid != node.uid:
                self._repair(f"node {name} is not in the cache", partial(self._driver.added, node))
        for name, info in list(infos.items()):
            gone = info.node
            if gone is not None and name not in told:
                problem = f"node {name} is in the cache, but gone"
                self._repair(problem, partial(self._driver.deleted, gone))

    def _check_pod(self, engine: Engine, pod: KubeObject | None, in_flight: set[str]) -> None:
        """A pod that the reflector has is on its node, or in the queue, or being tried."""
        if not isinstance(pod, Pod) or pod.finished:
            return
        cluster = engine.cluster
        placed = cluster.pods.get(pod.uid)
        if pod.node_name:
            is_right = placed is not None and placed.node_name == pod.node_name
            if not is_right or cluster.is_assumed(pod):
                self._repair_pod(pod, f"is on node {pod.node_name}, but not in the cache")
        elif pod.scheduler_name in engine.frameworks and not pod.terminating:
            is_tried = placed is not None or pod.uid in in_flight or pod.uid in engine.binding
            if not is_tried and pod.key not in engine.queue:
                self._repair_pod(pod, "waits for a node, but not in the queue")

    def _check_kept(self, engine: Engine, pod: Pod, told: dict[str, KubeObject]) -> None:
        """The reflector has every pod of the cache and the queue, unless the pod is assumed."""
        known = told.get(pod.key)
        if (known is not None and known.uid == pod.uid) or engine.cluster.is_assumed(pod):
            return
        placed, queued = engine.cluster.pods.get(pod.uid), engine.queue.get(pod.key)
        if placed is not None:
            problem = f"pod {pod.key} ({pod.uid}) is in the cache, but gone"
            self._repair(problem, partial(self._driver.deleted, placed))
        if queued is not None and queued.uid == pod.uid:
            problem = f"pod {pod.key} ({pod.uid}) is in the queue, but gone"
            self._repair(problem, partial(self._driver.deleted, queued.pod))

    def _repair_pod(self, pod: Pod, problem: str) -> None:
        self._repair(f"pod {pod.key} ({pod.uid}) {problem}", partial(self._driver.added, pod))
        for fact in self._driver.journal.story(pod.key):
            _LOG.error("self-check: %s: %s", pod.key, fact)

    def _repair(self, problem: str, repair: Callable[[], None]) -> None:
        _LOG.error("self-check: %s; repairing it", problem)
        self._driver.parts.metrics.repaired("books")
        repair()

    # (b) The reflectors and the API server

    async def _check_watch(self, reflector: Reflector) -> None:
        if not reflector.synced.is_set():
            return
        listed, version = await self._listed(reflector)
        if self._differ(reflector, listed, version):
            until = self._clock.now() + PATIENCE_S
            while reflector.newest < version and self._clock.now() < until:
                await self._pause()
        found = [
            identity
            for identity in self._differ(reflector, listed, version)[:_MOST_QUESTIONS]
            if identity not in self._given_up and await self._is_wrong(reflector, identity)
        ]
        if found:
            names = ", ".join(identity.key for identity in found)
            _LOG.error(
                "self-check: the watch of %s lost events of %s; listing again",
                reflector.kind.plural,
                names,
            )
            self._given_up.update(found)
            self._driver.parts.metrics.repaired("watch")
            self._list_again(reflector)

    async def _listed(self, reflector: Reflector) -> tuple[dict[str, Identity], int]:
        """Every object in the API server, and the version of the list."""
        listed: dict[str, Identity] = {}
        params = {**reflector.selection(), "limit": str(_PAGE_SIZE)}
        while True:
            path = reflector.kind.path
            text = await self._client.request("GET", path, params=params, accept=_METADATA_ONLY)
            page = decode_identities(text)
            listed.update((item.metadata.key, item.metadata) for item in page.items or ())
            if not page.metadata.next_page:
                return listed, version_number(page.metadata.resource_version)
            params["continue"] = page.metadata.next_page
            await self._pause()

    def _differ(
        self, reflector: Reflector, listed: dict[str, Identity], version: int
    ) -> list[Identity]:
        """What was listed and is not known so or newer, and what is known for long and was not listed."""
        found = []
        for key, identity in listed.items():
            known = reflector.objects.get(key)
            if known is None or _is_older(known, identity):
                found.append(identity)
        for key, known in reflector.objects.items():
            meta = known.metadata
            if key not in listed and version_number(meta.resource_version) <= version:
                found.append(Identity(meta.name, meta.namespace, meta.uid, meta.resource_version))
        return found

    async def _is_wrong(self, reflector: Reflector, identity: Identity) -> bool:
        """Ask for this one object, and compare it with what is known when the answer is there."""
        path = reflector.kind.path_of(identity.namespace, identity.name)
        try:
            stored = decode_identity(await self._client.request("GET", path)).metadata
        except NotFound:
            known = reflector.objects.get(identity.key)
            # Perhaps it is just gone. If it was gone when all were listed, the watch should know.
            return (
                known is not None and known.metadata.resource_version == identity.resource_version
            )
        known = reflector.objects.get(identity.key)
        if known is None:
            return stored == identity
        # A pod that has finished is not listed any more, but still there.
        return not _is_newer(known, identity) and _is_older(known, stored)


def _is_newer(known: KubeObject, identity: Identity) -> bool:
    return version_number(known.metadata.resource_version) > version_number(
        identity.resource_version
    )


def _is_older(known: KubeObject, identity: Identity) -> bool:
    return version_number(known.metadata.resource_version) < version_number(
        identity.resource_version
    )
