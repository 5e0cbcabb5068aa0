"""A progress bar for long runs: only after two seconds, only on a terminal, only on standard error."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

#: The bar appears after this time.
_PATIENCE_S = 2.0
#: The bar is redrawn at most this often.
_UPDATE_EVERY_S = 0.1


class Progress:
    """A bar that appears once a run takes long. `with Progress("placing pods") as progress: …`."""

    def __init__(self, label: str, total: int | None = None) -> None:
        self._label = label
        self._total = total
        self._visible = sys.stderr.isatty()
        self._started = time.perf_counter()
        self._next = self._started + _PATIENCE_S
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, done: int, total: int | None = None) -> None:
        """Show that `done` items are done; `total` replaces the known total."""
        if not self._visible:
            return
        now = time.perf_counter()
        if now < self._next:
            return
        self._next = now + _UPDATE_EVERY_S
        self._total = total if total is not None else self._total
        if self._bar is None:
            self._show()
        assert self._bar is not None
        assert self._task is not None
        self._bar.update(self._task, completed=done, total=self._total)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            console=Console(file=sys.stderr),
            transient=True,
        )
        self._task = self._bar.add_task(self._label, total=self._total)
        self._bar.start()
