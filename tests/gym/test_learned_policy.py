"""The tutorial: a policy that is learned in seconds beats a random one, also as a plugin."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import mooring

EXAMPLE = Path(__file__).parents[2] / "examples" / "11-learned-policy"


@pytest.fixture
def tutorial(tmp_path: Path) -> Iterator[ModuleType]:
    """The example's `train` module, from a copy that may be written to."""
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLE, folder)
    sys.path.insert(0, str(folder))
    import train

    yield train
    sys.path.remove(str(folder))
    for name in ("train", "placement"):
        sys.modules.pop(name, None)


def test_a_learned_policy_beats_a_random_one_and_runs_as_a_plugin(tutorial):
    env = tutorial.make_environment()
    weights = tutorial.train(env, seed=0, rounds=2, drawn=8, kept=2, episodes=1)
    learned = [tutorial.play(env, weights, seed) for seed in (1001, 1002, 1003)]
    by_chance = [tutorial.play_at_random(env, seed) for seed in (1001, 1002, 1003)]
    env.close()
    folder = Path(tutorial.__file__).parent
    (folder / "learned.yaml").write_text(tutorial.configuration_of(weights))

    sweep = mooring.run_sweep(folder / "sweep.yaml", jobs=1)

    gpus = {
        group.config: group.statistics["utilisation.nvidia.com/gpu"].mean for group in sweep.groups
    }
    assert not sweep.failed
    assert sum(learned) > sum(by_chance)
    assert gpus["learned"] > gpus["random"]


def test_the_plugin_places_pods_as_the_agent_does(tutorial):
    """The weights of the example, on an episode of its own: every pod goes to the same node."""
    import numpy as np
    from placement import LearnedPolicy

    from mooring.config import load_config
    from mooring.gym import TraceSource
    from mooring.sim.simulation import SimOptions
    from mooring.sim.traces.replay import Replay

    config = load_config(Path(tutorial.__file__).parent / "learned.yaml")
    args = config.profiles[0].args_of("placement:LearnedPolicy")
    env = tutorial.make_environment()
    tutorial.play(env, LearnedPolicy(args).weights, 7)
    chosen = {u: e.bound.node for u, e in env.unwrapped._run.summary.placements.items()}
    env.close()

    seed = int(np.random.default_rng(7).integers(2**31))
    episode = TraceSource(EXAMPLE / "trace", load=tutorial.LOAD).episode(seed)
    with Replay(episode.trace, SimOptions(config), pods_end=False) as simulation:
        simulation.run()
        placed = {u: e.bound.node for u, e in simulation.summary.placements.items()}

    assert len(placed) > 20
    assert placed == chosen
