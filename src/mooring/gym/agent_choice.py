"""AgentChoice: the Score plugin that stands for an agent. The chosen node gets all points.

So a step of the environment is a scheduling cycle like any other: Filter says which nodes are feasible, the
agent's score decides between them, and Reserve, Permit and Bind follow.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from mooring.config import KubeSchedulerConfiguration
from mooring.config.types import Plugin, PluginSet
from mooring.errors import ConfigError
from mooring.objects.pod import Pod
from mooring.plugin import MAX_SCORE, Columns, CycleState, Ints, Rows
from mooring.plugins.registry import default_registry
from mooring.runtime.registry import Registry

_NAME = "AgentChoice"
_ALL = Plugin("*")


class AgentChoice:
    """It has no `depends_on`, so it is asked for every pod."""

    name = _NAME

    def __init__(self) -> None:
        #: The row that the agent has chosen for the next pod; None leaves the choice to the tie-break.
        self.row: int | None = None

    def __call__(self) -> AgentChoice:
        """A registry builds plugins by a call; this one exists already, as the environment writes to it."""
        return self

    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        scores = np.zeros(columns.size, np.int64)
        if self.row is not None:
            scores[self.row] = MAX_SCORE
        return scores[rows]


def registry_with(choice: AgentChoice) -> Registry:
    registry = default_registry()
    registry.add(_NAME, choice)
    return registry


def scored_by_agent(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """The configuration with the agent in place of all Score plugins. Raises ConfigError."""
    if config.extenders:
        raise ConfigError(["extenders: an agent cannot choose beside extenders; remove them"])
    score = PluginSet(enabled=(Plugin(_NAME, 1),), disabled=(_ALL,))
    profiles = tuple(
        replace(
            profile,
            plugins=replace(profile.plugins, score=score, pre_score=PluginSet(disabled=(_ALL,))),
            percentage_of_nodes_to_score=100,
        )
        for profile in config.profiles
    )
    return replace(config, profiles=profiles)
