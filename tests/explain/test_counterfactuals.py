"""Counterfactuals are true: each is made and the pod is placed; a little less, and it is not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from mooring.config import load_config
from mooring.explain.counterfactuals import Counterfactuals, find_counterfactuals
from mooring.explain.explanation import CannotAnswer, explainer_for
from mooring.framework.changes import Change, spelled
from mooring.framework.cycle_state import CycleState
from mooring.framework.node_changes import AddNodes, DeclareFeatures, FreeRoom, LabelNode, Uncordon
from mooring.framework.pod_changes import (
    DropHostPort,
    DropNodeAffinity,
    DropNodeSelector,
    LowerRequest,
    RaiseMaxSkew,
    RemoveGates,
    SoftenPodAffinity,
    SoftenSpread,
    Tolerate,
    with_request,
)
from mooring.framework.status import Status, wait
from mooring.library import Cluster
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.objects.storage import PersistentVolumeClaim
from mooring.plugins.node_declared_features import USER_NAMESPACES_HOST_NETWORK
from mooring.plugins.registry import default_registry
from mooring.plugins.volume_binding.missing_storage import AddStorage
from mooring.sim.simulation import SimOptions
from tests.makers import (
    HOSTNAME,
    ZONE,
    make_affinity_term,
    make_container,
    make_node,
    make_node_affinity,
    make_node_term,
    make_owner,
    make_pdb,
    make_pod,
    make_pod_affinity,
    make_spread,
)
from tests.volume_world import make_claim, make_class, with_annotations

POD = "default/p"


@dataclass(frozen=True)
class Row:
    """A cluster with the pending pod `p`, a change that must be found, and less of it."""

    objects: list[KubeObject]
    change: Change
    #: What must not be enough; nothing at all, where there is no less of it.
    less: list[Change] = field(default_factory=list)


WEB = {"app": "web"}


def bare_claim(name: str) -> PersistentVolumeClaim:
    """A claim without a class."""
    return make_claim(name, storage_class=None, namespace="default")


ROWS = {
    # 4000m offered, 2500m held.
    "lower a request": Row(
        [make_node("n"), make_pod("q", node="n", cpu="2500m"), make_pod(cpu=2)],
        LowerRequest("cpu", 2000, 1500),
        [LowerRequest("cpu", 2000, 1501)],
    ),
    "lower a request to the byte": Row(
        [make_node("n", memory="1000000001"), make_pod(memory="1Gi")],
        LowerRequest("memory", 2**30, 1_000_000_001),
        [LowerRequest("memory", 2**30, 1_000_000_002)],
    ),
    "do without what no node has": Row(
        [make_node("n"), make_pod(requests={"nvidia.com/gpu": 1})],
        LowerRequest("nvidia.com/gpu", 1, 0),
    ),
    "tolerate a taint": Row(
        [make_node("n", taints=["gpu=true:NoSchedule"]), make_pod()],
        Tolerate(("gpu=true:NoSchedule",)),
        [Tolerate(("gpu=true:NoExecute",))],
    ),
    "tolerate two taints of one node": Row(
        [make_node("n", taints=["a:NoSchedule", "b=1:NoExecute"]), make_pod()],
        Tolerate(("a:NoSchedule", "b=1:NoExecute")),
        [Tolerate(("a:NoSchedule",))],
    ),
    # Zone b is full: the third pod in a makes the skew 3.
    "raise maxSkew": Row(
        [
            make_node("n", zone="a"),
            make_node("m", zone="b", cpu=0),
            *(make_pod(f"q{i}", node="n", labels=WEB) for i in range(2)),
            make_pod(labels=WEB, cpu=1, spread=[make_spread(labels=WEB)]),
        ],
        RaiseMaxSkew(0, ZONE, 1, 3),
        [RaiseMaxSkew(0, ZONE, 1, 2)],
    ),
    "soften a spread": Row(
        [make_node("n"), make_pod(labels=WEB, spread=[make_spread(labels=WEB)])],
        SoftenSpread(0, ZONE),
        [RaiseMaxSkew(0, ZONE, 1, 100)],
    ),
    "soften an affinity": Row(
        [make_node("n"), make_pod(affinity=make_pod_affinity(make_affinity_term(WEB)))],
        SoftenPodAffinity(0, HOSTNAME, "app=web"),
    ),
    "soften an anti-affinity": Row(
        [
            make_node("n"),
            make_pod("q", node="n", labels=WEB),
            make_pod(affinity=make_pod_affinity(anti=[make_affinity_term(WEB)])),
        ],
        SoftenPodAffinity(0, HOSTNAME, "app=web", anti=True),
    ),
    "drop a label of the nodeSelector": Row(
        [
            make_node("n", labels={"disk": "ssd"}),
            make_pod(node_selector={"disk": "ssd", "gpu": "a100"}),
        ],
        DropNodeSelector("gpu", "a100"),
        [DropNodeSelector("disk", "ssd")],
    ),
    "drop a line of the node affinity": Row(
        [
            make_node("n", labels={"disk": "ssd"}),
            make_pod(
                affinity=make_node_affinity(
                    make_node_term(("disk", "In", ["ssd"]), ("gpu", "Exists", []))
                )
            ),
        ],
        DropNodeAffinity(0, 1, "gpu Exists"),
        [DropNodeAffinity(0, 0, "disk In (ssd)")],
    ),
    "drop the only line of the node affinity": Row(
        [
            make_node("n"),
            make_pod(affinity=make_node_affinity(make_node_term(("gpu", "Exists", [])))),
        ],
        DropNodeAffinity(0, 0, "gpu Exists"),
    ),
    "drop a host port": Row(
        [make_node("n"), make_pod("q", node="n", ports=[80]), make_pod(ports=[80, 81])],
        DropHostPort(80, "TCP"),
        [DropHostPort(81, "TCP")],
    ),
    "remove scheduling gates": Row(
        [make_node("n"), make_pod(gates=["quota", "audit"])], RemoveGates(("quota", "audit"))
    ),
    # m is refused for its cpu too, so no label helps there.
    "label a node": Row(
        [
            make_node("n", labels={"disk": "hdd"}),
            make_node("m", cpu=0),
            make_pod(cpu=1, node_selector={"disk": "ssd", "gpu": "a100"}),
        ],
        LabelNode("n", (("disk", "ssd"), ("gpu", "a100"))),
        [LabelNode("n", (("gpu", "a100"),))],
    ),
    "take a label from a node": Row(
        [
            make_node("n", labels={"old": "yes"}),
            make_pod(affinity=make_node_affinity(make_node_term(("old", "DoesNotExist", [])))),
        ],
        LabelNode("n", (), ("old",)),
    ),
    "uncordon a node": Row(
        [make_node("n", unschedulable=True), make_pod(tolerations=[])], Uncordon("n")
    ),
    # On m the least important pods are; the daemon's pod would be back at once.
    "free room": Row(
        [
            make_node("n"),
            make_node("m"),
            make_pod("a", node="n", cpu=4, priority=5),
            make_pod("b", node="m", cpu=1, priority=2),
            make_pod("c", node="m", cpu=1, priority=1),
            make_pod("d", node="m", cpu=1, priority=1),
            make_pod("e", node="m", cpu=1, owner=make_owner("DaemonSet", "e")),
            make_pod(cpu=2),
        ],
        FreeRoom("m", ("default/c", "default/d"), (("cpu", 2000),)),
        [FreeRoom("m", ("default/c",))],
    ),
    # On n a budget protects the pod.
    "free room without violating a budget": Row(
        [
            make_node("n"),
            make_node("m"),
            make_pdb(labels=WEB),
            make_pod("a", node="n", cpu=4, labels=WEB),
            make_pod("b", node="m", cpu=4, priority=3),
            make_pod(cpu=1),
        ],
        FreeRoom("m", ("default/b",), (("cpu", 1000),)),
    ),
    "add a node": Row(
        [
            make_node("n", cpu=2),
            make_node("m", cpu=4),
            make_pod("q", node="n", cpu=2),
            make_pod("r", node="m", cpu=4),
            make_pod(cpu=3),
        ],
        AddNodes("m"),
        [AddNodes("n")],
    ),
    "add a default class": Row(
        [make_node("n"), bare_claim("data"), make_class("other"), make_pod(claims=["data"])],
        AddStorage(classless=("default/data",)),
    ),
    "add the class that a claim names": Row(
        [
            make_node("n"),
            make_claim("data", storage_class="fast", namespace="default"),
            make_class("other"),
            make_pod(claims=["data"]),
        ],
        AddStorage(classes=(("fast", "default/data"),)),
    ),
    "add a claim": Row(
        [make_node("n"), make_pod(claims=["data"])], AddStorage(claims=("default/data",))
    ),
    "add all that is missing, as each of it is needed": Row(
        [
            make_node("n"),
            bare_claim("data"),
            make_claim("quick", storage_class="fast", namespace="default"),
            make_pod(claims=["data", "quick", "gone"]),
        ],
        AddStorage(("default/data",), (("fast", "default/quick"),), ("default/gone",)),
        [AddStorage(("default/data",), (("fast", "default/quick"),))],
    ),
    "enable a feature of a node": Row(
        [
            make_node("n", features=["Other"]),
            make_node("m", cpu=1, features=["Other"]),
            make_pod(cpu=2, host_network=True, host_users=False),
        ],
        DeclareFeatures("n", (USER_NAMESPACES_HOST_NETWORK,)),
        [DeclareFeatures("m", (USER_NAMESPACES_HOST_NETWORK,))],
    ),
}


def find(objects: list[KubeObject], **options: float) -> Counterfactuals:
    return Cluster.of(objects).counterfactuals("p", **options)  # type: ignore[arg-type]


def is_placed(objects: list[KubeObject], changes: list[Change]) -> bool:
    """Quite apart from how answers are found: the objects are changed and simulated again."""
    with Cluster.of(objects).changed("p", changes).simulate() as simulated:
        return POD in {placed.pod for placed in simulated.placements}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_an_answer_is_true_and_a_little_less_would_not_do(row: Row):
    found = {answer.changes for answer in find(row.objects)}

    assert (row.change,) in found
    assert is_placed(row.objects, [row.change])
    assert not is_placed(row.objects, row.less)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_every_answer_places_the_pod_where_it_says(row: Row):
    answers = find(row.objects)

    assert answers.complete
    for answer in answers:
        with Cluster.of(row.objects).changed("p", answer).simulate() as simulated:
            where = {placed.pod: placed.node for placed in simulated.placements}
            assert where[POD] == answer.node, answer.text


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_answers_come_smallest_first_and_as_data(row: Row):
    answers = find(row.objects)
    sizes = [answer.size for answer in answers]

    assert sizes == sorted(sizes)
    assert [each["text"] for each in answers.to_data()["answers"]] == [a.text for a in answers]


def test_looking_for_answers_leaves_the_cluster_as_it_was():
    for row in ROWS.values():
        with Cluster.of(row.objects).simulate() as simulated:
            before = [answer.text for answer in simulated.counterfactuals("p")]
            simulated._explainer.what_if.scheduler.validate()
            assert [answer.text for answer in simulated.counterfactuals("p")] == before


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (
            "add a default class",
            "add a default StorageClass: claim default/data has no class and there is no default"
            " StorageClass",
        ),
        (
            "add the class that a claim names",
            "add the StorageClass fast, which claim default/data names",
        ),
        (
            "add a claim",
            "add the claim default/data with a class, as there is no default StorageClass",
        ),
        (
            "add all that is missing, as each of it is needed",
            "add a default StorageClass: claim default/data has no class and there is no default"
            " StorageClass, and add the StorageClass fast, which claim default/quick names, and add"
            " the claim default/gone with a class, as there is no default StorageClass",
        ),
        (
            "enable a feature of a node",
            "enable the feature UserNamespacesHostNetworkSupport on node n, whose kubelet does not"
            " declare it",
        ),
    ],
)
def test_what_is_missing_is_named(row, text):
    assert find(ROWS[row].objects).answers[0].text == text


def test_with_a_default_class_a_claim_needs_no_class():
    default = with_annotations(
        make_class("standard"), {"storageclass.kubernetes.io/is-default-class": "true"}
    )
    objects = [make_node("n"), default, make_pod(claims=["data"])]

    assert find(objects).answers[0].text == "add the claim default/data"


def test_missing_storage_and_too_large_a_request_are_a_pair():
    objects = [make_node("n", cpu=2), make_pod(cpu=3, claims=["data"])]

    texts = [answer.text for answer in find(objects)]

    assert any(
        "add the claim default/data" in text and "lower the cpu request from 3 to 2" in text
        for text in texts
    )


# Pairs


def test_where_no_single_change_helps_two_do_and_each_is_as_small_as_can_be():
    objects = [make_node("n", cpu=2, memory="4Gi"), make_pod(cpu=3, memory="6Gi")]

    best = find(objects).answers[0].changes

    cpu, memory = LowerRequest("cpu", 3000, 2000), LowerRequest("memory", 6 * 2**30, 4 * 2**30)
    assert set(best) == {cpu, memory}
    assert is_placed(objects, list(best))
    assert not is_placed(objects, [replace(cpu, new=2001), memory])
    assert not is_placed(objects, [cpu, replace(memory, new=4 * 2**30 + 1)])


def test_pairs_are_of_changes_that_differ_in_kind_too():
    objects = [
        make_node("n", cpu=2, taints=["gpu:NoSchedule"]),
        make_pod(cpu=3, node_selector={HOSTNAME: "n"}),
    ]

    assert "lower the cpu request from 3 to 2, and tolerate the taint gpu:NoSchedule" in [
        answer.text for answer in find(objects)
    ]


def test_a_gated_pod_that_would_not_fit_either_needs_both():
    objects = [make_node("n", cpu=2), make_pod(cpu=3, gates=["quota"])]

    texts = [answer.text for answer in find(objects)]

    assert texts[0] == ("remove the scheduling gate quota, and lower the cpu request from 3 to 2")


# Who is asked about


class HoldsBack:
    name = "HoldsBack"

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        return wait(), 30.0


def held_back() -> SimOptions:
    registry = default_registry()
    registry.add(HoldsBack.name, HoldsBack)
    plugins = {"multiPoint": {"enabled": [{"name": HoldsBack.name}]}}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": plugins}],
    }
    return SimOptions(config=load_config(config), registry=registry)


@pytest.mark.parametrize(
    ("pod", "options", "answers", "note"),
    [
        pytest.param(make_pod(cpu=5), SimOptions(), True, "", id="pending"),
        pytest.param(make_pod(gates=["quota"]), SimOptions(), True, "", id="gated"),
        pytest.param(
            make_pod(node="n"), SimOptions(), False, "the pod is already on node n", id="on a node"
        ),
        pytest.param(make_pod(), SimOptions(), False, "the pod is already on node n", id="bound"),
        pytest.param(
            make_pod(), held_back(), False, "the pod has a node and waits to be bound", id="assumed"
        ),
        pytest.param(
            make_pod(scheduler="other"),
            SimOptions(),
            False,
            "no profile has the scheduler name 'other'; change it or add a profile",
            id="ignored",
        ),
        pytest.param(
            make_pod(annotations={"mooring.dev/run-seconds": "1"}),
            SimOptions(),
            False,
            "the pod no longer exists",
            id="gone",
        ),
    ],
)
def test_changes_are_looked_for_only_if_the_pod_has_no_node(pod, options, answers, note):
    with explainer_for([make_node("n"), pod], options, until_s=10.0) as explainer:
        found = find_counterfactuals(explainer.what_if, POD)

    assert (bool(found.answers), found.note, found.complete) == (answers, note, True)


def test_a_pod_that_is_not_there_has_no_answer():
    with (
        explainer_for([make_node("n")]) as explainer,
        pytest.raises(CannotAnswer, match="pod default/p does not exist"),
    ):
        find_counterfactuals(explainer.what_if, POD)


# What has no answer


def test_a_pod_that_fits_needs_no_change():
    assert find([make_node("n"), make_pod()]).note == "the pod is already on node n"
    assert Cluster.of([make_node("n"), make_pod()]).counterfactuals("p", as_is=True).note == (
        "the pod fits without changes"
    )


def test_it_says_so_when_nothing_helps():
    lost = make_claim("lost", volume="gone", phase="Lost", namespace="default")
    answers = find([make_node("n"), lost, make_pod(claims=["lost"])])

    assert not answers.answers
    assert answers.note == "no single change and no pair of changes would place the pod"


def test_without_time_the_answer_says_that_there_may_be_more():
    answers = find([make_node("n", cpu=1), make_pod(cpu=2)], budget_s=0.0)

    assert not answers.answers
    assert not answers.complete


# Lowering what several containers share


def test_a_lower_request_is_taken_from_the_largest_container():
    pod = make_pod(
        containers=[make_container("a", cpu="500m"), make_container("b", cpu=2)],
        init_containers=[
            make_container("side", cpu="250m", restart_policy="Always"),
            make_container("init", cpu=3),
        ],
        overhead={"cpu": "100m"},
    )
    assert pod.requests["cpu"] == 3350

    for amount in (3349, 2850, 1000, 300, 100):
        assert with_request(pod, "cpu", amount).requests["cpu"] == amount


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 0, "0"),
        ("cpu", 350, "350m"),
        ("cpu", 1500, "1.5"),
        ("cpu", 9350, "9.35"),
        ("cpu", 60_005, "60.005"),
        ("cpu", 2000, "2"),
        ("cpu", 20_000, "20"),
        ("memory", 3 * 2**30, "3Gi"),
        ("memory", 1_000_000_001, "1000000001"),
        ("memory", 0, "0"),
        ("nvidia.com/gpu", 1024, "1024"),
    ],
)
def test_amounts_are_written_as_people_write_them_in_yaml(resource, amount, text):
    assert spelled(resource, amount) == text
