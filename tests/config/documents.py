"""Configurations for tests, as plain data; a case mentions only what it is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mooring.config import DEFAULT_GATES, FeatureGates, KubeSchedulerConfiguration, load_config
from mooring.config.types import API_VERSION, KIND
from mooring.errors import ConfigError

TYPE_META = {"apiVersion": API_VERSION, "kind": KIND}


def document(**fields: Any) -> dict[str, Any]:
    return {**TYPE_META, **fields}


def load(gates: FeatureGates = DEFAULT_GATES, **fields: Any) -> KubeSchedulerConfiguration:
    return load_config(document(**fields), gates=gates)


def load_args(
    plugin: str, args: Mapping[str, Any] | None, gates: FeatureGates = DEFAULT_GATES
) -> Any:
    """The args of a plugin as they take effect in the only profile."""
    config = load(gates, profiles=[{"pluginConfig": [{"name": plugin, "args": args}]}])
    return config.profiles[0].args_of(plugin)


def problems_of(source: Any, gates: FeatureGates = DEFAULT_GATES) -> list[str]:
    with pytest.raises(ConfigError) as refusal:
        load_config(source, gates=gates)
    return list(refusal.value.problems)


def problems(gates: FeatureGates = DEFAULT_GATES, **fields: Any) -> list[str]:
    return problems_of(document(**fields), gates)


def args_problems(
    plugin: str, args: Mapping[str, Any], gates: FeatureGates = DEFAULT_GATES
) -> list[str]:
    """What is wrong with a plugin's args in the only profile, by paths that start at the args."""
    found = problems(gates, profiles=[{"pluginConfig": [{"name": plugin, "args": args}]}])
    prefix = "profiles[0].pluginConfig[0].args."
    assert all(line.startswith(prefix) for line in found), found
    return [line.removeprefix(prefix) for line in found]
