"""The language itself: what parses, what type-checks, what has a value, and what it costs."""

from __future__ import annotations

import pytest

from mooring.cel.errors import CelAbort, CelCompileError, CelError
from tests.cel.evaluation import answer_to, cost_of, value_of


@pytest.mark.parametrize(
    "expression",
    [
        "1 + 2 * 3 == 7 && -7 / 2 == -3 && -7 % 3 == -1",
        "false ? false : true ? true : false",
        "'a' + \"b\" + r'\\n' + '''c''' == 'ab\\\\nc'",
        "b'\\xff\\101' == b'\\377A'",
        "1 in [1, 2] && !('x' in {'y': 1})",
        "[1, 2, 3].exists(x, x > 2) && [1, 2].all(x, x < 3) && [1, 2].exists_one(x, x == 1)",
        "[1, 2, 3].map(x, x > 1, x * 2) == [4, 6] && [1, 2].filter(x, x > 1) == [2]",
        "{'a': 1}.transformMap(k, v, v + 1) == {'a': 2}",
        "[5, 6].transformMapEntry(i, v, {v: i}) == {5: 0, 6: 1}",
        "cel.bind(x, 2, x * x) == 4",
        "{'a': 1}.?b.orValue(7) == 7 && [1][?3] == optional.none()",
        "optional.of(2).optMap(x, x + 1).value() == 3",
        "dyn(1) == 1.0 && dyn(1u) == 1 && 1 < 1.5 && 2u > 1",
        "type([]) == list && type(1) != uint",
        "timestamp('2024-02-29T12:00:00Z') + duration('24h') == timestamp('2024-03-01T12:00:00Z')",
        "timestamp('2024-07-01T08:00:00+05:30').getHours('Asia/Kolkata') == 8",
        "string(timestamp('2024-07-01T08:00:00+05:30')) == '2024-07-01T08:00:00+05:30'",
        "'%s %d %.2f %x'.format(['a', 1, 1234.5, 255]) == 'a 1 1,234.50 ff'",
        "['b', 'a'].sort() == ['a', 'b'] && [3, 1].sortBy(x, -x) == [3, 1]",
        "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('1500m').add(1) == quantity('2500m')",
        "semver('1.2.3-rc.1').isLessThan(semver('1.2.3'))",
        "cidr('10.0.0.0/8').containsIP(ip('10.1.2.3')) && ip('::1').family() == 6",
        "url('https://h:1/a?b=c').getPort() == '1'",
        "format.dns1123Label().validate('a-b') == optional.none()",
        "google.protobuf.Duration{seconds: 90} == duration('1m30s')",
    ],
)
def test_holds(expression):
    assert value_of(expression) is True


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("1 / 0 == 1", "division by zero"),
        ("1 % 0 == 1", "modulus by zero"),
        ("9223372036854775807 + 1 > 0", "integer overflow"),
        ("0u - 1u == 0u", "unsigned integer overflow"),
        ("{'a': 1}['b'] == 1", "no such key: b"),
        ("[1][2] == 1", "index out of bounds: 2"),
        ("[1][dyn('a')] == 1", "unsupported index type 'string' in list"),
        ("optional.none().value() == 1", "optional.none() dereference"),
        ("dyn(1) + dyn('a') == 1", "no such overload"),
        ("size(dyn(1)) == 1", "no such overload: size"),
        ("dyn(1).upperAscii() == ''", "no such overload: upperAscii(int)"),
        ("'a'.substring(2) == ''", "index out of range: 2"),
        ("'a'.matches('a' + '[')", "error parsing regexp: missing closing ]: `[`"),
        ("[1, 2].slice(0, 3) == []", "cannot slice(0, 3), list is length 2"),
    ],
)
def test_has_no_value(expression, text):
    with pytest.raises(CelError) as caught:
        value_of(expression)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    "expression",
    [
        *("", "1 +", "(true", "[1, 2", "{'a' 1}", "true;", "a", "'a", "'\\q' == ''", "in", "let"),
        *("1 == 'a'", "1u == 1", "true && 1", "1 + 'a' == 2", "[1, 'a'] == []", "'a'.foo()"),
        *("-9223372036854775809 < 0", "1e999 > 0.0", "18446744073709551616u > 0u"),
        *("[1].all(x.y, true)", "has(1)", "[1].transformList(i, i, i) == []"),
        *(
            "'\\ud800' == ''",
            "duration('1d') > duration('1s')",
            "timestamp('2024-01-01') > timestamp(0)",
        ),
        *("int('x') == 1", "string(b'\\xff') == ''", "'a'.matches('(?=a)')", "'a'.find('(') == ''"),
        *("'%d'.format(['a']) == ''", "'%s'.format([]) == ''", "'%s'.format([1, 2]) == ''"),
    ],
)
def test_does_not_compile(expression):
    with pytest.raises(CelCompileError):
        value_of(expression)


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        # A comparison of strings costs a tenth of the shorter one, rounded up.
        ("'a' == 'b'", 1),
        ("'aaaaaaaaaaaaaaaa' == 'aaaaaaaaaaaa'", 2),
        # Three steps of the accumulator (1), a list of one (10), the item (1) and `+` (1); the result (1).
        ("[1, 2, 3].map(x, x).size() == 3", 3 * 13 + 1 + 1 + 1),
        # The branch that is not taken costs nothing, and neither does the conditional.
        ("true ? 1 == 1 : [1].map(x, x) == [1]", 1),
        ("false && 1 == 1", 0),
        # Membership in a constant list is free.
        ("1 in [1, 2, 3]", 0),
        # What a failed operand cost counts if the error is absorbed.
        ("1 / 0 == 1 || true", 2),
    ],
)
def test_cost(expression, cost):
    assert cost_of(expression) == cost


