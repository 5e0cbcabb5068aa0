"""The empty list and the empty map that pods and nodes share where they have nothing.

Most of their fields are empty, and an empty list of one's own takes 56 bytes, an empty map 64. The parts of
objects that mooring writes to the API server keep empties of their own, since msgspec leaves a field out only
if it holds the default itself.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    raise TypeError("objects never change: make another one with msgspec.structs.replace")


class _NoItems(list[Any]):
    __slots__ = ()

    append = extend = insert = __iadd__ = _refuse

    def __reduce__(self) -> str:
        """Copies, and what other processes read, are this one."""
        return "NO_ITEMS"


class _NoKeys(dict[str, Any]):
    __slots__ = ()

    __setitem__ = setdefault = update = __ior__ = _refuse

    def __reduce__(self) -> str:
        return "NO_KEYS"


NO_ITEMS: Final[list[Any]] = _NoItems()
NO_KEYS: Final[dict[str, Any]] = _NoKeys()
