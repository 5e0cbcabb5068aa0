"""Load a configuration from text, or report everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mooring.config.decode import decode_config
from mooring.config.defaults import fill_absent, with_defaults
from mooring.config.document import read_document
from mooring.config.gates import DEFAULT_GATES, FeatureGates
from mooring.config.types import KubeSchedulerConfiguration
from mooring.config.validation import config_problems
from mooring.errors import ConfigError


def load_config(
    source: str | bytes | Path | Mapping[str, Any], *, gates: FeatureGates = DEFAULT_GATES
) -> KubeSchedulerConfiguration:
    """Read, complete and check a configuration.

    A string is YAML or JSON; to read a file, pass a Path. `gates` are set in addition to those of
    the configuration, and before them. Raises ConfigError with a line for every problem, each with
    the path of its field.
    """
    document, problems = read_document(source)
    fill_absent(document)
    given = decode_config(document, problems)
    try:
        gates = FeatureGates({**given.feature_gates, **gates.settings})
    except ConfigError as error:
        problems += [f"featureGates: {line}" for line in error.problems]
    config = with_defaults(given, gates)
    problems += config_problems(config, gates)
    if problems:
        raise ConfigError(problems)
    return config


def default_config(gates: FeatureGates = DEFAULT_GATES) -> KubeSchedulerConfiguration:
    """The default configuration."""
    return with_defaults(KubeSchedulerConfiguration(), gates)
