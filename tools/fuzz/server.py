"""The API server: HTTP in, HTTP out, over a `Store`.

It does what mooring relies on and no more: lists, watches with bookmarks, reads, the few writes that a
scheduler makes, leases with optimistic locking, Events. It can be slow, refuse, fail before or after a write,
carry a write out twice, forget its history, and be gone for a while.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import httptools
import msgspec

from mooring.errors import ApiError, Conflict, Expired, Forbidden, NotFound
from mooring.objects.devices import ResourceClaim
from mooring.objects.generated_names import generated_uid
from mooring.objects.kinds import KINDS, Kind
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.sim import claim_api
from tools.fuzz import hostile
from tools.fuzz.loop import WORLD, FuzzLoop
from tools.fuzz.network import Faults, Wire
from tools.fuzz.store import MODIFIED, Change, Store, missing, text_of

_BOOKMARK_EVERY_S = 60.0
_STATUS = {NotFound: 404, Conflict: 409, Expired: 410, Forbidden: 403}
_ROOTS = {kind.path: kind for kind in KINDS}


@dataclass(slots=True)
class Asked:
    """A request, whole."""

    method: str
    path: str
    query: dict[str, str]
    body: bytes
    wire: Wire

    @property
    def document(self) -> Any:
        return msgspec.json.decode(self.body)


def _kind(asked: Asked) -> str:
    """`POST pods/binding`: which request of the client it is, whatever it is about."""
    _, version, *parts = asked.path.removeprefix("/apis").removeprefix("/api").split("/")
    if asked.path.startswith("/apis/"):
        parts = parts[1:]
    if len(parts) > 2 and parts[0] == "namespaces":
        parts = parts[2:]
    resource, part = parts[0] if parts else version, parts[2:3]
    watches = " (watch)" if "watch" in asked.query else ""
    return f"{asked.method} {'/'.join([resource, *part])}{watches}"


@dataclass(slots=True)
class Answered:
    status: int
    body: bytes
    headers: str = ""


@dataclass(slots=True, eq=False)
class Watch:
    """A watch that is open."""

    kind: Kind
    version: int
    connection: Connection
    #: Set while a delivery is on its way.
    is_due: bool = False
    is_open: bool = True


#: Told of each write of a scheduler, before it is made: what it asks for.
OnWrite = Callable[[Asked], None]


class ApiServer:
    def __init__(self, loop: FuzzLoop, store: Store, faults: Faults) -> None:
        self._loop = loop
        self._store = store
        self._faults = faults
        self._leases: dict[str, dict[str, Any]] = {}
        self._events: dict[str, dict[str, Any]] = {}
        self._watches: dict[Watch, None] = {}
        self._wires: dict[Wire, None] = {}
        #: Until when nobody can connect.
        self._down_until = 0.0
        self.on_write: list[OnWrite] = []
        self.after_write: list[OnWrite] = []
        #: What was answered, by method, kind of path and status: for statistics.
        self.answered: dict[str, int] = {}
        store.on_change.append(self._changed)

    async def connect(self, owner: Any) -> Wire:
        """Raises OSError."""
        from asyncio import sleep

        await sleep(self._faults.delay_s("slow connect"))
        if self._loop.time() < self._down_until or self._faults.happens("refuse to connect"):
            raise ConnectionRefusedError(111, "Connection refused")
        wire = Wire(self._loop, self._faults, owner)
        wire.server = Connection(self, wire)
        self._wires[wire] = None
        return wire

    def restart(self, down_s: float) -> None:
        """Cut every connection, and be gone for a while; etcd keeps everything."""
        self._down_until = self._loop.time() + down_s
        for wire in list(self._wires):
            wire.cut()

    def gone(self, wire: Wire) -> None:
        self._wires.pop(wire, None)

    @property
    def open_wires(self) -> list[Wire]:
        return list(self._wires)

    # Requests

    def asked(self, connection: Connection, asked: Asked) -> None:
        """A request has arrived whole."""
        delay_s = self._faults.delay_s("slow server")
        self._loop.call_later(delay_s, self._carry_out, connection, asked, context=WORLD)

    def _carry_out(self, connection: Connection, asked: Asked) -> None:
        if asked.method == "GET":
            if asked.query.get("watch") == "true":
                self._begin_watch(connection, asked)
                return
            self._answer(connection, asked, self._refusal() or self._do(asked))
            return
        refusal = self._refusal()
        if refusal is not None:
            self._answer(connection, asked, refusal)
            return
        if self._faults.happens("lost request"):
            self._lose(connection, asked, "request")
            return
        for listener in self.on_write:
            listener(asked)
        answer = self._do(asked)
        if self._faults.happens("carried out twice"):
            answer = self._do(asked)
        for listener in self.after_write:
            listener(asked)
        if self._faults.happens("lost answer"):
            self._lose(connection, asked, "answer")
            return
        if self._faults.happens("late 504"):
            answer = _status(504, "Timeout", "request did not complete within the allotted time")
        elif answer.status < 300 and self._faults.happens("late 500"):
            answer = _status(500, "InternalError", "etcdserver: request timed out")
        self._answer(connection, asked, answer)

    def _lose(self, connection: Connection, asked: Asked, what: str) -> None:
        """Cut the connection before the request is carried out, or before it is answered."""
        lost = f"lost {what}: {_kind(asked)}"
        self.answered[lost] = self.answered.get(lost, 0) + 1
        connection.wire.cut()

    def _refusal(self) -> Answered | None:
        if self._faults.happens("401"):
            return _status(401, "Unauthorized", "Unauthorized")
        if self._faults.happens("429"):
            answer = _status(429, "TooManyRequests", "too many requests, please try again later")
            answer.headers = "Retry-After: 1\r\n"
            return answer
        if self._faults.happens("503"):
            return _status(503, "ServiceUnavailable", "apiserver is shutting down")
        if self._faults.happens("500"):
            return _status(500, "InternalError", "etcdserver: leader changed")
        return None

    def _answer(self, connection: Connection, asked: Asked, answer: Answered) -> None:
        what = f"{asked.method} {answer.status}"
        self.answered[what] = self.answered.get(what, 0) + 1
        if self._faults.happens("garbled answer"):
            connection.wire.down(hostile.garbled(answer.status, answer.body, self._faults.rng))
        else:
            connection.answer(answer)
        if self._faults.happens("close after answer"):
            # As load balancers do, and servers that stop. The client may have another request waiting.
            connection.wire.closed_by_server()

    def _do(self, asked: Asked) -> Answered:
        try:
            return self._route(asked)
        except ApiError as error:
            status = error.status or _STATUS.get(type(error), 400)
            return _status(status, error.reason or type(error).__name__, str(error))

    def _route(self, asked: Asked) -> Answered:
        path = asked.path
        if path == "/version":
            return Answered(200, b'{"major":"1","minor":"36"}')
        if "/leases" in path:
            return self._lease(asked)
        if path.startswith("/apis/events.k8s.io/"):
            return self._event(asked)
        kind = _ROOTS.get(path)
        if kind is not None:
            return self._list(kind, asked)
        kind, key, sub = _object_path(path)
        if asked.method == "GET":
            return Answered(200, text_of(self._get(kind, key)))
        if asked.method == "POST":
            return self._post(kind, key, sub, asked)
        if asked.method == "PATCH":
            return self._patch(kind, key, sub, asked)
        if asked.method == "DELETE":
            return self._delete(kind, key, asked)
        return _status(405, "MethodNotAllowed", asked.method)

    def _get(self, kind: Kind, key: str) -> KubeObject:
        found = self._store.get(kind.struct, key)
        if found is None:
            raise missing(kind, key)
        return found

    def _list(self, kind: Kind, asked: Asked) -> Answered:
        version = self._store.version
        if self._faults.happens("stale list"):
            version = max(self._store.compacted, version - self._faults.rng.randint(1, 40))
        begin = 0
        if "continue" in asked.query:
            # Later pages are of the version of the first.
            version, begin = map(int, asked.query["continue"].split("-"))
            if version < self._store.compacted:
                raise Expired("The provided continue parameter is too old")
        objects = [obj for obj in self._store.as_of(kind.struct, version) if _selected(obj)]
        end = begin + int(asked.query.get("limit", len(objects)))
        if end < len(objects) or begin:
            # As etcd has them: pages are parts of one order.
            objects.sort(key=lambda obj: obj.key)
        more = f',"continue":"{version}-{end}"' if end < len(objects) else ""
        items = b",".join(self._shown(text_of(obj)) for obj in objects[begin:end])
        head = f'{{"metadata":{{"resourceVersion":"{version}"{more}}},"items":['.encode()
        return Answered(200, head + items + b"]}")

    def _post(self, kind: Kind, key: str, sub: str, asked: Asked) -> Answered:
        if sub == "binding":
            document = asked.document
            pod = self._get(kind, key)
            assert isinstance(pod, Pod)
            uid = document["metadata"].get("uid")
            if uid and uid != pod.uid:
                raise _cannot(
                    f'pods "{pod.name}"',
                    f"StorageError: invalid object, Code: 4, Key: /registry/pods/{key},"
                    " ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in"
                    f" precondition: {uid}, UID in object meta: {pod.uid}",
                )
            what, problem = f'pods/binding "{pod.name}"', ""
            if pod.terminating:
                problem = f"pod {pod.name} is being deleted, cannot be assigned to a host"
            elif pod.node_name:
                problem = f'pod {pod.name} is already assigned to node "{pod.node_name}"'
            elif pod.spec.scheduling_gates:
                problem = f"pod {pod.name} has non-empty .spec.schedulingGates"
            if problem:
                raise _cannot(what, problem)
            _now(self._store.bind(pod, document["target"]["name"]))
            return Answered(201, b'{"kind":"Status","status":"Success"}')
        if kind.struct is ResourceClaim:
            claim = msgspec.convert(asked.document, ResourceClaim)
            return Answered(201, text_of(_now(self._store.claims.create(claim))))
        return _status(405, "MethodNotAllowed", asked.path)

    def _patch(self, kind: Kind, key: str, sub: str, asked: Asked) -> Answered:
        def check(before: KubeObject, after: KubeObject) -> None:
            if isinstance(before, ResourceClaim) and isinstance(after, ResourceClaim) and sub:
                claim_api._check(before, after.status)

        patched = self._store.patch(kind, key, asked.document, status=bool(sub), check=check)
        return Answered(200, text_of(patched))

    def _delete(self, kind: Kind, key: str, asked: Asked) -> Answered:
        stored = self._get(kind, key)
        uid = asked.document.get("preconditions", {}).get("uid") if asked.body else None
        if uid is not None and uid != stored.uid:
            raise _cannot(
                f'{kind.name} "{stored.name}"',
                f"the UID in the precondition ({uid}) does not match the UID in record"
                f" ({stored.uid}). The object might have been deleted and then recreated",
            )
        if isinstance(stored, Pod):
            shown: KubeObject = self._store.terminate(stored)
        else:
            self._store.delete(stored)
            shown = self._store.get(kind.struct, key) or stored
        return Answered(200, text_of(shown))

    def _lease(self, asked: Asked) -> Answered:
        name = asked.path.partition("/leases")[2].lstrip("/")
        what = "leases.coordination.k8s.io"
        if asked.method == "POST":
            document = asked.document
            name = document["metadata"]["name"]
            if name in self._leases:
                raise Conflict(f'{what} "{name}" already exists', reason="AlreadyExists")
            document["metadata"]["uid"] = generated_uid("", "Lease", "", name)
        elif name not in self._leases:
            raise NotFound(f'{what} "{name}" not found')
        elif asked.method == "GET":
            return Answered(200, msgspec.json.encode(self._leases[name]))
        else:
            document = asked.document
            known = self._leases[name]["metadata"]["resourceVersion"]
            if document["metadata"].get("resourceVersion") != known:
                raise _cannot(f'{what} "{name}"', MODIFIED)
        self._leases[name] = self._counted(document)
        return Answered(201 if asked.method == "POST" else 200, msgspec.json.encode(document))

    def _counted(self, document: dict[str, Any]) -> dict[str, Any]:
        """With the version of a write that nobody watches."""
        self._store.count_version()
        document["metadata"]["resourceVersion"] = str(self._store.version)
        return document

    @property
    def lease_holder(self) -> str:
        return next((each["spec"].get("holderIdentity", "") for each in self._leases.values()), "")

    def _event(self, asked: Asked) -> Answered:
        what = "events.events.k8s.io"
        document = asked.document
        if asked.method == "POST":
            name = document["metadata"]["name"]
            if name in self._events:
                raise Conflict(f'{what} "{name}" already exists', reason="AlreadyExists")
            # Only what tells one Event from another is kept: there are many.
            metadata = {"name": name, "uid": generated_uid("", "Event", "", name)}
            self._events[name] = self._counted({"metadata": metadata})
            return Answered(201, msgspec.json.encode(self._events[name]))
        name = asked.path.rpartition("/")[2]
        if name not in self._events:
            raise NotFound(f'{what} "{name}" not found')
        self._events[name] = self._counted({**self._events[name], "series": document["series"]})
        return Answered(200, msgspec.json.encode(self._events[name]))

    # Watches

    def _begin_watch(self, connection: Connection, asked: Asked) -> None:
        refusal = self._refusal()
        if refusal is not None:
            connection.answer(refusal)
            return
        kind, version = _ROOTS[asked.path], int(asked.query.get("resourceVersion") or 0)
        watch = Watch(kind, version, connection)
        connection.watch = watch
        self._watches[watch] = None
        connection.begin_chunks()
        self._deliver_later(watch)
        self._loop.call_later(
            float(asked.query["timeoutSeconds"]), self._end_watch, watch, context=WORLD
        )
        self._loop.call_later(_BOOKMARK_EVERY_S, self._bookmark, watch, context=WORLD)

    def _changed(self, change: Change) -> None:
        for watch in list(self._watches):
            if watch.kind.struct is type(change.obj):
                self._deliver_later(watch)

    def _deliver_later(self, watch: Watch) -> None:
        if not watch.is_due and watch.is_open:
            watch.is_due = True
            delay_s = self._faults.delay_s("slow watch")
            self._loop.call_later(delay_s, self._deliver, watch, context=WORLD)

    def _deliver(self, watch: Watch) -> None:
        watch.is_due = False
        if not watch.is_open:
            return
        if watch.version < self._store.compacted:
            error = _status(410, "Expired", f"too old resource version: {watch.version}")
            watch.connection.chunk(b'{"type":"ERROR","object":' + error.body + b"}\n")
            self._end_watch(watch)
            return
        lines = []
        for change in self._store.history.get(watch.kind.struct, ()):
            if change.version > watch.version:
                watch.version = change.version
                line = _line(change)
                if line is not None and not self._faults.happens("lost watch event"):
                    lines.append(self._shown(line))
        if lines:
            watch.connection.chunk(b"".join(lines))

    def _shown(self, text: bytes) -> bytes:
        """An object, or an event of a watch, as it goes out."""
        if not self._faults.happens("hostile object"):
            return text
        spoiled = hostile.spoiled_text(text, self._faults.rng)
        return spoiled + b"\n" if text.endswith(b"\n") else spoiled

    def _bookmark(self, watch: Watch) -> None:
        if watch.is_open:
            if not watch.is_due and watch.version >= self._store.compacted:
                watch.version = self._store.version
                about = f'{{"metadata":{{"resourceVersion":"{watch.version}"}}}}'
                watch.connection.chunk(f'{{"type":"BOOKMARK","object":{about}}}\n'.encode())
            self._loop.call_later(_BOOKMARK_EVERY_S, self._bookmark, watch, context=WORLD)

    def _end_watch(self, watch: Watch) -> None:
        if watch.is_open:
            self.watch_lost(watch)
            watch.connection.end_chunks()

    def watch_lost(self, watch: Watch) -> None:
        watch.is_open = False
        self._watches.pop(watch, None)


class Connection:
    """The server's end: parses requests, writes answers."""

    def __init__(self, server: ApiServer, wire: Wire) -> None:
        self._server = server
        self.wire = wire
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._body = b""
        self.watch: Watch | None = None

    def received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def lost(self) -> None:
        self._server.gone(self.wire)
        if self.watch is not None:
            self._server.watch_lost(self.watch)

    def answer(self, answer: Answered) -> None:
        head = (
            f"HTTP/1.1 {answer.status} X\r\nContent-Type: application/json\r\n{answer.headers}"
            f"Content-Length: {len(answer.body)}\r\n\r\n"
        )
        self.wire.down(head.encode() + answer.body)

    def begin_chunks(self) -> None:
        self.wire.down(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")

    def chunk(self, data: bytes) -> None:
        self.wire.down(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def end_chunks(self) -> None:
        self.wire.down(b"0\r\n\r\n")

    # Called by the parser

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        parts = urlsplit(self._url.decode())
        asked = Asked(
            self._parser.get_method().decode(),
            unquote(parts.path),
            dict(parse_qsl(parts.query)),
            self._body,
            self.wire,
        )
        self._url = self._body = b""
        self._server.asked(self, asked)


def _selected(obj: KubeObject) -> bool:
    """Finished pods are not watched."""
    return not (isinstance(obj, Pod) and obj.finished)


def _line(change: Change) -> bytes | None:
    """What a watch tells of a change; None if its selector lets nothing of it through."""
    obj, kind = change.obj, change.type
    now = kind != "DELETED" and _selected(obj)
    before = change.old is not None and _selected(change.old)
    if now:
        kind = "MODIFIED" if before else "ADDED"
    elif before:
        # An object that leaves the selection is shown as it was, with the version of the change.
        kind = "DELETED"
        assert change.old is not None
        obj = change.old.stored_as(str(change.version))
    else:
        return None
    return b'{"type":"' + kind.encode() + b'","object":' + text_of(obj) + b"}\n"


def _object_path(path: str) -> tuple[Kind, str, str]:
    """`/api/v1/namespaces/ns/pods/p/status` → (Pod, "ns/p", "status"). Raises NotFound."""
    parts = path.strip("/").split("/")
    size = 2 if parts[0] == "api" else 3
    root, rest = "/" + "/".join(parts[:size]), parts[size:]
    namespace = ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    kind = _ROOTS.get(f"{root}/{rest[0]}")
    if kind is None:
        raise NotFound(f"the server could not find {path}")
    name = rest[1] if len(rest) > 1 else ""
    return kind, f"{namespace}/{name}" if namespace else name, "/".join(rest[2:])


def _status(status: int, reason: str, message: str) -> Answered:
    document = {
        "kind": "Status",
        "status": "Failure",
        "code": status,
        "reason": reason,
        "message": message,
    }
    return Answered(status, msgspec.json.encode(document))


def _cannot(what: str, problem: str) -> Conflict:
    return Conflict(f"Operation cannot be fulfilled on {what}: {problem}", status=409)


def _now(coroutine: Any) -> Any:
    """The result of a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waits")
