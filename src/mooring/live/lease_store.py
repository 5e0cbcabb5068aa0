"""The leader lease in the API server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
from msgspec.structs import replace

from mooring.config.types import LeaderElectionConfiguration
from mooring.errors import NotFound
from mooring.live.client import ApiClient
from mooring.live.connection import Connection
from mooring.live.leader_election import LEASE_API, Lease, LeaseStore, decode_lease


class ApiLease:
    """A `LeaseStore`. Requests give up early, so that there is time to try again."""

    def __init__(self, client: ApiClient, settings: LeaderElectionConfiguration) -> None:
        self._client = client
        self._folder = f"/apis/{LEASE_API}/namespaces/{settings.resource_namespace}/leases"
        self._path = f"{self._folder}/{settings.resource_name}"
        self._timeout_s = max(1.0, settings.renew_deadline.seconds / 2)

    async def get(self) -> Lease | None:
        try:
            return decode_lease(await self._ask("GET", self._path))
        except NotFound:
            return None

    async def create(self, lease: Lease) -> Lease:
        return decode_lease(await self._ask("POST", self._folder, lease))

    async def update(self, lease: Lease) -> Lease:
        return decode_lease(await self._ask("PUT", self._path, lease))

    async def _ask(self, method: str, path: str, lease: Lease | None = None) -> bytes:
        body = None if lease is None else msgspec.json.encode(_named(lease))
        return await self._client.request(method, path, body=body, timeout_s=self._timeout_s)


@asynccontextmanager
async def open_lease(
    connect: Callable[[], Awaitable[Connection]], settings: LeaderElectionConfiguration
) -> AsyncIterator[LeaseStore]:
    """A store with a client of its own, without any limit on its requests: there are few."""
    async with ApiClient(await connect()) as client:
        yield ApiLease(client, settings)


def _named(lease: Lease) -> Lease:
    return replace(lease, api_version=LEASE_API, kind="Lease")
