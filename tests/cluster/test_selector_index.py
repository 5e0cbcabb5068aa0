import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.cluster.selector_index import (
    ANY_POD,
    SelectorIndex,
    keys_of_pod,
    keys_of_selector,
)
from mooring.objects.selectors import compile_selector
from tests import topology_clusters as topology
from tests.makers import make_selector

WEB = make_selector({"app": "web"}, ("tier", "In", ["1", "2"]), ("old", "DoesNotExist", []))


@pytest.mark.parametrize(
    ("selector", "namespaces", "keys"),
    [
        pytest.param(WEB, None, [{("app", "web")}, {("tier", "1"), ("tier", "2")}], id="values"),
        pytest.param(make_selector(), ["x", "y"], [{("", "x"), ("", "y")}], id="namespaces"),
        pytest.param(make_selector(), None, [{ANY_POD}], id="nothing in particular"),
        pytest.param(None, ["x"], [set()], id="no pod at all"),
    ],
)
def test_a_selector_has_the_values_and_namespaces_it_names_for_keys(selector, namespaces, keys):
    found = keys_of_selector(compile_selector(selector), namespaces)

    assert [set(each) for each in found] == keys


@given(
    selector=topology.label_selectors(),
    namespaces=st.none() | st.frozensets(st.sampled_from(topology.NAMESPACES)),
    namespace=st.sampled_from(topology.NAMESPACES),
    labels=topology.pod_labels(),
)
def test_a_pod_that_is_picked_has_one_key_of_each_requirement(
    selector, namespaces, namespace, labels
):
    compiled = compile_selector(selector)
    if compiled.matches(labels) and (namespaces is None or namespace in namespaces):
        keys = set(keys_of_pod(namespace, labels))
        assert all(
            len(keys.intersection(each)) == 1 for each in keys_of_selector(compiled, namespaces)
        )


def test_items_are_found_under_their_keys_until_they_are_removed():
    index = SelectorIndex[str]()
    index.add("first", [("app", "web")])
    index.add("second", [("app", "web"), ("app", "db")])

    assert list(index.find([("app", "web")])) == ["first", "second"]
    assert index.rarest([(("app", "web"),), (("app", "db"),)]) == (("app", "db"),)

    index.remove("second", [("app", "web"), ("app", "db")])

    assert list(index.find([("app", "web"), ("app", "db")])) == ["first"]
