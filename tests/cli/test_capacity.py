"""`mooring capacity` gives its answers in one table, and refuses what it cannot answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.clusters import NODES, pod
from tests.cli.running import mooring

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 5
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 500m}}}]}
"""
PRIORITY = """
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: gold}
value: 1000
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(NODES + pod("web") + pod("big", cpu="2") + PRIORITY)
    (tmp_path / "pod.yaml").write_text(pod("more", cpu="500m"))
    (tmp_path / "gold.yaml").write_text(pod("gold", spec=", priorityClassName: gold"))
    (tmp_path / "shop.yaml").write_text(DEPLOYMENT)
    (tmp_path / "node.yaml").write_text(NODES.split("---")[0].replace("n-1", "new"))
    return tmp_path


def asked(files: Path, *arguments: object, exit_code: int = 0) -> dict:
    result = mooring("capacity", "-f", files / "cluster.yaml", *arguments, "-o", "json")
    assert result.exit_code == exit_code, result.output
    return json.loads(result.stdout)


def test_several_answers_come_in_one_table(files):
    result = mooring(
        "capacity",
        *("-f", files / "cluster.yaml"),
        *("--pod", files / "pod.yaml"),
        *("--add-node", "n-1", "--drain", "n-1"),
    )

    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["QUESTION", "ANSWER", "BECAUSE"]
    # One of two nodes is full by `big`; `web` leaves 1 cpu on the other.
    assert lines[1].startswith("more of more")
    assert "2 Insufficient cpu" in lines[1]
    assert "nodes like n-1 to add  0" in lines[2]
    assert "not all pods fit" in lines[3]


def test_how_many_more_of_a_pod_and_of_what_a_deployment_makes(files):
    assert asked(files, "--pod", files / "pod.yaml")["answers"][0]["rounds"] == 2
    assert asked(files, "--pod", files / "shop.yaml")["answers"][0]["rounds"] == 2


def test_a_mix_is_counted_in_rounds(files):
    (answer,) = asked(files, "--pod", f"{files / 'pod.yaml'}:2")["answers"]

    assert answer["rounds"] == 1
    assert answer["pods"] == {"default/more": 2}


def test_a_pod_may_use_the_priority_classes_of_the_cluster(files):
    assert asked(files, "--pod", files / "gold.yaml")["answers"][0]["rounds"] == 1


def test_nodes_are_added_from_a_file(files):
    with (files / "cluster.yaml").open("a") as file:
        file.write("".join(pod(f"x-{i}", cpu="2") for i in range(3)))

    (answer,) = asked(files, "--add-node", files / "node.yaml")["answers"]

    assert (answer["count"], answer["monotone"]) == (3, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param([], "no question: give --pod", id="no question"),
        pytest.param(["--drain", "nowhere"], "there is no node 'nowhere'", id="unknown node"),
        pytest.param(["--lose", "mars"], "no node is in zone 'mars'", id="unknown zone"),
        pytest.param(["--add-node", "nowhere"], "no node and no file is called", id="no template"),
        pytest.param(["--pod", "/no/such.yaml"], "/no/such.yaml", id="no pod file"),
        pytest.param(["--drain", "n-1", "--config", "/no"], "/no: cannot be read", id="no config"),
        pytest.param(["--drain", ","], "',' names no node", id="no node at all"),
        pytest.param(["--pod", ":3"], "':3' names no file", id="no file at all"),
        pytest.param(["--lose", "="], "'=' is neither a zone nor LABEL=VALUE", id="no zone at all"),
    ],
)
def test_nonsense_is_refused(files, arguments, said):
    result = mooring("capacity", "-f", files / "cluster.yaml", *arguments)

    assert result.exit_code == 2, result.output
    assert said in result.stderr


def test_a_file_without_a_pod_is_refused(files):
    result = mooring("capacity", files / "cluster.yaml", "--pod", files / "node.yaml")

    assert result.exit_code == 2
    assert "contains no pod" in result.stderr


def test_a_file_with_several_workloads_is_one_mix_of_all_their_pods(files):
    (files / "app.yaml").write_text(DEPLOYMENT.replace("500m", "200m") + pod("db", cpu="500m"))

    result = mooring("capacity", "--nodes", "2x2cpu,4Gi", "--pod", files / "app.yaml", "-o", "json")

    assert result.exit_code == 0, result.output
    (answer,) = json.loads(result.stdout)["answers"]
    # A whole app is 5 × 0.2 + 0.5 = 1.5 cpu: two of them on two nodes with 2 cpu each.
    assert answer["rounds"] == 2
    assert sorted(answer["perRound"].values()) == [1, 5]
    assert sorted(answer["pods"].values()) == [2, 10]
    assert answer["question"].startswith("more whole ")


STATEFUL = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: example.com/fast
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: c, image: i, resources: {requests: {cpu: 500m}}}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {storageClassName: fast, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""


def test_every_copy_of_a_stateful_pod_brings_its_own_claims(files):
    (files / "db.yaml").write_text(STATEFUL)
    (files / "app.yaml").write_text(STATEFUL + "---" + DEPLOYMENT)

    alone = mooring("capacity", "--nodes", "1x2cpu,4Gi", "--pod", files / "db.yaml", "-o", "json")
    whole = mooring("capacity", "--nodes", "2x4cpu,4Gi", "--pod", files / "app.yaml", "-o", "json")

    assert json.loads(alone.stdout)["answers"][0]["rounds"] == 4
    # 2 × 0.5 + 5 × 0.5 = 3.5 cpu a round, on 8 cpu.
    assert json.loads(whole.stdout)["answers"][0]["rounds"] == 2


def test_daemons_of_a_mix_take_their_place_on_every_node(files):
    daemon = DEPLOYMENT.replace("kind: Deployment", "kind: DaemonSet").replace(
        "  replicas: 5\n", ""
    )
    (files / "app.yaml").write_text(
        daemon.replace("name: shop", "name: agent") + "---" + DEPLOYMENT
    )

    result = mooring("capacity", "--nodes", "2x4cpu,4Gi", "--pod", files / "app.yaml", "-o", "json")

    (answer,) = json.loads(result.stdout)["answers"]
    # A round is 2 × 0.5 cpu of daemons, one a node, and 5 × 0.5 cpu of the shop.
    assert answer["rounds"] == 2


def test_the_nodes_to_add_can_be_a_machine_type(files):
    (files / "many.yaml").write_text(DEPLOYMENT.replace("replicas: 5", "replicas: 30"))

    result = mooring("capacity", files / "many.yaml", "--add-node", "m5.xlarge", "-o", "json")

    (answer,) = json.loads(result.stdout)["answers"]
    # 30 × 0.5 cpu; 7 pods fit on the 3.92 cpu that a machine with 4 cpu offers.
    assert (answer["count"], answer["template"]) == (5, "m5-xlarge")
    for wrong, said in (("m5.nope", "no machine type"), ("3xm5.xlarge", "leave out the number")):
        refused = mooring("capacity", files / "many.yaml", "--add-node", wrong)
        assert refused.exit_code == 2
        assert said in refused.stderr


def test_pods_for_other_schedulers_are_counted_apart_and_need_no_node(files):
    (files / "other.yaml").write_text(NODES + pod("b", spec=", schedulerName: volcano"))

    result = mooring("capacity", files / "other.yaml", "--add-node", "n-1", "-o", "json")
    table = mooring("capacity", files / "other.yaml", "--add-node", "n-1")

    data = json.loads(result.stdout)
    assert data["answers"][0]["waiting"] == 0
    assert [each["pod"] for each in data["cluster"]["otherSchedulers"]] == ["default/b"]
    assert "0 pending, 1 for other schedulers" in table.stdout


def test_an_empty_cluster_has_room_for_none(files):
    result = mooring("capacity", "-", "--pod", files / "pod.yaml", stdin=PRIORITY)

    assert result.exit_code == 1
    assert "no nodes available to schedule pods" in result.stdout


def test_a_cluster_to_which_nodes_are_added_is_not_warned_to_have_none(files):
    """The warning said that no pod can be placed, above the number of nodes that place them."""
    (files / "pods.yaml").write_text(DEPLOYMENT)

    added = mooring("capacity", files / "pods.yaml", "--add-node", "m5.xlarge")

    assert added.exit_code == 0
    assert added.stderr == ""
    assert "the cluster has no nodes" in mooring("simulate", files / "pods.yaml").stderr


@pytest.mark.parametrize(
    "text", ["", "{apiVersion: example.com/v1, kind: Database, spec: {replicas: 3}}"]
)
@pytest.mark.parametrize("question", [("--add-node", "m5.xlarge"), ("--drain", "n-1")])
def test_input_without_pods_needs_no_node_is_not_an_answer(files, text, question):
    """All objects were skipped, and the answer was "0 nodes to add, nothing is pending"."""
    (files / "nodes.yaml").write_text(NODES)

    result = mooring("capacity", files / "nodes.yaml", "-", *question, stdin=text)

    assert result.exit_code == 2
    assert "error: there are no pods to place" in result.stderr
    assert mooring("capacity", files / "nodes.yaml", *question).exit_code == 0


def test_thousands_of_pending_pods_are_answered(files):
    replicas = DEPLOYMENT.replace("replicas: 5", "replicas: 2000").replace("500m", '"64"')

    result = mooring(
        "capacity",
        "-",
        "--add-node",
        "n-1",
        "--pod",
        files / "pod.yaml",
        stdin=NODES + "---" + replicas,
    )

    assert result.exit_code == 1
    assert "no number" in result.stdout
    assert "2,000 pods cannot fit on such a node" in result.stdout


SHAPING = """
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: kata}
handler: kata
overhead: {podFixed: {cpu: 500m}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: limits}
spec: {limits: [{type: Container, max: {cpu: "1"}}]}
"""


def test_more_pods_are_shaped_by_the_classes_and_limit_ranges_of_the_cluster(files):
    (files / "cluster.yaml").write_text(NODES + SHAPING)
    (files / "kata.yaml").write_text(pod("kata", cpu="500m", spec=", runtimeClassName: kata"))
    (files / "large.yaml").write_text(pod("large", cpu="2"))

    # Each pod asks for 500m and 500m of overhead; there are 4 cores.
    (answer,) = asked(files, "--pod", files / "kata.yaml")["answers"]
    assert answer["rounds"] == 4

    result = mooring("capacity", "-f", files / "cluster.yaml", "--pod", files / "large.yaml")
    assert result.exit_code == 2
    assert "Pod default/large would not be created: " in result.stderr


def test_gangs_are_added_whole_if_the_gates_are_on(tmp_path):
    job = tmp_path / "job.yaml"
    job.write_text(
        "{apiVersion: batch/v1, kind: Job, metadata: {name: train, annotations:"
        " {mooring.dev/gang: 'true'}}, spec: {parallelism: 3, completions: 3, template: {spec: {"
        "restartPolicy: Never, containers: [{name: c, resources: {requests: {cpu: 1}}}]}}}}"
    )
    gates = ("--feature-gates", "GenericWorkload=true,GangScheduling=true")

    whole = mooring("capacity", "--nodes", "2x4cpu,8Gi", "--pod", job, *gates, "-o", "json")
    alone = mooring("capacity", "--nodes", "2x4cpu,8Gi", "--pod", job, "-o", "json")

    (answer,) = json.loads(whole.stdout)["answers"]
    assert answer["question"] == "more whole default/train (3 pods)"
    assert answer["rounds"] == 2, "six of eight cores"
    assert json.loads(alone.stdout)["answers"][0]["rounds"] == 8
