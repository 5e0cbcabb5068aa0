import io
import json

import pytest

from mooring.errors import InputError
from mooring.objects.manifests import decode_object, read_manifests
from mooring.objects.pod import Pod

NODE = """
apiVersion: v1
kind: Node
metadata:
  name: n1
  labels: {kubernetes.io/hostname: n1, kubernetes.io/os: linux, kubernetes.io/arch: amd64}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec: {containers: [{name: c, resources: {requests: {cpu: 500m}}}]}
"""
POD_JSON = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]},
}


def read(text, **options):
    data = text if isinstance(text, bytes) else text.encode()
    return read_manifests(["-"], stdin=io.BytesIO(data), **options)


def keys(manifests):
    return [f"{obj.kind} {obj.key}" for obj in manifests.objects]


def test_documents_are_read_in_order():
    manifests = read(f"{NODE}---{POD}---\n# the end\n")

    assert keys(manifests) == ["Node n1", "Pod shop/web"]
    assert [node.name for node in manifests.nodes] == ["n1"]
    assert manifests.pods[0].requests == {"cpu": 500}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(json.dumps(POD_JSON), id="one object"),
        pytest.param(
            json.dumps({"apiVersion": "v1", "kind": "List", "items": [POD_JSON]}), id="List"
        ),
        pytest.param(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "PodList",
                    "items": [{key: POD_JSON[key] for key in ("metadata", "spec")}],
                }
            ),
            id="PodList, whose items do not say what they are",
        ),
        pytest.param(
            json.dumps(POD_JSON) + "\n" + json.dumps({**POD_JSON, "kind": "Secret"}), id="lines"
        ),
        pytest.param(
            json.dumps(POD_JSON, indent=2) + json.dumps({**POD_JSON, "kind": "Secret"}, indent=2),
            id="one after another",
        ),
        pytest.param("\ufeff" + json.dumps(POD_JSON), id="byte order mark"),
        pytest.param(POD, id="YAML"),
        pytest.param("%YAML 1.1\n---" + POD + "...\n", id="YAML with a directive"),
        pytest.param(
            "apiVersion: v1\nkind: PodList\nitems:\n- "
            + POD.strip().replace("apiVersion: v1\nkind: Pod\n", "").replace("\n", "\n  "),
            id="YAML list",
        ),
        pytest.param(
            "{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop},\n"
            "spec: {containers: [{resources: {requests: {cpu: 500m}}}]}}",
            id="YAML that looks like JSON",
        ),
        pytest.param(
            json.dumps(POD_JSON) + "\n---\n" + json.dumps({**POD_JSON, "kind": "Secret"}),
            id="JSON in YAML",
        ),
    ],
)
def test_every_way_to_write_an_object_is_read(text):
    (pod,) = read(text).objects

    assert isinstance(pod, Pod)
    assert (pod.api_version, pod.kind, pod.key) == ("v1", "Pod", "shop/web")
    assert pod.requests == {"cpu": 500}


def test_yaml_and_json_say_the_same():
    assert read(POD).objects == read(json.dumps(POD_JSON)).objects


@pytest.mark.parametrize("write", [json.dumps, lambda raw: json.dumps([raw])[1:-1] + "\n---\n"])
def test_null_is_as_good_as_absent(write):
    raw = {
        **POD_JSON,
        "metadata": {**POD_JSON["metadata"], "labels": None, "creationTimestamp": None},
        "spec": {**POD_JSON["spec"], "tolerations": None, "hostNetwork": None},
        "status": None,
    }

    assert read(write(raw)).objects == read(json.dumps(POD_JSON)).objects


