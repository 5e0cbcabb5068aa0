"""Binds of gang members fail, answers get lost, members are deleted and nodes go: no gang stays half held."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.config import default_config
from mooring.errors import ApiError, Conflict
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.sim.api import SimApi
from mooring.sim.simulation import SimOptions, Simulation
from tests.groups import BY_RACK, gates
from tests.makers import make_group, make_node, make_pod
from tests.sim.books import assert_at_rest, validate

RACK = "example.com/rack"

#: What becomes of a bind.
FINE, REFUSED, LOST, SLOW = range(4)
fates = st.lists(st.sampled_from((FINE, REFUSED, LOST, SLOW)), max_size=12)


class Binds:
    """Passes writes on; the first binds fare as was drawn."""

    def __init__(self, api: SimApi, fates: list[int]) -> None:
        self._api = api
        self._fates = list(fates)
        #: Pods whose bind failed, or was not known to be made.
        self.failed: set[str] = set()

    async def bind(self, pod: Pod, node_name: str) -> None:
        fate = self._fates.pop(0) if self._fates else FINE
        if fate == REFUSED:
            self.failed.add(pod.key)
            raise Conflict("somebody wrote first")
        if fate == SLOW:
            await asyncio.sleep(2.0)
        await self._api.bind(pod, node_name)
        if fate == LOST:
            # The watch shows the pod on its node meanwhile; a driver that does not wait asks for it.
            await asyncio.sleep(0.1)
            self.failed.add(pod.key)
            raise ApiError("the answer was lost")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)


def world(
    cpus: list[int], gangs: list[tuple[int, int, bool]], drawn: list[int]
) -> tuple[Simulation, list[Binds]]:
    """(pods, minCount, in one rack) of each gang. Nobody preempts."""
    made: list[Binds] = []

    def between(api: SimApi) -> Binds:
        made.append(Binds(api, drawn))
        return made[0]

    sim = Simulation(SimOptions(config=default_config(gates(BY_RACK)), writer=between))
    objects: list[KubeObject] = [
        make_node(f"n{n}", cpu=cpu, labels={RACK: f"r{n % 2}"}) for n, cpu in enumerate(cpus)
    ]
    for g, (size, least, in_rack) in enumerate(gangs):
        rack = RACK if in_rack else None
        objects.append(make_group(f"g{g}", min_count=min(least, size), rack_key=rack))
        objects += [
            make_pod(f"g{g}-{n}", group=f"g{g}", cpu=1, preemption_policy="Never")
            for n in range(size)
        ]
    sim.load(objects)
    return sim, made


def run(sim: Simulation) -> None:
    sim.run(stops_when=partial(validate, sim))


def bound(sim: Simulation) -> Counter[str]:
    return Counter(pod.name.partition("-")[0] for pod in sim.api.all(Pod) if pod.node_name)


gangs = st.lists(
    st.tuples(st.integers(1, 4), st.integers(1, 4), st.booleans()), min_size=1, max_size=3
)


@settings(max_examples=25)
@given(cpus=st.lists(st.integers(1, 3), min_size=1, max_size=4), wanted=gangs, drawn=fates)
def test_only_a_gang_whose_bind_failed_may_end_with_fewer_than_its_minimum(cpus, wanted, drawn):
    sim, (binds,) = world(cpus, wanted, drawn)
    with sim:
        run(sim)
        assert_at_rest(sim)
        failed = {key.partition("/")[2].partition("-")[0] for key in binds.failed}
        for g, (size, least, _) in enumerate(wanted):
            count = bound(sim)[f"g{g}"]
            assert count == 0 or count >= min(least, size) or f"g{g}" in failed


@settings(max_examples=25)
@given(size=st.integers(1, 5), drawn=fates, spare=st.integers(0, 1))
def test_a_gang_that_has_room_is_completed_however_its_binds_fail(size, drawn, spare):
    sim, _ = world([1] * (size + spare), [(size, size, False)], drawn)
    with sim:
        run(sim)
        assert_at_rest(sim)
        assert bound(sim) == {"g0": size}


@settings(max_examples=25)
@given(
    size=st.integers(2, 4),
    drawn=fates,
    lost_node=st.integers(0, 4),
    lost_pod=st.integers(0, 3),
    at_s=st.sampled_from((0.0, 1.0, 2.5)),
)
def test_what_a_gang_does_not_get_is_free_for_others(size, drawn, lost_node, lost_pod, at_s):
    """A node and a member go in the middle; then single pods take all the room that is left."""
    sim, _ = world([1] * size, [(size, size, False)], drawn)
    with sim:
        api = sim.api

        def lose() -> None:
            if (node := api.get(Node, f"n{lost_node}")) is not None:
                api.delete(node)
            if (pod := api.get(Pod, f"default/g0-{lost_pod}")) is not None:
                api.delete(pod)

        api.later(at_s, lose)
        run(sim)
        for n in range(size):
            api.create(make_pod(f"single-{n}", cpu=1))
        run(sim)
        assert_at_rest(sim)
        there = {node.name for node in api.all(Node)}
        taken = Counter(pod.node_name for pod in api.all(Pod) if pod.node_name in there)
        assert taken == dict.fromkeys(there, 1)
