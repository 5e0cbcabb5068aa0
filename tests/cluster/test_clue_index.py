import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.cluster.clue_index import ANY_POD, ClueIndex, clues_of, demands_of
from mooring.objects.selectors import compile_selector
from tests import topology_clusters as topology
from tests.makers import make_selector

WEB = make_selector({"app": "web"}, ("tier", "In", ["1", "2"]), ("old", "DoesNotExist", []))


@pytest.mark.parametrize(
    ("selector", "namespaces", "demands"),
    [
        pytest.param(WEB, None, [{("app", "web")}, {("tier", "1"), ("tier", "2")}], id="values"),
        pytest.param(make_selector(), ["x", "y"], [{("", "x"), ("", "y")}], id="namespaces"),
        pytest.param(make_selector(), None, [{ANY_POD}], id="nothing in particular"),
        pytest.param(None, ["x"], [set()], id="no pod at all"),
    ],
)
def test_a_selector_demands_the_values_and_namespaces_it_names(selector, namespaces, demands):
    found = demands_of(compile_selector(selector), namespaces)

    assert [set(clues) for clues in found] == demands


@given(
    selector=topology.label_selectors(),
    namespaces=st.none() | st.frozensets(st.sampled_from(topology.NAMESPACES)),
    namespace=st.sampled_from(topology.NAMESPACES),
    labels=topology.pod_labels(),
)
def test_a_pod_that_is_picked_gives_one_clue_of_each_demand(
    selector, namespaces, namespace, labels
):
    compiled = compile_selector(selector)
    if compiled.matches(labels) and (namespaces is None or namespace in namespaces):
        clues = set(clues_of(namespace, labels))
        assert all(
            len(clues.intersection(demand)) == 1 for demand in demands_of(compiled, namespaces)
        )


def test_things_are_found_under_their_clues_until_they_are_withdrawn():
    index = ClueIndex[str]()
    index.file("first", [("app", "web")])
    index.file("second", [("app", "web"), ("app", "db")])

    assert list(index.find([("app", "web")])) == ["first", "second"]
    assert index.rarest([(("app", "web"),), (("app", "db"),)]) == (("app", "db"),)

    index.withdraw("second", [("app", "web"), ("app", "db")])

    assert list(index.find([("app", "web"), ("app", "db")])) == ["first"]
