"""Every way in which input is wrong: one clear line, with the place, the fault and what to do."""

import io
import json
import random
import re

import pytest

from mooring.errors import InputError
from mooring.objects.manifests import read_manifests

NODE = """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}
---
"""


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

C = "spec.containers[0]"
TERM = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0]"
ANTI = f"spec.affinity.podAntiAffinity.{REQUIRED}[0]"
SPREAD = "spec.topologySpreadConstraints[0]"


def problems(text):
    data = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(InputError) as error:
        read_manifests(["-"], stdin=io.BytesIO(data))
    return list(error.value.problems)


def pod(**spec):
    spec = {"containers": [{"name": "c"}], **spec}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})


def container(**fields):
    return pod(containers=[{"name": "c", **fields}])


def node(**fields):
    return json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, **fields})


def kind(api_version, name, **fields):
    return json.dumps(
        {"apiVersion": api_version, "kind": name, "metadata": {"name": "o"}, **fields}
    )


def deployment(labels=None, **spec):
    template = {
        "metadata": {"labels": labels or {"a": "b"}},
        "spec": {"containers": [{"name": "c"}]},
    }
    selector = {"matchLabels": {"a": "b"}}
    return kind("apps/v1", "Deployment", spec={"selector": selector, "template": template, **spec})


def node_affinity(*lines, fields=()):
    term = {"matchExpressions": list(lines), "matchFields": list(fields)}
    required = {"nodeSelectorTerms": [term]}
    return pod(affinity={"nodeAffinity": {REQUIRED: required}})


def pod_affinity(**term):
    return pod(affinity={"podAntiAffinity": {REQUIRED: [{"topologyKey": "k", **term}]}})


def spread(**fields):
    constraint = {"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule", **fields}
    return pod(topologySpreadConstraints=[constraint])


