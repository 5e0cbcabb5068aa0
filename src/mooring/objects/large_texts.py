"""Texts of large files. The memory of what has been read of one is given back while the rest is read.

A dump of a cluster is as large as all that is made of it, so both together would take twice as much.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

#: Smaller files are read as bytes.
LARGE = 1 << 25

_STEP = 1 << 25

#: Windows has no way to.
CAN_GIVE_BACK = hasattr(mmap, "MADV_DONTNEED")

#: What a file holds. A large text is memory of its own: unlike a mapped file, it cannot change
#: while it is read.
Content = bytes | mmap.mmap


def read_content(path: str | Path) -> Content:
    """Raises OSError."""
    with Path(path).open("rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        if size < LARGE or not CAN_GIVE_BACK:
            return file.read()
        text, end = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), 0
        with memoryview(text) as view:
            while read := file.readinto(view[end:]):
                end += read
        # If the file has become shorter, the rest is no text.
        return text if end == size else text[:end]


class GivingBack:
    """Gives back the memory of a large text, from its beginning."""

    def __init__(self, text: Content) -> None:
        self._text = text
        self._done = 0

    def up_to(self, position: int) -> None:
        """Nobody may look at the text before this position again."""
        if isinstance(self._text, mmap.mmap) and position - self._done >= _STEP:
            end = position - position % mmap.PAGESIZE
            self._text.madvise(mmap.MADV_DONTNEED, self._done, end - self._done)
            self._done = end
