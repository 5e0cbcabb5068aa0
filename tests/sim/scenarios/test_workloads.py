"""Controllers at work while a scenario runs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mooring.errors import InputError
from mooring.objects.kinds import DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.policies import ResourceQuota
from mooring.sim.scenarios.scenario_cluster import ScenarioCluster
from tests.sim.scenarios.playing import ZONES, node, pod, pods, stage_of, workload


@pytest.fixture
def staged(tmp_path):
    """Stages that are closed at the end."""
    stages: list[ScenarioCluster] = []

    def make(*objects: str) -> ScenarioCluster:
        stages.append(stage_of(tmp_path, *objects))
        return stages[-1]

    yield make
    for cluster in stages:
        cluster.close()


def scale(cluster: ScenarioCluster, kind: type[KubeObject], name: str, replicas: int) -> None:
    obj = cluster.simulation.api.get(kind, f"default/{name}")
    assert obj is not None
    cluster.workloads.scale(obj, replicas)
    cluster.settle()


def delete(cluster: ScenarioCluster, kind: type[KubeObject], key: str) -> None:
    obj = cluster.simulation.api.get(kind, key)
    assert obj is not None
    cluster.delete(obj)
    cluster.settle()


@pytest.mark.parametrize(
    ("kind", "kind_type"),
    [("Deployment", Deployment), ("ReplicaSet", ReplicaSet), ("StatefulSet", StatefulSet)],
)
def test_a_workload_has_as_many_pods_as_it_is_scaled_to(staged, kind, kind_type):
    cluster = staged(*ZONES, workload(kind, "web", replicas=2))
    assert len(pods(cluster, "web")) == 2

    scale(cluster, kind_type, "web", 5)
    assert len(pods(cluster, "web")) == 5
    assert all(pods(cluster, "web").values())

    scale(cluster, kind_type, "web", 1)
    assert len(pods(cluster, "web")) == 1

    scale(cluster, kind_type, "web", 0)
    assert pods(cluster, "web") == {}


def test_a_job_is_scaled_by_its_parallelism(staged):
    cluster = staged(*ZONES, workload("Job", "train", replicas=4))

    scale(cluster, Job, "train", 2)

    job_pods = [p for p in cluster.simulation.api.all(Pod) if p.labels.get("job-name") == "train"]
    assert len(job_pods) == 2


def test_what_cannot_be_scaled_says_what_can(staged):
    cluster = staged(*ZONES, workload("DaemonSet", "agent"))

    with pytest.raises(InputError, match="a DaemonSet cannot be scaled; Deployment, ReplicaSet"):
        scale(cluster, DaemonSet, "agent", 3)


def test_the_first_to_go_have_no_node_then_share_theirs_then_are_the_youngest(staged):
    """Room for three of four pods: one waits, and goes first; then one of the two on one node."""
    cluster = staged(
        node("a-1", cpu=1), node("b-1", cpu=2), workload("ReplicaSet", "web", replicas=4)
    )
    waiting = [name for name, where in pods(cluster, "web").items() if not where]
    assert len(waiting) == 1

    scale(cluster, ReplicaSet, "web", 3)
    assert not set(waiting) & set(pods(cluster, "web"))

    on_b = [name for name, where in pods(cluster, "web").items() if where == "b-1"]
    scale(cluster, ReplicaSet, "web", 2)
    assert sorted(pods(cluster, "web").values()) == ["a-1", "b-1"]
    # The younger of the two that shared a node.
    assert on_b[0] in pods(cluster, "web")


def test_a_lower_deletion_cost_goes_first(staged):
    cluster = staged(*ZONES, workload("ReplicaSet", "web", replicas=3))
    oldest = cluster.simulation.api.get(Pod, f"default/{next(iter(pods(cluster, 'web')))}")
    assert oldest is not None
    cost = {"controller.kubernetes.io/pod-deletion-cost": "-5"}
    cluster.simulation.api.update(
        replace(oldest, metadata=replace(oldest.metadata, annotations=cost))
    )

    scale(cluster, ReplicaSet, "web", 2)

    assert oldest.name not in pods(cluster, "web")


def test_a_stateful_set_loses_its_highest_ordinals_and_gets_its_names_back(staged):
    cluster = staged(*ZONES, workload("StatefulSet", "db", replicas=3))

    scale(cluster, StatefulSet, "db", 1)
    assert list(pods(cluster, "db")) == ["db-0"]

    scale(cluster, StatefulSet, "db", 3)
    assert sorted(pods(cluster, "db")) == ["db-0", "db-1", "db-2"]
    uids = list(cluster.simulation.summary.placements)
    assert len(set(uids)) == len(uids) == 5


def test_a_deleted_pod_is_replaced_under_another_name(staged):
    cluster = staged(*ZONES, workload("Deployment", "web", replicas=2))
    before = pods(cluster, "web")

    delete(cluster, Pod, f"default/{next(iter(before))}")
    after = pods(cluster, "web")

    assert len(after) == 2
    assert len(before.keys() & after.keys()) == 1
    assert all(after.values())


def test_a_pod_without_a_controller_is_not_replaced(staged):
    cluster = staged(*ZONES, pod("lonely"))

    delete(cluster, Pod, "default/lonely")

    assert cluster.simulation.api.get(Pod, "default/lonely") is None


def test_deleting_a_deployment_takes_all_it_made_with_it(staged):
    cluster = staged(*ZONES, workload("Deployment", "web", replicas=3))

    delete(cluster, Deployment, "default/web")

    assert list(cluster.simulation.api.all(Pod)) == []
    assert list(cluster.simulation.api.all(ReplicaSet)) == []


def test_daemons_follow_the_nodes(staged):
    cluster = staged(*ZONES, workload("DaemonSet", "agent"))
    assert sorted(pods(cluster, "agent").values()) == ["a-1", "b-1", "c-1"]

    lost = cluster.simulation.api.get(Node, "a-1")
    assert lost is not None
    cluster.fail([lost])
    cluster.settle()
    assert sorted(pods(cluster, "agent").values()) == ["b-1", "c-1"]

    cluster.simulation.api.create(lost)
    cluster.settle()
    assert sorted(pods(cluster, "agent").values()) == ["a-1", "b-1", "c-1"]


def test_a_job_makes_the_next_pod_when_one_has_finished(staged):
    runs = workload("Job", "train", replicas=4).replace("parallelism: 4", "parallelism: 2")
    runs = runs.replace(
        "labels: {app: train}", 'labels: {app: train}, annotations: {mooring.dev/run-seconds: "60"}'
    )
    cluster = staged(*ZONES, runs)
    assert len(pods(cluster, "train")) == 2

    cluster.wait(200)

    finished = [each for each in cluster.simulation.api.all(Pod) if each.finished]
    assert len(finished) == 4


def test_another_template_of_a_deployment_replaces_its_pods(staged, tmp_path):
    cluster = staged(*ZONES, workload("Deployment", "web", replicas=2))
    before = pods(cluster, "web")
    (tmp_path / "web.yaml").write_text(workload("Deployment", "web", replicas=3, cpu="2"))

    cluster.apply(["web.yaml"], ())
    cluster.settle()
    after = pods(cluster, "web")

    assert len(after) == 3
    assert not before.keys() & after.keys()
    assert {each.requests["cpu"] for each in cluster.simulation.api.all(Pod)} == {2000}

    # And back again: the ReplicaSet of that template is still there.
    (tmp_path / "web.yaml").write_text(workload("Deployment", "web", replicas=2))
    cluster.apply(["web.yaml"], ())
    cluster.settle()
    assert len(pods(cluster, "web")) == 2
    assert {each.requests["cpu"] for each in cluster.simulation.api.all(Pod)} == {1000}


def test_applying_the_same_again_changes_nothing(staged, tmp_path):
    cluster = staged(*ZONES, workload("Deployment", "web", replicas=2), pod("p"))
    before = {obj.key: obj for obj in cluster.objects()}
    (tmp_path / "again.yaml").write_text(
        "\n---\n".join((workload("Deployment", "web", replicas=2), pod("p")))
    )

    cluster.apply(["again.yaml"], ())
    cluster.settle()

    assert {obj.key: obj for obj in cluster.objects()} == before


def test_a_pod_on_a_node_cannot_be_changed(staged, tmp_path):
    cluster = staged(*ZONES, pod("p"))
    (tmp_path / "p.yaml").write_text(pod("p", cpu="2"))

    with pytest.raises(InputError, match="pod default/p is on a node and cannot be changed"):
        cluster.apply(["p.yaml"], ())


def test_a_deployment_whose_set_is_too_small_makes_the_missing_pods_once(staged):
    """A snapshot may show a Deployment in the middle of growing; each look at it must not add more."""
    cluster = staged(*ZONES, workload("Deployment", "web", replicas=2))
    (replica_set,) = cluster.simulation.api.all(ReplicaSet)
    scale(cluster, Deployment, "web", 4)
    cluster.workloads.scale(replica_set, 1)
    cluster.settle()
    cluster.simulation.api.update(cluster.simulation.api.get(Node, "a-1"))
    cluster.settle()

    assert len(pods(cluster, "web")) == 4


# What the API server refuses

QUOTA = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {pods: %d}}}"
AUTOSCALER = (
    "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec:"
    " {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: %d,"
    " maxReplicas: 9}}"
)


def test_controllers_create_no_more_than_a_quota_allows_and_try_again(staged):
    cluster = staged(*ZONES, QUOTA % 2, workload("Deployment", "web", replicas=3))
    assert len(pods(cluster, "web")) == 2
    assert len(cluster.workloads.refused) == 1

    delete(cluster, ResourceQuota, "default/q")

    assert len(pods(cluster, "web")) == 3
    assert cluster.workloads.refused == []


def test_a_pod_that_goes_makes_room_in_the_quota(staged):
    cluster = staged(
        *ZONES, QUOTA % 2, workload("Job", "one"), workload("Deployment", "web", replicas=2)
    )
    assert len(pods(cluster, "web")) == 1

    delete(cluster, Job, "default/one")
    cluster.wait(cluster.now_s + 60)

    assert len(pods(cluster, "web")) == 2


def test_an_autoscaler_keeps_the_least_replicas(staged):
    cluster = staged(*ZONES, workload("Deployment", "web", replicas=1), AUTOSCALER % 3)
    assert len(pods(cluster, "web")) == 3

    scale(cluster, Deployment, "web", 1)
    assert len(pods(cluster, "web")) == 3

    scale(cluster, Deployment, "web", 5)
    assert len(pods(cluster, "web")) == 5
