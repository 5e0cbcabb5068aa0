"""Everything of one kind that is in the cluster, kept up to date: list once, then watch.

                     ┌──────────────── broken off: go on from the last version ───┐
    list, page by page ──▶ watch ──▶ added, updated, deleted … ── closed ─────────┤
          ▲                                                                       │
          └── 410: the last version is too old; what changed meanwhile is told ◀──┘

A list that is older than what the watcher already knows comes from an API server that lags behind. It is
ignored, and the reflector lists again.

A kind that cannot be watched is listed again and again.

The watcher gets every change once, in order, with the version of the object that it got before. After any
error the reflector goes on, with pauses that grow.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

import msgspec

from mooring.errors import (
    ApiError,
    Expired,
    Forbidden,
    NotFound,
    ServerUnavailable,
    TooManyRequests,
    Unauthorized,
)
from mooring.framework.clock import Clock, sleep
from mooring.live.client import ApiClient, error_of
from mooring.live.decoding import (
    decode_event,
    decode_object,
    decode_page,
    key_of,
    resource_version,
)
from mooring.live.outage import Outage
from mooring.objects.kinds import Kind
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.objects.shared_parts import SharedParts

_LOG = logging.getLogger(__name__)

PAGE_SIZE = 500

#: The pause after the first failure, and the longest; up to twice as long by chance.
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 5.0

#: For how long a watch is asked for, so that those of many clients do not end all at once.
_WATCH_FOR_S = (300, 600)

#: How often a watch is read while much happens; what comes after a silence is read at once. To wake up for
#: each change by itself costs more than to handle it (docs/decisions/0013). Only pods are paced: what they
#: refer to (nodes, claims, budgets) must not be heard of after them.
_POD_PACE_S = 0.01

#: A watch that lasted this long has worked.
_LONG_S = 10.0

#: So many lists in a row that are too old are refused. Then they are believed: the versions of an API server
#: that was restored from a backup begin again.
_MOST_OLD_LISTS = 10


class Watcher(Protocol):
    """Gets the changes."""

    def added(self, obj: KubeObject) -> None: ...
    def updated(self, old: KubeObject, new: KubeObject) -> None: ...
    def deleted(self, obj: KubeObject) -> None:
        """The object in its last known state."""
        ...


@dataclass(slots=True)
class _Listed:
    """What a list shows."""

    objects: list[KubeObject] = field(default_factory=list)
    #: The keys of those that are there but cannot be decoded.
    unreadable: set[str] = field(default_factory=set)
    version: str = ""


class Reflector:
    """One kind. Run `run` as a task; `synced` is set once everything there was has been told."""

    def __init__(
        self,
        client: ApiClient,
        kind: Kind,
        watcher: Watcher,
        *,
        clock: Clock,
        rng: random.Random,
        outage: Outage,
        page_size: int = PAGE_SIZE,
    ) -> None:
        self.kind = kind
        self.synced = asyncio.Event()
        #: Every object as it was last told, by key.
        self.objects: dict[str, KubeObject] = {}
        #: How often a list was made.
        self.lists = 0
        self._client = client
        self._watcher = watcher
        self._clock = clock
        self._rng = rng
        self._outage = outage
        self._page_size = page_size
        self._shared_parts = SharedParts()
        #: Where the watch goes on; None lists first.
        self._version: str | None = None
        #: The newest version that the watcher got; 0 before the first.
        self.newest = 0
        self._old_lists = 0
        #: Since anything was last heard.
        self._failures = 0
        #: Whether the current watch has shown any change.
        self._has_heard = False

    def list_first(self) -> None:
        """List again before watching; for a reflector that is not running."""
        self._version = None

    async def run(self) -> NoReturn:
        if self.kind.poll_s:
            await self._poll()
        while True:
            try:
                if self._version is None:
                    await self._list()
                if await self._watch():
                    continue
            except Expired as error:
                _LOG.info("%s: listing again: %s", self.kind.plural, error)
                self._version = None
            except (TooManyRequests, ServerUnavailable) as error:
                self._outage.noticed(error)
                _LOG.debug("%s: %s; watching again", self.kind.plural, error)
            except (Unauthorized, Forbidden) as error:
                # A warning once: it stays the same until an administrator changes the rights.
                level = logging.DEBUG if self._failures else logging.WARNING
                _LOG.log(level, "%s: %s; watching again", self.kind.plural, error)
            except NotFound as error:
                self._not_served(error)
            except (ApiError, msgspec.DecodeError) as error:
                # What the watch said makes no sense, so it may have been missed.
                _LOG.warning("%s: listing again: %s", self.kind.plural, error)
                self._version = None
            await sleep(self._clock, self._pause_s())

    def _pause_s(self) -> float:
        """Short after a watch that worked, and longer with every failure after it."""
        pause_s = min(_FIRST_PAUSE_S * 2.0 ** min(self._failures, 16), _LONGEST_PAUSE_S)
        self._failures += 1
        return pause_s * (1.0 + self._rng.random())

    def _not_served(self, error: NotFound) -> None:
        """An API server that does not know the kind has no objects of it; it may learn it later."""
        if not self.synced.is_set():
            _LOG.warning(
                "the API server does not serve %s; treating them as none: %s",
                self.kind.plural,
                error,
            )
        self._version = None
        self.synced.set()

    async def _poll(self) -> NoReturn:
        """List again and again. An add-on serves such a kind, so nothing waits for it."""
        while True:
            try:
                await self._list()
                self._failures = 0
            except (ApiError, msgspec.DecodeError) as error:
                level = logging.DEBUG if self._failures else logging.WARNING
                _LOG.log(level, "%s cannot be listed: %s", self.kind.path, error)
                self._failures += 1
                self.synced.set()
            await sleep(self._clock, self.kind.poll_s)

    # Listing

    async def _list(self) -> None:
        listed = await self._all_pages()
        self.lists += 1
        self._refuse_if_old(listed.version)
        await self._replace(listed)
        self._version = listed.version
        self.newest = version_number(listed.version)
        self.synced.set()

    def _refuse_if_old(self, version: str) -> None:
        """Raises ServerUnavailable."""
        if version_number(version) >= self.newest or self._old_lists >= _MOST_OLD_LISTS:
            self._old_lists = 0
            return
        self._old_lists += 1
        raise ServerUnavailable(
            f"listed at version {version}, which is older than {self.newest}: the API server lags behind"
        )

    async def _all_pages(self) -> _Listed:
        """Everything at one resource version."""
        try:
            return await self._pages(self._page_size)
        except Expired:
            # It took so long that later pages are gone: all at once, then.
            return await self._pages(0)

    async def _pages(self, page_size: int) -> _Listed:
        listed = _Listed()
        params = self.selection()
        if page_size:
            params["limit"] = str(page_size)
        while True:
            page = decode_page(await self._client.request("GET", self.kind.path, params=params))
            for text in page.items or ():
                obj = self._decoded(text)
                if obj is None:
                    listed.unreadable.add(key_of(text))
                else:
                    listed.objects.append(obj)
            if not page.metadata.next_page:
                listed.version = page.metadata.resource_version
                return listed
            params["continue"] = page.metadata.next_page

    async def _replace(self, listed: _Listed) -> None:
        """Tell of everything that a list shows to be different from what was told."""
        present = listed.unreadable
        for number, obj in enumerate(listed.objects, start=1):
            present.add(obj.key)
            self._put(obj)
            if number % self._page_size == 0:
                # Thousands at once would hold up everything else.
                await asyncio.sleep(0)
        for key in [key for key in self.objects if key not in present]:
            self._drop(self.objects[key])

    # Watching

    async def _watch(self) -> bool:
        """Until the API server closes the watch; whether it did anything before that."""
        params = {
            **self.selection(),
            "resourceVersion": self._version or "",
            "allowWatchBookmarks": "true",
        }
        self._has_heard = False
        started = self._clock.now()
        try:
            await self._client.watch(
                self.kind.path,
                params,
                self._happened,
                timeout_s=self._rng.randint(*_WATCH_FOR_S),
                on_open=self._outage.answered,
                pace_s=_POD_PACE_S if self.kind.struct is Pod else 0.0,
            )
        finally:
            worked = self._has_heard or self._clock.now() - started >= _LONG_S
            if worked:
                self._failures = 0
        return worked

    def _happened(self, line: bytes) -> None:
        event = decode_event(line)
        if event.type == "ERROR":
            raise error_of(0, bytes(event.object))
        obj = None if event.type == "BOOKMARK" else self._decoded(event.object)
        if obj is None:
            self._version = resource_version(event.object)
            self.newest = max(self.newest, version_number(self._version))
        else:
            if event.type == "DELETED":
                self._drop(obj)
            else:
                self._put(obj)
            self._version = obj.metadata.resource_version
            self.newest = max(self.newest, version_number(self._version))
        self._has_heard = True

    def _decoded(self, text: msgspec.Raw) -> KubeObject | None:
        """None if it makes no sense, which should not be, and must not stop the others."""
        try:
            obj = decode_object(text, self.kind)
        except msgspec.DecodeError as error:
            _LOG.error("cannot read a %s; skipping it: %s", self.kind.name, error)
            return None
        if not obj.metadata.name or (isinstance(obj, Pod) and not obj.metadata.uid):
            # What is written about it could hit another object.
            _LOG.error("a %s has no name or UID; skipping it", self.kind.name)
            return None
        return self._with_shared_parts(obj) if isinstance(obj, Pod) else obj

    def _with_shared_parts(self, pod: Pod) -> Pod:
        joined, shares_with = self._shared_parts.join(pod)
        if shares_with is not None:
            joined.take_derived_from(shares_with)
        return joined

    # Telling

    def _put(self, obj: KubeObject) -> None:
        known = self.objects.get(obj.key)
        self.objects[obj.key] = obj
        if known is None:
            self._tell(self._watcher.added, obj)
        elif known.uid != obj.uid:
            # Another object under the same name: what happened in between was missed.
            self._tell(self._watcher.deleted, known)
            self._tell(self._watcher.added, obj)
        elif _changed(known, obj):
            self._tell(self._watcher.updated, known, obj)

    def _drop(self, obj: KubeObject) -> None:
        known = self.objects.pop(obj.key, None)
        if known is None:
            return
        if obj.uid != known.uid:
            obj = known
        elif _got_node(known, obj):
            # The watcher still has the pod as pending: it must get the node first.
            self._tell(self._watcher.updated, known, obj)
        self._tell(self._watcher.deleted, obj)

    def _tell(self, listener: Callable[..., None], *objects: KubeObject) -> None:
        """A listener that fails has lost this one change; the reflector is not to lose more."""
        try:
            listener(*objects)
        except Exception:
            _LOG.exception("handling a change of %s %s failed", self.kind.name, objects[-1].key)

    def selection(self) -> dict[str, str]:
        """The parameters of a request that choose the objects."""
        selector = self.kind.field_selector
        return {"fieldSelector": selector} if selector else {}


def _changed(known: KubeObject, obj: KubeObject) -> bool:
    """What is measured has no resource version."""
    version = obj.metadata.resource_version
    return known.metadata.resource_version != version or (not version and known != obj)


def _got_node(known: KubeObject, obj: KubeObject) -> bool:
    if not isinstance(known, Pod) or not isinstance(obj, Pod):
        return False
    return not known.node_name and bool(obj.node_name)


def version_number(version: str) -> int:
    """Resource versions of one API server are numbers that grow; 0 for what is none."""
    return int(version) if version.isdigit() else 0
