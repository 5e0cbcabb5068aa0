from __future__ import annotations

import pytest

from mooring.config import (
    DEFAULT_ORDER,
    ExtensionPoint,
    Plugin,
    PluginConfig,
    Plugins,
    PluginSet,
    SchedulerProfile,
    default_config,
    expand_plugins,
    expand_profiles,
    unknown_plugins,
)
from mooring.errors import ConfigError
from tests.config.documents import load
from tests.config.test_merge import plugin_set

Point = ExtensionPoint

#: A small world: who implements what.
WORLD = {
    "Sort": {Point.QUEUE_SORT},
    "OtherSort": {Point.QUEUE_SORT},
    "Bind": {Point.BIND},
    "A": {Point.FILTER, Point.SCORE},
    "B": {Point.FILTER, Point.SCORE},
    "C": {Point.FILTER},
    "D": {Point.SCORE, Point.PLACEMENT_SCORE},
    "Generate": {Point.PLACEMENT_GENERATE},
    "GenerateToo": {Point.PLACEMENT_GENERATE},
    "Nothing": set(),
}

#: Who implements what among the built-in plugins, as far as their default order tells.
BUILT_IN = {
    plugin.name: {point for point, names in DEFAULT_ORDER.items() if plugin.name in names}
    for plugin in default_config().profiles[0].plugins.multi_point.enabled
}


def profile(multi_point: str = "", *, name: str = "p", **points: PluginSet) -> SchedulerProfile:
    """A profile that sorts and binds, and whatever else the case asks for."""
    points.setdefault("queue_sort", plugin_set("Sort"))
    points.setdefault("bind", plugin_set("Bind"))
    return SchedulerProfile(name, plugins=Plugins(multi_point=plugin_set(multi_point), **points))


def problems(*profiles: SchedulerProfile) -> list[str]:
    with pytest.raises(ConfigError) as refusal:
        expand_plugins(profiles[0], WORLD) if len(profiles) == 1 else expand_profiles(
            profiles, WORLD
        )
    return list(refusal.value.problems)


def test_the_default_profile_runs_in_the_order_of_the_reference():
    expanded = expand_plugins(default_config().profiles[0], BUILT_IN)

    assert expanded.order == DEFAULT_ORDER
    assert {name: expanded.score_weights[name] for name in DEFAULT_ORDER[Point.SCORE]} == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "VolumeBinding": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }
    assert expanded.placement_score_weights == {"NodeResourcesFit": 1}


@pytest.mark.parametrize(
    ("multi_point", "here", "order"),
    [
        pytest.param("A B C", plugin_set(), ("A", "B", "C"), id="multiPoint alone"),
        pytest.param("D A Nothing", plugin_set(), ("A",), id="only those that implement it"),
        pytest.param("", plugin_set("C A"), ("C", "A"), id="the point alone"),
        pytest.param("A B", plugin_set("C"), ("A", "B", "C"), id="the point's own come last"),
        pytest.param("A B C", plugin_set("B"), ("B", "A", "C"), id="an override comes first"),
        pytest.param(
            "A B", plugin_set("B C A"), ("B", "A", "C"), id="overrides in the order of the point"
        ),
        pytest.param(
            "A C", plugin_set("B C"), ("C", "A", "B"), id="overrides, then added, then the rest"
        ),
        pytest.param("A B C", plugin_set(disabled="B"), ("A", "C"), id="one disabled here"),
        pytest.param("A B C", plugin_set(disabled="*"), (), id="all disabled here"),
        pytest.param(
            "A B C", plugin_set("C A", disabled="*"), ("C", "A"), id="all disabled but for these"
        ),
        pytest.param(
            "A B",
            plugin_set("B", disabled="B"),
            ("A", "B"),
            id="enabled and disabled here: no override, so it comes last",
        ),
    ],
)
def test_the_order_at_a_point_follows_both_lists(multi_point, here, order):
    expanded = expand_plugins(profile(multi_point, filter=here), WORLD)

    assert expanded.order[Point.FILTER] == order


