import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mooring.objects.yaml_text import DEEPEST, YamlError, parse_yaml


def parsed(text):
    (value,) = parse_yaml(text.encode() if isinstance(text, str) else text)
    return value


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1e3", 1000),
        ("0o14", 12),
        ("014", 12),
        ("089", 89),
        ("0x1F", 31),
        ("0b101", 5),
        ("1_000", 1000),
        ("+5", 5),
        ("-0", 0),
        (".5", 0.5),
        ("1.5", 1.5),
        ("1.0", 1),
        ("12e-3", 0.012),
        ("99999999999999999999", 10**20),
        ("yes", True),
        ("Off", False),
        ("y", True),
        ("1:30", "1:30"),
        ("2026-01-31", "2026-01-31"),
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
        ("1.5Gi", "1.5Gi"),
        ("100m", "100m"),
        ("0o8", "0o8"),
        ("1e400", "1e400"),
        ("=", "="),
        ("'1'", "1"),
        ('"yes"', "yes"),
        ("!!str 1", "1"),
        ("!mine 1", "1"),
        ("!!int '1'", 1),
    ],
)
def test_a_word_means_what_it_means_to_kubectl(written, value):
    """As go-yaml v2 resolves it and JSON then carries it."""
    read = parsed(f"key: {written}")["key"]

    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize("nothing", ["", "~", "null", "Null", "NULL"])
def test_null_means_absent(nothing):
    assert parsed(f"a: {nothing}\nb: {{c: {nothing} }}\nd: [1]") == {"b": {}, "d": [1]}


def test_keys_become_strings():
    assert parsed("1: a\ntrue: b\n0.5: c\nplain: d") == {
        "1": "a",
        "true": "b",
        "0.5": "c",
        "plain": "d",
    }


def test_merge_keys_fill_in_what_is_not_given():
    text = """
base: &base {cpu: 1, memory: 2, gone: 3}
more: &more {memory: 9, disk: 4}
one: {<<: *base, cpu: 5, gone: null}
two: {<<: [*base, *more]}
"""

    assert parsed(text)["one"] == {"cpu": 5, "memory": 2}
    assert parsed(text)["two"] == {"cpu": 1, "memory": 2, "gone": 3, "disk": 4}


def test_documents_that_are_empty_are_passed_over():
    assert list(parse_yaml(b"---\n# nothing\n---\na: 1\n---\n---\nb: 2\n")) == [{"a": 1}, {"b": 2}]


def test_other_encodings_are_read():
    assert parsed('a: "grüße"'.encode("utf-16")) == {"a": "grüße"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "a: 1\nb: 2\na: 3",
            "line 3, column 1: 'a' is given twice in one mapping; keep one of them",
        ),
        ("a:\n  b: 1\n  b: 2", "line 3, column 3: 'b' is given twice"),
        ("a: b: c", "line 1, column 5: mapping values are not allowed"),
        ("a:\n\t- b", "line 2, column 1: found character that cannot start any token"),
        (
            "x: 1\na: [1, 2",
            "did not find expected ',' or ']' while parsing a flow sequence that begins on line 2",
        ),
        ("a: 'x", "found unexpected end of stream"),
        ("- a", "line 1, column 1: a list, not an object"),
        ("? [a]\n: b", "a key must be a plain word"),
        ("~: b", "a key is missing"),
        ("a: *b", "line 1, column 4: nothing above is marked '&b'"),
        ("a: &a [*a]", "line 1, column 8: '*a' stands inside what it refers to"),
        ("a: {<<: 1}", "'<<' merges mappings"),
        ("a: \x00", "control characters are not allowed"),
    ],
)
def test_what_is_wrong_is_told_with_line_and_column(text, problem):
    with pytest.raises(YamlError) as error:
        parsed(text)

    assert problem in str(error.value)
    assert "\n" not in str(error.value)


def test_lines_are_counted_from_where_the_text_begins():
    with pytest.raises(YamlError, match="line 41, column 1"):
        list(parse_yaml(b"a: 1\na: 2", first_line=40))


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 10_000, id="brackets"),
        pytest.param("a: " + "[" * 1_000_000, id="a million brackets"),
        pytest.param("a:\n  " + "- " * 10_000, id="dashes"),
        pytest.param("{a: " * 10_000, id="braces"),
        pytest.param("\n".join(" " * depth + "a:" for depth in range(2000)), id="indentation"),
    ],
)
def test_depth_is_bounded(text):
    with pytest.raises(YamlError, match=r"nested more than 500 levels deep|a list, not"):
        parsed(text)


def test_what_is_deep_but_bounded_is_read():
    assert parsed("a: " + "[" * (DEEPEST - 2) + "]" * (DEEPEST - 2))


@pytest.mark.timeout(20)
def test_aliases_cannot_be_made_to_eat_the_memory():
    """A billion laughs: each line stands for nine of the line before it."""
    lines = ["a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]

    with pytest.raises(YamlError, match="aliases stand for too many values"):
        parsed("\n".join(lines))


def test_ordinary_aliases_are_fine():
    assert parsed("a: &x {b: 1}\nc: [*x, *x]") == {"a": {"b": 1}, "c": [{"b": 1}, {"b": 1}]}


PLAIN_VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(st.characters(codec="ascii", categories=["L", "N"])),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abcdef", min_size=1), inner)
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.text("abcdef", min_size=1), PLAIN_VALUES, min_size=1))
def test_what_another_library_writes_is_read_back(value):
    assert parsed(yaml.safe_dump(value, default_style='"')) == value
