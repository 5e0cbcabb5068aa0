"""The flags of `mooring run` are fields of the configuration."""

from __future__ import annotations

import pytest

from mooring.cli.run import override, run
from mooring.config import KubeSchedulerConfiguration, default_config
from mooring.errors import ConfigError


def configured(*arguments: str) -> KubeSchedulerConfiguration:
    parameters = run.make_context("run", list(arguments)).params
    flags = {name: value for name, value in parameters.items() if "__" in name}
    return override(flags)(default_config())


def test_without_flags_the_configuration_is_as_it_was():
    assert configured() == default_config()


@pytest.mark.parametrize(
    ("argument", "part", "field", "value"),
    [
        ("--no-leader-elect", "leader_election", "leader_elect", False),
        ("--leader-elect-resource-name=me", "leader_election", "resource_name", "me"),
        ("--leader-elect-resource-namespace=ns", "leader_election", "resource_namespace", "ns"),
        ("--kube-api-qps=7.5", "client_connection", "qps", 7.5),
        ("--kube-api-burst=9", "client_connection", "burst", 9),
    ],
)
def test_a_flag_wins_over_the_configuration(argument, part, field, value):
    assert getattr(getattr(configured(argument), part), field) == value


@pytest.mark.parametrize(
    ("argument", "field", "seconds"),
    [
        ("--leader-elect-lease-duration=1m30s", "lease_duration", 90),
        ("--leader-elect-renew-deadline=12", "renew_deadline", 12),
        ("--leader-elect-retry-period=500ms", "retry_period", 0.5),
    ],
)
def test_a_flag_may_be_a_length_of_time(argument, field, seconds):
    assert getattr(configured(argument).leader_election, field).seconds == seconds


def test_flags_that_make_no_sense_together_are_refused():
    with pytest.raises(ConfigError, match="leaderElection"):
        configured("--leader-elect-lease-duration=5s", "--leader-elect-renew-deadline=10s")
