"""An environment of Gymnasium over the engine; importing this module registers `mooring/Placement-v0`."""

from __future__ import annotations

try:
    import gymnasium
except ImportError as error:
    raise ImportError("mooring.gym needs Gymnasium; run pip install 'mooring[gym]'") from error

from mooring.gym.episodes import ClusterSource as ClusterSource
from mooring.gym.episodes import Episode as Episode
from mooring.gym.episodes import EpisodeSource as EpisodeSource
from mooring.gym.episodes import GeneratedLoad as GeneratedLoad
from mooring.gym.episodes import PodShape as PodShape
from mooring.gym.episodes import TraceSource as TraceSource
from mooring.gym.rewards import Moment as Moment

ENVIRONMENT = "mooring/Placement-v0"

gymnasium.register(ENVIRONMENT, entry_point="mooring.gym.environment:PlacementEnv")
