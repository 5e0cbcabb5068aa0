from hypothesis import given
from hypothesis import strategies as st

from mooring.cluster.topology_index import TopologyIndex
from mooring.objects.selectors import Requirement

KEYS = st.sampled_from(("zone", "host", "disk"))
VALUES = st.sampled_from("ab")

requirements = st.builds(
    Requirement,
    KEYS,
    st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist")),
    st.frozensets(VALUES),
)
ways = st.none() | st.lists(st.lists(requirements, max_size=2), max_size=3)
labels = st.dictionaries(KEYS, VALUES)


def test_things_come_in_the_order_they_were_given_in():
    in_a, in_b = (
        Requirement("zone", "In", frozenset("a")),
        Requirement("zone", "In", frozenset("b")),
    )
    reach = TopologyIndex(
        [("far", [[in_b]]), ("near", [[in_a]]), ("anywhere", None), ("both", [[]])]
    )

    assert list(reach.from_node({"zone": "a"})) == ["near", "anywhere", "both"]
    assert list(reach.from_node({})) == ["anywhere", "both"]


def test_a_thing_with_no_way_to_it_is_never_reached():
    assert list(TopologyIndex([("lost", [])]).from_node({"zone": "a"})) == []


def test_a_thing_found_in_two_ways_is_one_thing():
    in_a, on_b = (
        Requirement("zone", "In", frozenset("a")),
        Requirement("host", "In", frozenset("b")),
    )

    reach = TopologyIndex([("it", [[in_a], [on_b]])])

    assert list(reach.from_node({"zone": "a", "host": "b"})) == ["it"]


@given(things=st.lists(ways, max_size=6), node=labels)
def test_the_index_finds_what_asking_everything_finds(things, node):
    expected = [
        position
        for position, given_ways in enumerate(things)
        if given_ways is None or any(all(each.matches(node) for each in way) for way in given_ways)
    ]

    assert list(TopologyIndex(enumerate(things)).from_node(node)) == expected
