"""From the API server's JSON to typed objects: pages of a list, and events of a watch.

What stands around an object is decoded first and the object left as text; so a kind is decoded by one decoder
whichever way it came, what is not wanted is never built, and one object that makes no sense spoils no other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

import msgspec

from mooring.errors import Unanswered
from mooring.objects.decoding import convert, decode_json, identified, without_nulls
from mooring.objects.kinds import Kind
from mooring.objects.meta import KubeObject


class WatchEvent(msgspec.Struct, frozen=True, gc=False):
    """One line of a watch."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: msgspec.Raw


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    #: Where to go on; empty on the last page.
    next_page: str = msgspec.field(name="continue", default="")


class ListPage(msgspec.Struct, frozen=True):
    """One page of a list."""

    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] | None = None


class Identity(msgspec.Struct, frozen=True, rename="camel"):
    """Which object, and as of when."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""

    @property
    def key(self) -> str:
        """As `KubeObject.key`."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class AnyObject(msgspec.Struct, frozen=True):
    metadata: Identity = Identity()


class Identities(msgspec.Struct, frozen=True):
    """One page of a list, without what the objects say."""

    metadata: ListMeta = ListMeta()
    items: list[AnyObject] | None = None


#: What msgspec raises, beside its own errors, for text that is no UTF-8 or nested without end.
NOT_TEXT = (UnicodeDecodeError, RecursionError)

T = TypeVar("T")


def decoder(kind: type[T]) -> Callable[[msgspec.Raw | bytes], T]:
    """The decoder raises msgspec.DecodeError, whatever it is given."""
    decode = msgspec.json.Decoder(kind).decode

    def decoded(text: msgspec.Raw | bytes) -> T:
        try:
            return decode(text)
        except NOT_TEXT as error:
            raise msgspec.DecodeError(f"this is not JSON: {error}") from error

    return decoded


decode_event = decoder(WatchEvent)
decode_page = decoder(ListPage)
decode_identities = decoder(Identities)
decode_identity = decoder(AnyObject)


def resource_version(text: msgspec.Raw) -> str:
    """The resource version of any object, whatever else it holds. Raises msgspec.DecodeError."""
    return decode_identity(text).metadata.resource_version


def key_of(text: msgspec.Raw) -> str:
    """As `KubeObject.key`, of an object that may not decode otherwise. Raises msgspec.DecodeError."""
    return decode_identity(text).metadata.key


def decode_object(text: msgspec.Raw | bytes, kind: Kind) -> KubeObject:
    """Raises msgspec.DecodeError."""
    try:
        obj = _decode_object(text, kind)
    except NOT_TEXT as error:
        raise msgspec.DecodeError(f"this is not JSON: {error}") from error
    return identified(obj, kind.api_version, kind.name)


def _decode_object(text: msgspec.Raw | bytes, kind: Kind) -> KubeObject:
    try:
        return decode_json(text, kind.struct)
    except msgspec.ValidationError:
        # Most often a null where others leave the field out: slower, but the same.
        return convert(without_nulls(msgspec.json.decode(text)), kind.struct)


def decode_answer(text: bytes, kind: Kind) -> KubeObject:
    """The object in the answer to a request. Raises Unanswered if there is none; it may be done yet."""
    try:
        return decode_object(text, kind)
    except msgspec.DecodeError as error:
        raise Unanswered(f"the answer makes no sense: {error}", maybe_done=True) from error
