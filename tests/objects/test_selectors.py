import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.objects.selectors import (
    LABEL_OPERATORS,
    NOTHING,
    LabelSelector,
    compile_node_term,
    compile_node_terms,
    compile_requirement,
    compile_selector,
    parse_int64,
    selector_from_map,
)
from tests.makers import make_node_term, make_selector

ABSENT = {}
A = {"k": "a"}
B = {"k": "b"}


@pytest.mark.parametrize(
    ("operator", "values", "absent", "a", "b"),
    [
        ("In", ["a"], False, True, False),
        ("In", ["a", "b"], False, True, True),
        ("NotIn", ["a"], True, False, True),
        ("Exists", [], False, True, True),
        ("DoesNotExist", [], True, False, False),
    ],
)
def test_what_an_operator_says_of_a_label(operator, values, absent, a, b):
    selector = compile_selector(make_selector(None, ("k", operator, values)))

    assert [selector.matches(labels) for labels in (ABSENT, A, B)] == [absent, a, b]


def test_no_selector_matches_nothing_and_an_empty_one_everything():
    missing, empty = compile_selector(None), compile_selector(LabelSelector())

    assert not missing.matches({})
    assert not missing.everything
    assert empty.matches({})
    assert empty.matches(A)
    assert empty.everything


def test_adding_to_a_selector_that_matches_nothing_does_not_help():
    assert not NOTHING.plus([compile_requirement("k", "In", ("a",))]).matches(A)


def test_all_requirements_must_hold():
    selector = compile_selector(make_selector({"app": "web"}, ("tier", "NotIn", ["db"])))

    assert selector.matches({"app": "web"})
    assert not selector.matches({"app": "web", "tier": "db"})
    assert not selector.matches({"tier": "x"})


@pytest.mark.parametrize(
    ("key", "operator", "values"),
    [
        ("k", "Near", ["a"]),
        ("k", "", ["a"]),
        ("k", "In", []),
        ("k", "NotIn", []),
        ("k", "Exists", ["a"]),
        ("k", "DoesNotExist", ["a"]),
        ("k", "Gt", ["1"]),
        ("", "Exists", []),
        ("-k", "Exists", []),
        ("a/b/c", "Exists", []),
        ("/k", "Exists", []),
        ("UPPER.io/k", "Exists", []),
        ("k" * 64, "Exists", []),
        ("k", "In", ["with space"]),
        ("k", "In", ["x" * 64]),
        ("k", "In", ["-x"]),
        ("k", "In", ["x\n"]),
    ],
)
def test_a_malformed_requirement_is_refused(key, operator, values):
    with pytest.raises(ValueError):
        compile_selector(make_selector(None, (key, operator, values)))


def test_a_map_is_taken_as_it_stands():
    """Services and node selectors are not validated: an odd pair is compared like any other."""
    selector = selector_from_map({"not a key": "not a value!"})

    assert selector.matches({"not a key": "not a value!"})
    assert selector_from_map({}).matches({})


@pytest.mark.parametrize(
    ("operator", "bound", "label", "matches"),
    [
        ("Gt", "5", "6", True),
        ("Gt", "5", "5", False),
        ("Gt", "5", None, False),
        ("Lt", "5", "4", True),
        ("Lt", "5", "-7", True),
        ("Gt", "5", "1_000", False),
        ("Gt", "5", "6.0", False),
        ("Gt", "5", "9223372036854775808", False),
        ("Gt", "5", "+6", True),
        ("Gt", "5", "0" * 40 + "6", True),
    ],
)
def test_numbers_are_compared_as_numbers(operator, bound, label, matches):
    term = compile_node_term(make_node_term(("k", operator, [bound])))

    assert term.matches({} if label is None else {"k": label}, "n") is matches


@pytest.mark.parametrize("values", [[], ["1", "2"], ["x"], ["-1"], ["1_0"]])
def test_a_bound_is_one_plain_number(values):
    with pytest.raises(ValueError):
        compile_node_term(make_node_term(("k", "Gt", values)))


def test_any_term_will_do_and_within_one_all_must_hold():
    terms = compile_node_terms(
        [
            make_node_term(("a", "Exists", []), ("b", "Exists", [])),
            make_node_term(("c", "Exists", [])),
        ]
    )

    def fits(**labels):
        return any(term.matches(labels, "n") for term in terms)

    assert fits(a="", b="")
    assert fits(c="")
    assert not fits(a="")
    assert not fits()


def test_an_empty_term_matches_nothing_and_a_broken_one_spoils_no_other():
    assert compile_node_terms([make_node_term()]) == ()
    assert (
        len(
            compile_node_terms(
                [make_node_term(("k", "Near", [])), make_node_term(("k", "Exists", []))]
            )
        )
        == 1
    )


@pytest.mark.parametrize(
    ("fields", "name", "matches"),
    [
        ([("metadata.name", "In", ["n1"])], "n1", True),
        ([("metadata.name", "In", ["n1"])], "n2", False),
        ([("metadata.name", "NotIn", ["n1"])], "n2", True),
        ([("metadata.labels", "In", [""])], "n1", True),
        ([("metadata.name", "In", ["n1"])], "", True),
    ],
)
def test_a_field_is_the_nodes_name(fields, name, matches):
    """Any other field reads as empty; a node without a name is not tested by its fields."""
    assert compile_node_term(make_node_term(fields=fields)).matches({}, name) is matches


@pytest.mark.parametrize(
    "field", [("metadata.name", "Exists", []), ("metadata.name", "In", ["a", "b"])]
)
def test_a_field_wants_one_value_and_in_or_not_in(field):
    with pytest.raises(ValueError):
        compile_node_term(make_node_term(fields=[field]))


@pytest.mark.parametrize("text", ["", "+", "1_0", " 1", "１", "1.0", "0x1", str(2**63)])
def test_what_go_does_not_read_as_a_number_is_none(text):
    assert parse_int64(text) is None


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_int64_is_read(number):
    assert parse_int64(str(number)) == number


WORDS = st.sampled_from(["a", "b", "c"])


@given(
    st.sampled_from(LABEL_OPERATORS),
    st.lists(WORDS, min_size=1),
    st.dictionaries(WORDS, WORDS),
)
def test_a_requirement_and_its_opposite_never_agree(operator, values, labels):
    opposites = {"In": "NotIn", "NotIn": "In", "Exists": "DoesNotExist", "DoesNotExist": "Exists"}
    given_values = tuple(values) if operator in ("In", "NotIn") else ()

    one = compile_requirement("a", operator, given_values)
    other = compile_requirement("a", opposites[operator], given_values)

    assert one.matches(labels) != other.matches(labels)
