import io
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.errors import InputError
from mooring.objects import api_fields
from mooring.objects.api_fields import unknown_fields
from mooring.objects.kinds import KINDS
from mooring.objects.manifests import ReadOptions, read_manifests

DEPLOYMENT = """# a comment
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeselector: {disk: ssd}
      containers:
      - name: c
        limits: {cpu: 1}
"""


def read(text, **options):
    return read_manifests(["-"], stdin=io.BytesIO(text.encode()), options=ReadOptions(**options))


def test_a_misspelt_field_is_a_warning_with_its_line_and_the_nearest_field():
    where = "standard input: document 1"
    template = "spec.template.spec"

    assert read(DEPLOYMENT).warnings == [
        f"{where}, line 10 (Deployment default/web): {template}.nodeselector: there is no such field; "
        "did you mean nodeSelector?",
        f"{where}, line 13 (Deployment default/web): {template}.containers[0].limits: "
        "there is no such field; it belongs into resources",
    ]


def test_lines_count_in_later_documents_and_in_lists():
    listed = "kind: List\napiVersion: v1\nitems:\n- " + DEPLOYMENT.split("\n", 1)[1].replace(
        "\n", "\n  "
    )

    lines = read("{apiVersion: v1, kind: Secret}\n---\n" + listed).warnings

    assert [line.split(" (")[0] for line in lines] == [
        "standard input: document 2, item 1, line 14",
        "standard input: document 2, item 1, line 17",
    ]


def test_lines_are_found_in_documents_that_repeat_earlier_ones():
    """Such documents are not parsed; the line is looked up in their text."""
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: pod-%d\nspec:\n  nodeselector: {a: b}\n"
        "  containers: [{name: c}]\n"
    )
    documents = "---\n".join(pod % i for i in (1, 2, 3))
    items = "".join(f"- {(pod % i)[:-1]}".replace("\n", "\n  ") + "\n" for i in (4, 5))

    lines = read(f"{documents}---\nitems:\n{items}kind: List\napiVersion: v1\n").warnings

    assert [line.split(" (")[0] for line in lines] == [
        "standard input: document 1, line 6",
        "standard input: document 2, line 14",
        "standard input: document 3, line 22",
        "standard input: document 4, item 1, line 31",
        "standard input: document 4, item 2, line 38",
    ]


def test_strict_makes_errors_of_misspelt_fields():
    with pytest.raises(InputError) as error:
        read(DEPLOYMENT, strict=True)

    assert len(error.value.problems) == 2


def test_what_an_api_server_stored_is_not_checked():
    raw = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "uid": "u"},
        "spec": {"containers": [{"name": "c"}], "fieldOfTomorrow": 1},
    }

    assert read(json.dumps(raw)).warnings == []
    del raw["metadata"]["uid"]
    assert len(read(json.dumps(raw)).warnings) == 1


@pytest.mark.parametrize(
    ("kind", "body", "path", "advice"),
    [
        ("v1/Pod", {"metadata": {"lables": {}}}, "metadata.lables", "did you mean labels?"),
        ("v1/Pod", {"spec": {"toleration": []}}, "spec.toleration", "did you mean tolerations?"),
        (
            "v1/Pod",
            {"spec": {"affinity": {"podAffinity": {"requiredDuringScheduling": []}}}},
            "spec.affinity.podAffinity.requiredDuringScheduling",
            "did you mean requiredDuringSchedulingIgnoredDuringExecution?",
        ),
        ("v1/Node", {"status": {"allocateable": {}}}, "status.allocateable", "allocatable?"),
        ("apps/v1/StatefulSet", {"spec": {"replica": 2}}, "spec.replica", "did you mean replicas?"),
        ("batch/v1/CronJob", {"spec": {"xyz": 2}}, "spec.xyz", ""),
    ],
)
def test_each_kind_has_its_fields(kind, body, path, advice):
    api_version, _, name = kind.rpartition("/")

    (unknown,) = unknown_fields(api_version, name, body)

    assert unknown.path == path
    assert advice in str(unknown)


def test_keys_of_the_users_own_are_no_fields():
    body = {
        "metadata": {"labels": {"any": "x"}, "annotations": {"any": "x"}},
        "spec": {"nodeSelector": {"any": "x"}, "overhead": {"cpu": 1}},
    }

    assert unknown_fields("v1", "Pod", body) == []


def test_every_kind_that_mooring_reads_is_in_the_table():
    known = api_fields._table().kinds

    assert [k.name for k in KINDS if f"{k.api_version}/{k.name}" not in known] == []


FIELDS = ["apiVersion", "kind", "metadata", "spec", "status", "name", "containers", "labels", "x"]
VALUES = st.recursive(
    st.none() | st.text(max_size=3) | st.integers(0, 3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4)
    ),
)


@given(st.dictionaries(st.sampled_from(FIELDS), VALUES))
def test_text_and_values_have_the_same_unknown_fields(body):
    """The fast check of JSON text, the fast check of values, and the walk are one rule."""
    walked = list(api_fields._unknown(body, "Pod", ()))

    assert unknown_fields("v1", "Pod", body) == walked
    assert unknown_fields("v1", "Pod", msgspec.Raw(json.dumps(body).encode())) == walked
