"""The model of the API server behind the few calls of a script (`api_script.Server`)."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import TracebackType
from urllib.parse import urlencode

import httptools

from mooring.objects.decoding import convert
from mooring.objects.kinds import KINDS
from mooring.objects.pod import Pod
from tests.fuzz.api_script import Json
from tools.fuzz.loop import WORLD, FuzzLoop
from tools.fuzz.network import Wire
from tools.fuzz.scheduler import DriftingClock
from tools.fuzz.server import ApiServer
from tools.fuzz.store import Store, plain
from tools.fuzz.swarm import Swarm

_STRUCTS = {kind.plural: kind.struct for kind in KINDS}


class Nobody:
    """Whoever has the client's end of a connection."""

    dead = False


class ModelServer:
    """Nothing breaks here; time passes while an answer is waited for."""

    def __init__(self) -> None:
        self._loop = FuzzLoop()
        self.store = Store(self._loop, DriftingClock(self._loop))
        swarm = Swarm(0)
        swarm.breaks = False
        self._api = ApiServer(self._loop, self.store, swarm)

    def __enter__(self) -> ModelServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.close()

    def create(self, path: str, document: Json) -> Json:
        struct = _STRUCTS[path.rpartition("/")[2]]
        made = self.store.with_generated_name(convert(document, struct))
        return plain(self.store.create(made))

    def finish(self, name: str) -> None:
        pod = self.store.get(Pod, f"default/{name}")
        assert pod is not None
        self.store.update(pod.with_status(phase="Succeeded"))

    def forget(self) -> None:
        self.store.compact()

    def ask(
        self, method: str, path: str, body: Json | None = None, content_type: str = ""
    ) -> tuple[int, Json]:
        wire = self._send(method, path, body, content_type)
        self._pass(1.0)
        answer = _Answer(wire)
        return answer.status, json.loads(answer.body)

    def watch(
        self, path: str, params: dict[str, str], *, meanwhile: Callable[[], None]
    ) -> tuple[int, list[Json]]:
        wire = self._send("GET", f"{path}?{urlencode(params)}", None, "")
        self._pass(0.5)
        meanwhile()
        self._pass(float(params["timeoutSeconds"]) + 1.0)
        answer = _Answer(wire)
        lines = answer.body.splitlines() if answer.status == 200 else []
        return answer.status, [json.loads(line) for line in lines]

    def _send(self, method: str, path: str, body: Json | None, content_type: str) -> Wire:
        wire = self._loop.run_until_complete(self._api.connect(Nobody()))
        text = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: api.test\r\nContent-Type: {content_type}\r\n"
        wire.up(f"{head}Content-Length: {len(text)}\r\n\r\n".encode() + text)
        return wire

    def _pass(self, seconds: float) -> None:
        self._loop.call_later(seconds, self._loop.stop, context=WORLD)
        self._loop.run_forever()


class _Answer:
    def __init__(self, wire: Wire) -> None:
        self.body = b""
        parser = httptools.HttpResponseParser(self)
        parser.feed_data(bytes(wire.client._data))
        self.status: int = parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self.body += body
