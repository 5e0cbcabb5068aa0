from __future__ import annotations

import pytest
from msgspec.structs import replace

from mooring.config import Extender, load_config, ordered_extenders, with_ignored_resources
from mooring.errors import ConfigError
from tests.config.documents import document, load


def managing(*names: str, ignored: bool = True) -> dict[str, object]:
    return {"managedResources": [{"name": n, "ignoredByScheduler": ignored} for n in names]}


def test_extenders_that_may_fail_come_after_those_that_may_not():
    extenders = [Extender(url, ignorable=url.islower()) for url in ("a", "B", "c", "D")]

    assert [extender.url_prefix for extender in ordered_extenders(extenders)] == list("BDac")


def test_resources_ignored_for_an_extender_replace_those_of_every_profile():
    own = {"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/own"]}}
    config = load_config(
        document(
            profiles=[{"schedulerName": "a", "pluginConfig": [own]}, {"schedulerName": "b"}],
            extenders=[managing("example.com/x"), managing("example.com/y", "example.com/z")],
        )
    )

    profiles = with_ignored_resources(config).profiles

    assert [profile.args_of("NodeResourcesFit").ignored_resources for profile in profiles] == [
        ("example.com/x", "example.com/y", "example.com/z"),
        ("example.com/x", "example.com/y", "example.com/z"),
    ]


def test_resources_that_are_managed_but_not_ignored_change_nothing():
    config = load(extenders=[managing("example.com/x", ignored=False)])

    assert with_ignored_resources(config) == config


def test_a_profile_without_args_for_the_fit_plugin_cannot_ignore_resources():
    config = load(extenders=[managing("example.com/x")])
    bare = replace(config.profiles[0], plugin_config=())

    with pytest.raises(ConfigError) as refusal:
        with_ignored_resources(replace(config, profiles=(bare,)))

    assert list(refusal.value.problems) == [
        "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config"
    ]
