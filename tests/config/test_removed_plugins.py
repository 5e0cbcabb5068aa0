"""What users read about plugins that mooring does not have."""

from importlib.metadata import entry_points

from mooring.config import removed_plugins
from mooring.config.removed_plugins import why_unknown


def test_a_policy_says_which_package_has_it():
    assert "pip install ./policies" in why_unknown("Coscheduling")


def test_the_package_has_every_policy_that_is_said_to_be_in_it():
    found = {point.name for point in entry_points(group="mooring.plugins")}

    assert found >= removed_plugins._IN_POLICIES


def test_any_other_name_is_simply_unknown():
    assert why_unknown("Nonsense") == ""
