"""Closures against a naive interpreter of the same expressions."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cel.evaluation import answer_to

#: Expressions as trees of Python: a number, a boolean, or (operator, operand, ...).
_SMALL = st.integers(min_value=-5, max_value=5)
_NUMBERS = st.recursive(
    _SMALL,
    lambda inner: st.tuples(st.sampled_from("+-*/%"), inner, inner),
    max_leaves=6,
)
_TESTS = st.recursive(
    st.booleans()
    | st.tuples(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), _NUMBERS, _NUMBERS),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["&&", "||"]), inner, inner),
        st.tuples(st.just("!"), inner),
        st.tuples(st.just("?"), inner, inner, inner),
        st.tuples(st.sampled_from(["all", "exists"]), st.lists(_SMALL, max_size=3), _NUMBERS),
    ),
    max_leaves=8,
)


class Failed(Exception):
    pass


def written(tree: Any) -> str:
    match tree:
        case bool():
            return "true" if tree else "false"
        case int():
            return f"({tree})"
        case ("!", operand):
            return f"!({written(operand)})"
        case ("?", condition, yes, no):
            return f"({written(condition)} ? {written(yes)} : {written(no)})"
        case ("all" | "exists" as macro, items, number):
            return f"{items}.{macro}(x, 6 / x < {written(number)})"
        case (operator, left, right):
            return f"({written(left)} {operator} {written(right)})"
    raise AssertionError(tree)


def interpreted(tree: Any) -> Any:
    """The value by the rules of the language, one case after the other."""
    match tree:
        case bool() | int():
            return tree
        case ("!", operand):
            return not interpreted(operand)
        case ("?", condition, yes, no):
            return interpreted(yes) if interpreted(condition) else interpreted(no)
        case ("&&" | "||" as operator, left, right):
            return absorbed(
                operator == "||", [lambda: interpreted(left), lambda: interpreted(right)]
            )
        case ("all" | "exists" as macro, items, number):
            tests = [lambda x=x: divided(6, x) < interpreted(number) for x in items]
            return absorbed(macro == "exists", tests)
        case (operator, left, right):
            return computed(operator, interpreted(left), interpreted(right))
    raise AssertionError(tree)


def absorbed(deciding: bool, tests: list[Any]) -> bool:
    failed = False
    for test in tests:
        try:
            if test() is deciding:
                return deciding
        except Failed:
            failed = True
    if failed:
        raise Failed
    return not deciding


def divided(left: int, right: int) -> int:
    if right == 0:
        raise Failed
    return int(left / right)


def computed(operator: str, left: int, right: int) -> Any:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return divided(left, right)
        case "%":
            return left - right * divided(left, right)
    return {
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
        "==": left == right,
        "!=": left != right,
    }[operator]


@settings(max_examples=400, deadline=None)
@given(_TESTS)
def test_closures_say_what_the_rules_say(tree):
    try:
        expected: Any = interpreted(tree)
    except Failed:
        expected = "runtime"
    answer = answer_to(written(tree))
    assert (answer if isinstance(answer, bool) else answer[0]) == expected


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                *(
                    "1",
                    "u",
                    "1.5",
                    "'a'",
                    "b'x'",
                    "null",
                    "true",
                    "x",
                    "device",
                    "[",
                    "]",
                    "{",
                    "}",
                    "(",
                    ")",
                ),
                *(
                    ".",
                    ",",
                    "?",
                    ":",
                    "+",
                    "-",
                    "*",
                    "/",
                    "%",
                    "!",
                    "<",
                    "==",
                    "&&",
                    "||",
                    " in ",
                    "\\",
                    "'",
                ),
                *(
                    ".map(x, ",
                    ".all(x, ",
                    "has(",
                    "size(",
                    "dyn(",
                    "duration('",
                    ".matches('",
                    "%",
                    "`",
                    "é",
                ),
            ]
        ),
        max_size=25,
    ).map("".join)
)
def test_no_text_leads_to_anything_but_an_answer(text):
    answer_to(text)
