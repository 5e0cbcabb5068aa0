from __future__ import annotations

import pytest

from mooring.config import Plugin, Plugins, PluginSet
from mooring.config.merge import merge_plugin_set, merge_plugins

DEFAULT = PluginSet(enabled=(Plugin("A"), Plugin("B", 2), Plugin("C", 3)))


def plugin_set(enabled: str = "", disabled: str = "") -> PluginSet:
    """`"A B=5"`: names, with a weight where one is given."""
    return PluginSet(enabled=_plugins(enabled), disabled=_plugins(disabled))


def _plugins(text: str) -> tuple[Plugin, ...]:
    pairs = (word.partition("=") for word in text.split())
    return tuple(Plugin(name, int(weight or 0)) for name, _, weight in pairs)


@pytest.mark.parametrize(
    ("custom", "merged"),
    [
        pytest.param(plugin_set(), plugin_set("A B=2 C=3"), id="nothing of its own"),
        pytest.param(
            plugin_set(disabled="B"), plugin_set("A C=3", disabled="B"), id="one switched off"
        ),
        pytest.param(plugin_set(disabled="*"), plugin_set("", disabled="*"), id="all switched off"),
        pytest.param(plugin_set("D"), plugin_set("A B=2 C=3 D"), id="what is added comes last"),
        pytest.param(
            plugin_set("B=9"), plugin_set("A B=9 C=3"), id="a weight changes, the place does not"
        ),
        pytest.param(
            plugin_set("B"), plugin_set("A B C=3"), id="the entry is replaced, weight and all"
        ),
        pytest.param(
            plugin_set("C=8 D A=7"), plugin_set("A=7 B=2 C=8 D"), id="the order is the default's"
        ),
        pytest.param(
            plugin_set("B", disabled="B"),
            plugin_set("A C=3 B", disabled="B"),
            id="switched off and on again: at the tail",
        ),
        pytest.param(
            plugin_set("C A", disabled="*"),
            plugin_set("C A", disabled="*"),
            id="all off, some on: in the order given",
        ),
        pytest.param(
            plugin_set("B=8 B=9"),
            plugin_set("A B=9 C=3 B=8"),
            id="of two entries the last replaces, the other stays",
        ),
        pytest.param(
            plugin_set("D D"), plugin_set("A B=2 C=3 D D"), id="what is added twice stays twice"
        ),
        pytest.param(
            plugin_set(disabled="X=4"),
            plugin_set("A B=2 C=3", disabled="X"),
            id="a stranger switched off is remembered, without its weight",
        ),
    ],
)
def test_a_profile_merges_into_the_defaults(custom, merged):
    assert merge_plugin_set(DEFAULT, custom) == merged


def test_what_the_defaults_switch_off_stays_off_unless_switched_on():
    default = plugin_set("A B", disabled="B")

    assert merge_plugin_set(default, plugin_set(disabled="A")) == plugin_set("", disabled="A B")
    assert merge_plugin_set(default, plugin_set("B")) == plugin_set("A B", disabled="B")


def test_each_point_merges_by_itself():
    merged = merge_plugins(
        Plugins(multi_point=DEFAULT),
        Plugins(filter=plugin_set("X", disabled="*"), multi_point=plugin_set("D")),
    )

    assert merged == Plugins(
        filter=plugin_set("X", disabled="*"), multi_point=plugin_set("A B=2 C=3 D")
    )


def test_merging_again_changes_nothing():
    default = Plugins(multi_point=DEFAULT)
    custom = Plugins(multi_point=plugin_set("D B=4 A", disabled="A"), score=plugin_set("B=1"))
    once = merge_plugins(default, custom)

    assert merge_plugins(default, once) == once
