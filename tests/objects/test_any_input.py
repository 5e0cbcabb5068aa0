"""Whatever stands in a file: objects or clear lines come out, and never anything else."""

import contextlib
import copy
import functools
import io
import json
import operator

from hypothesis import example, given
from hypothesis import strategies as st

from mooring.errors import InputError
from mooring.objects.manifests import read_manifests

CLUSTER = [
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "labels": {"zone": "a"}},
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
        "status": {"capacity": {"cpu": 4, "pods": "110"}},
    },
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"app": "web"}},
        "spec": {
            "nodeName": "n",
            "containers": [
                {
                    "name": "c",
                    "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
                    "ports": [{"containerPort": 80, "hostPort": 80}],
                }
            ],
            "tolerations": [{"key": "k", "operator": "Exists"}],
            "affinity": {
                "podAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
                    ]
                }
            },
        },
    },
    {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "s"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c"}]},
            },
            "volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": {}}],
        },
    },
    {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": "j-"},
        "spec": {"completions": 2, "template": {"spec": {"containers": [{"name": "c"}]}}},
    },
]
ODD = st.sampled_from(
    [
        None,
        "",
        "x",
        "a b",
        -1,
        0,
        1.5,
        10**30,
        True,
        [],
        {},
        [None],
        {"": ""},
        "1Gi",
        "-1",
        "\x00",
        "ü",
        "a\nb",
    ]
)


def read(text):
    try:
        read_manifests(["-"], stdin=io.BytesIO(text))
    except InputError as error:
        problems = error.problems
    else:
        return
    assert problems
    for line in problems:
        assert line.startswith("standard input: ")
        assert "\n" not in line


def places(value, path=()):
    yield path
    entries = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in entries:
        yield from places(inner, (*path, key))


PLACES = [path for path in places(CLUSTER) if path]


@given(st.lists(st.tuples(st.sampled_from(PLACES), ODD), min_size=1, max_size=3), st.booleans())
def test_a_field_may_hold_anything(changes, as_json):
    cluster = copy.deepcopy(CLUSTER)
    for path, odd in changes:
        # A place may be gone once another has been changed.
        with contextlib.suppress(KeyError, IndexError, TypeError):
            holder = functools.reduce(operator.getitem, path[:-1], cluster)
            holder[path[-1]] = copy.deepcopy(odd)
    separator = "\n" if as_json else "\n---\n"

    read(separator.join(map(json.dumps, cluster)).encode())


@given(st.binary(max_size=300))
@example(b"\x1f\x8b")
def test_bytes_may_be_any(text):
    read(text)


@given(st.text("abk:-[]{}&*'\"|>#%!,? \n\t01~<", max_size=120))
def test_text_may_be_any(text):
    read(text.encode())


@given(
    st.integers(0, 2000), st.integers(0, 30), st.sampled_from(["", "{", "\n", "- ", "\t", "x: "])
)
def test_a_file_may_be_cut_and_patched_anywhere(at, length, patch):
    text = "\n---\n".join(json.dumps(obj, indent=1) for obj in CLUSTER)

    read((text[:at] + patch + text[at + length :]).encode())
