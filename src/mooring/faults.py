"""What a plugin may raise that is a failure of the plugin, whatever Python takes it for.

`sys.exit()` must not end a scheduler, nor a command that has not answered yet. What looks as if the task were
cancelled must not end the loop that makes the attempts. Ctrl-C is the user's.
"""

from __future__ import annotations

import asyncio

PLUGIN_FAULTS = (Exception, SystemExit, asyncio.CancelledError)


def is_fault(error: BaseException) -> bool:
    """Whether a plugin that may have been awaited has raised this, and not whoever ends its task."""
    if isinstance(error, asyncio.CancelledError):
        return not is_being_cancelled()
    return isinstance(error, PLUGIN_FAULTS)


def is_being_cancelled() -> bool:
    """Whether the task that runs is to end."""
    try:
        current = asyncio.current_task()
    except RuntimeError:
        # Without an event loop there is no task.
        return False
    return current is not None and current.cancelling() > 0