@pytest.mark.parametrize(
    ("text", "path", "fault"),
    [
        # Types
        (pod(priority="high"), "spec.priority", "must be a whole number, not a string"),
        (pod(containers={"name": "c"}), "spec.containers", "must be a list, not a mapping"),
        (
            pod(nodeSelector={"a": 1}),
            "spec.nodeSelector.a",
            "must be a string, not a whole number; put it in quotes",
        ),
        (
            pod(nodeSelector={"x.io/a": True}),
            "spec.nodeSelector[x.io/a]",
            "must be a string, not true or false; put it in quotes",
        ),
        (pod(hostNetwork="yes"), "spec.hostNetwork", "must be true or false, not a string"),
        (container(resources=[]), f"{C}.resources", "must be a mapping, not a list"),
        # Quantities
        (
            container(resources={"requests": {"cpu": "lots"}}),
            f"{C}.resources.requests.cpu",
            "quantities must match .*'lots'; write it as 500m, 2 or 1.5Gi",
        ),
        (
            container(resources={"requests": {"memory": "1Kb"}}),
            f"{C}.resources.requests.memory",
            "quantities must match",
        ),
        (
            container(resources={"requests": {"cpu": True}}),
            f"{C}.resources.requests.cpu",
            "a quantity is a number or a string, not true",
        ),
        (
            container(resources={"requests": {"cpu": "-1"}}),
            f"{C}.resources.requests.cpu",
            "-1 is negative; use 0 or more",
        ),
        (
            container(resources={"limits": {"memory": -5}}),
            f"{C}.resources.limits.memory",
            "-5 is negative",
        ),
        (
            container(resources={"requests": {"cpu": "1e30"}}),
            f"{C}.resources.requests.cpu",
            "is more than can be counted in 64 bits",
        ),
        (
            container(resources={"requests": {"memory": "10E"}}),
            f"{C}.resources.requests.memory",
            "is more than can be counted in 64 bits",
        ),
        (
            container(resources={"requests": {"cpu": 2}, "limits": {"cpu": 1}}),
            f"{C}.resources.requests.cpu",
            "2 is more than the limit of 1; lower it, or raise the limit",
        ),
        (
            container(resources={"requests": {"gpu": 1}}),
            f"{C}.resources.requests.gpu",
            "'gpu' is not a resource of containers; use .* example.com/gpu",
        ),
        (
            container(resources={"limits": {"nvidia.com/gpu": "500m"}}),
            f"{C}.resources.limits[nvidia.com/gpu]",
            "500m is not whole",
        ),
        (pod(overhead={"cpu": "-1"}), "spec.overhead.cpu", "-1 is negative"),
        (
            pod(resources={"requests": {"nvidia.com/gpu": 1}}),
            "spec.resources.requests[nvidia.com/gpu]",
            "cannot be set for a whole pod",
        ),
        (node(status={"capacity": {"cpu": "-4"}}), "status.capacity.cpu", "-4 is negative"),
        (
            node(status={"allocatable": {"memory": "99E"}}),
            "status.allocatable.memory",
            "is more than can be counted",
        ),
        (
            node(status={"allocatable": {"gpu": 1}}),
            "status.allocatable.gpu",
            "'gpu' is not a resource of nodes",
        ),
        # Containers and ports
        (pod(containers=[]), "spec.containers", "is empty; a pod needs at least one container"),
        (
            pod(containers=[{"name": "c"}, {"name": "c"}]),
            "spec.containers[1].name",
            "'c' is taken by another container",
        ),
        (
            pod(initContainers=[{"name": "c"}]),
            "spec.initContainers[0].name",
            "'c' is taken by another container",
        ),
        (
            container(ports=[{"containerPort": 80, "hostPort": 70000}]),
            f"{C}.ports[0].hostPort",
            "70000 is not a port; use 1 to 65535",
        ),
        (
            container(ports=[{"containerPort": 80, "hostPort": -1}]),
            f"{C}.ports[0].hostPort",
            "-1 is not a port",
        ),
        (container(ports=[{"hostPort": 80}]), f"{C}.ports[0].containerPort", "0 is not a port"),
        (
            container(ports=[{"containerPort": 80, "protocol": "ICMP"}]),
            f"{C}.ports[0].protocol",
            "must be TCP, UDP or SCTP",
        ),
        (
            pod(
                hostNetwork=True,
                containers=[{"name": "c", "ports": [{"containerPort": 80, "hostPort": 81}]}],
            ),
            f"{C}.ports[0].hostPort",
            "81 differs from containerPort 80",
        ),
        # Selectors
        (pod(nodeSelector={"a": "b c"}), "spec.nodeSelector.a", "'b c' is not a label value"),
        (
            node_affinity({"key": "k", "operator": "Near"}),
            f"{TERM}.matchExpressions[0].operator",
            "must be In, NotIn, Exists, DoesNotExist, Gt or Lt",
        ),
        (
            node_affinity({"key": "k", "operator": "In"}),
            f"{TERM}.matchExpressions[0]",
            "values set can't be empty",
        ),
        (
            node_affinity({"key": "k", "operator": "Gt", "values": ["many"]}),
            f"{TERM}.matchExpressions[0]",
            "the value must be an integer",
        ),
        (
            node_affinity({"key": "a b", "operator": "Exists"}),
            f"{TERM}.matchExpressions[0]",
            "invalid label key",
        ),
        (
            node_affinity(fields=[{"key": "metadata.uid", "operator": "In", "values": ["a"]}]),
            f"{TERM}.matchFields[0].key",
            "use metadata.name",
        ),
        (
            pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}),
            f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms",
            "is empty",
        ),
        (
            pod(affinity={"nodeAffinity": {PREFERRED: [{"weight": 101, "preference": {}}]}}),
            f"spec.affinity.nodeAffinity.{PREFERRED}[0].weight",
            "101 is out of range; use 1 to 100",
        ),
        (pod_affinity(topologyKey=""), f"{ANTI}.topologyKey", "is missing; name a node label"),
        (
            pod_affinity(
                labelSelector={
                    "matchExpressions": [{"key": "k", "operator": "Gt", "values": ["1"]}]
                }
            ),
            f"{ANTI}.labelSelector.matchExpressions[0].operator",
            "must be In, NotIn, Exists or DoesNotExist",
        ),
        (
            pod_affinity(namespaceSelector={"matchLabels": {"-": ""}}),
            f"{ANTI}.namespaceSelector.matchLabels[-]",
            "'-' is not a label key",
        ),
        (spread(maxSkew=0), f"{SPREAD}.maxSkew", "0 is too small; use 1 or more"),
        (
            spread(whenUnsatisfiable="Never"),
            f"{SPREAD}.whenUnsatisfiable",
            "must be DoNotSchedule or ScheduleAnyway",
        ),
        (spread(topologyKey=""), f"{SPREAD}.topologyKey", "is missing"),
        (spread(minDomains=0), f"{SPREAD}.minDomains", "0 is too small"),
        (spread(nodeTaintsPolicy="Maybe"), f"{SPREAD}.nodeTaintsPolicy", "must be Honor or Ignore"),
        (
            spread(
                labelSelector={
                    "matchExpressions": [{"key": "k", "operator": "Exists", "values": ["v"]}]
                }
            ),
            f"{SPREAD}.labelSelector.matchExpressions[0]",
            "values set must be empty",
        ),
        # Tolerations and taints
        (
            pod(tolerations=[{"key": "k", "operator": "Gt", "value": "1"}]),
            "spec.tolerations[0].operator",
            "must be Equal or Exists",
        ),
        (pod(tolerations=[{"value": "v"}]), "spec.tolerations[0].key", "is missing"),
        (
            pod(tolerations=[{"key": "k", "operator": "Exists", "value": "v"}]),
            "spec.tolerations[0].value",
            "means nothing with operator Exists",
        ),
        (
            pod(tolerations=[{"key": "k", "effect": "NoSched"}]),
            "spec.tolerations[0].effect",
            "must be NoSchedule, PreferNoSchedule or NoExecute",
        ),
        (
            pod(tolerations=[{"key": "k", "tolerationSeconds": 1}]),
            "spec.tolerations[0].tolerationSeconds",
            "needs effect: NoExecute",
        ),
        (
            node(spec={"taints": [{"key": "k", "effect": "Go"}]}),
            "spec.taints[0].effect",
            "must be NoSchedule",
        ),
        (
            node(spec={"taints": [{"key": "k", "effect": "NoSchedule"}] * 2}),
            "spec.taints[1]",
            "repeats the key and effect",
        ),
        # Metadata
        (
            '{"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{}]}}',
            "metadata.name",
            "is missing; every object needs a name",
        ),
        (pod().replace('"p"', '"My Pod"'), "metadata.name", "'My Pod' is not a name"),
        (
            pod().replace('{"name": "p"', '{"name": "p", "namespace": "a/b"'),
            "metadata.namespace",
            "'a/b' is not a name",
        ),
        (
            pod().replace('{"name": "p"', '{"name": "p", "labels": {"a": "ü"}'),
            "metadata.labels.a",
            "'ü' is not a label value",
        ),
        (
            pod().replace('{"name": "p"', '{"name": "p", "deletionTimestamp": "today"'),
            "metadata.deletionTimestamp",
            "Invalid RFC3339 .*; write it as 2026-01-31T12:00:00Z",
        ),
        # Priorities
        (pod(priority=2**31), "spec.priority", "does not fit 32 bits"),
        (
            pod(preemptionPolicy="Sometimes"),
            "spec.preemptionPolicy",
            "must be PreemptLowerPriority or Never",
        ),
        (
            kind("scheduling.k8s.io/v1", "PriorityClass", value=2_000_000_000),
            "value",
            "2000000000 is out of range; use 1000000000 or less",
        ),
        # Controllers
        (deployment(replicas=-1), "spec.replicas", "-1 is negative"),
        (deployment(replicas=2_000_000_000), "spec.replicas", "2000000000 pods are too many"),
        (deployment(selector=None), "spec.selector", "is missing"),
        (deployment(template=None), "spec.template", "is missing"),
        (
            deployment(labels={"other": "x"}),
            "spec.selector",
            "does not match the labels of the template",
        ),
        (
            deployment(template={"metadata": {"labels": {"a": "b"}}, "spec": {}}),
            "spec.template.spec.containers",
            "is empty",
        ),
        (
            kind(
                "batch/v1",
                "Job",
                spec={"parallelism": -1, "template": {"spec": {"containers": [{}]}}},
            ),
            "spec.parallelism",
            "-1 is negative",
        ),
        (
            kind(
                "batch/v1",
                "Job",
                spec={
                    "completionMode": "Indexed",
                    "parallelism": 2,
                    "template": {"spec": {"containers": [{}]}},
                },
            ),
            "spec.completions",
            "is missing",
        ),
        (
            kind(
                "batch/v1",
                "CronJob",
                spec={"jobTemplate": {"spec": {"template": {"spec": {"containers": []}}}}},
            ),
            "spec.jobTemplate.spec.template.spec.containers",
            "is empty",
        ),
        # Others
        (
            kind(
                "policy/v1",
                "PodDisruptionBudget",
                spec={"selector": {"matchExpressions": [{"key": "k", "operator": "In"}]}},
            ),
            "spec.selector.matchExpressions[0]",
            "can't be empty",
        ),
        (
            kind("storage.k8s.io/v1", "StorageClass", volumeBindingMode="Later"),
            "volumeBindingMode",
            "must be Immediate or WaitForFirstConsumer",
        ),
        (
            kind(
                "v1", "PersistentVolumeClaim", spec={"resources": {"requests": {"storage": "-1Gi"}}}
            ),
            "spec.resources.requests.storage",
            "is negative",
        ),
        (
            kind(
                "v1",
                "PersistentVolume",
                spec={
                    "nodeAffinity": {
                        "required": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "k", "operator": "?"}]}
                            ]
                        }
                    }
                },
            ),
            "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].operator",
            "must be In",
        ),
    ],
)
def test_a_wrong_field_gets_one_line(text, path, fault):
    (line,) = problems(text)

    found = re.fullmatch(r"standard input: document 1 \(([^)]+)\): (\S+): (.*)", line)
    assert found, line
    assert found[2] == path
    assert re.search(fault, found[3]), line


