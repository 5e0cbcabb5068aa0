"""Arguments of plugins as types: decoded strictly, completed, and refused with all problems at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
import pytest

from mooring.errors import ConfigError
from mooring.runtime.build import plugin_problems
from tests.engine import registry_with
from tests.plugin.worlds import config_with, engine_with


class Limit(msgspec.Struct, rename="camel", frozen=True):
    team: str
    most_pods: Annotated[int, msgspec.Meta(ge=1)] = 10


class QuotaArgs(msgspec.Struct, rename="camel", frozen=True):
    limits: tuple[Limit, ...] = ()
    default_limit: int = 5
    soft: bool = False
    weights: dict[str, float] = {}

    def __post_init__(self) -> None:
        teams = [limit.team for limit in self.limits]
        if len(set(teams)) < len(teams):
            raise ValueError("a team has more than one limit")


class Quota:
    name = "Quota"
    Args = QuotaArgs

    def __init__(self, args: QuotaArgs) -> None:
        self.args = args

    def score(self, state, pod, node):
        return 1


@dataclass
class SpreadArgs:
    key: str
    most: int = 3
    zones: list[str] = field(default_factory=list)


class Spread:
    name = "Spread"
    Args = SpreadArgs

    def __init__(self, args: SpreadArgs) -> None:
        self.args = args

    def score(self, state, pod, node):
        return 1


class Plain:
    name = "Plain"

    def __init__(self, args: Any) -> None:
        self.args = args

    def score(self, state, pod, node):
        return 1


def _built(plugin: type, **args: Any) -> Any:
    engine = engine_with(plugin, **args)
    return engine.scheduler.frameworks["default-scheduler"].plugins[plugin.__name__].plugin.args


def test_arguments_are_an_instance_of_the_declared_type_with_its_defaults():
    args = _built(Quota, Quota={"limits": [{"team": "blue"}], "defaultLimit": 7})

    assert args == QuotaArgs(limits=(Limit("blue", 10),), default_limit=7, soft=False)


def test_without_arguments_there_are_the_defaults():
    assert _built(Quota) == QuotaArgs()


def test_a_dataclass_will_do():
    assert _built(Spread, Spread={"key": "rack", "zones": ["a"]}) == SpreadArgs("rack", 3, ["a"])


def test_the_type_that_kubernetes_writes_into_arguments_does_no_harm():
    written = {"apiVersion": "example.com/v1", "kind": "QuotaArgs", "soft": True}

    assert _built(Quota, Quota=written) == QuotaArgs(soft=True)


def test_a_plugin_that_declares_nothing_gets_the_mapping_as_it_is_written():
    assert _built(Plain, Plain={"any": [1, "x"]}) == {"any": [1, "x"]}
    assert _built(Plain) is None


@pytest.mark.parametrize(
    ("args", "problems"),
    [
        pytest.param(
            {"defaultLimit": "many", "softt": True, "soft": 1},
            [
                "args.softt: unknown field; choose one of defaultLimit, limits, soft, weights",
                'args.defaultLimit: Invalid value: "many": Expected `int`, got `str`',
                "args.soft: Invalid value: 1: Expected `bool`, got `int`",
            ],
            id="several fields",
        ),
        pytest.param(
            {"limits": [{"team": "a"}, {"mostPods": 0}, {"team": 3, "x": 1}]},
            [
                "args.limits[1].team: Required value",
                "args.limits[1].mostPods: Invalid value: 0: Expected `int` >= 1",
                "args.limits[2].x: unknown field; choose one of mostPods, team",
                "args.limits[2].team: Invalid value: 3: Expected `str`, got `int`",
            ],
            id="items of a list",
        ),
        pytest.param(
            {"weights": {"a": 1, "b": "x"}, "limits": 3},
            [
                "args.limits: Invalid value: 3: Expected `array`, got `int`",
                'args.weights.b: Invalid value: "x": Expected `float`, got `str`',
            ],
            id="values of a mapping",
        ),
        pytest.param(
            {"limits": [{"team": "a"}, {"team": "a"}]},
            [
                'args: Invalid value: {"limits":[{"team":"a"},{"team":"a"}]}:'
                " a team has more than one limit"
            ],
            id="what the type checks itself",
        ),
    ],
)
def test_all_problems_are_reported_at_once_with_their_paths(args, problems):
    config = config_with("Quota", Plain={}, Quota=args)
    place = next(
        i for i, entry in enumerate(config.profiles[0].plugin_config) if entry.name == "Quota"
    )

    found = plugin_problems(config, registry_with({"Quota": Quota}))

    assert found == [f"profiles[0].pluginConfig[{place}].{line}" for line in problems]


def test_a_required_argument_of_a_plugin_without_arguments_is_missed():
    with pytest.raises(
        ConfigError, match=r"profiles\[0\].pluginConfig\[Spread\].args.key: Required"
    ):
        engine_with(Spread)


def test_a_type_that_says_nothing_about_its_fields_is_refused():
    class Odd(Plain):
        Args = dict

    registry = registry_with({"Odd": Odd})

    assert plugin_problems(config_with("Odd"), registry) == [
        "Args of plugin Odd is neither a msgspec Struct nor a dataclass"
    ]
