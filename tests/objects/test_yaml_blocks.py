"""Documents that are put together from known blocks say what the parser reads in them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.objects.yaml_blocks import MOST_WITHOUT_USE, YamlBlocks
from mooring.objects.yaml_text import YamlError, parse_yaml

POD = b"""---
apiVersion: v1
kind: Pod
metadata:
  name: web-%d
  namespace: shop
  labels:
    app: web
spec:
  containers:
  - name: main
    image: example.com/web:1.0
    command: ["sh", "-c", "sleep 5"]
    resources:
      requests:
        cpu: 100m
"""

LIST = b"""apiVersion: v1
items:
- apiVersion: v1
  kind: Pod
  metadata:
    name: web-1
- apiVersion: v1
  kind: Pod
  metadata:
    name: web-2
    labels:
      app: web
kind: List
metadata:
  resourceVersion: ""
"""

#: Lines that are blocks, parts of blocks, or break what looks like one.
LINES = [
    *("a: 1", "b: x", "b: web-1", "kind: Pod", "yes: no", "on: off", "c: null", "c: ~", "d: 1e3"),
    *("e: |", "e: |+", "e: >-", "e: |2", "f: [x,", "y]", "g: {h: i}", 'k: "x', 'z"', "k: 'x", "z'"),
    *("m:", "m: ", "m:  # empty", "n: &anchor x", "o: *anchor", "p: .inf", "p: .nan", "? q", ": r"),
    *(
        "- s",
        "- b: x",
        "-",
        "- - t",
        "# comment",
        "",
        " ",
        "\tu: v",
        "...",
        "w: x # comment",
        "w: x:y",
    ),
    *("items:", "- kind: Pod", "'b': x", "!!str b: x", "v: !!str 1", "<<: {a: 1}", "%TAG", "word"),
    *("b: 99999999999999999999999", "b: 0x1F", "b: 2026-01-01", "b: x\r", "b:x", "B: true", "é: 1"),
]
_INDENTED = st.builds(
    lambda indent, line: " " * indent + line,
    st.sampled_from([0, 0, 0, 2, 2, 4, 1]),
    st.sampled_from(LINES),
)
DOCUMENTS = st.lists(_INDENTED, min_size=1, max_size=7).map(lambda x: "\n".join([*x, ""]).encode())


def parsed(document: bytes) -> object:
    try:
        return list(parse_yaml(document))
    except YamlError:
        return "not YAML"


def typed(value: object) -> object:
    """Python takes 1, 1.0 and true for equal."""
    if isinstance(value, dict):
        return {key: typed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [typed(each) for each in value]
    return type(value), value


def nothing(position: int) -> None:
    pass


@given(st.lists(DOCUMENTS, min_size=2, max_size=8))
def test_what_is_known_says_what_the_parser_reads(documents):
    blocks = YamlBlocks()
    # What is learned from one document must hold in every other one.
    for document in [*documents, *documents, *(a + b for a in documents for b in documents)]:
        text = blocks.as_json(document, nothing)
        values = parsed(document)
        if text is not None:
            assert typed(values) == typed([msgspec.json.decode(text)])
        elif isinstance(values, list) and len(values) == 1:
            blocks.learn(document, values[0])


def test_pods_that_differ_in_their_names_are_parsed_once():
    blocks = YamlBlocks()
    blocks.learn(POD % 1, *parse_yaml(POD % 1))

    text = blocks.as_json(POD % 2, nothing)

    assert text is not None
    assert [msgspec.json.decode(text)] == list(parse_yaml(POD % 2))


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(POD.replace(b"web-%d", b"yes"), id="a name that YAML reads as a bool"),
        pytest.param(POD.replace(b"web-%d", b"1"), id="a name that YAML reads as a number"),
        pytest.param(POD + b"kind: Pod\n", id="a key twice"),
        pytest.param(
            POD.replace(b"  namespace: shop\n", b" namespace: shop\n"), id="a broken indent"
        ),
        pytest.param(POD + b"status:\n  phase: [\n", id="a part that is not YAML"),
        pytest.param((POD % 2)[:-1], id="a last line without an end"),
    ],
)
def test_anything_else_is_parsed(document):
    blocks = YamlBlocks()
    blocks.learn(POD % 1, *parse_yaml(POD % 1))

    assert blocks.as_json(document, nothing) is None


def test_documents_that_repeat_no_other_are_not_remembered_for_ever():
    blocks = YamlBlocks()
    for i in range(MOST_WITHOUT_USE):
        blocks.learn(b"a: %d\n" % i, {"a": i})
    blocks.learn(b"b: 1\n", {"b": 1})
    assert blocks.as_json(b"b: 1\n", nothing) is None

    assert blocks.as_json(b"a: 7\n", nothing) == b'{"a":7}'
    blocks.learn(b"b: 1\n", {"b": 1})
    assert blocks.as_json(b"b: 1\n", nothing) == b'{"b":1}'


def test_what_an_alias_says_is_not_remembered():
    blocks = YamlBlocks()
    for image in (b"a", b"b", b"a"):
        document = b"x: &image {image: %b}\ny: *image\n" % image
        assert blocks.as_json(document, nothing) is None
        blocks.learn(document, *parse_yaml(document))


def test_the_items_of_a_list_are_documents():
    positions: list[int] = []

    text = YamlBlocks().as_json(LIST, positions.append)

    assert text is not None
    assert [msgspec.json.decode(text)] == list(parse_yaml(LIST))
    assert len(positions) == 2
    assert positions[0] < positions[1] < len(LIST)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            LIST.replace(b"v1", b"&v v1", 1).replace(
                b"iVersion: v1\n  kind", b"iVersion: *v\n  kind"
            ),
            id="an alias",
        ),
        pytest.param(LIST + b"items: []\n", id="items twice"),
        pytest.param(
            LIST.replace(b"    name: web-2\n", b'    name: "web\n- 2"\n'),
            id="a string over two lines",
        ),
        pytest.param(b"items:\n- a: b\n", id="nothing but items"),
    ],
)
def test_a_list_whose_items_depend_on_more_than_themselves_is_parsed_whole(text):
    assert YamlBlocks().as_json(text, nothing) is None


@given(st.lists(DOCUMENTS, max_size=4))
def test_any_list_says_what_the_parser_reads(documents):
    items = b"".join(
        b"- " + b"\n  ".join(document.rstrip(b"\n").split(b"\n")) + b"\n" for document in documents
    )
    text = b"kind: List\nitems:\n" + items + b"metadata: {}\n"

    found = YamlBlocks().as_json(text, nothing)

    if found is not None:
        assert typed(parsed(text)) == typed([msgspec.json.decode(found)])
