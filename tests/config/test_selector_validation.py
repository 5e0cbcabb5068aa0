from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.config.label_names import label_key_problems, label_value_problems
from mooring.config.selector_validation import node_selector_problems
from mooring.objects.selectors import (
    NodeSelector,
    NodeSelectorTerm,
    SelectorRequirement,
    compile_node_term,
    label_key_problem,
    label_value_problem,
)
from tests.config.documents import args_problems, load_args

REQUIRED = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
PREFERRED = "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    "or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def required(kind: str, **line: object) -> dict[str, object]:
    selector = {"nodeSelectorTerms": [{kind: [line]}]}
    return {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}


def preferred(weight: int, **line: object) -> dict[str, object]:
    term = {"weight": weight, "preference": {"matchExpressions": [line]}}
    return {"addedAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (
            required("matchExpressions", key="a", operator="Near", values=["b"]),
            f'{REQUIRED}.matchExpressions[0].operator: Unsupported value: "Near": '
            'supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"',
        ),
        (
            required("matchExpressions", key="a/b/c", operator="Exists"),
            f'{REQUIRED}.matchExpressions[0].key: Invalid value: "a/b/c": a valid label key must '
            "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
            "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS "
            "subdomain prefix and '/' (e.g. 'example.com/MyName')",
        ),
        (
            required("matchExpressions", key="a", operator="In"),
            f"{REQUIRED}.matchExpressions[0].values: Invalid value: null: "
            "for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            required("matchExpressions", key="a", operator="Exists", values=["b"]),
            f'{REQUIRED}.matchExpressions[0].values: Invalid value: ["b"]: '
            "values set must be empty for exists and does not exist",
        ),
        (
            required("matchExpressions", key="a", operator="Gt"),
            f"{REQUIRED}.matchExpressions[0].values: Invalid value: null: "
            "for 'Gt', 'Lt' operators, exactly one value is required",
        ),
        (
            required("matchExpressions", key="a", operator="Lt", values=["x"]),
            f'{REQUIRED}.matchExpressions[0].values[0]: Invalid value: "x": '
            "for 'Gt', 'Lt' operators, the value must be an integer",
        ),
        (
            required("matchExpressions", key="a", operator="In", values=["no good"]),
            f'{REQUIRED}.matchExpressions[0].values[0][a]: Invalid value: "no good": {VALUE_RULE}',
        ),
        (
            required("matchFields", key="metadata.name", operator="Exists"),
            f'{REQUIRED}.matchFields[0].operator: Unsupported value: "Exists": '
            'supported values: "In", "NotIn"',
        ),
        (
            required("matchFields", key="metadata.name", operator="In", values=["a", "b"]),
            f'{REQUIRED}.matchFields[0].values: Invalid value: ["a","b"]: must have one element',
        ),
        (
            preferred(1, key="a", operator="In"),
            f"{PREFERRED}.matchExpressions[0].values: Invalid value: null: "
            "for 'in', 'notin' operators, values set can't be empty",
        ),
    ],
)
def test_an_added_affinity_that_cannot_be_parsed_is_refused_with_its_path(args, expected):
    assert args_problems("NodeAffinity", args) == [expected]


def test_a_preference_without_weight_is_not_looked_at():
    assert load_args("NodeAffinity", preferred(0, key="a", operator="Near")) is not None


words = st.text(st.sampled_from("aZ9-_./ é\n"), max_size=8) | st.sampled_from(
    ["a" * 63, "a" * 64, f"{'a' * 253}/b", f"{'a' * 254}/b", "1", "-1", "example.com/a"]
)
lines = st.builds(
    SelectorRequirement,
    key=words,
    operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near", ""]),
    values=st.lists(words, max_size=2),
)
terms = st.builds(
    NodeSelectorTerm,
    match_expressions=st.lists(lines, max_size=2),
    match_fields=st.lists(lines, max_size=2),
)


@given(words)
def test_the_configuration_and_the_objects_agree_on_what_a_label_is(word):
    assert (label_key_problems(word) == []) == (label_key_problem(word) is None)
    assert (label_value_problems(word) == []) == (label_value_problem(word) is None)


@given(terms)
def test_the_configuration_refuses_the_terms_that_the_objects_refuse(term):
    try:
        compile_node_term(term)
        accepted = True
    except ValueError:
        accepted = False

    problems = list(node_selector_problems(NodeSelector(node_selector_terms=[term]), ""))

    assert (problems == []) == accepted, problems
