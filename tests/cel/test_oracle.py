"""Expressions against cel-cpp, by its Python package: the same value, or an error of the same kind.

Only what both dialects have is drawn. Known differences are left out: the texts of errors, constants that
Kubernetes converts beforehand (see `late`), and the libraries that only Kubernetes has.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.cel.values import type_name
from tests.cel.evaluation import answer_to

cel = pytest.importorskip("cel_expr_python.cel", reason="the oracle has no wheel for this system")

_ENV = cel.NewEnv()

_INTS = st.sampled_from((0, 1, -1, 2, 3, -7, 10, 2**31, 2**63 - 1, -(2**63))).map(
    lambda n: f"({n})" if n != -(2**63) else "(-9223372036854775807 - 1)"
)
_UINTS = st.sampled_from((0, 1, 2, 7, 2**64 - 1)).map("{}u".format)
_DOUBLES = st.sampled_from(("0.0", "1.0", "-1.5", "2.25", "1e300", "-1e-300", "3.0"))
_TEXTS = st.sampled_from(("", "a", "b", "ab", "aab", "é", "日本", "1", "-7", "1.5", "true", "x y"))
_STRINGS = _TEXTS.map("'{}'".format)
_PATTERNS = st.sampled_from(("a", "^a+b?$", "[a-c]", ".", "é", "(a|b)*", "[", "(?i)A", "\\\\d+"))
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


def binary(operators, inner) -> st.SearchStrategy[str]:
    return st.builds("({} {} {})".format, inner, st.sampled_from(operators), inner)


def call(form: str, *inner) -> st.SearchStrategy[str]:
    return st.builds(form.format, *inner)


def late(inner) -> st.SearchStrategy[str]:
    """Not a constant: Kubernetes converts constants, and compiles constant patterns, beforehand."""
    return inner.map("(true ? {0} : {0})".format)


def chosen(inner) -> st.SearchStrategy[str]:
    return call("({} ? {} : {})", _FLAGS, inner, inner)


_FLAGS = st.deferred(lambda: _BOOLS)
_INT = st.recursive(
    _INTS,
    lambda inner: st.one_of(
        binary("+-*/%", inner),
        call("-{}", inner),
        chosen(inner),
        call("size({})", _STRINGS),
        call("{}.size()", st.deferred(lambda: _LISTS)),
        *(call("int({})", late(kind)) for kind in (_UINTS, _DOUBLES, _STRINGS)),
        call("{}[{}]", st.deferred(lambda: _LISTS), inner),
        call("{{'a': {}, 'b': {}}}[{}]", inner, inner, _STRINGS),
    ),
    max_leaves=5,
)
_LISTS = st.one_of(
    st.lists(_INTS, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
    call("[{}, {}]", _INT, _INT),
)
_UINT = st.recursive(
    _UINTS,
    lambda inner: st.one_of(binary("+-*/%", inner), call("uint({})", late(_INT))),
    max_leaves=4,
)
_DOUBLE = st.recursive(
    _DOUBLES,
    lambda inner: st.one_of(
        binary("+-*/", inner),
        call("-{}", inner),
        call("double({})", late(_INTS)),
        call("double({})", late(_STRINGS)),
    ),
    max_leaves=4,
)
_STRING = st.recursive(
    _STRINGS,
    lambda inner: st.one_of(
        binary("+", inner),
        chosen(inner),
        *(call("string({})", late(kind)) for kind in (_INT, _UINT, _FLAGS)),
    ),
    max_leaves=4,
)
_BOOLS = st.recursive(
    st.one_of(
        st.sampled_from(("true", "false")),
        *(binary(_COMPARISONS, kind) for kind in (_INT, _UINT, _DOUBLE, _STRING)),
        call("{}.matches({})", _STRING, late(_PATTERNS.map("'{}'".format))),
        *(
            call(f"{{}}.{name}({{}})", _STRING, _STRING)
            for name in ("contains", "startsWith", "endsWith")
        ),
        # Nothing is in an empty list, Kubernetes says without a look at what is asked for.
        call("({} in [{}, {}])", _INT, _INT, _INTS),
        call("({} == {})", _LISTS, _LISTS),
        call("has({{'a': 1}}.{})", st.sampled_from(("a", "b"))),
        *(
            call(f"{{}}.{macro}(i, (6 / i {{}} {{}}))", _LISTS, st.sampled_from(_COMPARISONS), _INT)
            for macro in ("all", "exists", "exists_one")
        ),
        call("{}.map(i, i * 2).exists(j, j > {})", _LISTS, _INT),
        call("({}.filter(i, i % 2 == 0) == {})", _LISTS, _LISTS),
        call("bool({})", late(_STRING)),
        # Types that do not fit.
        call("({} < {})", _INT, _STRING),
        call("({} + {} == 1)", _INT, _STRING),
        call("(dyn({}) == dyn({}))", _INT, _INT),
        call("unknown == {}", _INT),
    ),
    lambda inner: st.one_of(binary(("&&", "||"), inner), call("!{}", inner), chosen(inner)),
    max_leaves=6,
)


def oracle(expression: str) -> Any:
    """The type and value, or `compile`, or `runtime`."""
    try:
        compiled = _ENV.compile(expression)
    except RuntimeError:
        return "compile"
    found = compiled.eval(data={})
    if found.type() == cel.Type.ERROR:
        return "runtime"
    return str(found.type()).lower().partition("<")[0], comparable(found.plain_value())


def ours(expression: str) -> Any:
    answer = answer_to(expression)
    if isinstance(answer, tuple):
        return "runtime" if answer[0] == "abort" else answer[0]
    return type_name(answer), comparable(answer)


def comparable(value: Any) -> Any:
    return "nan" if isinstance(value, float) and math.isnan(value) else value


@settings(deadline=None)
@given(expression=st.one_of(_BOOLS, _INT, _UINT, _DOUBLE, _STRING))
def test_an_expression_means_what_it_means_to_another_implementation(expression):
    assert ours(expression) == oracle(expression)
