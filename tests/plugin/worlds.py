"""Simulations and engines with plugins that a test brings along, enabled wherever they take part."""

from __future__ import annotations

from typing import Any

from mooring.config import KubeSchedulerConfiguration, load_config
from mooring.objects.meta import KubeObject
from mooring.sim.simulation import SimOptions, Simulation
from tests.engine import Engine, registry_with


def config_with(*names: str, **args: Any) -> KubeSchedulerConfiguration:
    """The default configuration and these plugins; `args` by plugin name."""
    return load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {
                    "plugins": {"multiPoint": {"enabled": [{"name": name} for name in names]}},
                    "pluginConfig": [{"name": name, "args": args[name]} for name in args],
                }
            ],
        }
    )


def simulation_with(
    *plugins: type, objects: tuple[KubeObject, ...] = (), **args: Any
) -> Simulation:
    registry = registry_with({plugin.__name__: plugin for plugin in plugins})
    config = config_with(*(plugin.__name__ for plugin in plugins), **args)
    simulation = Simulation(SimOptions(config=config, registry=registry))
    simulation.load(objects)
    return simulation


def engine_with(*plugins: type, objects: tuple[KubeObject, ...] = (), **args: Any) -> Engine:
    return Engine(
        *objects,
        config=config_with(*(plugin.__name__ for plugin in plugins), **args),
        plugins={plugin.__name__: plugin for plugin in plugins},
    )
