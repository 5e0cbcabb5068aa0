"""What PostFilter would do for a pod that fits on no node, without doing it.

The profile's own chain of PostFilter plugins runs, but built-in plugins only answer and change nothing. Other
plugins are not asked, because they could change the cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mooring.config.extension_points import ExtensionPoint as Point
from mooring.framework.cycle_state import CycleState
from mooring.plugins.default_preemption import DefaultPreemption, PreemptionDetail
from mooring.plugins.dynamic_resources import DynamicResources
from mooring.runtime.framework import Framework
from mooring.runtime.metrics import Metrics
from mooring.runtime.plugin_calls import Calls
from mooring.scheduler.decision import Decision


@dataclass(frozen=True, slots=True)
class PostFiltering:
    """What PostFilter would do for a pod."""

    #: "" if it cannot help.
    node: str
    #: From most to least important, with their priorities.
    victims: tuple[tuple[str, int], ...]
    #: The text that the scheduler would add to its message; "" if preemption helps.
    message: str
    #: The plugins that were not asked.
    unasked: tuple[str, ...] = ()


def ask_post_filter(
    framework: Framework, state: CycleState, decision: Decision
) -> PostFiltering | None:
    """None if the profile has no PostFilter plugin."""
    calls = framework.points[Point.POST_FILTER]
    asked = [answering for call in calls if (answering := _answering(call)) is not None]
    unasked = tuple(call.name for call in calls if _answering(call) is None)
    if not asked:
        return PostFiltering("", (), "", unasked) if unasked else None
    chain = Framework(
        framework.profile_name,
        {Point.POST_FILTER: asked},
        {},
        waiting_pods=framework.waiting_pods,
        nominator=framework.nominator,
        metrics=Metrics(),
    )
    result, status = chain.run_post_filters(state, decision.pod, decision.diagnosis)
    detail = result.detail if result is not None else None
    if status.ok and isinstance(detail, PreemptionDetail):
        victims = tuple((pod.key, pod.priority) for pod in detail.victims)
        return PostFiltering(detail.nominated_node, victims, "", unasked)
    return PostFiltering("", (), status.message, unasked)


class _Answering:
    """A PostFilter plugin that only answers."""

    def __init__(self, post_filter: Callable[..., object]) -> None:
        self.post_filter = post_filter


def _answering(call: Calls) -> Calls | None:
    match call.plugin:
        case DefaultPreemption() as plugin:
            return Calls(call.name, _Answering(plugin.decide), Metrics())
        case DynamicResources() as plugin:
            return Calls(call.name, _Answering(plugin.answer_post_filter), Metrics())
    return None
