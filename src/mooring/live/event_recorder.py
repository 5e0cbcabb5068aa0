"""Events: what users read in `kubectl describe`, written when there is nothing better to do.

Nothing waits for an Event. Events have a queue of their own. While binds are under way, Events wait for
them, for a second at most: then they are written beside the binds, so that they do not fall behind. Of the
Events that say why a pod was not placed, only a few are written while binds are being made. Senders are
started when there is something to send. When the queue is full, the oldest repetition in it is dropped, or
the oldest Event if there is none; dropped Events are counted.

Equal Events become a series. It is written when it begins, every 30 minutes, and when it ends:

    first ── posted ──▶ second ── count patched to 2 ──▶ third, fourth … ── only counted
                                                              │ every 30 minutes: count patched
                                                              └ after 6 quiet minutes: patched and forgotten
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from mooring.errors import ApiError, Conflict, NamespaceTerminating, NotFound, Unanswered
from mooring.framework.api import Event
from mooring.framework.clock import Clock, Timer, sleep
from mooring.live.bind_traffic import ASK_AGAIN_S, BindTraffic, Refusals
from mooring.live.client import JSON, STRATEGIC_MERGE_PATCH, ApiClient
from mooring.live.connection import MOST_CONNECTIONS
from mooring.live.leader_election import LEASE_API, Lease
from mooring.live.line import Priority
from mooring.live.write_metrics import KINDS, WriteMetrics
from mooring.objects.kinds import KIND_OF
from mooring.objects.pod import Pod
from mooring.objects.pod_groups import PodGroup

_LOG = logging.getLogger(__name__)

#: How many may wait to be written.
MOST_WAITING = 10_000
#: How many are remembered, to tell whether one is a repetition.
MOST_KNOWN = 8_192

#: How many are sent at once at most: as many as binds, so that neither is written faster for long.
SENDERS = MOST_CONNECTIONS

#: How long an Event lets binds go first.
PATIENCE_S = 1.0

REFRESH_EVERY_S = 30 * 60.0
FINISH_AFTER_S = 6 * 60.0

#: How often, and how long after each other, one is sent to an API server that does not answer.
_MOST_TRIES = 12
_PAUSE_S = 10.0

#: The reasons of Events that happen to a pod once, so that no repetition has to be told.
_ONCE = frozenset({"Scheduled"})

_KIND = KINDS[Priority.EVENT]
_WARNING = "Warning"

_LONGEST_INSTANCE = 128
_API = "events.k8s.io/v1"


class _Reference(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Which pod, and as of when: kept instead of the pod, which is a hundred times as large."""

    kind: str
    api_version: str
    namespace: str
    name: str
    uid: str
    resource_version: str


#: What has to be the same for an Event to be a repetition: all but its time and its note.
_Key = tuple[str, str, str, str, _Reference, _Reference | None]


@dataclass(slots=True, eq=False)
class _Record:
    """One Event in the API server, or on the way there."""

    event_key: _Key
    name: str
    note: str
    recorded_at: float
    last_observed_at: float
    #: How often it happened, and how often the API server knows.
    count: int = 1
    count_written: int = 0
    #: Since when it stands in line; None if it does not.
    waits_since: float | None = None

    @property
    def namespace(self) -> str:
        return self.event_key[4].namespace or "default"


