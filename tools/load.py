"""Load with kills: many pods on many nodes of a real API server, while schedulers and the server are killed.

    make test-load                                        20,000 pods, 5,000 nodes, ten minutes of kills
    make test-load ARGS='--nodes 200 --pods 800 --minutes 1 --seed 7'

Two instances of mooring elect a leader. While pods are created, deleted and created again under one name,
a scheduler is killed or stopped for a while, or the API server is killed, every few seconds. Afterwards the
state in etcd is read: no pod is lost, none was bound twice, no node has more than it offers.
"""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import click
from control_plane import MOORING, ControlPlane
from plain_client import ApiFailure, Json, PlainClient

from tests.live import objects
from tests.live.cluster import Cluster, node_name
from tests.live.process import SHORT_LEASE, Mooring, configuration

T = TypeVar("T")

DEPLOY = Path(__file__).parents[1] / "deploy"

#: How long nothing may be bound after the last kill before the rest counts as lost.
_STALL_S = 180.0
#: How long one request is repeated while the API server is away.
_REPEAT_S = 120.0
_LOOK_EVERY_S = 20.0


class Failure(Exception):
    """What must not happen, or an API server that stays away."""


class Load:
    def __init__(self, plane: ControlPlane, folder: Path, seed: int) -> None:
        self.plane = plane
        self.rng = random.Random(seed)
        self.kills: Counter[str] = Counter()
        #: The names that exist in the end, and how often each was created.
        self.wanted: Counter[str] = Counter()
        #: By UID: the node that a look has shown.
        self._placed: dict[str, str] = {}
        config = configuration(
            "default-scheduler",
            leaderElection=SHORT_LEASE,
            clientConnection={"qps": 500, "burst": 500},
        )
        kubeconfig = plane.kubeconfig(MOORING)
        self.schedulers = [Mooring(name, folder, kubeconfig, config) for name in ("a", "b")]
        #: Set when the other threads are to end.
        self._over = threading.Event()

    # What is there

    def create_nodes(self, client: PlainClient, count: int) -> None:
        sizes = [("2", "4Gi"), ("4", "8Gi"), ("8", "32Gi")]
        nodes = []
        for number in range(count):
            cpu, memory = self.rng.choice(sizes)
            zone = f"zone-{number % 3}"
            nodes.append(objects.node(f"node-{number}", cpu=cpu, memory=memory, zone=zone))
        client.create_all(nodes)

    def feed(self, client: PlainClient, pods: int, seconds: float, seed: int) -> None:
        """Create the pods, as evenly as the API server lets; one of twenty is created again.

        Four pods a node take two thirds of what the nodes offer.
        """
        rng = random.Random(f"pods {seed}")
        started = time.monotonic()
        for number in range(pods):
            ahead_s = started + seconds * number / pods - time.monotonic()
            if self._over.wait(max(ahead_s, 0.0)):
                return
            name = f"pod-{number}"
            cpu, memory = rng.choice(["500m", "750m", "1"]), rng.choice(["100Mi", "500Mi"])
            self._create(client, objects.pod(name, cpu=cpu, memory=memory))
            if rng.random() < 0.05:
                again = f"pod-{rng.randrange(number + 1)}"
                self._delete(client, again)
                self._create(client, objects.pod(again, cpu="500m"))

    def _create(self, client: PlainClient, document: Json) -> None:
        repeat(lambda: _unless(409, lambda: client.create(document)))
        self.wanted[document["metadata"]["name"]] += 1

    def _delete(self, client: PlainClient, name: str) -> None:
        repeat(lambda: _unless(404, lambda: client.delete("Pod", name)))
        repeat(lambda: _until_gone(client, name))

    # What breaks

    def break_things(self, seconds: float, *, beside: Sequence[Future[None]]) -> None:
        """Kill and start again, until the time is over or one of the other threads has failed.

        For the main thread alone: what a thread has started is killed when the thread ends.
        """
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(self.rng.uniform(3.0, 20.0))
            scheduler = self.rng.choice(self.schedulers)
            match self.rng.choice(["kill", "kill", "pause", "server", "both"]):
                case "kill":
                    self._kill(scheduler)
                case "pause":
                    self.kills["scheduler paused"] += 1
                    scheduler.pause()
                    time.sleep(self.rng.uniform(1.0, 12.0))
                    scheduler.resume()
                case "server":
                    self._kill_server()
                case _:
                    self._kill(scheduler)
                    self._kill_server()
            self._revive()
            for task in beside:
                if task.done():
                    task.result()

    def _kill(self, scheduler: Mooring) -> None:
        self.kills["scheduler killed"] += 1
        scheduler.kill()

    def _kill_server(self) -> None:
        self.kills["API server killed"] += 1
        self.plane.restart_api_server()

    def _revive(self) -> None:
        """One that lost its lease has ended by itself."""
        for scheduler in self.schedulers:
            if not scheduler.running:
                time.sleep(self.rng.uniform(0.0, 3.0))
                scheduler.start()

    # What is true

    def keep_looking(self, client: PlainClient) -> None:
        while not self._over.wait(_LOOK_EVERY_S):
            pods, bound = self.look(client)
            tell(f"{len(pods)} pods, {bound} bound; {dict(self.kills)}")

    def end(self) -> None:
        self._over.set()

    def look(self, client: PlainClient) -> tuple[list[Json], int]:
        """All pods as etcd has them, and how many have a node. Fails if one has moved."""
        pods = repeat(lambda: client.list("Pod"))
        for pod in pods:
            node, uid = node_name(pod), pod["metadata"]["uid"]
            before = self._placed.setdefault(uid, node) if node else self._placed.get(uid, "")
            if before != node:
                raise Failure(
                    f"{pod['metadata']['name']} ({uid}) was on {before}, and is on {node!r}"
                )
        return pods, sum(bool(node_name(pod)) for pod in pods)

    def settle(self, client: PlainClient) -> None:
        """Wait until every pod is bound."""
        most, since = -1, time.monotonic()
        while True:
            pods, bound = self.look(client)
            tell(f"{bound} of {len(pods)} bound, {len(self.wanted)} wanted")
            if bound == len(pods) == len(self.wanted):
                return
            if bound > most:
                most, since = bound, time.monotonic()
            elif time.monotonic() - since > _STALL_S:
                waiting = [pod["metadata"]["name"] for pod in pods if not node_name(pod)]
                raise Failure(f"{len(waiting)} pods are lost: {waiting[:10]}")
            self._revive()
            time.sleep(3.0)

    def check(self, client: PlainClient) -> None:
        # An API server that has just begun has nothing but what etcd has.
        self.plane.restart_api_server()
        pods, _ = self.look(client)
        names = {pod["metadata"]["name"] for pod in pods}
        if names != set(self.wanted):
            raise Failure(f"pods differ: {sorted(names ^ set(self.wanted))[:10]}")
        cluster = Cluster(self.plane, client)
        try:
            cluster.check_capacity()
        except AssertionError as error:
            raise Failure(str(error)) from error
        binds = Counter(
            entry["objectRef"]["name"]
            for entry in self.plane.audited()
            if entry["objectRef"].get("subresource") == "binding"
            and entry["responseStatus"]["code"] == 201
        )
        twice = [name for name, count in binds.items() if count > self.wanted[name]]
        if twice:
            raise Failure(f"bound more often than created: {twice[:10]}")


