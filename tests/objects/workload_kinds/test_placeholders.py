import hashlib

import pytest

from mooring.objects.workload_kinds.placeholders import ABSENT, DescriptionError, filled

VALUES = {
    "name": "web",
    "index": 2,
    "spec": {
        "replicas": 3,
        "paused": False,
        "items": [1, 2],
        "labels": {"a": "b", "n": 1},
        "x/y": {"z": "deep"},
        "list": [{"name": "a", "v": 1}, {"name": "b"}],
        "more": [{"name": "a", "w": 2}, {"name": "c"}],
    },
}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("plain", "plain"),
        ("${spec.replicas}", 3),
        ("${name}-${index}", "web-2"),
        ("${index + 1}", 3),
        ("${spec.replicas - 1}", 2),
        ("${spec.none | 1 - 1}", 0),
        ("${spec.none | spec.replicas}", 3),
        ("${spec.none | 7}", 7),
        ("${spec.none | 'text'}", "text"),
        ("${spec.none | true}", True),
        ("${spec.paused | true}", False),
        ("${spec.none}", ABSENT),
        ("a${spec.none}b", "ab"),
        ("${spec.items[1]}", 2),
        ("${spec.items[9]}", ABSENT),
        ("${spec['x/y'].z}", "deep"),
        ("${spec.none | 'a' == 'a'}", True),
        ("${name == 'other'}", False),
        ({"a": "${spec.none}", "b": 1}, {"b": 1}),
        (["${spec.items}", "${spec.none}", 3], [1, 2, 3]),
        ({"$if": "${spec.paused}", "a": 1}, ABSENT),
        ({"$if": "${spec.replicas}", "a": 1}, {"a": 1}),
        ({"$merge": "${spec.labels}", "a": "c"}, {"a": "c", "n": 1}),
        ({"$merge": ["${spec.none}", {"x": {"y": 1}}], "x": {"z": 2}}, {"x": {"y": 1, "z": 2}}),
        (
            {"labels": {"i": "${index}", "$merge": "${spec.labels}"}},
            {"labels": {"a": "b", "n": 1, "i": "2"}},
        ),
        (
            {"$named": ["${spec.list}", "${spec.more}", "${spec.none}"]},
            [{"name": "a", "v": 1, "w": 2}, {"name": "b"}, {"name": "c"}],
        ),
        ({"$sha1": "a/${name}"}, hashlib.sha1(b"a/web").hexdigest()),
    ],
)
def test_placeholders_are_filled_in(written, value):
    assert filled(written, VALUES) == value


def test_a_wrong_path_is_told():
    with pytest.raises(DescriptionError, match="is not a path"):
        filled("${spec..a!}", VALUES)