def test_a_line_names_the_object():
    assert problems(pod(containers=[])) == [
        "standard input: document 1 (Pod default/p): spec.containers: is empty; "
        "a pod needs at least one container"
    ]
    assert "(Node n)" in problems(node(spec={"taints": [{"key": "k"}]}))[0]


def test_a_line_names_the_file_and_the_item_of_a_list(tmp_path):
    items = [json.loads(pod()), json.loads(pod(containers=[]).replace('"p"', '"q"'))]
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))

    with pytest.raises(InputError) as error:
        read_manifests([path])

    (line,) = error.value.problems
    assert line.startswith(f"{path}: document 1, item 2 (Pod default/q): spec.containers: ")


def test_all_wrong_fields_of_an_object_are_told():
    text = container(
        name=1, resources={"requests": {"cpu": "x", "memory": "y"}}, ports=[{"hostPort": "80"}]
    )

    assert [line.split(": ")[2] for line in problems(text)] == [
        "spec.containers[0].name",
        "spec.containers[0].resources.requests.cpu",
        "spec.containers[0].resources.requests.memory",
        "spec.containers[0].ports[0].hostPort",
    ]


def test_a_broken_document_does_not_hide_what_is_wrong_with_the_others():
    text = f"""
apiVersion: v1
kind: Pod
metadata: {{name: a}}
spec: {{containers: []}}
---
apiVersion: v1
kind: Pod
  metadata: {{name: b}}
---
{pod(priority="x")}
---
just text
---
{{"apiVersion": "v1"}}
---
{{"kind": "Pod"}}
"""

    assert [re.sub(r"standard input: (document \d).*", r"\1", line) for line in problems(text)] == [
        "document 1",
        "document 2",
        "document 3",
        "document 4",
        "document 5",
        "document 6",
    ]
    assert "document 2: line 9, column 11: mapping values are not allowed" in problems(text)[1]
    assert problems(text)[3].endswith("document 4: line 13, column 1: plain text, not an object")
    assert problems(text)[4].endswith(
        "document 5: kind: is missing; every object needs one, as kind: Pod"
    )


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"a": 1,, "b": 2}', "line 1, column 9: not valid JSON"),
        ('{\n "a": 1\n "b": 2}', "line 3, column 2: not valid JSON"),
        ('{"a": [1, 2', "the JSON ends too early; is the file complete?"),
        ("[1, 2]", "a list, not a Kubernetes object"),
        ("3", "just 3, not a Kubernetes object"),
        (
            '{"kind": "List", "apiVersion": "v1", "items": 3}',
            "items: just 3, not a list of objects",
        ),
        ("[" * 100_000, "nested too deeply"),
        (
            '{"kind": "Pod", "apiVersion": "v1", "spec": ' + "[" * 100_000 + "]" * 100_000 + "}",
            "deep",
        ),
    ],
)
def test_broken_json_gets_one_line(tmp_path, text, fault):
    path = tmp_path / "x.json"
    path.write_text(text)

    with pytest.raises(InputError) as error:
        read_manifests([path])

    (line,) = error.value.problems
    assert line.startswith(f"{path}: document 1: ")
    assert fault in line


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(b"{\n", b'\xff"}', id="no character begins so"),
        pytest.param(b"{\n", b"\xc3", id="a character without its end"),
        pytest.param(b'{"x": "' + "é".encode() * 2_000_000 + b'",\n', b"\xffa", id="far behind"),
    ],
)
def test_json_that_is_not_utf8_gets_one_line(tmp_path, before, after):
    """Once, the error of the decoder ended the command with a traceback."""
    path = tmp_path / "x.json"
    path.write_bytes(before + b'"kind": "Pod", "apiVersion": "v1", "name": "' + after)

    with pytest.raises(InputError) as raised:
        read_manifests([path])

    assert list(raised.value.problems) == [
        f"{path}: document 1: line 2, column 45: not text in UTF-8; save the file in this encoding"
    ]


