"""The empties that pods and nodes share."""

from __future__ import annotations

import copy
import pickle

import msgspec
import pytest

from mooring.objects.decoding import decode_json
from mooring.objects.empties import NO_ITEMS, NO_KEYS
from mooring.objects.node import Node
from mooring.objects.pod import Pod


def test_what_is_empty_is_shared():
    pod = decode_json(b'{"metadata": {"name": "p"}, "spec": {"containers": [{}]}}', Pod)
    node = decode_json(b'{"metadata": {"name": "n"}}', Node)

    assert pod.spec.tolerations is pod.spec.containers[0].ports is node.spec.taints is NO_ITEMS
    assert pod.labels is pod.spec.overhead is node.status.allocatable is NO_KEYS


def test_what_is_empty_cannot_be_changed():
    pod = Pod()
    for change in (
        lambda: pod.labels.update(app="web"),
        lambda: pod.labels.setdefault("app", "web"),
        lambda: pod.labels.__setitem__("app", "web"),
        lambda: pod.spec.tolerations.append(None),
        lambda: pod.spec.tolerations.extend([None]),
        lambda: pod.spec.tolerations.insert(0, None),
    ):
        with pytest.raises(TypeError, match="objects never change"):
            change()
    assert (NO_ITEMS, NO_KEYS) == ([], {})


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_are_the_same(again):
    assert again(NO_ITEMS) is NO_ITEMS
    assert again(NO_KEYS) is NO_KEYS


def test_what_was_given_as_empty_equals_what_was_not_given():
    text = b'{"metadata": {"labels": {}}, "spec": {"tolerations": []}}'

    assert decode_json(text, Pod) == Pod()
    assert msgspec.json.encode(Pod()) == b"{}"
