"""Controllers at work while a scenario runs."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mooring.errors import InputError
from mooring.objects.kinds import DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.sim.scenarios.stage import Stage
from tests.sim.scenarios.playing import ZONES, node, pod, pods, stage_of, workload


@pytest.fixture
def staged(tmp_path):
    """Stages that are closed at the end."""
    stages: list[Stage] = []

    def make(*objects: str) -> Stage:
        stages.append(stage_of(tmp_path, *objects))
        return stages[-1]

    yield make
    for stage in stages:
        stage.close()


def scale(stage: Stage, kind: type[KubeObject], name: str, replicas: int) -> None:
    obj = stage.simulation.api.get(kind, f"default/{name}")
    assert obj is not None
    stage.workloads.scale(obj, replicas)
    stage.settle()


def delete(stage: Stage, kind: type[KubeObject], key: str) -> None:
    obj = stage.simulation.api.get(kind, key)
    assert obj is not None
    stage.delete(obj)
    stage.settle()


@pytest.mark.parametrize(
    ("kind", "kind_type"),
    [("Deployment", Deployment), ("ReplicaSet", ReplicaSet), ("StatefulSet", StatefulSet)],
)
def test_a_workload_has_as_many_pods_as_it_is_scaled_to(staged, kind, kind_type):
    stage = staged(*ZONES, workload(kind, "web", replicas=2))
    assert len(pods(stage, "web")) == 2

    scale(stage, kind_type, "web", 5)
    assert len(pods(stage, "web")) == 5
    assert all(pods(stage, "web").values())

    scale(stage, kind_type, "web", 1)
    assert len(pods(stage, "web")) == 1

    scale(stage, kind_type, "web", 0)
    assert pods(stage, "web") == {}


def test_a_job_is_scaled_by_its_parallelism(staged):
    stage = staged(*ZONES, workload("Job", "train", replicas=4))

    scale(stage, Job, "train", 2)

    job_pods = [p for p in stage.simulation.api.all(Pod) if p.labels.get("job-name") == "train"]
    assert len(job_pods) == 2


def test_what_cannot_be_scaled_says_what_can(staged):
    stage = staged(*ZONES, workload("DaemonSet", "agent"))

    with pytest.raises(InputError, match="a DaemonSet cannot be scaled; Deployment, ReplicaSet"):
        scale(stage, DaemonSet, "agent", 3)


def test_the_first_to_go_have_no_node_then_share_theirs_then_are_the_youngest(staged):
    """Room for three of four pods: one waits, and goes first; then one of the two on one node."""
    stage = staged(
        node("a-1", cpu=1), node("b-1", cpu=2), workload("ReplicaSet", "web", replicas=4)
    )
    waiting = [name for name, where in pods(stage, "web").items() if not where]
    assert len(waiting) == 1

    scale(stage, ReplicaSet, "web", 3)
    assert not set(waiting) & set(pods(stage, "web"))

    on_b = [name for name, where in pods(stage, "web").items() if where == "b-1"]
    scale(stage, ReplicaSet, "web", 2)
    assert sorted(pods(stage, "web").values()) == ["a-1", "b-1"]
    # The younger of the two that shared a node.
    assert on_b[0] in pods(stage, "web")


def test_a_lower_deletion_cost_goes_first(staged):
    stage = staged(*ZONES, workload("ReplicaSet", "web", replicas=3))
    oldest = stage.simulation.api.get(Pod, f"default/{next(iter(pods(stage, 'web')))}")
    assert oldest is not None
    cost = {"controller.kubernetes.io/pod-deletion-cost": "-5"}
    stage.simulation.api.update(
        replace(oldest, metadata=replace(oldest.metadata, annotations=cost))
    )

    scale(stage, ReplicaSet, "web", 2)

    assert oldest.name not in pods(stage, "web")


def test_a_stateful_set_loses_its_highest_ordinals_and_gets_its_names_back(staged):
    stage = staged(*ZONES, workload("StatefulSet", "db", replicas=3))

    scale(stage, StatefulSet, "db", 1)
    assert list(pods(stage, "db")) == ["db-0"]

    scale(stage, StatefulSet, "db", 3)
    assert sorted(pods(stage, "db")) == ["db-0", "db-1", "db-2"]
    uids = list(stage.simulation.summary.placements)
    assert len(set(uids)) == len(uids) == 5


def test_a_deleted_pod_is_replaced_under_another_name(staged):
    stage = staged(*ZONES, workload("Deployment", "web", replicas=2))
    before = pods(stage, "web")

    delete(stage, Pod, f"default/{next(iter(before))}")
    after = pods(stage, "web")

    assert len(after) == 2
    assert len(before.keys() & after.keys()) == 1
    assert all(after.values())


def test_a_pod_without_a_controller_is_not_replaced(staged):
    stage = staged(*ZONES, pod("lonely"))

    delete(stage, Pod, "default/lonely")

    assert stage.simulation.api.get(Pod, "default/lonely") is None


def test_deleting_a_deployment_takes_all_it_made_with_it(staged):
    stage = staged(*ZONES, workload("Deployment", "web", replicas=3))

    delete(stage, Deployment, "default/web")

    assert list(stage.simulation.api.all(Pod)) == []
    assert list(stage.simulation.api.all(ReplicaSet)) == []


def test_daemons_follow_the_nodes(staged):
    stage = staged(*ZONES, workload("DaemonSet", "agent"))
    assert sorted(pods(stage, "agent").values()) == ["a-1", "b-1", "c-1"]

    lost = stage.simulation.api.get(Node, "a-1")
    assert lost is not None
    stage.fail([lost])
    stage.settle()
    assert sorted(pods(stage, "agent").values()) == ["b-1", "c-1"]

    stage.simulation.api.create(lost)
    stage.settle()
    assert sorted(pods(stage, "agent").values()) == ["a-1", "b-1", "c-1"]


def test_a_job_makes_the_next_pod_when_one_has_finished(staged):
    runs = workload("Job", "train", replicas=4).replace("parallelism: 4", "parallelism: 2")
    runs = runs.replace(
        "labels: {app: train}", 'labels: {app: train}, annotations: {mooring.dev/run-seconds: "60"}'
    )
    stage = staged(*ZONES, runs)
    assert len(pods(stage, "train")) == 2

    stage.wait(200)

    finished = [each for each in stage.simulation.api.all(Pod) if each.finished]
    assert len(finished) == 4


def test_another_template_of_a_deployment_replaces_its_pods(staged, tmp_path):
    stage = staged(*ZONES, workload("Deployment", "web", replicas=2))
    before = pods(stage, "web")
    (tmp_path / "web.yaml").write_text(workload("Deployment", "web", replicas=3, cpu="2"))

    stage.apply(["web.yaml"], ())
    stage.settle()
    after = pods(stage, "web")

    assert len(after) == 3
    assert not before.keys() & after.keys()
    assert {each.requests["cpu"] for each in stage.simulation.api.all(Pod)} == {2000}

    # And back again: the ReplicaSet of that template is still there.
    (tmp_path / "web.yaml").write_text(workload("Deployment", "web", replicas=2))
    stage.apply(["web.yaml"], ())
    stage.settle()
    assert len(pods(stage, "web")) == 2
    assert {each.requests["cpu"] for each in stage.simulation.api.all(Pod)} == {1000}


def test_applying_the_same_again_changes_nothing(staged, tmp_path):
    stage = staged(*ZONES, workload("Deployment", "web", replicas=2), pod("p"))
    before = {obj.key: obj for obj in stage.objects()}
    (tmp_path / "again.yaml").write_text(
        "\n---\n".join((workload("Deployment", "web", replicas=2), pod("p")))
    )

    stage.apply(["again.yaml"], ())
    stage.settle()

    assert {obj.key: obj for obj in stage.objects()} == before


def test_a_pod_on_a_node_cannot_be_changed(staged, tmp_path):
    stage = staged(*ZONES, pod("p"))
    (tmp_path / "p.yaml").write_text(pod("p", cpu="2"))

    with pytest.raises(InputError, match="pod default/p is on a node and cannot be changed"):
        stage.apply(["p.yaml"], ())


def test_a_deployment_whose_set_is_too_small_makes_the_missing_pods_once(staged):
    """A snapshot may show a Deployment in the middle of growing; each look at it must not add more."""
    stage = staged(*ZONES, workload("Deployment", "web", replicas=2))
    (replica_set,) = stage.simulation.api.all(ReplicaSet)
    scale(stage, Deployment, "web", 4)
    stage.workloads.scale(replica_set, 1)
    stage.settle()
    stage.simulation.api.update(stage.simulation.api.get(Node, "a-1"))
    stage.settle()

    assert len(pods(stage, "web")) == 4
