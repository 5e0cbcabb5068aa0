"""Status: the answer of a plugin about a pod, or about a pod on a node."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from enum import IntEnum

from mooring.errors import PluginError


class Code(IntEnum):
    """The codes of the reference, with its numbers."""

    SUCCESS = 0
    ERROR = 1
    #: Preemption may help.
    UNSCHEDULABLE = 2
    #: Preemption cannot help.
    UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    #: The pod waits for something that is expected to happen.
    PENDING = 6

    @property
    def title(self) -> str:
        """The name that users and metrics see."""
        return _TITLES[self]


_TITLES = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}

_REJECTIONS = (Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING)


@dataclass(frozen=True, slots=True)
class Status:
    """A code, the reasons that users read, and the plugin that returned them."""

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    #: The exception, if the code is ERROR.
    error: BaseException | None = None

    @property
    def ok(self) -> bool:
        # SUCCESS is 0. Looking up the member would take longer than the rest.
        return not self.code

    @property
    def rejected(self) -> bool:
        return self.code in _REJECTIONS

    @property
    def all_reasons(self) -> tuple[str, ...]:
        return self.reasons if self.error is None else (str(self.error), *self.reasons)

    @property
    def message(self) -> str:
        return ", ".join(self.all_reasons)

    def by(self, plugin: str) -> Status:
        """The same status, from this plugin."""
        if self.plugin == plugin:
            return self
        # `dataclasses.replace` takes twice as long, and this is asked for each refused node.
        return Status(self.code, self.reasons, plugin, self.error)


SUCCESS = Status()
SKIP = Status(Code.SKIP)


def checked_type(answer: object) -> Status:
    """What a method of a plugin returned: None is Success. Raises PluginError for anything but a Status."""
    if answer is None:
        return SUCCESS
    if isinstance(answer, Status):
        return answer
    if isinstance(answer, Coroutine):
        answer.close()
        raise PluginError("only pre_bind, bind and post_bind may be `async def`")
    raise PluginError(
        f"it returned a value of type {type(answer).__name__}; return a Status, or None for Success"
    )


def unschedulable(*reasons: str) -> Status:
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    return Status(Code.UNRESOLVABLE, reasons)


def pending(*reasons: str) -> Status:
    return Status(Code.PENDING, reasons)


def wait(*reasons: str) -> Status:
    return Status(Code.WAIT, reasons)


def failure(error: BaseException, *reasons: str) -> Status:
    """An error, not a rejection: the pod is retried after its backoff, without an event."""
    return Status(Code.ERROR, reasons, error=error)
