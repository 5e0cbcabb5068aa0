"""What a scheduler reaches beside the API server: credentials, and an extender."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from mooring.config.types import Extender, ExtenderTLSConfig
from mooring.errors import ApiError, ExtenderError
from mooring.live.connection import MOST_CONNECTIONS
from mooring.live.reflector import PAGE_SIZE
from mooring.objects.pod import Pod
from mooring.scheduler.extenders.extender import Answer
from tools.fuzz.store import Store
from tools.fuzz.swarm import Swarm

#: The extender keeps pods with this label off this node.
_APP, _NODE = "db", "node-0"

_CONFIG = {
    "urlPrefix": "http://extender.test",
    "filterVerb": "filter",
    "prioritizeVerb": "prioritize",
    "weight": 1,
    "nodeCacheCapable": True,
}


class Outside:
    """The `scheduler.Traits` of a world, and its extender."""

    def __init__(self, swarm: Swarm, store: Store) -> None:
        self._swarm = swarm
        self._store = store
        self.most_connections = 2 if swarm.has("few connections") else MOST_CONNECTIONS
        self.page_size = 3 if swarm.has("lists in pages") else PAGE_SIZE

    def extenders(self) -> list[dict[str, object]]:
        """For the configuration."""
        if self._swarm.has("extender that binds"):
            return [{**_CONFIG, "bindVerb": "bind"}]
        return [_CONFIG] if self._swarm.has("extender") else []

    # Credentials

    async def authorization(self) -> str | None:
        if self._swarm.happens("slow credentials"):
            await asyncio.sleep(self._swarm.rng.random())
        return None

    async def renew(self) -> None:
        if self._swarm.has("slow credentials"):
            await asyncio.sleep(self._swarm.rng.random())

    # The extender

    def make_transport(self, extenders: Sequence[Extender]) -> Outside:
        return self

    def close(self) -> None:
        pass

    async def run_beside(self, call: Callable[[], None]) -> None:
        """Asked, and then answered: in between, anything may happen."""
        await asyncio.sleep(self._swarm.rng.random() * 0.1)
        call()

    def post(self, url: str, body: bytes, *, timeout_s: float, tls: ExtenderTLSConfig) -> Answer:
        if self._swarm.happens("extender fails"):
            raise ExtenderError("the extender fails")
        asked = msgspec.json.decode(body)
        match url.rpartition("/")[2]:
            case "filter":
                answer: object = self._filter(asked)
            case "prioritize":
                answer = [{"host": name, "score": len(name)} for name in asked["NodeNames"]]
            case _:
                answer = self._bind(asked)
        return Answer(200, msgspec.json.encode(answer))

    def _filter(self, asked: dict[str, dict]) -> dict[str, object]:  # type: ignore[type-arg]
        labels = asked["Pod"]["metadata"].get("labels", {})
        names = asked["NodeNames"]
        left = [name for name in names if name != _NODE or labels.get("app") != _APP]
        failed = {name: "not for the extender" for name in names if name not in left}
        return {"nodenames": left, "failedNodes": failed}

    def _bind(self, asked: dict[str, str]) -> dict[str, str]:
        """As anybody else who binds."""
        pod = self._store.get(Pod, f"{asked['PodNamespace']}/{asked['PodName']}")
        if pod is None or pod.uid != asked["PodUID"] or pod.node_name or pod.terminating:
            return {"error": "the pod is gone or has a node"}
        try:
            self._store.bind(pod, asked["Node"]).send(None)
        except StopIteration:
            return {}
        except ApiError as error:
            return {"error": str(error)}
        return {"error": "not bound"}
