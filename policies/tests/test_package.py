"""The package offers what its pyproject.toml says."""

import pytest

from policies.tests.configurations import ENTRY_POINTS, registry


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_every_entry_point_is_a_class_with_the_name_that_configurations_use(name):
    plugin = registry().factory(name)

    assert plugin is not None
    assert plugin.name == name
