"""A scheduler with the plugin alone, which lives through a case and is asked about pods."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mooring.cluster.own_columns import FedColumn
from mooring.errors import MooringError
from mooring.explain.matrix import matrix_of
from mooring.framework.cycle_state import CycleState
from mooring.framework.silent_writer import SilentWriter
from mooring.framework.status import Status
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.plugin_kit.case import Event, decoded
from mooring.plugin_kit.subject import PROFILE, Subject
from mooring.runtime.declared_columns import columns_of
from mooring.runtime.metrics import Metrics
from mooring.runtime.plugin_calls import Calls, PluginFailure
from mooring.scheduler.decision import NoNodesError
from mooring.scheduler.dependencies import Dependencies
from mooring.scheduler.engine import Engine

#: The time in a case.
_START_S = 1_767_225_600.0

#: What is fed to the columns of a plugin.
_FED = (0, 0.5, 0.9, 1, 7, 60, 100)

#: What a plugin answers, as plain data that can be compared and printed.
Answer = Mapping[str, Any]


class StillClock:
    """A clock that stands still: nothing in a case takes time."""

    def now(self) -> float:
        return _START_S

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> _NoTimer:
        return _NoTimer()


class _NoTimer:
    def cancel(self) -> None:
        pass


class World:
    """One engine, and the objects that it was told of."""

    def __init__(
        self, subject: Subject, plugin: type, *, keeps: bool, one_for_all: bool = True
    ) -> None:
        """`keeps` says whether answers are kept. Raises ConfigError."""
        self.engine = Engine(
            subject.alone(),
            Dependencies(
                clock=StillClock(),
                writer=SilentWriter(),
                spawn=_discard,
                registry=subject.registry(plugin),
                metrics=Metrics(),
                keep_answers=keeps,
                one_for_all=one_for_all,
            ),
        )
        self.name = subject.name
        self._objects: dict[tuple[type, str], KubeObject] = {}

    @property
    def call(self) -> Calls:
        """The plugin as the runtime calls it."""
        return self.engine.frameworks[PROFILE].plugins[self.name]

    @property
    def plugin(self) -> object:
        return self.call.plugin

    def objects(self) -> list[KubeObject]:
        return list(self._objects.values())

    def apply(self, event: Event) -> None:
        """Tell the engine. What goes without being there, or comes twice, is no event."""
        obj = decoded(event.manifest)
        key = type(obj), obj.key
        known = self._objects.get(key)
        if event.gone:
            if known is not None:
                del self._objects[key]
                self.engine.deleted(known)
        elif known is None:
            self._objects[key] = obj
            self.engine.added(obj)
        elif known != obj:
            self._objects[key] = obj
            self.engine.updated(known, obj)

    def feed(self, seed: str) -> None:
        """Set the fed columns of the plugin, on a node that the seed chooses, as if it had done so."""
        specs = [spec for spec in columns_of(self.plugin) if isinstance(spec, FedColumn)]
        names = sorted(node.name for node in self.engine.cluster.snapshot())
        source = random.Random(seed)
        for spec in specs if names else ():
            value = spec.dtype(source.choice(_FED))
            self.engine.cluster.feed_column(spec.name, source.choice(names), value.item())

    def fits(self, pod: Pod) -> bool | None:
        """Whether the plugin lets the pod through somewhere; None if it fails, or if there is no node."""
        if not len(self.engine.cluster.snapshot()):
            return None
        try:
            return self.engine.gate(pod) is None and self.engine.fits(pod)
        except MooringError:
            return None

    def decide(self, pod: Pod, state: CycleState | None = None) -> Answer:
        """The decision on a pod, cell by cell. With a state, every plugin is asked, and fills it."""
        try:
            if state is None:
                decision = self.engine.decide(pod)
            else:
                decision = self.engine.decide_in_full(pod, state)
        except PluginFailure as error:
            return {"fails": str(error)}
        except NoNodesError:
            return {"nodes": {}}
        views = {
            view.node: _cell(view.to_data(), self.name) for view in matrix_of(decision).views()
        }
        return {"goes to": decision.node_name, "nodes": views}

    def close(self) -> None:
        self.engine.close()


@contextmanager
def silence() -> Iterator[None]:
    """Without log lines: what a plugin does wrong is reported once, as a finding."""
    logger = logging.getLogger("mooring")
    before = logger.disabled, logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.disabled, level = before
        logger.setLevel(level)


def status_of(answer: Status | None) -> tuple[str, ...]:
    """A verdict as data: its code and reasons."""
    if answer is None or answer.ok:
        return ("Success",)
    return (answer.code.title, *answer.all_reasons)


def _cell(view: Mapping[str, Any], name: str) -> dict[str, Any]:
    verdict = view["verdict"]
    cell: dict[str, Any] = {"verdict": (verdict["code"], *verdict.get("reasons", ()))}
    if name in view.get("scores", {}):
        score = view["scores"][name]
        cell |= {"raw": score["raw"], "score": score["normalized"]}
    return cell


def _discard(work: Coroutine[Any, Any, None]) -> None:
    work.close()
