"""`mooring config`: is this configuration valid, and what are its defaults and plugins?"""

from __future__ import annotations

import sys
from typing import Any

import click

from mooring.cli import output
from mooring.cli.config_inputs import ignore_unknown_option, naming, read_config
from mooring.cli.inputs import shown
from mooring.cli.main import NO, print_problems
from mooring.cli.options import feature_gates_option, output_option
from mooring.config import (
    ExpandedPlugins,
    ExtensionPoint,
    default_config,
    write_config,
)
from mooring.config.extension_points import POD_POINTS
from mooring.errors import ConfigError
from mooring.plugins.registry import default_registry
from mooring.runtime.build import expand
from mooring.sim.simulation import SimOptions, Simulation

_POINTS = (*POD_POINTS, ExtensionPoint.PLACEMENT_GENERATE, ExtensionPoint.PLACEMENT_SCORE)


@click.group()
def config() -> None:
    """Check a scheduler configuration, or show it with its defaults and plugins."""


@config.command()
@click.argument("file", metavar="FILE")
@feature_gates_option
@ignore_unknown_option
def check(file: str, ignores_unknown: bool) -> None:
    """Check whether a KubeSchedulerConfiguration is valid.

    Prints one line for each problem, with the path of the field. FILE can be - for standard input. The
    configuration can be in a ConfigMap, or one of several documents. v1beta2 and v1beta3 are read as v1,
    with a note of what changed.

    Exits 0 if it is valid, 1 if it is not, 2 if mooring cannot read the file.

    \b
    Examples:
      mooring config check scheduler.yaml
      kubectl get cm scheduler -n kube-system -o yaml | mooring config check -
    """
    try:
        loaded = read_config(file, ignores_unknown=ignores_unknown)
        # Plugins check their own arguments, so build them.
        with naming(file):
            Simulation(SimOptions(config=loaded.config)).close()
    except ConfigError as error:
        print_problems(error.problems)
        sys.exit(NO)
    left_out = f", without {', '.join(loaded.left_out)}" if loaded.left_out else ""
    output.write(f"{shown(file)}: valid{left_out}\n")


@config.command()
@click.argument("file", metavar="[FILE]", required=False)
@output_option(
    "table",
    "yaml",
    "json",
    help="yaml has the configuration only, ready to use; json also has the plugins.",
)
@feature_gates_option
@ignore_unknown_option
def view(file: str | None, form: str, ignores_unknown: bool) -> None:
    """Show a configuration with its defaults and plugins.

    Without FILE, it shows the default configuration; - is standard input. For each profile and extension
    point, the table has the plugins in the order in which they run, with their score weights.

    Exits 0, or 2 if the file cannot be read or is invalid.

    \b
    Examples:
      mooring config view
      mooring config view scheduler.yaml
      mooring config view -o yaml > scheduler.yaml
    """
    loaded = read_config(file, ignores_unknown=ignores_unknown)
    resolved = loaded.config or default_config()
    with naming(file):
        profiles = expand(resolved, default_registry())
    match form:
        case "yaml":
            output.write_yaml(write_config(resolved))
        case "json":
            output.write_json(
                {
                    "configuration": write_config(resolved),
                    "plugins": {name: _data(plugins) for name, plugins in profiles.items()},
                    **loaded.to_data(),
                }
            )
        case _:
            output.write(f"{output.to_yaml(write_config(resolved))}\n")
            _write_tables(profiles)


def _data(plugins: ExpandedPlugins) -> dict[str, Any]:
    return {point.value: _entries(plugins, point) for point in _POINTS}


def _entries(plugins: ExpandedPlugins, point: ExtensionPoint) -> list[dict[str, Any]]:
    weights = _weights(plugins, point)
    return [
        {"name": name, "weight": weights[name]} if name in weights else {"name": name}
        for name in plugins.order[point]
    ]


def _weights(plugins: ExpandedPlugins, point: ExtensionPoint) -> dict[str, int]:
    """Empty where nothing is scored."""
    match point:
        case ExtensionPoint.SCORE:
            return dict(plugins.score_weights)
        case ExtensionPoint.PLACEMENT_SCORE:
            return dict(plugins.placement_score_weights)
        case _:
            return {}


def _write_tables(profiles: dict[str, ExpandedPlugins]) -> None:
    page = output.Page()
    for name, plugins in profiles.items():
        page.heading(f"PROFILE {name}")
        page.table(
            (
                output.Column("EXTENSION POINT"),
                output.Column("PLUGIN"),
                output.Column("WEIGHT", right=True),
            ),
            _rows(plugins),
        )
    page.write()


def _rows(plugins: ExpandedPlugins) -> list[tuple[str, str, str]]:
    rows: list[tuple[str, str, str]] = []
    for point in _POINTS:
        weights = _weights(plugins, point)
        for i, name in enumerate(plugins.order[point]):
            weight = str(weights[name]) if name in weights else ""
            rows.append((point.value if i == 0 else "", name, weight))
    return rows
