"""From the API server's JSON to typed objects: pages of a list, and events of a watch.

What stands around an object is decoded first and the object left as text; so a kind is decoded by one decoder
whichever way it came, what is not wanted is never built, and one object that makes no sense spoils no other.
"""

from __future__ import annotations

from typing import Literal

import msgspec

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


#: Raise msgspec.DecodeError.
decode_event = msgspec.json.Decoder(WatchEvent).decode
decode_page = msgspec.json.Decoder(ListPage).decode
decode_identities = msgspec.json.Decoder(Identities).decode
decode_identity = msgspec.json.Decoder(AnyObject).decode


def resource_version(text: msgspec.Raw) -> str:
    """Of any object, whatever else it holds. Raises msgspec.DecodeError."""
    return decode_identity(text).metadata.resource_version


def key_of(text: msgspec.Raw) -> str:
    """As `KubeObject.key`, of an object that may not decode otherwise. Raises msgspec.DecodeError."""
    return decode_identity(text).metadata.key


def decode_object(text: msgspec.Raw | bytes, kind: Kind) -> KubeObject:
    """Raises msgspec.DecodeError."""
    try:
        obj = decode_json(text, kind.struct)
    except msgspec.ValidationError:
        # Most often a null where others leave the field out: slower, but the same.
        obj = convert(without_nulls(msgspec.json.decode(text)), kind.struct)
    return identified(obj, kind.api_version, kind.name)