class EventRecorder:
    """`record` from anywhere on the loop; run `run` as a task."""

    def __init__(
        self,
        client: ApiClient,
        traffic: BindTraffic,
        *,
        clock: Clock,
        rng: random.Random,
        host: str | None = None,
        most_waiting: int = MOST_WAITING,
        metrics: WriteMetrics | None = None,
    ) -> None:
        self._client = client
        self._traffic = traffic
        self._clock = clock
        self._rng = rng
        self._host = host or socket.gethostname()
        self._most_waiting = most_waiting
        self._metrics = metrics or WriteMetrics()
        #: Those that wait: to be written, and to have their count brought up to date.
        self._first: deque[_Record] = deque()
        self._repeated: deque[_Record] = deque()
        #: Refusals that wait for binds to end before they wait to be written.
        self._held: deque[_Record] = deque()
        self._refusals = Refusals(traffic, clock)
        self._timer: Timer | None = None
        self._under_way = 0
        #: Where senders are started; None if it is not running. How many there are, and how many of them
        #: are about to take one from the line.
        self._tasks: asyncio.TaskGroup | None = None
        self._senders = 0
        self._looking = 0
        #: Set while there is nothing at all to do.
        self.idle = asyncio.Event()
        self.idle.set()
        #: In the order in which they came.
        self._known: dict[_Key, _Record] = {}
        self._last_suffix = 0
        self._in_a_hurry = False
        #: How many were never written: the line was full, or the API server did not take them.
        self.dropped = 0

    def record(self, event: Event) -> None:
        """Never waits and never fails."""
        key = (
            event.type,
            event.action,
            event.reason,
            event.reporting_controller,
            _reference(event.regarding),
            None if event.related is None else _reference(event.related),
        )
        if event.reason in _ONCE:
            self._enqueue(self._new(key, event.note))
            return
        known = self._known.get(key)
        if known is None:
            self._begin(key, event.note)
            return
        known.count += 1
        known.last_observed_at = self._clock.now()
        if known.count == 2 and known.count_written:
            self._enqueue(known)

    def record_election(self, lease: Lease, what: str, controller: str) -> None:
        """Tell of the lease what one of those who want it did."""
        meta = lease.metadata
        about = _Reference(
            "Lease", LEASE_API, meta.namespace, meta.name, meta.uid, meta.resource_version
        )
        self._begin(("Normal", "LeaderElection", "LeaderElection", controller, about, None), what)

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            self._send_more()
            tasks.create_task(self._every(REFRESH_EVERY_S, self._refresh))
            tasks.create_task(self._every(FINISH_AFTER_S, self._finish))

    async def flush(self, timeout_s: float) -> int:
        """Write what waits, binds or not; how many could not be written in that time, and are dropped."""
        self._in_a_hurry = True
        self._release()
        self._traffic.wake()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self.idle.wait()
        left = self._waiting_count
        self._drop(left)
        return left

    @property
    def _waiting_count(self) -> int:
        return len(self._first) + len(self._repeated) + len(self._held)

    def _begin(self, key: _Key, note: str) -> None:
        record = self._known[key] = self._new(key, note)
        self._enqueue(record)
        if len(self._known) > MOST_KNOWN:
            self._forget(next(iter(self._known.values())))

    def _new(self, key: _Key, note: str) -> _Record:
        now = self._clock.now()
        # Time makes a name unique, if there is only one at a time.
        self._last_suffix = max(self._last_suffix + 1, int(now * 1e9))
        return _Record(key, f"{key[4].name}.{self._last_suffix:x}", note, now, now)

    def _enqueue(self, record: _Record) -> None:
        if record.waits_since is not None:
            return
        if self._waiting_count >= self._most_waiting:
            self._drop_oldest()
        now = record.waits_since = self._clock.now()
        self._metrics.write_waits(_KIND, 1)
        self.idle.clear()
        if self._is_refusal(record) and (self._held or not self._refusals.may_tell(now)):
            self._held.append(record)
            self._set_timer()
            return
        (self._repeated if record.count_written else self._first).append(record)
        self._send_more()

    def _is_refusal(self, record: _Record) -> bool:
        return record.event_key[0] == _WARNING and not self._in_a_hurry

    def _set_timer(self) -> None:
        if self._held and self._timer is None:
            self._timer = self._clock.call_later(ASK_AGAIN_S, self._release)

    def _release(self) -> None:
        """Let those refusals wait to be written that may be told."""
        self._timer = None
        while self._held:
            since = self._held[0].waits_since
            assert since is not None
            if not self._in_a_hurry and not self._refusals.may_tell(since):
                break
            record = self._held.popleft()
            (self._repeated if record.count_written else self._first).append(record)
        self._send_more()
        self._set_timer()

    def _drop_oldest(self) -> None:
        record = (self._repeated or self._held or self._first).popleft()
        record.waits_since = None
        self._metrics.write_waits(_KIND, -1)
        if not record.count_written and self._known.get(record.event_key) is record:
            # The next one like it is the first again.
            del self._known[record.event_key]
        self._drop()

    def _drop(self, count: int = 1) -> None:
        self.dropped += count
        self._metrics.write_dropped(_KIND, count)

    def _forget(self, record: _Record) -> None:
        del self._known[record.event_key]
        if record.count > record.count_written:
            self._enqueue(record)

    # Series

    async def _every(self, period_s: float, look: Callable[[], None]) -> None:
        while True:
            await sleep(self._clock, period_s)
            look()

    def _refresh(self) -> None:
        for record in self._known.values():
            if 0 < record.count_written < record.count:
                self._enqueue(record)

    def _finish(self) -> None:
        quiet_since = self._clock.now() - FINISH_AFTER_S
        for record in list(self._known.values()):
            if record.last_observed_at <= quiet_since:
                self._forget(record)

    # Sending

    def _send_more(self) -> None:
        """Start senders, so that no Event waits for an answer to another one."""
        waiting = len(self._first) + len(self._repeated)
        while self._tasks is not None and self._looking < waiting and self._senders < SENDERS:
            self._senders += 1
            self._looking += 1
            self._tasks.create_task(self._send_all())

    async def _send_all(self) -> None:
        """Send one after another until none is left."""
        while (record := await self._next()) is not None:
            self._looking -= 1
            try:
                await self._send(record)
            except asyncio.CancelledError:
                self._drop()
                raise
            except Exception:
                # Whatever it is, the other Events are not to suffer.
                self._drop()
                _LOG.exception("dropped an Event for %s", record.event_key[4].name)
            finally:
                self._under_way -= 1
                self._update_idle()
            self._looking += 1
        self._looking -= 1
        self._senders -= 1

    async def _next(self) -> _Record | None:
        """The one to send now, which is then under way; None if none waits."""
        while line := self._first or self._repeated:
            since = line[0].waits_since
            left_s = PATIENCE_S if since is None else since + PATIENCE_S - self._clock.now()
            if self._in_a_hurry or not self._traffic.under_way or left_s <= 0:
                return self._take(line)
            await self._traffic.quiet(left_s)
        return None

    def _take(self, line: deque[_Record]) -> _Record:
        record = line.popleft()
        self._under_way += 1
        self._metrics.write_waits(_KIND, -1)
        if record.waits_since is not None:
            self._metrics.write_waited(_KIND, max(0.0, self._clock.now() - record.waits_since))
        record.waits_since = None
        return record

    def _update_idle(self) -> None:
        if not self._waiting_count and not self._under_way:
            self.idle.set()

    async def _send(self, record: _Record) -> None:
        """However it ends, it ends here."""
        problem = ""
        for _ in range(_MOST_TRIES):
            count = record.count
            try:
                await self._write(record, count)
                record.count_written = count
                if count == 1 < record.count:
                    # A series has begun meanwhile.
                    self._enqueue(record)
                return
            except Unanswered as error:
                problem = str(error)
            except NamespaceTerminating as error:
                # Whoever deletes a namespace does not ask for the Events of its pods.
                _LOG.debug("dropped an Event for %s: %s", record.event_key[4].name, error)
                self._drop()
                return
            except ApiError as error:
                # There is no use in trying again.
                problem = str(error)
                break
            await sleep(self._clock, _PAUSE_S * (1.0 + self._rng.random()))
        self._drop()
        _LOG.warning("dropped an Event for %s: %s", record.event_key[4].name, problem)

    async def _write(self, record: _Record, count: int) -> None:
        folder = f"/apis/{_API}/namespaces/{record.namespace}/events"
        if record.count_written:
            series = msgspec.json.encode({"series": _series(record, count)})
            path = f"{folder}/{record.name}"
            try:
                await self._ask("PATCH", path, series, STRATEGIC_MERGE_PATCH)
                return
            except NotFound:
                # Events live for an hour: write it again.
                pass
        try:
            await self._ask("POST", folder, self._document(record, count), JSON)
        except Conflict:
            # Posted before, and only the answer was lost.
            return

    async def _ask(self, method: str, path: str, body: bytes, content_type: str) -> None:
        await self._client.request(
            method, path, body=body, content_type=content_type, priority=Priority.EVENT
        )

    def _document(self, record: _Record, count: int) -> bytes:
        kind, action, reason, controller, regarding, related = record.event_key
        document: dict[str, Any] = {
            "apiVersion": _API,
            "kind": "Event",
            "metadata": {"namespace": record.namespace, "name": record.name},
            "eventTime": _micro_time(record.recorded_at),
            "reportingController": controller,
            "reportingInstance": f"{controller}-{self._host}"[:_LONGEST_INSTANCE],
            "action": action,
            "reason": reason,
            "regarding": regarding,
            "note": record.note,
            "type": kind,
        }
        if related is not None:
            document["related"] = related
        if count > 1:
            document["series"] = _series(record, count)
        return msgspec.json.encode(document)


def _reference(obj: Pod | PodGroup) -> _Reference:
    meta, kind = obj.metadata, KIND_OF[type(obj)]
    version = meta.resource_version
    return _Reference(kind.name, kind.api_version, meta.namespace, meta.name, meta.uid, version)


def _series(record: _Record, count: int) -> dict[str, Any]:
    return {"count": count, "lastObservedTime": _micro_time(record.last_observed_at)}


def _micro_time(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
