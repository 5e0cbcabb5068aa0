"""Verdicts: what a plugin says of a pod or of a pod on a node."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum


class Code(IntEnum):
    """The reference's codes, by its numbers."""

    SUCCESS = 0
    ERROR = 1
    #: Not now; removing pods may help.
    UNSCHEDULABLE = 2
    #: Not here, whichever pods are removed.
    UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    #: Not until something that is on its way arrives.
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
    """A code, the reasons users read, and the plugin that gave it."""

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    #: What went wrong, where the code is not a verdict of a rule but a failure.
    error: BaseException | None = None

    @property
    def ok(self) -> bool:
        # SUCCESS is 0, and looking a member up costs more than the rest of this.
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
        """The same verdict, said by this plugin."""
        return self if self.plugin == plugin else replace(self, plugin=plugin)


SUCCESS = Status()
SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    return Status(Code.UNRESOLVABLE, reasons)


def pending(*reasons: str) -> Status:
    return Status(Code.PENDING, reasons)


def wait(*reasons: str) -> Status:
    return Status(Code.WAIT, reasons)


def failure(error: BaseException, *reasons: str) -> Status:
    """A failure outside the rules: the pod is retried after a backoff, whatever happens around it."""
    return Status(Code.ERROR, reasons, error=error)
