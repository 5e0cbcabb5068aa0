"""What a base class says of its methods does not hold for those of a class derived from it."""

from __future__ import annotations

import pytest

from mooring.framework.status import unschedulable
from mooring.plugin_kit.watch import Watch, watched
from mooring.plugins.node_resources_fit import NodeResourcesFit
from mooring.plugins.registry import default_registry
from mooring.runtime.promises import PROMISES, holds
from mooring.sim.simulation import SimOptions, Simulation
from tests.engine import registry_with
from tests.makers import make_node, make_pod


class Whole:
    def filter(self, state, pod, node): ...

    def filter_rows(self, state, pod, columns, rows): ...

    def score(self, state, pod, node): ...

    def score_rows(self, state, pod, columns, rows): ...

    def normalize_scores(self, state, pod, scores): ...

    def sign(self, pod): ...

    def depends_on(self, pod): ...

    normalizes_by_extremes = True


class OtherFilter(Whole):
    def filter(self, state, pod, node): ...


class BothFilters(OtherFilter):
    def filter_rows(self, state, pod, columns, rows): ...


class SignedAnew(OtherFilter):
    def sign(self, pod): ...

    def depends_on(self, pod): ...


class OtherScale(Whole):
    def normalize_scores(self, state, pod, scores): ...


class Signs:
    """Has no filter: says what those of derived classes read."""

    def sign(self, pod): ...


class FiltersToo(Signs):
    def filter(self, state, pod, node): ...


class Rows:
    def filter_rows(self, state, pod, columns, rows): ...


class FilterAndRows(Whole, Rows):
    pass


ALL = {"filter_rows", "score_rows", "sign", "depends_on", "normalizes_by_extremes"}


@pytest.mark.parametrize(
    ("plugin", "kept"),
    [
        (Whole, ALL),
        (type("Derived", (Whole,), {}), ALL),
        (OtherFilter, {"score_rows", "normalizes_by_extremes"}),
        (BothFilters, ALL),
        (SignedAnew, {"score_rows", "sign", "depends_on", "normalizes_by_extremes"}),
        (OtherScale, ALL - {"normalizes_by_extremes"}),
        (FilterAndRows, ALL),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_promise_holds_unless_a_method_that_it_is_about_was_overridden(plugin, kept):
    assert {promise for promise in ALL if holds(plugin(), promise)} == kept


def test_a_base_class_may_say_something_of_methods_that_it_does_not_have():
    assert holds(FiltersToo(), "sign")


def test_a_method_that_is_set_on_the_plugin_itself_overrides_those_of_its_class():
    plugin = Whole()
    plugin.filter = lambda state, pod, node: None

    assert not holds(plugin, "filter_rows")
    plugin.filter_rows = lambda state, pod, columns, rows: None
    assert holds(plugin, "filter_rows")


def test_watching_a_plugin_changes_none_of_its_promises():
    for plugin, promise in [(Whole, "filter_rows"), (OtherFilter, "filter_rows")]:
        assert holds(watched(plugin, Watch())(), promise) == holds(plugin(), promise)


def test_everything_that_built_in_plugins_promise_holds():
    registry = default_registry()
    factories = [registry.factory(name) for name in registry.names()]
    plugins = [object.__new__(each) for each in factories if isinstance(each, type)]

    assert len(plugins) > 15
    for plugin in plugins:
        assert all(holds(plugin, promise) for promise in PROMISES)


def test_a_class_derived_from_a_built_in_plugin_is_asked():
    """Its filter was never called: the rows of the base class answered."""

    class OnlyB(NodeResourcesFit):
        def filter(self, state, pod, node):
            return super().filter(state, pod, node) if node.name == "b" else unschedulable("not b")

    registry = registry_with({"NodeResourcesFit": OnlyB})
    with Simulation(SimOptions(registry=registry)) as simulation:
        simulation.load(
            [make_node("a"), make_node("b", cpu=2), *(make_pod(f"p{i}", cpu=1) for i in range(3))]
        )
        simulation.run()

        nodes = {placed.bound.node for placed in simulation.summary.placements.values()}
        assert nodes == {"b"}
        assert len(simulation.summary.placements) == 2
