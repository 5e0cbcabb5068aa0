"""Learn where to put pods, by the cross-entropy method: draw weights, keep the best ones, draw around them.

python train.py            # about a minute; writes learned.yaml
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from placement import FEATURES, RESOURCES, Floats, features, scores_of

import mooring.gym
from mooring.gym import Moment, TraceSource

HERE = Path(__file__).parent
#: Pods are drawn until they request this multiple of all GPUs.
LOAD = 1.0

CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    score:
      disabled:
      - name: "*"
      enabled:
      - name: placement:LearnedPolicy
  pluginConfig:
  - name: placement:LearnedPolicy
    args:
      weights: {weights}
"""


def gpu_utilisation(moment: Moment) -> float:
    return next(e.utilisation or 0.0 for e in moment.resources if e.resource == RESOURCES[2])


def gained(before: Moment, after: Moment) -> float:
    """The reward; over an episode, it adds up to the share of all GPUs that pods have in the end."""
    return gpu_utilisation(after) - gpu_utilisation(before)


def make_environment() -> gymnasium.Env[Any, Any]:
    source = TraceSource(HERE / "trace", load=LOAD)
    return gymnasium.make(
        mooring.gym.ENVIRONMENT, source=source, reward=gained, resources=RESOURCES
    )


def choose(weights: Floats, observation: dict[str, Any], mask: Any) -> int:
    """The feasible node with the highest weighted sum of features."""
    count = len(RESOURCES)
    nodes = observation["nodes"].astype(np.float64).T
    seen = features(nodes[:count], nodes[count : 2 * count], observation["pod"].astype(np.float64))
    return int(np.argmax(np.where(mask == 1, scores_of(weights, seen), np.iinfo(np.int64).min)))


def play(env: gymnasium.Env[Any, Any], weights: Floats, seed: int) -> float:
    """The sum of rewards of one episode."""
    observation, info = env.reset(seed=seed)
    total, ended = 0.0, False
    while not ended:
        action = choose(weights, observation, info["action_mask"])
        observation, reward, ended, _, info = env.step(action)
        total += float(reward)
    return total


def play_at_random(env: gymnasium.Env[Any, Any], seed: int) -> float:
    _, info = env.reset(seed=seed)
    rng, total, ended = np.random.default_rng(seed), 0.0, False
    while not ended:
        _, reward, ended, _, info = env.step(rng.choice(np.flatnonzero(info["action_mask"])))
        total += float(reward)
    return total


def train(
    env: gymnasium.Env[Any, Any], *, seed: int, rounds: int, drawn: int, kept: int, episodes: int
) -> Floats:
    """In each round, every drawn policy plays the same episodes."""
    rng = np.random.default_rng(seed)
    mean, deviation = np.zeros(len(FEATURES)), np.ones(len(FEATURES))
    for number in range(rounds):
        candidates = mean + deviation * rng.standard_normal((drawn, len(FEATURES)))
        seeds = [episodes * number + i for i in range(episodes)]
        totals = [np.mean([play(env, each, s) for s in seeds]) for each in candidates]
        best = candidates[np.argsort(totals)[-kept:]]
        mean, deviation = best.mean(axis=0), best.std(axis=0) + 0.05
        print(f"round {number + 1}: best {max(totals):.3f}, mean {np.mean(totals):.3f}")
    return mean


def configuration_of(weights: Floats) -> str:
    return CONFIGURATION.format(weights=[round(float(each), 3) for each in weights])


def main() -> None:
    env = make_environment()
    weights = train(env, seed=0, rounds=6, drawn=16, kept=4, episodes=3)
    env.close()
    (HERE / "learned.yaml").write_text(configuration_of(weights))
    for name, weight in zip(FEATURES, weights, strict=True):
        print(f"{name:12} {weight:6.2f}")


if __name__ == "__main__":
    main()