def test_folders_are_searched_in_order(tmp_path):
    for name, text in {
        "b.yaml": POD,
        "a/z.yml": NODE,
        "a/notes.txt": "not yaml: [",
        ".hidden/x.yaml": "not yaml: [",
        "c.json": json.dumps({**POD_JSON, "metadata": {"name": "other"}}),
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    assert keys(read_manifests([tmp_path])) == ["Pod shop/web", "Pod default/other", "Node n1"]


def test_a_file_that_is_named_twice_is_read_once(tmp_path):
    (tmp_path / "pod.yaml").write_text(POD)

    assert len(read_manifests([tmp_path, str(tmp_path / "pod.yaml")]).objects) == 1


def test_kinds_that_do_not_matter_are_counted():
    others = """
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}}
---
{apiVersion: serving.knative.dev/v1, kind: Route, metadata: {name: a}}
"""

    manifests = read(POD + others)

    assert keys(manifests) == ["Pod shop/web"]
    assert manifests.skipped == {
        "ConfigMap": 2,
        "Ingress.networking.k8s.io": 1,
        "Route.serving.knative.dev": 1,
    }


@pytest.mark.parametrize("version", ["apps/v1", "apps/v1beta1", "apps/v1beta2"])
def test_any_version_of_a_known_kind_is_read(version):
    text = f"""
apiVersion: {version}
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: 0
  selector: {{matchLabels: {{app: web}}}}
  template: {{metadata: {{labels: {{app: web}}}}, spec: {{containers: [{{name: c}}]}}}}
"""

    assert keys(read(text))[0] == "Deployment default/web"


def test_what_an_object_does_not_say_is_made_up_alike_every_time():
    text = """
apiVersion: v1
kind: Pod
metadata: {generateName: job-}
spec: {containers: [{name: c}]}
---
apiVersion: v1
kind: Pod
metadata: {generateName: job-}
spec: {containers: [{name: c}]}
"""
    one, other = read(text).pods

    assert one.namespace == "default"
    assert one.name.startswith("job-")
    assert len(one.name) == len("job-") + 5
    assert one.name != other.name
    assert one.uid != other.uid
    assert len(one.uid) == 36
    assert read(text).pods == [one, other]


def test_a_uid_that_is_given_stays():
    (pod,) = read(POD.replace("{name: web,", "{name: web, uid: abc,")).pods

    assert pod.uid == "abc"


def test_objects_of_the_cluster_have_no_namespace():
    (node,) = read(NODE.replace("{name: n1}", "{name: n1, namespace: default}")).nodes

    assert node.key == "n1"


def test_progress_runs_from_the_start_to_the_end(tmp_path):
    (tmp_path / "a.yaml").write_text("---".join([POD.replace("web", f"w{n}") for n in range(50)]))
    (tmp_path / "b.json").write_text(json.dumps(POD_JSON))
    total = sum(path.stat().st_size for path in tmp_path.iterdir())
    told = []

    read_manifests([tmp_path], progress=lambda done, of: told.append((done, of)))

    assert {of for _, of in told} == {total}
    assert told == sorted(told)
    assert told[-1] == (total, total)
    assert len(told) > 10


def test_a_long_document_is_reported_while_it_is_read():
    listing = "kind: List\napiVersion: v1\nitems:\n" + "".join(
        f"- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: c{n}}}}}\n" for n in range(2000)
    )
    told = []

    read(listing, progress=lambda done, of: told.append(done))

    assert len(set(told)) > 2


def test_a_node_on_which_nothing_fits_is_warned_about():
    manifests = read(NODE.replace(", pods: 110", ""))

    assert manifests.warnings == [
        "standard input: document 1 (Node n1): status.allocatable.pods: is missing, so no pod fits; "
        "add it, as pods: 110"
    ]
    assert read(NODE).warnings == []


def test_nodes_on_which_nothing_fits_are_one_line():
    node = NODE.replace(", pods: 110", "")

    (line,) = read("\n---\n".join(node.replace("n1", f"n{n}") for n in range(3))).warnings

    assert "(Node n0) and 2 more: status.allocatable.pods: is missing" in line


def test_nothing_at_all_is_no_error():
    assert read("").objects == []
    assert read("# a comment\n").objects == []


class TestDecodeObject:
    def test_an_object_is_taken_as_it_stands(self):
        pod = decode_object({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}})

        assert pod == Pod(api_version="v1", kind="Pod", metadata=pod.metadata)
        assert (pod.namespace, pod.uid) == ("", "")

    @pytest.mark.parametrize(
        ("raw", "problem"),
        [
            (
                {"kind": "Pod", "spec": {"containers": [{"name": 1}]}},
                r"^spec.containers\[0\].name: ",
            ),
            ({"kind": "Pod", "metadata": {"labels": {"a": "x", "b": 1}}}, r"^metadata.labels.b: "),
            (
                {"kind": "Node", "status": {"allocatable": {"cpu": "x"}}},
                r"^status.allocatable.cpu: ",
            ),
            ({"kind": "Pod", "spec": 1}, r"^spec: must be a mapping, not a whole number"),
            ({"kind": "Teapot"}, r"^kind: mooring does not read 'Teapot'"),
            ({}, "^kind: "),
        ],
    )
    def test_what_is_wrong_is_told_with_its_path(self, raw, problem):
        with pytest.raises(ValueError, match=problem):
            decode_object({"apiVersion": "v1", **raw})


def test_all_that_was_read_is_complete_even_when_controllers_made_it():
    text = f"""{NODE}---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: c, resources: {{limits: {{cpu: 2}}}}}}]}}
"""
    one, other = read(text).pods

    assert one.requests == other.requests == {"cpu": 2000}
    assert one.spec is other.spec  # a thousand replicas cost one spec
    assert one.priority == 0


def test_errors_are_all_there_at_once():
    with pytest.raises(InputError) as error:
        read("a: [\n---\nb: 1\n---\n- c\n---\nd\n")

    assert len(error.value.problems) == 4
    assert str(error.value) == "\n".join(error.value.problems)
