"""From a configuration to frameworks."""

from __future__ import annotations

import pytest

from mooring.config import load_config
from mooring.config.extension_points import ExtensionPoint as Point
from mooring.errors import ConfigError, PluginError
from mooring.runtime.build import build_frameworks, plugin_kinds
from mooring.runtime.metrics import Metrics
from mooring.runtime.nominator import Nominator
from mooring.runtime.waiting_pods import WaitingPods
from tests.clock import FakeClock
from tests.engine import registry_with


class Handle:
    """As much of a handle as building a framework asks for."""

    def __init__(self, profile_name):
        self.profile_name = profile_name
        self.waiting = WaitingPods(FakeClock())
        self.nominator = Nominator()
        self.framework = None


class Binds:
    """In place of DefaultBinder, which would ask the handle for a writer."""

    def bind(self, state, pod, node_name): ...


class Scores:
    def __init__(self, args, handle):
        self.args, self.handle = args, handle

    def score(self, state, pod, node): ...


def config(*profiles: dict) -> object:
    return load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": list(profiles),
        }
    )


def only(*enabled: dict | str, name: str = "default-scheduler", **more) -> dict:
    """A profile with these plugins and what every profile needs, and nothing else."""
    names = [{"name": each} if isinstance(each, str) else each for each in enabled]
    needed = [{"name": "PrioritySort"}, {"name": "Binds"}]
    multi = {"enabled": [*needed, *names], "disabled": [{"name": "*"}]}
    return {"schedulerName": name, "plugins": {"multiPoint": multi}, **more}


def frameworks(plugins: dict, *profiles: dict):
    registry = registry_with({**plugins, "Binds": Binds})
    return build_frameworks(config(*profiles), registry, Handle, Metrics())


def test_a_plugin_is_made_once_with_its_arguments_for_all_of_its_points():
    made = []

    class Everywhere(Scores):
        def __init__(self, args, handle):
            super().__init__(args, handle)
            made.append(self)

        def reserve(self, state, pod, node_name): ...

    arguments = [{"name": "Everywhere", "args": {"speed": 3}}]
    profile = only("Everywhere", pluginConfig=arguments)

    framework = frameworks({"Everywhere": Everywhere}, profile)["default-scheduler"]

    (plugin,) = made
    assert plugin.args == {"speed": 3}
    assert plugin.handle.framework is framework
    assert framework.points[Point.SCORE][0] is framework.points[Point.RESERVE][0]


@pytest.mark.parametrize(
    ("enabled", "weight"),
    [
        pytest.param({"name": "Scores"}, 1, id="1 if none is given"),
        pytest.param({"name": "Scores", "weight": 7}, 7, id="as given"),
    ],
)
def test_a_score_weighs_what_the_configuration_says(enabled, weight):
    framework = frameworks({"Scores": Scores}, only(enabled))["default-scheduler"]

    assert framework.weights["Scores"] == weight


def test_a_weight_goes_by_the_name_that_the_plugin_gives_itself():
    class Named(Scores):
        name = "Harbour"

    framework = frameworks({"Named": Named}, only({"name": "Named", "weight": 5}))[
        "default-scheduler"
    ]

    assert framework.names_at(Point.SCORE) == ["Harbour"]
    assert framework.weights["Harbour"] == 5


def test_each_profile_has_plugins_of_its_own():
    found = frameworks({"Scores": Scores}, only("Scores", name="a"), only(name="b"))

    assert found["a"].names_at(Point.SCORE) == ["Scores"]
    assert found["b"].names_at(Point.SCORE) == []
    assert found["a"].profile_name == "a"


@pytest.mark.parametrize(
    ("target", "name"),
    [
        pytest.param("mooring.plugins.node_name:NodeName", "NodeName", id="its own"),
        pytest.param(f"{__name__}:Scores", "Scores", id="that of the class"),
    ],
)
def test_a_plugin_named_by_module_and_class_goes_by_a_short_name(target, name):
    framework = frameworks({}, only(target))["default-scheduler"]

    assert name in framework.plugins


# What cannot be built


def test_a_plugin_that_nobody_knows_is_told_with_its_place_and_a_guess():
    with pytest.raises(ConfigError) as caught:
        frameworks({}, only("NodeNam"))

    (problem,) = caught.value.problems
    assert "profiles[0].plugins.multiPoint.enabled[2].name" in problem
    assert 'did you mean "NodeName"?' in problem


def test_a_module_that_cannot_be_loaded_is_told():
    with pytest.raises(ConfigError, match=r"plugin 'no_such:Plugin' cannot be loaded"):
        frameworks({}, only("no_such:Plugin"))


class Fails(Scores):
    def __init__(self, args, handle):
        raise ValueError(f"not for {handle.profile_name}")


def test_all_profiles_that_cannot_be_built_are_told_together():
    with pytest.raises(ConfigError) as caught:
        frameworks(
            {"Fails": Fails}, only("Fails", name="a"), only(name="b"), only("Fails", name="c")
        )

    assert caught.value.problems == tuple(
        f"creating profile for scheduler name {name}:"
        f' initializing plugin "Fails": ValueError: not for {name}'
        for name in "ac"
    )


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        pytest.param(
            {"signature_fields": "spec.tolerations"},
            'signature_fields must be a tuple such as ("spec.tolerations",)',
            id="text for a tuple",
        ),
        pytest.param(
            {"signature_fields": ("spec.colour",)},
            "signature_fields: pods have no field 'spec.colour'; write it as in \"spec.tolerations\"",
            id="no field of pods",
        ),
        pytest.param(
            {"own_columns": lambda self: 5},
            "own_columns is 5, and not a sequence of columns",
            id="a number for columns",
        ),
        pytest.param(
            {"own_columns": lambda self: self.ranks},
            "AttributeError: 'Odd' object has no attribute 'ranks'",
            id="a method that fails",
        ),
    ],
)
def test_nonsense_that_a_plugin_says_of_itself_is_told_with_its_name(said, problem):
    odd = type("Odd", (Scores,), said)

    with pytest.raises(ConfigError) as error:
        frameworks({"Odd": odd}, only("Odd"))

    where = "creating profile for scheduler name default-scheduler"
    told = f'{where}: reading what plugin "Odd" says of itself: {problem}'
    assert error.value.problems == (told,)


@pytest.mark.parametrize("kinds", [5, "tickets", [object]], ids=["number", "text", "class"])
def test_what_is_no_kind_is_told_with_the_plugin_that_declares_it(kinds):
    odd = type("Odd", (Scores,), {"kinds": kinds})

    with pytest.raises(
        PluginError, match=r'kinds of plugin "Odd" has .*; make kinds with custom_kind'
    ):
        plugin_kinds(config(only("Odd")), registry_with({"Odd": odd, "Binds": Binds}))


def test_two_plugins_may_not_call_themselves_the_same():
    class Twin(Scores):
        name = "Scores"

    with pytest.raises(ConfigError, match="Scores and Twin are both plugins called 'Scores'"):
        frameworks({"Scores": Scores, "Twin": Twin}, only("Scores", "Twin"))