def repeat(ask: Callable[[], T]) -> T:
    """Ask until the API server answers."""
    until = time.monotonic() + _REPEAT_S
    while True:
        try:
            return ask()
        except (ApiFailure, OSError) as error:
            if time.monotonic() > until:
                raise Failure(f"the API server stays away: {error}") from error
            time.sleep(0.3)


def _unless(status: int, ask: Callable[[], object]) -> None:
    """A request whose answer was lost may be refused the second time, because it is done."""
    try:
        ask()
    except ApiFailure as error:
        if error.status != status:
            raise


def _until_gone(client: PlainClient, name: str) -> None:
    if client.find("Pod", name) is not None:
        raise OSError(f"{name} is still there")


def tell(text: str) -> None:
    click.echo(f"{time.strftime('%H:%M:%S')} {text}", err=True)


@click.command()
@click.option("--nodes", default=5000, show_default=True)
@click.option("--pods", default=20_000, show_default=True)
@click.option("--minutes", default=10.0, show_default=True, help="How long things are killed.")
@click.option("--seed", default=1, show_default=True)
def main(nodes: int, pods: int, minutes: float, seed: int) -> None:
    """Exits 0 if nothing was lost, bound twice or over-committed; 1 if something was."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, ControlPlane() as plane:
        plane.kubectl("apply", "--kustomize", DEPLOY / "base")
        load = Load(plane, Path(folder), seed)
        try:
            run(load, nodes=nodes, pods=pods, minutes=minutes, seed=seed)
        except Failure as failure:
            for scheduler in load.schedulers:
                tell(f"the log of {scheduler.name} ends with\n{scheduler.log_tail()}")
            click.echo(f"FAILED (seed {seed}, {dict(load.kills)}): {failure}")
            sys.exit(1)
        finally:
            for scheduler in load.schedulers:
                scheduler.kill()
    click.echo(
        f"seed {seed}: {len(load.wanted)} pods ({sum(load.wanted.values())} created) on {nodes} nodes,"
        f" {dict(load.kills)}; nothing lost, bound twice or over-committed;"
        f" {time.monotonic() - started:.0f} s"
    )


def run(load: Load, *, nodes: int, pods: int, minutes: float, seed: int) -> None:
    seconds = minutes * 60
    with load.plane.client() as client, ThreadPoolExecutor(2) as beside:
        tell(f"creating {nodes} nodes")
        load.create_nodes(client, nodes)
        for scheduler in load.schedulers:
            scheduler.start()
        looking = beside.submit(load.keep_looking, client)
        feeding = beside.submit(load.feed, client, pods, seconds * 0.9, seed)
        try:
            load.break_things(seconds, beside=[looking, feeding])
            feeding.result()
        finally:
            load.end()
        looking.result()
        tell("no more kills")
        load.settle(client)
        load.check(client)


if __name__ == "__main__":
    main()
