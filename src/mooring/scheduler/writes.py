"""What an engine has to write, as data: a driver carries it out.

An engine writes nothing while it decides. With the end of each attempt, its driver gets the Events and the
changes of statuses that follow from it (`Dependencies.carry_out`). Only where an attempt needs the answer to
go on does it write and wait: a plugin through its handle, and the nomination before a binding that may take
long.
"""

from __future__ import annotations

import logging

import msgspec

from mooring.errors import ApiError, NotFound
from mooring.framework.api import ApiWriter, Event, PodStatusPatch
from mooring.framework.status import SUCCESS, Status
from mooring.objects.pod import Pod, PodCondition
from mooring.objects.pod_groups import PodGroup
from mooring.runtime.handle import Spawn
from mooring.scheduler.attempt import Attempt

_LOG = logging.getLogger("mooring.scheduler")


class PodStatusWrite(msgspec.Struct, frozen=True):
    pod: Pod
    patch: PodStatusPatch


class GroupStatusWrite(msgspec.Struct, frozen=True):
    group: PodGroup
    condition: PodCondition


StatusWrite = PodStatusWrite | GroupStatusWrite
Write = Event | StatusWrite


class Writes(msgspec.Struct, frozen=True):
    """The writes that follow from the end of an attempt, in their order."""

    items: tuple[Write, ...]
    #: The attempt that has ended. None: the writes are about pods that another pod was tried for, about a
    #: pod group, or about a pod that is being deleted and was not tried.
    attempt: Attempt | None = None
    #: How the attempt ended. After a success its pod is bound, otherwise the pod is back in the queue.
    status: Status = SUCCESS


def carry_out(writes: Writes, writer: ApiWriter, spawn: Spawn) -> None:
    """Record Events at once; statuses are written beside the attempts that follow."""
    for write in writes.items:
        if isinstance(write, Event):
            writer.record_event(write)
        else:
            spawn(write_status(write, writer))


async def write_status(write: StatusWrite, writer: ApiWriter) -> None:
    """A failure is only logged: the next attempt writes again."""
    if isinstance(write, PodStatusWrite):
        name, answer = write.pod.key, writer.patch_pod_status(write.pod, write.patch)
    else:
        group, condition = write.group, write.condition
        name, answer = f"pod group {group.key}", writer.patch_pod_group_status(group, condition)
    try:
        await answer
    except NotFound as error:
        _LOG.debug("patching the status of %s, which is gone: %s", name, error)
    except ApiError as error:
        _LOG.warning("patching the status of %s: %s", name, error)