def test_json_in_utf16_is_read(tmp_path):
    """PowerShell writes `kubectl get pods -o json > pods.json` like this."""
    path = tmp_path / "x.json"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}
    path.write_text(json.dumps(namespace), encoding="utf-16")

    assert [obj.name for obj in read_manifests([path]).objects] == ["a"]


def test_a_broken_line_among_json_lines_does_not_hide_the_others():
    lines = [pod(containers=[]), '{"kind": ', pod().replace('"p"', '"q"'), pod(priority="x")]

    assert len(problems("\n".join(lines))) == 3


def test_a_template_is_told_from_a_mistake():
    (line,) = problems("apiVersion: v1\nkind: Pod\nmetadata: {{ .Values.meta }}\n")

    assert line == (
        "standard input: is a template, as '{{ .Values.meta }}' shows; "
        "render it first, and give mooring the result"
    )


@pytest.mark.parametrize(
    ("api_version", "kind", "advice"),
    [
        ("v1", "Deployment", "apiVersion: apps/v1 and kind: Deployment"),
        ("V1", "pod", "apiVersion: v1 and kind: Pod"),
        ("apps/v1", "Deploymnet", "apiVersion: apps/v1 and kind: Deployment"),
        ("extensions/v1beta1", "Job", "apiVersion: batch/v1 and kind: Job"),
        ("v1", "StorageClass", "apiVersion: storage.k8s.io/v1 and kind: StorageClass"),
    ],
)
def test_a_kind_that_kubernetes_does_not_have_there_is_named(api_version, kind, advice):
    text = json.dumps({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}})

    assert problems(text) == [
        f"standard input: document 1: there is no kind {kind!r} in {api_version!r}; write {advice}"
    ]


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("v1", "PodTemplate"),
        ("v1", "ServiceAccount"),
        ("apps/v1", "ControllerRevision"),
        ("extensions/v1beta1", "Ingress"),
        ("policy/v1beta1", "PodSecurityPolicy"),
        ("storage.k8s.io/v1", "VolumeAttributesClass"),
        ("resource.k8s.io/v1alpha3", "ResourcePoolStatusRequest"),
        ("serving.knative.dev/v1", "Services"),
    ],
)
def test_other_kinds_of_kubernetes_are_not_taken_for_misspelt_ones(api_version, kind):
    text = json.dumps({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}})

    assert read_manifests(["-"], stdin=io.BytesIO(text.encode())).skipped != {}