def test_errors_are_absorbed_by_a_deciding_operand_on_either_side():
    assert value_of("1 / 0 == 1 || true") is True
    assert value_of("false && 1 / 0 == 1") is False
    assert value_of("[1, 0].exists(x, 1 / x == 1)") is True
    assert answer_to("1 / 0 == 1 || false") == ("runtime", "division by zero")


def test_the_cost_limit_cannot_be_absorbed():
    with pytest.raises(CelAbort, match="actual cost limit exceeded"):
        value_of("lists.range(250000).all(x, x >= 0) || true")


@pytest.mark.parametrize(
    ("opening", "inside", "closing", "deepest"),
    [("(", "true", ")", 249), ("!(", "true", ")", 249), ("false ? true : ", "true", "", 249)],
)
def test_nesting_is_limited(opening, inside, closing, deepest):
    assert isinstance(value_of(opening * deepest + inside + closing * deepest), bool)
    kind, text = answer_to(opening * (deepest + 1) + inside + closing * (deepest + 1))
    assert kind == "compile"
    assert "expression recursion limit exceeded: 250" in text


@pytest.mark.parametrize("operators", [250, 3000])
def test_chains_are_limited_too(operators):
    kind, text = answer_to("1" + " + 1" * operators + " > 0")
    assert kind == "compile"
    assert "recursion limit" in text


def test_macros_cannot_blow_up_an_expression():
    kind, text = answer_to("optional.of(1)" + ".optMap(x, x)" * 40 + ".hasValue()")
    assert kind == "compile"
    assert "too large" in text


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(9223372036854775807).size() > 0",
        "lists.range(5000).distinct().size() > 0",
        "sets.equivalent(lists.range(5000), lists.range(5000))",
        "cel.bind(a, lists.range(1000).map(x, 'a').join(),"
        " cel.bind(b, a.replace('a', a), b.replace('a', b).size() > 0))",
        "cel.bind(a, lists.range(100), "
        + "".join(
            f"cel.bind(a{i}, a{i - 1 if i else ''} + a{i - 1 if i else ''}, " for i in range(40)
        )
        + "a39.size() > 0"
        + ")" * 41,
    ],
)
def test_what_cannot_be_afforded_is_given_up(expression):
    kind, text = answer_to(expression)
    assert (kind, text) == ("abort", "operation cancelled: actual cost limit exceeded")


def test_wide_quantities_are_changed_in_place_as_in_the_reference():
    assert value_of("cel.bind(q, quantity('1.5Gi'), q.add(1).compareTo(q) == 0)") is True
    assert value_of("cel.bind(q, quantity('1Gi'), q.add(1).compareTo(q) == 1)") is True
