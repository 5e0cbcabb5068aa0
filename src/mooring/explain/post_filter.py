"""What PostFilter would say of a pod that fits nowhere, without its doing anything about it.

The profile's own chain is run, with its own rules for who comes next and what is said in the end; only that
each plugin answers and does not act. How, is known of the built-in ones. Others are not asked: that may act.
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
    #: What the scheduler would add to its message; "" if preemption helps.
    message: str
    #: The plugins that were left out, as nobody knows how to ask them.
    unasked: tuple[str, ...] = ()


def ask_post_filter(
    framework: Framework, state: CycleState, decision: Decision
) -> PostFiltering | None:
    """None if there is nobody to ask."""
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
    """A plugin that has only its answer."""

    def __init__(self, post_filter: Callable[..., object]) -> None:
        self.post_filter = post_filter


def _answering(call: Calls) -> Calls | None:
    match call.plugin:
        case DefaultPreemption() as plugin:
            return Calls(call.name, _Answering(plugin.decide), Metrics())
        case DynamicResources() as plugin:
            # Whatever it would free, mooring has none of: it only answers.
            return Calls(call.name, _Answering(plugin.post_filter), Metrics())
    return None