def test_what_a_provisioner_fills_in_makes_no_template_of_a_storage_class():
    text = (
        "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: crypto}\n"
        "provisioner: example.com/disks\n"
        "parameters: {csi.storage.k8s.io/node-stage-secret-name: '${pvc.name}'}\n"
    )

    (read,) = read_manifests(["-"], stdin=io.BytesIO(text.encode())).objects

    assert read.name == "crypto"


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "garbage",
    [
        pytest.param(random.Random(1).randbytes(10_000_000), id="bytes"),
        pytest.param(b"\x00" * 10_000_000, id="zeros"),
        pytest.param(b"a" * 10_000_000, id="one word"),
        pytest.param(b"word " * 2_000_000, id="words"),
        pytest.param(b"line\n" * 2_000_000, id="lines"),
        pytest.param(b"[" * 10_000_000, id="brackets"),
        pytest.param(b"{" * 10_000_000, id="braces"),
        pytest.param(b'{"a":' * 2_000_000, id="nested JSON"),
        pytest.param(b"- a\n" * 2_500_000, id="a list"),
        pytest.param(b"a: b\n" * 2_000_000, id="one key"),
        pytest.param(b'"' * 9_999_999, id="quotes"),
        pytest.param(b" " * 9_999_999 + b"x", id="blanks"),
        pytest.param(b"# \n" * 3_333_333 + b"x", id="comments"),
    ],
)
def test_ten_megabytes_of_garbage_get_one_line(garbage):
    (line,) = problems(garbage)

    assert line.startswith("standard input: document 1: ")
    assert len(line) < 300


