"""The package offers what its pyproject.toml says."""

import importlib
import tomllib
from pathlib import Path

import pytest

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
PLUGINS = tomllib.loads(PYPROJECT.read_text())["project"]["entry-points"]["mooring.plugins"]


@pytest.mark.parametrize(("name", "target"), PLUGINS.items())
def test_every_entry_point_is_a_class_with_the_name_that_configurations_use(name, target):
    module, _, attribute = target.partition(":")
    plugin = getattr(importlib.import_module(module), attribute)

    assert plugin.name == name