@pytest.mark.parametrize(
    ("multi_point", "score", "weights"),
    [
        pytest.param("A=5 B", plugin_set(), {"A": 5, "B": 1}, id="none given counts as 1"),
        pytest.param("A=5", plugin_set("A=7"), {"A": 7}, id="the point's own weight wins"),
        pytest.param("A=5", plugin_set("A"), {"A": 1}, id="even where the point gives none"),
        pytest.param("C=5 A", plugin_set(), {"A": 1}, id="who does not score has no weight"),
        pytest.param("A=-2", plugin_set(), {"A": -2}, id="a negative weight is taken as it is"),
    ],
)
def test_the_first_mention_of_a_score_plugin_gives_its_weight(multi_point, score, weights):
    assert expand_plugins(profile(multi_point, score=score), WORLD).score_weights == weights


def test_placement_scores_have_weights_of_their_own():
    given = profile("D=4", score=plugin_set("D=9"), placement_score=plugin_set("D=3"))

    expanded = expand_plugins(given, WORLD)

    assert (expanded.score_weights, expanded.placement_score_weights) == ({"D": 9}, {"D": 3})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(
            profile(filter=plugin_set("Typo")),
            ['FilterPlugin "Typo" does not exist'],
            id="unknown at a point",
        ),
        pytest.param(
            profile("Typo A"),
            ['PreFilterPlugin "Typo" does not exist'],
            id="unknown in multiPoint, as of the first point that looks",
        ),
        pytest.param(
            profile("Typo", pre_filter=plugin_set(disabled="*")),
            ['FilterPlugin "Typo" does not exist'],
            id="unknown in multiPoint, the first point being closed to it",
        ),
        pytest.param(
            profile(score=plugin_set("C")),
            ['plugin "C" does not extend ScorePlugin plugin'],
            id="of another type",
        ),
        pytest.param(
            profile(filter=plugin_set("A C A")),
            ['plugin "A" already registered as "FilterPlugin"'],
            id="twice at a point",
        ),
        pytest.param(
            profile("A B A"),
            ['plugin "A" already registered as "FilterPlugin"'],
            id="twice in multiPoint",
        ),
        pytest.param(
            profile(queue_sort=PluginSet()),
            ['only one queue sort plugin required for profile with scheduler name "p", but got 0'],
            id="nobody sorts",
        ),
        pytest.param(
            profile("OtherSort"),
            ['only one queue sort plugin required for profile with scheduler name "p", but got 2'],
            id="two sort",
        ),
        pytest.param(
            profile(bind=PluginSet()),
            ['at least one bind plugin is needed for profile with scheduler name "p"'],
            id="nobody binds",
        ),
        pytest.param(
            profile("Generate GenerateToo"),
            [
                "at most one placement generate plugin is allowed for profile with scheduler name "
                '"p"'
            ],
            id="two generate placements",
        ),
        pytest.param(
            profile(f"A={2**63 // 200} B={2**63 // 200 + 1}"),
            ["score plugins: total score of Score plugins could overflow"],
            id="weights beyond int64",
        ),
        pytest.param(
            profile(placement_score=plugin_set(f"D={2**63}")),
            ["placement score plugins: total score of Score plugins could overflow"],
            id="placement weights beyond int64",
        ),
        pytest.param(
            profile("Typo", filter=plugin_set("Oops A A"), score=plugin_set("C")),
            [
                'FilterPlugin "Oops" does not exist',
                'plugin "A" already registered as "FilterPlugin"',
                'plugin "C" does not extend ScorePlugin plugin',
                'PreFilterPlugin "Typo" does not exist',
            ],
            id="several, the reference's first",
        ),
    ],
)
def test_a_profile_that_cannot_be_built_is_refused_in_the_words_of_the_reference(given, expected):
    assert problems(given) == expected


def test_weights_may_fill_int64_to_the_brim():
    most = 2**63 // 100

    assert expand_plugins(profile(f"A={most}"), WORLD).score_weights == {"A": most}