def test_a_line_stays_one_line_whatever_it_tells_of():
    (line,) = problems(pod().replace('"p"', '"a\\nb\\u0007"'))
    (long_line,) = problems(pod().replace('"p"', f'"{"A" * 1_000_000}"'))

    assert r"(Pod default/a\nb\x07)" in line
    assert len(long_line) <= 1001


def test_a_name_that_is_taken_twice_is_told_with_both_places():
    assert problems(f"{pod()}\n---\n{pod(priority=1)}") == [
        "standard input: document 2 (Pod default/p): metadata.name: "
        "taken by standard input: document 1; rename or remove one of the two"
    ]


def test_the_same_name_in_another_namespace_or_of_another_kind_is_fine():
    other = pod().replace('"p"', '"p", "namespace": "other"')
    service = kind("v1", "Service").replace('"o"', '"p"')

    manifests = read_manifests(
        ["-"], stdin=io.BytesIO("\n---\n".join([pod(), other, service]).encode())
    )

    assert len(manifests.objects) == 3


def test_pods_are_told_apart_by_their_uids():
    one, other = (pod().replace('"p"', f'"{name}", "uid": "u"') for name in "ab")

    (line,) = problems(f"{one}\n---\n{other}")

    assert "(Pod default/b): metadata.uid: taken by standard input: document 1" in line


def test_pods_without_any_nodes_are_told_once():
    pods = [pod(nodeName="n").replace('"p"', f'"p{n}"') for n in range(5)]

    (line,) = problems("\n---\n".join(pods))

    assert "no Node was read; add what `kubectl get nodes -o yaml` prints" in line


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw.update(status={"phase": "Succeeded"}),
        lambda raw: raw.update(status={"phase": "Failed"}),
        lambda raw: raw["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"),
    ],
    ids=["succeeded", "failed", "being deleted"],
)
def test_a_pod_that_is_over_may_outlive_its_node(change):
    raw = json.loads(pod(nodeName="gone"))
    change(raw)

    manifests = read_manifests(["-"], stdin=io.BytesIO((NODE + json.dumps(raw)).encode()))

    assert len(manifests.pods) == 1


def test_a_pod_is_not_blamed_for_its_nodes_mistake():
    broken = node(spec={"taints": [{"key": "k"}]})

    assert len(problems(f"{broken}\n---\n{pod(nodeName='n')}")) == 1


def test_a_priority_that_was_resolved_needs_no_class():
    text = pod(priorityClassName="high", priority=1000)

    manifests = read_manifests(["-"], stdin=io.BytesIO(text.encode()))

    assert manifests.pods[0].priority == 1000


def test_a_file_that_is_not_there_is_told(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError) as error:
        read_manifests([tmp_path / "no.yaml", tmp_path / "empty"])

    assert list(error.value.problems) == [
        f"{tmp_path}/empty: the folder holds no .yaml, .yml or .json file",
        f"{tmp_path}/no.yaml: no such file or folder; check the path",
    ]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(container(), id="no image, no resources"),
        pytest.param(container(resources={"requests": {"nvidia.com/gpu": 1}}), id="no limit"),
        pytest.param(container(unknown={"field": 1}), id="unknown fields"),
        pytest.param(pod(containers=[{}]), id="a container without a name"),
        pytest.param(pod(tolerations=[{"operator": "Exists"}]), id="tolerates everything"),
        pytest.param(spread(labelSelector=None), id="a constraint without a selector"),
        pytest.param(node(), id="a node that offers nothing"),
        pytest.param(
            container(resources={"requests": {"memory": "9Ei"}}), id="as much as there is"
        ),
    ],
)
def test_what_does_no_harm_is_let_pass(text):
    read_manifests(["-"], stdin=io.BytesIO(text.encode()))
