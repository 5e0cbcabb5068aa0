"""`mooring/Placement-v0`: choose a node for the next pod. See `docs/gym.md`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from mooring.config import KubeSchedulerConfiguration, default_config, load_config
from mooring.errors import InputError
from mooring.explain.measures import shapes_of
from mooring.gym.episodes import Episode, EpisodeSource, GeneratedLoad
from mooring.gym.placement_run import PlacementRun
from mooring.gym.rewards import Moment, Reward, reward_of
from mooring.objects.requests import PODS
from mooring.sim.simulation import SimOptions

Observation = dict[str, NDArray[np.float32]]
_MOST_SEEDS = 2**31


class PlacementEnv(gymnasium.Env[Observation, np.int64]):
    """An episode is a run of the engine in virtual time; a step places one pod.

    action
        Discrete(nodes): the row of the node. `info["action_mask"]` says which rows are feasible.
    observation
        `pod` float32[resource], `nodes` float32[node, 2 × resource + 1], `progress` float32[2].
        Amounts are divided by the most that a node has of the resource.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        source: EpisodeSource | None = None,
        *,
        reward: str | Mapping[str, float] | Reward = "placed",
        config: KubeSchedulerConfiguration | Mapping[str, Any] | str | Path | None = None,
        resources: Sequence[str] | None = None,
        until_s: float | None = None,
        infeasible_reward: float = -1.0,
    ) -> None:
        """Raises InputError and ConfigError.

        `resources` are those to observe; by default, those that the first episode requests. An action
        that is not feasible changes nothing, and gives `infeasible_reward`.
        """
        self._source = source or GeneratedLoad()
        self._reward = reward_of(reward)
        self._options = SimOptions(config=_loaded(config))
        self._until_s = until_s
        self._infeasible_reward = infeasible_reward
        first = self._source.episode(0)
        if not first.trace.nodes or not first.trace.pods:
            raise InputError(["an episode needs nodes and pods"])
        wanted = shapes_of(each.pod for each in first.trace.pods).resources
        self.resources = tuple(resources or (name for name in wanted if name != PODS))
        self._size = len(first.trace.nodes)
        self.action_space = spaces.Discrete(self._size)
        count = len(self.resources)
        self.observation_space = spaces.Dict(  # type: ignore[assignment]
            {
                "pod": spaces.Box(0.0, 1.0, (count,), np.float32),
                "nodes": spaces.Box(0.0, 1.0, (self._size, 2 * count + 1), np.float32),
                "progress": spaces.Box(0.0, 1.0, (2,), np.float32),
            }
        )
        self._run: PlacementRun | None = None
        self._shapes = shapes_of(each.pod for each in first.trace.pods)
        self._pods = 0
        self._moment: Moment | None = None

    # Gymnasium

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        self.close()
        episode = self._source.episode(int(self.np_random.integers(_MOST_SEEDS)))
        self._check(episode)
        self._shapes = shapes_of(each.pod for each in episode.trace.pods)
        self._pods = len(episode.trace.pods)
        self._run = PlacementRun(episode, self._options, until_s=self._until_s)
        self._run.advance()
        self._moment = self._look(self._run)
        return self._observation(self._run), self._info(self._run)

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        run, before = self._run, self._moment
        if run is None or before is None or run.pod is None:
            raise gymnasium.error.ResetNeeded("the episode has ended; call reset()")
        row = int(action)
        if row not in run.feasible:
            info = {**self._info(run), "infeasible": True}
            return self._observation(run), self._infeasible_reward, False, False, info
        run.choose(row)
        run.advance()
        self._moment = self._look(run)
        reward = float(self._reward(before, self._moment))
        return self._observation(run), reward, run.pod is None, False, self._info(run)

    def action_masks(self) -> NDArray[np.int8]:
        """int8[node]: 1 for the feasible nodes; the name that MaskablePPO of sb3-contrib looks for."""
        mask = np.zeros(self._size, np.int8)
        if self._run is not None:
            mask[self._run.feasible] = 1
        return mask

    def close(self) -> None:
        if self._run is not None:
            self._run.close()
            self._run = None

    # What an agent sees

    @property
    def moment(self) -> Moment:
        """The cluster before the next choice, with its measures."""
        if self._moment is None:
            raise gymnasium.error.ResetNeeded("there is no episode; call reset()")
        return self._moment

    @property
    def node_names(self) -> list[str]:
        """By row."""
        return [] if self._run is None else self._run.columns.names[: self._size]

    def _observation(self, run: PlacementRun) -> Observation:
        columns = run.columns
        allocatable, requested = (
            _amounts(self.resources, columns.resources, each)[:, : self._size].astype(np.float64)
            for each in (columns.allocatable, columns.requested)
        )
        most = np.maximum(allocatable.max(axis=1), 1.0)
        free = np.clip(allocatable - requested, 0.0, None)
        used = columns.pod_count[: self._size] / np.maximum(columns.allowed_pods[: self._size], 1)
        nodes = np.vstack([free / most[:, None], allocatable / most[:, None], used[None, :]])
        asked = run.pod.requests if run.pod is not None else {}
        pod = np.array([asked.get(name, 0) for name in self.resources]) / most
        progress = np.array([run.arrived, run.pending], np.float64) / max(self._pods, 1)
        return {
            "pod": np.clip(pod, 0.0, 1.0).astype(np.float32),
            "nodes": np.ascontiguousarray(np.clip(nodes.T, 0.0, 1.0), np.float32),
            "progress": np.clip(progress, 0.0, 1.0).astype(np.float32),
        }

    def _info(self, run: PlacementRun) -> dict[str, Any]:
        return {
            "action_mask": self.action_masks(),
            "pod": run.pod.key if run.pod is not None else "",
            "at_seconds": run.loop.time(),
            "placed": len(run.summary.placements),
            "pending": run.pending,
        }

    def _look(self, run: PlacementRun) -> Moment:
        columns, names = run.columns, self._shapes.resources
        allocatable = _amounts(names, columns.resources, columns.allocatable)[:, : self._size]
        requested = _amounts(names, columns.resources, columns.requested)[:, : self._size]
        in_pods = names.index(PODS)
        allocatable[in_pods] = columns.allowed_pods[: self._size]
        requested[in_pods] = columns.pod_count[: self._size]
        return Moment(
            at_s=run.loop.time(),
            pods=self._pods,
            placed=len(run.summary.placements),
            pending=run.pending,
            waited_s=run.waited_s,
            allocatable=allocatable,
            requested=requested,
            shapes=self._shapes,
        )

    def _check(self, episode: Episode) -> None:
        if len(episode.trace.nodes) != self._size:
            raise InputError(
                [
                    f"all episodes need the same nodes; the first has {self._size}, and this one has"
                    f" {len(episode.trace.nodes)}"
                ]
            )


def _loaded(
    config: KubeSchedulerConfiguration | Mapping[str, Any] | str | Path | None,
) -> KubeSchedulerConfiguration:
    if config is None:
        return default_config()
    if isinstance(config, KubeSchedulerConfiguration):
        return config
    return load_config(Path(config) if isinstance(config, str) else config)


def _amounts(
    names: Sequence[str], index: Mapping[str, int], amounts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """int64[resource, row], a copy in the order of the names; 0 for what no node has."""
    found = np.zeros((len(names), amounts.shape[1]), np.int64)
    for i, name in enumerate(names):
        if name in index:
            found[i] = amounts[index[name]]
    return found
