"""Files that are large are read as small ones are, and their text does not stay in memory."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from mooring.errors import InputError
from mooring.objects.large_texts import CAN_GIVE_BACK, LARGE, GivingBack, read_content
from mooring.objects.manifests import Manifests, read_manifests

#: Nothing reads it; it makes a file large with few objects.
FILLER = "x" * 50_000

ROLLOUT = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Rollout",
    "metadata": {"name": "first", "annotations": {"filler": FILLER}},
    "spec": {
        "replicas": 2,
        "template": {"spec": {"containers": [{"name": "c", "image": "nginx"}]}},
    },
}


def pod(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {"filler": FILLER}},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]},
    }


def listed(items: list[dict[str, Any]]) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=1).encode()


def large_list() -> bytes:
    """It has a custom resource first, which is looked at only once everything else was read."""
    text = listed([ROLLOUT, *(pod(f"p-{i}") for i in range(2 * LARGE // len(FILLER) + 100))])
    assert len(text) > 2 * LARGE
    return text


def names(manifests: Manifests) -> list[str]:
    return sorted(obj.key for obj in manifests.pods)


def test_a_large_file_is_read_as_the_same_text_from_standard_input(tmp_path: Path) -> None:
    text = large_list()
    (tmp_path / "dump.json").write_bytes(text)

    from_file = read_manifests([tmp_path / "dump.json"])
    piped = read_manifests(["-"], stdin=io.BytesIO(text))

    assert names(from_file) == names(piped)
    assert sum(name.startswith("default/first-") for name in names(from_file)) == 2


@pytest.mark.parametrize("start", [b"\xef\xbb\xbf", b"\n \n"], ids=["byte order mark", "blank"])
def test_what_may_stand_before_the_list_may_stand_there_in_a_large_file(
    tmp_path: Path, start: bytes
) -> None:
    (tmp_path / "dump").write_bytes(start + large_list())

    assert len(names(read_manifests([tmp_path / "dump"]))) > 1000


def test_a_large_file_that_ends_too_early_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "dump.json").write_bytes(large_list()[:-3])

    with pytest.raises(InputError, match=r"dump\.json: document 1: the JSON ends too early"):
        read_manifests([tmp_path / "dump.json"])


def test_large_files_with_a_value_a_line_and_in_yaml_are_read(tmp_path: Path) -> None:
    count = LARGE // len(FILLER) + 10
    pods = [json.dumps(pod(f"p-{i}")) for i in range(count)]
    (tmp_path / "lines.json").write_text("\n".join(pods))
    (tmp_path / "documents.yaml").write_text("\n---\n".join(pods))

    for name in ("lines.json", "documents.yaml"):
        assert len(names(read_manifests([tmp_path / name]))) == count


def test_progress_of_a_large_list_is_told_while_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "dump.json").write_bytes(large_list())
    told: list[int] = []

    read_manifests([tmp_path / "dump.json"], progress=lambda done, total: told.append(done))

    assert told == sorted(told)
    assert len(told) > 10


@pytest.mark.skipif(not CAN_GIVE_BACK, reason="memory cannot be given back here")
def test_what_was_read_of_a_large_text_is_given_back(tmp_path: Path) -> None:
    """Linux fills memory that was given back with zeros."""
    (tmp_path / "large").write_bytes(b"x" * (2 * LARGE))
    text = read_content(tmp_path / "large")

    giving_back = GivingBack(text)
    giving_back.up_to(100)
    assert text[:1] == b"x"
    giving_back.up_to(LARGE + 100)

    assert text[:LARGE] == bytes(LARGE)
    assert text[LARGE:] == b"x" * LARGE
