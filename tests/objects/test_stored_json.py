"""What an API server has printed is no template: it is not searched for marks, and nothing gets past that."""

from __future__ import annotations

import json

import pytest

from mooring.errors import InputError
from mooring.objects.manifests import read_manifests


def pod(**spec: object) -> dict[str, object]:
    containers = [{"name": "c", "command": ["sh", "-c", "echo {{ $HOME }}"]}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "resourceVersion": "7"},
        "spec": {"containers": containers, **spec},
    }


def read(tmp_path, document: dict[str, object]):
    path = tmp_path / "pod.json"
    path.write_text(json.dumps(document))
    return read_manifests([path])


def test_text_for_other_programs_is_no_mark(tmp_path):
    assert len(read(tmp_path, pod()).objects) == 1


@pytest.mark.parametrize("mark", ["${ZONE}", "{{ .zone }}", "<zone>", "$ZONE"])
@pytest.mark.parametrize(
    "spec",
    [
        lambda mark: {"nodeSelector": {"zone": mark}},
        lambda mark: {"nodeSelector": {mark: "a"}},
        lambda mark: {"priority": mark},
        lambda mark: {"containers": [{"name": "c", "resources": {"requests": {"cpu": mark}}}]},
        lambda mark: {"tolerations": [{"key": "a", "operator": mark}]},
    ],
    ids=["label", "key", "number", "amount", "choice"],
)
def test_a_mark_where_it_matters_is_refused(tmp_path, mark, spec):
    with pytest.raises(InputError):
        read(tmp_path, pod(**spec(mark)))
