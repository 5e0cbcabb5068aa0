"""An agent chooses between the nodes that the engine allows, and everything else is the engine's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import mooring.gym
from mooring.config import load_config
from mooring.errors import ConfigError, InputError
from mooring.explain.over_time import waiting_of
from mooring.gym import ClusterSource, GeneratedLoad, TraceSource
from mooring.gym.environment import PlacementEnv
from mooring.objects.pod import Pod
from mooring.sim.simulation import SimOptions
from mooring.sim.traces.replay import Replay

DATA = Path(__file__).parents[1] / "data"

BUSY = GeneratedLoad(nodes=("3x16cpu,64Gi", "1x32cpu,64Gi"), pods=40, run_s=120.0)
WITHOUT_SCORES = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"score": {"disabled": [{"name": "*"}]}}}],
}

Agent = Callable[[PlacementEnv, dict[str, Any]], int]


@pytest.fixture
def made() -> Iterator[Callable[..., PlacementEnv]]:
    """Makes environments, and closes them after the test."""
    open_now: list[PlacementEnv] = []

    def make(source: Any = None, **options: Any) -> PlacementEnv:
        open_now.append(PlacementEnv(source, **options))
        return open_now[-1]

    yield make
    for env in open_now:
        env.close()


def first_by_name(env: PlacementEnv, info: dict[str, Any]) -> int:
    names = env.node_names
    return min(np.flatnonzero(info["action_mask"]).tolist(), key=lambda row: names[row])


def at_random(seed: int) -> Agent:
    rng = np.random.default_rng(seed)
    return lambda env, info: int(rng.choice(np.flatnonzero(info["action_mask"])))


def play(env: PlacementEnv, agent: Agent, *, seed: int = 0) -> tuple[float, dict[str, Any]]:
    """The sum of rewards, and the last info."""
    _, info = env.reset(seed=seed)
    total, ended = 0.0, False
    while not ended:
        _, reward, ended, _, info = env.step(agent(env, info))
        total += reward
    return total, info


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(GeneratedLoad(pods=20), id="generated"),
        pytest.param(TraceSource(DATA / "openb"), id="trace"),
        pytest.param(TraceSource(DATA / "openb", load=0.8), id="drawn"),
    ],
)
def test_gymnasium_finds_nothing_wrong(source):
    """A warning is a failure here, too."""
    env = gymnasium.make("mooring/Placement-v0", source=source)
    check_env(env.unwrapped)
    env.close()


def test_the_environment_is_registered():
    env = gymnasium.make("mooring/Placement-v0", source=GeneratedLoad(pods=5))

    assert isinstance(env.unwrapped, PlacementEnv)
    env.close()


def test_the_mask_has_the_nodes_that_filters_let_pass_whenever_they_are_asked(made):
    env = made(BUSY)
    _, info = env.reset(seed=3)
    agent, ended, refused = at_random(1), False, 0
    while not ended:
        run = env._run
        fresh = run.scheduler.decide_in_full(run.pod).feasible
        assert np.flatnonzero(info["action_mask"]).tolist() == sorted(fresh.tolist())
        assert np.array_equal(info["action_mask"], env.action_masks())
        refused += len(info["action_mask"]) - len(fresh)
        _, _, ended, _, info = env.step(agent(env, info))
    assert refused


def test_the_pod_goes_to_the_chosen_node(made):
    env = made(GeneratedLoad(pods=10))
    _, info = env.reset(seed=1)
    agent = at_random(2)
    for _ in range(8):
        key, row = info["pod"], agent(env, info)
        name = env.node_names[row]
        _, _, _, _, info = env.step(row)
        assert env._run.api.get(Pod, key).node_name == name


def test_a_choice_by_name_places_pods_as_a_simulation_without_scores(made):
    env = made(BUSY)
    play(env, first_by_name, seed=5)
    chosen = {uid: each.bound.node for uid, each in env._run.summary.placements.items()}
    seed = int(np.random.default_rng(5).integers(2**31))

    with Replay(BUSY.episode(seed).trace, SimOptions(load_config(WITHOUT_SCORES))) as simulation:
        simulation.run()
        expected = {uid: e.bound.node for uid, e in simulation.summary.placements.items()}

    assert len(expected) == 40
    assert chosen == expected


def test_an_action_that_is_not_feasible_changes_nothing(made):
    env = made(TraceSource(DATA / "openb"))
    before, info = env.reset(seed=0)
    while info["action_mask"].all():
        before, _, _, _, info = env.step(first_by_name(env, info))
    row = int(np.flatnonzero(info["action_mask"] == 0)[0])

    after, reward, ended, cut, told = env.step(row)

    assert (reward, ended, cut, told["infeasible"]) == (-1.0, False, False, True)
    assert told["pod"] == info["pod"]
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_equal_seeds_and_actions_give_equal_episodes(made):
    def observations(env: PlacementEnv) -> list[Any]:
        _, info = env.reset(seed=9)
        agent, seen, ended = at_random(4), [], False
        while not ended:
            observation, reward, ended, _, info = env.step(agent(env, info))
            seen.append([reward, *(each.tolist() for each in observation.values())])
        return seen

    first = observations(made(BUSY))

    assert len(first) == 40
    assert first == observations(made(BUSY))


def test_each_reset_begins_another_episode(made):
    env = made(GeneratedLoad(pods=20))
    env.reset(seed=1)

    ends = [play_on(env) for _ in range(3)]

    assert len(set(ends)) == 3


def play_on(env: PlacementEnv) -> float:
    """The time at the end of the next episode."""
    _, info = env.reset()
    ended = False
    while not ended:
        _, _, ended, _, info = env.step(first_by_name(env, info))
    return float(info["at_seconds"])


def test_rewards_add_up_to_the_change_of_the_measure(made):
    for name in ("utilisation", "fragmentation", "placed"):
        env = made(GeneratedLoad(pods=40), reward=name)
        env.reset(seed=2)
        start = env.moment
        total, _ = play(env, at_random(1), seed=2)
        end = env.moment
        change = {
            "utilisation": end.utilisation - start.utilisation,
            "fragmentation": start.fragmentation - end.fragmentation,
            "placed": (end.placed - start.placed) / 40,
        }[name]
        assert total == pytest.approx(change)
        assert total


def test_the_waiting_reward_is_the_mean_wait_of_the_pods(made):
    crowded = GeneratedLoad(nodes=("2x16cpu,64Gi",), pods=40, run_s=120.0)
    env = made(crowded, reward="waiting")
    total, info = play(env, at_random(1), seed=1)
    # Pods that were placed last are bound after the last choice.
    waiting = waiting_of(env._run.summary)

    assert info["placed"] == 40
    assert waiting.mean_s > 1
    assert total == pytest.approx(-waiting.mean_s, abs=0.01)


def test_rewards_can_be_weighed_and_written_by_the_user(made):
    source = GeneratedLoad(pods=15)
    single = [play(made(source, reward=name), first_by_name)[0] for name in ("placed", "waiting")]
    mixed, _ = play(made(source, reward={"placed": 2, "waiting": 0.5}), first_by_name)
    own, _ = play(made(source, reward=lambda before, after: 1.0), first_by_name)

    assert mixed == pytest.approx(2 * single[0] + 0.5 * single[1])
    assert own == 15


def test_a_cluster_of_files_is_an_episode(made, tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: placed}\n"
        "spec: {nodeName: 8cpu-1, containers: [{name: c, resources: {requests: {cpu: 7}}}]}\n---\n"
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 3\n"
        "  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n"
        "    spec: {containers: [{name: c, resources: {requests: {cpu: 4}}}]}\n"
    )
    source = ClusterSource([path], nodes=["2x8cpu,32Gi"])
    names = [node.name for node in source.episode(0).trace.nodes]
    path.write_text(path.read_text().replace("8cpu-1", names[0]))
    env = made(ClusterSource([path], nodes=["2x8cpu,32Gi"]))

    _, info = env.reset(seed=0)
    mask = dict(zip(env.node_names, info["action_mask"].tolist(), strict=True))
    total, info = play(env, first_by_name)

    assert mask == {names[0]: 0, names[1]: 1}
    assert (info["placed"], info["pending"]) == (2, 1)
    assert total == pytest.approx(2 / 3)


def test_a_vector_of_environments_has_a_mask_for_each():
    envs = gymnasium.make_vec(
        mooring.gym.ENVIRONMENT, num_envs=2, vectorization_mode="sync", source=BUSY
    )
    _, infos = envs.reset(seed=1)
    for _ in range(5):
        assert infos["action_mask"].shape == (2, 4)
        _, rewards, _, _, infos = envs.step(infos["action_mask"].argmax(axis=1))
        assert rewards == pytest.approx([1 / 40, 1 / 40])
    envs.close()


def test_an_episode_that_has_ended_needs_a_reset(made):
    env = made(GeneratedLoad(pods=3))
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)
    play(env, first_by_name)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        pytest.param({"reward": "speed"}, "reward: must be one of placed", id="reward"),
        pytest.param(
            {"source": GeneratedLoad(nodes=("3xnothing",))}, "nodes: '3xnothing'", id="nodes"
        ),
        pytest.param({"source": GeneratedLoad(pods=0)}, "needs nodes and pods", id="no pods"),
        pytest.param({"source": TraceSource("nowhere")}, "nowhere", id="no trace"),
    ],
)
def test_what_cannot_be_played_is_refused_at_once(options, problem):
    with pytest.raises((InputError, ConfigError), match=problem):
        PlacementEnv(**options)


def test_extenders_are_refused(made):
    extender = {"urlPrefix": "http://127.0.0.1:1/", "filterVerb": "filter", "weight": 1}
    config = {**WITHOUT_SCORES, "extenders": [extender]}

    with pytest.raises(ConfigError, match="an agent cannot choose beside extenders"):
        made(GeneratedLoad(pods=3), config=config).reset()
