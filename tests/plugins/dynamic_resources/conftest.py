from __future__ import annotations

import pytest

from tests.device_world import World


@pytest.fixture
def world_of():
    """`world_of(*objects)`, closed when the test ends."""
    worlds: list[World] = []

    def make(*objects, **args) -> World:
        worlds.append(World(*objects, **args))
        return worlds[-1]

    yield make
    for world in worlds:
        world.close()
