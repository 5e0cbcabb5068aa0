"""Bugs put in on purpose, to see that the random worlds find them.

    python -m tools.fuzz.mutations                     look for a seed that catches each
    python -m tools.fuzz.mutations "no Unreserve"      one of them

A mutation changes the code of one function while a seed runs, and nothing else.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

import click

from tools.fuzz.world import Mode, run_seed


@dataclass(frozen=True, slots=True)
class Mutation:
    name: str
    #: `module:Class.method`, without the leading `mooring.`
    function: str
    #: Text of the function, and what stands there instead.
    old: str
    new: str
    #: A run that finds it.
    mode: Mode = "liveness"
    seed: int = 0


MUTATIONS = (
    Mutation(
        "no Unreserve",
        "scheduler.failure:Failures._undo",
        "attempt.framework.run_unreserve(attempt.state, attempt.pod, attempt.node_name)",
        "pass",
        seed=3,
    ),
    Mutation(
        "an assumed pod is never forgotten",
        "scheduler.failure:Failures._undo",
        "self._parts.cluster.forget_pod(attempt.pod)",
        "pass",
        seed=3,
    ),
    Mutation(
        "a pod comes back in its old class",
        "scheduler.failure:Failures._requeue",
        "parts.queue.follow(queued, pod)",
        "queued.pod = pod",
        mode="safety",
        seed=100,
    ),
    Mutation(
        "a binding does not end the attempt",
        "scheduler.binding_cycle:BindingCycle._bind",
        "self._parts.queue.done(pod.uid)",
        "pass",
        seed=0,
    ),
    Mutation(
        "a deleted pod keeps its place",
        "scheduler.event_handlers:EventHandlers._pod_deleted",
        "self._guarded(lambda: self._cluster.remove_pod(pod))",
        "pass",
        mode="safety",
        seed=0,
    ),
    Mutation(
        "a deleted pod wakes nobody",
        "scheduler.event_handlers:EventHandlers._pod_deleted",
        "self._queue.move_all(ASSIGNED_POD_DELETE, pod, None)",
        "pass",
        seed=8,
    ),
    Mutation(
        "a deleted node stays",
        "scheduler.event_handlers:EventHandlers.deleted",
        "self._guarded(lambda: self._cluster.remove_node(obj.name))",
        "pass",
        mode="safety",
        seed=0,
    ),
    Mutation(
        "a reload forgets who waits",
        "scheduler.engine:Engine.take_over",
        "self._queue_as_before(pod, other.queue.get(pod.key))",
        "pass",
        mode="safety",
        seed=1,
    ),
    Mutation(
        "a nomination outlives its pod",
        "queue.scheduling_queue:SchedulingQueue.delete",
        "self.nominator.delete(pod)",
        "pass",
        mode="safety",
        seed=8,
    ),
    Mutation(
        "a list forgets what was deleted",
        "live.reflector:Reflector._replace",
        "self._drop(self.objects[key])",
        "pass",
        seed=6,
    ),
    Mutation(
        "a version that is too old is not listed again",
        "live.reflector:Reflector.run",
        '_LOG.info("%s: listing again: %s", self.kind.plural, error)\n                self._version = None',
        "pass",
        seed=16,
    ),
    Mutation(
        "a lost answer means that nothing was done",
        "live.writer:LiveWriter._bind",
        "if not error.maybe_done:",
        "if True:",
        mode="safety",
        seed=22,
    ),
    Mutation(
        "a conflict means that nothing was done",
        "live.writer:LiveWriter._bind",
        "twice.\n            if not await self._is_bound_after_all(pod, node_name):",
        "twice.\n            if True:",
        mode="safety",
        seed=143,
    ),
    Mutation(
        "a patch may come after the bind",
        "live.writer:LiveWriter.bind",
        "await self._patches.settle(pod.uid)",
        "pass",
        mode="safety",
        seed=247,
    ),
    Mutation(
        "a patch without a UID",
        "live.status_patches:StatusPatches._request",
        '"metadata": {"uid": pod.uid},',
        '"metadata": {},',
        mode="safety",
        seed=0,
    ),
    Mutation(
        "an eviction without a UID",
        "live.writer:LiveWriter._delete",
        '"preconditions": {"uid": pod.uid},',
        '"preconditions": {},',
        mode="safety",
        seed=2,
    ),
    Mutation(
        "patches of a pod that is gone are remembered",
        "live.writer:LiveWriter.pod_gone",
        "self._patches.forget(uid)",
        "pass",
        seed=5,
    ),
    Mutation(
        "an incomplete gang is bound",
        "plugins.gang_scheduling:GangScheduling.permit",
        "gang.scheduled_count < group.min_count",
        "False",
        seed=5,
    ),
)


@contextmanager
def applied(mutation: Mutation) -> Iterator[None]:
    module_name, _, path = mutation.function.partition(":")
    module = importlib.import_module(f"mooring.{module_name}")
    function: Any = module
    for part in path.split("."):
        function = getattr(function, part)
    assert isinstance(function, FunctionType)
    before = function.__code__
    function.__code__ = _mutated(function, mutation)
    try:
        yield
    finally:
        function.__code__ = before


def _mutated(function: FunctionType, mutation: Mutation) -> CodeType:
    file = inspect.getsourcefile(function)
    module = inspect.getmodule(function)
    assert file is not None
    assert module is not None
    text = inspect.getsource(function)
    if text.count(mutation.old) != 1:
        found = text.count(mutation.old)
        raise ValueError(f"{mutation.name}: the text stands {found} times in {mutation.function}")
    whole = inspect.getsource(module).replace(text, text.replace(mutation.old, mutation.new))
    code = _find(compile(whole, file, "exec", dont_inherit=True), function.__qualname__)
    assert code is not None
    return code


def _find(code: CodeType, qualname: str) -> CodeType | None:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            if each.co_qualname == qualname:
                return each
            found = _find(each, qualname)
            if found is not None:
                return found
    return None


@click.command()
@click.argument("names", nargs=-1)
@click.option("--seeds", default=1000, show_default=True, help="How many seeds to try.")
@click.option("--first", default=0, show_default=True)
def main(names: tuple[str, ...], seeds: int, first: int) -> None:
    """Look for the first seed that catches each mutation. Exits 1 if one is not caught."""
    chosen = [each for each in MUTATIONS if not names or each.name in names]
    if names and len(chosen) != len(names):
        known = ", ".join(repr(each.name) for each in MUTATIONS)
        raise click.UsageError(f"there is no such mutation; choose from {known}")
    missed = 0
    for mutation in chosen:
        with applied(mutation):
            for seed in range(first, first + seeds):
                result = run_seed(seed, mutation.mode)
                if result.violation:
                    problem = result.violation.splitlines()[0][:150]
                    click.echo(f"{mutation.name}: {mutation.mode} seed {seed}: {problem}")
                    break
            else:
                click.echo(f"{mutation.name}: not caught by {seeds} seeds")
                missed += 1
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