def test_a_plugin_in_both_lists_is_no_repetition_even_twice_in_multi_point():
    expanded = expand_plugins(profile("C C", filter=plugin_set("C")), WORLD)

    assert expanded.order[Point.FILTER] == ("C",)


def test_a_plugin_configured_twice_is_refused():
    given = SchedulerProfile(
        "p",
        plugins=profile().plugins,
        plugin_config=(PluginConfig("A"), PluginConfig("A")),
    )

    assert problems(given) == ["repeated config for plugin A"]


def test_profiles_are_expanded_each_by_its_name_and_in_order():
    expanded = expand_profiles([profile("A", name="x"), profile("B", name="y")], WORLD)

    assert {name: plugins.order[Point.FILTER] for name, plugins in expanded.items()} == {
        "x": ("A",),
        "y": ("B",),
    }
    assert list(expanded) == ["x", "y"]


@pytest.mark.parametrize(
    ("profiles", "expected"),
    [
        pytest.param([], ["at least one profile is required"], id="none"),
        pytest.param(
            [profile("Typo", name="x"), profile("A", name="")],
            [
                'creating profile for scheduler name x: PreFilterPlugin "Typo" does not exist',
                "scheduler name is needed",
            ],
            id="one that fails, one without a name",
        ),
        pytest.param(
            [profile(name="x"), profile(name="x")],
            ['duplicate profile with scheduler name "x"'],
            id="one name twice",
        ),
        pytest.param(
            [profile(name="x"), profile(name="y", queue_sort=plugin_set("OtherSort"))],
            ['different queue sort plugins for profile "y": "OtherSort", first: "Sort"'],
            id="sorted differently",
        ),
        pytest.param(
            [
                profile(name="x"),
                SchedulerProfile("y", None, profile().plugins, (PluginConfig("Sort", {"a": 1}),)),
            ],
            ['different queue sort plugin args for profile "y"'],
            id="sorted with other args",
        ),
    ],
)
def test_profiles_that_do_not_go_together_are_refused_in_the_words_of_the_reference(
    profiles, expected
):
    with pytest.raises(ConfigError) as refusal:
        expand_profiles(profiles, WORLD)

    assert list(refusal.value.problems) == expected


def test_unknown_plugins_are_shown_with_their_place_and_what_may_be_meant():
    config = load(
        profiles=[
            {
                "plugins": {
                    "filter": {"enabled": [{"name": "NodeAffinty"}], "disabled": [{"name": "?"}]},
                    "multiPoint": {"disabled": [{"name": "*"}], "enabled": [{"name": "Zzz"}]},
                }
            }
        ]
    )

    assert list(unknown_plugins(config, BUILT_IN)) == [
        'profiles[0].plugins.filter.enabled[0].name: Not found: "NodeAffinty": '
        'no plugin has this name; did you mean "NodeAffinity"?',
        'profiles[0].plugins.multiPoint.enabled[0].name: Not found: "Zzz": no plugin has this name',
    ]


def test_a_plugin_named_by_module_and_class_is_expanded_like_any_other():
    name = "my_package.plugins:PackTightly"
    config = load(
        profiles=[{"plugins": {"multiPoint": {"enabled": [{"name": name, "weight": 4}]}}}]
    )

    expanded = expand_plugins(config.profiles[0], {**BUILT_IN, name: {Point.SCORE}})

    assert expanded.order[Point.SCORE][-1] == name
    assert expanded.score_weights[name] == 4


def test_a_weight_changes_where_the_profile_says_so():
    enabled = PluginSet(enabled=(Plugin("NodeResourcesFit", 9),), disabled=(Plugin("*"),))
    (given,) = default_config().profiles
    plugins = Plugins(multi_point=given.plugins.multi_point, score=enabled)

    expanded = expand_plugins(SchedulerProfile("p", None, plugins), BUILT_IN)

    assert expanded.order[Point.SCORE] == ("NodeResourcesFit",)
    assert expanded.score_weights["NodeResourcesFit"] == 9
