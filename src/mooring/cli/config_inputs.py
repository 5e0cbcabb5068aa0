"""Read the scheduler configuration of a command, and choose the pods that it is for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from mooring.cli.inputs import STDIN, given_gates, read_bytes, shown
from mooring.cli.main import print_notes, print_warnings
from mooring.config import (
    KubeSchedulerConfiguration,
    default_config,
    idle_entries,
    load_config,
    without_plugins,
)
from mooring.config.default_plugins import GATE_OF
from mooring.config.gates import gates_without_effect
from mooring.errors import ConfigError, InputError
from mooring.objects.kinds import Kind
from mooring.objects.meta import KubeObject
from mooring.objects.pod import DEFAULT_SCHEDULER
from mooring.objects.scheduler_names import asking_for, wanted_schedulers
from mooring.plugins.registry import default_registry
from mooring.runtime.build import plugin_kinds, plugin_problems
from mooring.runtime.plugin_folder import find_plugins_beside

#: The most names of schedulers in a message.
_MOST_NAMES = 3


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A configuration as a command uses it."""

    #: Where it is from; None for the default configuration.
    path: str | None = None
    config: KubeSchedulerConfiguration | None = None
    #: Plugins that the configuration enables and mooring does not have; the answer is approximate.
    left_out: tuple[str, ...] = ()
    #: The kinds that its plugins declare, to be read with the cluster.
    kinds: tuple[Kind, ...] = ()

    @property
    def profiles(self) -> list[str]:
        if self.config is None:
            return [DEFAULT_SCHEDULER]
        return [profile.scheduler_name for profile in self.config.profiles]

    def to_data(self) -> dict[str, Any]:
        """What JSON says about the configuration; empty if the answer is exact."""
        if not self.left_out:
            return {}
        return {"approximate": True, "leftOutPlugins": list(self.left_out)}


@dataclass(frozen=True, slots=True)
class ConfigInput:
    """The options `--config`, `--ignore-unknown-plugins` and `--scheduler-name` of a command."""

    path: str | None = None
    ignores_unknown: bool = False
    scheduler_name: str | None = None

    def read(self) -> LoadedConfig:
        """Raises ConfigError and InputError."""
        return read_config(self.path, ignores_unknown=self.ignores_unknown)

    def choose_pods(
        self, objects: Sequence[KubeObject], loaded: LoadedConfig
    ) -> Sequence[KubeObject]:
        """The objects with the pods asking for `--scheduler-name`.

        Without it, warn if no pod asks for a scheduler of the configuration. Raises InputError.
        """
        if self.scheduler_name is None:
            unasked = unasked_for(objects, loaded)
            print_warnings([unasked] if unasked else [])
            return objects
        if self.scheduler_name not in loaded.profiles:
            where = "the default configuration" if loaded.path is None else shown(loaded.path)
            raise InputError(
                [
                    f"--scheduler-name {self.scheduler_name}: {where} has no such profile;"
                    f" it has {', '.join(loaded.profiles)}"
                ]
            )
        return asking_for(objects, self.scheduler_name)


def unasked_for(objects: Sequence[KubeObject], loaded: LoadedConfig) -> str:
    """That no pod asks for a scheduler of the configuration, and what to do; "" if one does."""
    wanted = wanted_schedulers(objects)
    if not wanted or any(name in wanted for name in loaded.profiles):
        return ""
    where = "the default configuration" if loaded.path is None else shown(loaded.path)
    asked = ", ".join(f"{n:,} for {name}" for name, n in wanted.most_common(_MOST_NAMES))
    return (
        f"{where}: no pod asks for its scheduler {' or '.join(loaded.profiles)}; pods ask: {asked}."
        f" Add --scheduler-name {loaded.profiles[0]} to schedule them with it"
    )


def read_config(path: str | None, *, ignores_unknown: bool = False) -> LoadedConfig:
    """Print notes about what was read otherwise than written. Raises ConfigError and InputError."""
    gates = given_gates()
    if path is None:
        print_warnings(gates_without_effect(gates))
        return LoadedConfig(config=default_config(gates) if gates.settings else None)
    text = read_bytes(path)
    if path != STDIN:
        find_plugins_beside(Path(path))
    registry = default_registry()
    left_out: list[str] = []

    def adjust(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
        if ignores_unknown:
            enabled = {name for each in config.profiles for name in each.plugins.enabled_names}
            config, unknown = without_plugins(config, registry.known(enabled))
            left_out[:] = unknown
        return config

    notes: list[str] = []
    with naming(path):
        config = load_config(
            text,
            gates=gates,
            notes=notes,
            adjust=adjust,
            also=lambda config: plugin_problems(config, registry),
        )
    print_notes(f"{shown(path)}: {note}" for note in notes)
    print_notes(f"{shown(path)}: {line}" for line in idle_entries(config, registry.names()))
    print_warnings(gates_without_effect(config.gates))
    enabled = {name for profile in config.profiles for name in profile.plugins.enabled_names}
    for name in sorted(enabled & GATE_OF.keys()):
        if not config.gates.enabled(GATE_OF[name]):
            off = f"{shown(path)}: {name} has no effect: the feature gate {GATE_OF[name]} is off"
            print_warnings([off])
    if left_out:
        print_warnings(
            [
                f"the answer is approximate: mooring does not have {', '.join(left_out)}, and left them out"
            ]
        )
    return LoadedConfig(path, config, tuple(left_out), plugin_kinds(config, registry))


@contextmanager
def naming(path: str | None) -> Iterator[None]:
    """Prefix every line of a ConfigError with the name of the file."""
    try:
        yield
    except ConfigError as error:
        if path is None:
            raise
        raise ConfigError([f"{shown(path)}: {line}" for line in error.problems]) from error


ignore_unknown_option = click.option(
    "--ignore-unknown-plugins",
    "ignores_unknown",
    is_flag=True,
    help="Leave out plugins of the configuration that mooring does not have. The answer is then approximate,"
    " and says which plugins it left out.",
)

scheduler_name_option = click.option(
    "--scheduler-name",
    metavar="NAME",
    help="Schedule all pods with this profile of the configuration, whatever schedulerName they have.",
)
