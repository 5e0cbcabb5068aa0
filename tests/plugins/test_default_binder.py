from dataclasses import dataclass, field

from mooring.errors import ApiError, Conflict
from mooring.framework.cycle_state import CycleState
from mooring.framework.status import SUCCESS, Code
from mooring.plugins.default_binder import DefaultBinder
from tests.makers import make_pod


@dataclass
class Writer:
    """Writes bindings down, or fails as it is told to."""

    error: ApiError | None = None
    bound: list[tuple[str, str]] = field(default_factory=list)

    async def bind(self, pod, node_name):
        if self.error is not None:
            raise self.error
        self.bound.append((pod.uid, node_name))


@dataclass
class Handle:
    writer: Writer


async def test_binding_is_written_by_the_api_writer():
    writer = Writer()

    assert await DefaultBinder(None, Handle(writer)).bind(CycleState(), make_pod(), "n") == SUCCESS
    assert writer.bound == [("default/p", "n")]


async def test_a_binding_that_cannot_be_written_is_a_failure():
    error = Conflict("someone else bound it")

    status = await DefaultBinder(None, Handle(Writer(error))).bind(CycleState(), make_pod(), "n")
    assert (status.code, status.error) == (Code.ERROR, error)
