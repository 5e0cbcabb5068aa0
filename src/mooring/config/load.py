"""Load a configuration from text, or report everything that is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mooring.config.decode import decode_config
from mooring.config.defaults import fill_absent, with_defaults
from mooring.config.document import read_document
from mooring.config.gates import DEFAULT_GATES, FeatureGates
from mooring.config.old_versions import to_v1
from mooring.config.types import KubeSchedulerConfiguration
from mooring.config.validation import config_problems
from mooring.errors import ConfigError

#: Changes a configuration that has its defaults, before it is checked.
Adjust = Callable[[KubeSchedulerConfiguration], KubeSchedulerConfiguration]
#: Further problems of a configuration that has its defaults.
Check = Callable[[KubeSchedulerConfiguration], Iterable[str]]

_ENABLED = re.compile(
    r"profiles\[(?P<profile>\d+)\]\.plugins\.(?P<point>\w+)\.enabled\[(?P<index>\d+)\]"
)


def load_config(
    source: str | bytes | Path | Mapping[str, Any],
    *,
    gates: FeatureGates = DEFAULT_GATES,
    notes: list[str] | None = None,
    adjust: Adjust | None = None,
    also: Check | None = None,
) -> KubeSchedulerConfiguration:
    """Read, complete and check a configuration.

    A string is YAML or JSON; to read a file, pass a Path. `gates` are set in addition to those of
    the configuration, and before them. Raises ConfigError with a line for every problem, each with
    the path of its field. `notes` gets a line for what was read otherwise than it is written, such
    as an older version.
    """
    told: list[str] = [] if notes is None else notes
    document, problems = read_document(source, notes=told)
    version = to_v1(document, notes=told, problems=problems)
    fill_absent(document)
    given, unreadable = decode_config(document, problems)
    try:
        gates = FeatureGates({**given.feature_gates, **gates.settings})
    except ConfigError as error:
        problems += [f"featureGates: {line}" for line in error.problems]
    config = with_defaults(given, gates, version)
    if adjust is not None:
        config = adjust(config)
    found = config_problems(config, gates)
    if also is not None:
        reported = tuple(_path(line) for line in found)
        found += [line for line in also(config) if not _path(line).startswith(reported)]
    found = [_as_written(line, given, config) for line in found]
    problems += [line for line in found if not _is_about(line, unreadable)]
    if problems:
        raise ConfigError(list(dict.fromkeys(problems)))
    return config


def _as_written(
    problem: str, given: KubeSchedulerConfiguration, config: KubeSchedulerConfiguration
) -> str:
    """The problem with the index that an enabled plugin has in the text.

    In the configuration with its defaults, the default plugins come before it.
    """
    place = _ENABLED.match(problem)
    if place is None or int(place["profile"]) >= len(given.profiles):
        return problem
    profile, index = int(place["profile"]), int(place["index"])
    plugin = dict(config.profiles[profile].plugins.sets())[place["point"]].enabled[index]
    written = dict(given.profiles[profile].plugins.sets())[place["point"]].enabled
    if plugin not in written:
        return problem
    start, end = place.span("index")
    return f"{problem[:start]}{written.index(plugin)}{problem[end:]}"


def _is_about(problem: str, paths: list[str]) -> bool:
    """Whether the problem is about one of these fields, or about what contains or is in one.

    The args of a plugin are checked as a whole.
    """
    path = _path(problem)
    paths = [each.partition(".args")[0] for each in paths]
    return any(path.startswith(each) or each.startswith(path) for each in paths)


def _path(problem: str) -> str:
    return problem.partition(": ")[0]


def default_config(gates: FeatureGates = DEFAULT_GATES) -> KubeSchedulerConfiguration:
    """The default configuration."""
    if gates is DEFAULT_GATES:
        return _default_config()
    return with_defaults(KubeSchedulerConfiguration(), gates)


@cache
def _default_config() -> KubeSchedulerConfiguration:
    return with_defaults(KubeSchedulerConfiguration(), DEFAULT_GATES)
