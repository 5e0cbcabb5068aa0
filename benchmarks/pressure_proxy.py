"""The bad network of the live tests, with `Retry-After: 1` in every 429, as a kube-apiserver writes it.

client-go sends a refused request again by itself only where the answer says when.
"""

from __future__ import annotations

import asyncio

from tests.live.proxy import Proxy

_REFUSAL = b"HTTP/1.1 429 Refused\r\n"
_RETRY_AFTER = b"Retry-After: 1\r\n"


class RetryAfterProxy(Proxy):
    async def _pass_on_one(
        self,
        client: asyncio.StreamReader,
        to_client: asyncio.StreamWriter,
        server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
    ) -> None:
        await super()._pass_on_one(client, _Writer(to_client), server, to_server)


class _Writer(asyncio.StreamWriter):
    """Another writer, to which a header is added."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._writer.write(with_retry_after(bytes(data)))

    async def drain(self) -> None:
        await self._writer.drain()

    def __del__(self, *_: object) -> None:
        """The connection belongs to the other writer, which lives on."""


def with_retry_after(data: bytes) -> bytes:
    """The proxy's own refusal with the header; all else as it is."""
    if not data.startswith(_REFUSAL):
        return data
    return _REFUSAL + _RETRY_AFTER + data.removeprefix(_REFUSAL)
