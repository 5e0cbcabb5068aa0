"""Where plugins come from, and how they are made."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from mooring.config.extension_points import ExtensionPoint as Point
from mooring.errors import PluginError
from mooring.plugins.node_name import NodeName
from mooring.runtime.registry import ENTRY_POINT_GROUP, Registry, installed_plugins

NODE_NAME = "mooring.plugins.node_name:NodeName"


class Fits:
    def filter(self, state, pod, node): ...


def entry(name: str, value: str) -> dict[str, EntryPoint]:
    return {name: EntryPoint(name, value, ENTRY_POINT_GROUP)}


def registry(built_in=None, **more) -> Registry:
    more.setdefault("installed", {})
    return Registry(built_in or {}, **more)


# Finding


def test_a_built_in_plugin_is_found_by_its_name():
    known = registry({"Fits": Fits})

    assert known.factory("Fits") is Fits
    assert known.names() == {"Fits"}


def test_a_plugin_of_an_installed_package_is_loaded_when_it_is_asked_for():
    known = registry(installed=entry("Berth", NODE_NAME) | entry("Broken", "no_such_module:X"))

    assert known.names() == {"Berth", "Broken"}
    assert known.factory("Berth") is NodeName


def test_a_plugin_may_be_named_by_module_and_class():
    known = registry()

    assert known.factory(NODE_NAME) is NodeName
    assert known.known([NODE_NAME, "Unheard"]) == {NODE_NAME}


def test_a_program_may_bring_its_own_plugins():
    known = registry()

    known.add("Fits", Fits)

    assert known.factory("Fits") is Fits


def test_a_name_that_nobody_knows_has_no_class():
    assert registry().factory("Unheard") is None


def test_the_points_of_a_plugin_are_those_it_has_a_method_for():
    class Many:
        less = score_rows = unreserve = lambda *_: None
        close = "not a method"
        permit = None

    points = registry({"Many": Many, "Fits": Fits}).implemented(["Many", "Fits", "Unheard"])

    assert points == {
        "Many": {Point.QUEUE_SORT, Point.SCORE, Point.RESERVE},
        "Fits": {Point.FILTER},
    }


def test_installed_plugins_are_those_of_one_entry_point_group():
    assert all(point.group == ENTRY_POINT_GROUP for point in installed_plugins().values())


# Names that are taken


def test_an_installed_plugin_may_not_take_the_name_of_a_built_in_one():
    with pytest.raises(PluginError, match=r"named Fits already exists.*as other:Fits must choose"):
        registry({"Fits": Fits}, installed=entry("Fits", "other:Fits"))


@pytest.mark.parametrize("taken", ["Fits", "Berth"])
def test_a_program_may_not_bring_a_plugin_under_a_name_that_is_taken(taken):
    known = registry({"Fits": Fits}, installed=entry("Berth", NODE_NAME))

    with pytest.raises(PluginError, match=f"a plugin named {taken} already exists"):
        known.add(taken, Fits)


# Classes that cannot be used


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("no_such_module:X", "cannot be loaded: ModuleNotFoundError: No module named"),
        ("json:Nothing", "cannot be loaded: AttributeError: module 'json' has no attribute"),
        ("json:", "cannot be loaded: "),
        (":X", "cannot be loaded: "),
        ("json:dumps", "is not a class: json:dumps"),
        ("json:JSONDecoder", "has no method of any extension point"),
    ],
)
def test_a_class_that_cannot_be_used_says_why(target, problem):
    with pytest.raises(PluginError) as caught:
        registry().factory(target)

    assert f"plugin {target!r} {problem}" in str(caught.value)


def test_an_installed_plugin_that_cannot_be_loaded_is_named_as_configurations_name_it():
    known = registry(installed=entry("Berth", "no_such_module:X"))

    with pytest.raises(PluginError, match="plugin 'Berth' cannot be loaded"):
        known.factory("Berth")


# Making


class Nothing(Fits):
    pass


class TakesNothing(Fits):
    def __init__(self):
        self.given = ()


class TakesArgs(Fits):
    def __init__(self, args):
        self.given = (args,)


class TakesBoth(Fits):
    def __init__(self, args, handle):
        self.given = (args, handle)


class TakesMoreByName(Fits):
    def __init__(self, args, handle, *, verbose=False, **others):
        self.given = (args, handle, verbose)


@pytest.mark.parametrize(
    ("factory", "given"),
    [
        (TakesNothing, ()),
        (TakesArgs, ("args",)),
        (TakesBoth, ("args", "handle")),
        (TakesMoreByName, ("args", "handle", False)),
    ],
)
def test_a_constructor_gets_the_arguments_and_the_handle_as_far_as_it_wants_them(factory, given):
    assert registry({"X": factory}).build("X", "args", "handle").given == given


def test_a_plugin_needs_no_constructor():
    assert isinstance(registry({"X": Nothing}).build("X", "args", "handle"), Nothing)


def test_a_constructor_that_raises_is_named():
    class Refuses(Fits):
        def __init__(self, args):
            raise ValueError("args.weight: must be positive")

    with pytest.raises(PluginError) as caught:
        registry({"X": Refuses}).build("X", None, None)

    assert str(caught.value) == (
        'initializing plugin "X": ValueError: args.weight: must be positive'
    )
