"""Refused pods in the real queue: an event after which one fits must wake it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from mooring.objects.meta import ObjectMeta
from mooring.objects.pod import Pod, PodSpec
from mooring.plugin_kit.case import Event
from mooring.plugin_kit.rules import HINTS, Broken
from mooring.plugin_kit.subject import Subject
from mooring.plugin_kit.world import World


@dataclass(frozen=True, slots=True)
class Woken:
    """What the queue did after one event."""

    #: How many refused pods waited.
    asked: int
    problem: Broken | None = None


class Waiting:
    """A scheduler whose queue holds the pods that the plugin refuses, from one event to the next."""

    def __init__(self, subject: Subject, plugin: type) -> None:
        # One pod for each that waits: the others of its class are not to wait for a representative.
        self._world = World(subject, plugin, keeps=False, one_for_all=False)

    def close(self) -> None:
        self._world.close()

    def after(self, event: Event, pods: Sequence[Pod]) -> Woken:
        engine = self._world.engine
        queued = [pod for pod in pods if self._world.fits(pod) is False]
        for pod in queued:
            engine.added(pod)
        while engine.schedule_one():
            pass
        # A pod of a group may fit once the others are there.
        refused = [pod for pod in queued if self._sleeps(pod) and self._world.fits(pod) is False]
        self._world.apply(event)
        problem = None
        for pod in refused:
            if self._sleeps(pod) and self._world.fits(pod):
                problem = Broken(
                    HINTS,
                    f"pod {pod.name} was refused; after {event.title} it fits, and no hint woke it",
                )
                break
        problem = problem or self._after_own_changes(refused, pods)
        for pod in queued:
            engine.deleted(pod)
        return Woken(len(refused), problem)

    def _after_own_changes(self, refused: Sequence[Pod], pods: Sequence[Pod]) -> Broken | None:
        """A pod that sleeps gets the labels or the tolerations of another one."""
        for pod in refused:
            for other in pods:
                for what, changed in (
                    ("labels", replace(pod, metadata=_with_labels(pod, other))),
                    ("tolerations", replace(pod, spec=_with_tolerations(pod, other))),
                ):
                    if changed == pod or not self._sleeps(pod) or not self._world.fits(changed):
                        continue
                    self._world.engine.updated(pod, changed)
                    if self._sleeps(changed):
                        return Broken(
                            HINTS,
                            f"pod {pod.name} was refused; after its own {what} become those of pod"
                            f" {other.name} it fits, and no hint woke it",
                        )
                    # It is awake, and needs no further question.
                    break
        return None

    def _sleeps(self, pod: Pod) -> bool:
        return any(
            queued.uid == pod.uid for queued in self._world.engine.queue.unschedulable_pods()
        )


def _with_labels(pod: Pod, other: Pod) -> ObjectMeta:
    return replace(pod.metadata, labels=dict(other.labels))


def _with_tolerations(pod: Pod, other: Pod) -> PodSpec:
    """The API lets users add tolerations, and take none away."""
    return replace(pod.spec, tolerations=[*pod.spec.tolerations, *other.spec.tolerations])
