import pytest

from mooring.cluster.deduced_selectors import DeducedSelectors
from mooring.cluster.listers import Listers
from mooring.objects.kinds import (
    ReplicaSet,
    ReplicaSetSpec,
    ReplicationController,
    ReplicationControllerSpec,
    StatefulSet,
)
from mooring.objects.meta import ObjectMeta
from mooring.objects.selectors import EVERYTHING
from tests.makers import make_owner, make_pod, make_selector, make_service

LABELS = {"app": "web", "tier": "fe"}
META = ObjectMeta(name="w", namespace="default")
MALFORMED = make_selector(None, ("app", "Near", ["web"]))


def replica_set(selector, kind=ReplicaSet):
    return kind(metadata=META, spec=ReplicaSetSpec(selector=selector))


def controller(selector):
    return ReplicationController(metadata=META, spec=ReplicationControllerSpec(selector=selector))


def deduced(*objects, **fields):
    """As a set of readable requirements."""
    listers = Listers()
    for obj in objects:
        listers.put(obj)
    selector = DeducedSelectors(listers).of(make_pod(**{"labels": LABELS, **fields}))
    assert not selector.nothing
    return {f"{r.key} {r.operator} {' '.join(sorted(r.values))}" for r in selector.requirements}


@pytest.mark.parametrize(
    ("services", "requirements"),
    [
        pytest.param([], set(), id="none"),
        pytest.param([make_service(selector={"app": "web"})], {"app In web"}, id="one"),
        pytest.param(
            [
                make_service("a", selector={"app": "web"}),
                make_service("b", selector={"tier": "fe"}),
            ],
            {"app In web", "tier In fe"},
            id="all that match are merged",
        ),
        pytest.param([make_service(selector={"app": "db"})], set(), id="one that does not match"),
        pytest.param([make_service(selector=None)], set(), id="no selector"),
        pytest.param([make_service(selector={})], set(), id="an empty selector adds nothing"),
        pytest.param(
            [make_service(selector={"app": "web"}, namespace="other")], set(), id="elsewhere"
        ),
    ],
)
def test_services_that_select_the_pod_give_their_labels(services, requirements):
    assert deduced(*services) == requirements


@pytest.mark.parametrize(
    ("owner", "workload", "requirements"),
    [
        pytest.param(
            make_owner("ReplicaSet", "w"),
            replica_set(make_selector({"app": "web"}, ("tier", "Exists", []))),
            {"app In web", "tier Exists "},
            id="ReplicaSet",
        ),
        pytest.param(
            make_owner("StatefulSet", "w"),
            replica_set(make_selector({"app": "web"}), StatefulSet),
            {"app In web"},
            id="StatefulSet",
        ),
        pytest.param(
            make_owner("ReplicationController", "w"),
            controller({"app": "other"}),
            {"app In other"},
            id="ReplicationController, though it does not select the pod",
        ),
        pytest.param(
            make_owner("ReplicaSet", "gone"), replica_set(make_selector(LABELS)), set(), id="gone"
        ),
        pytest.param(make_owner("ReplicaSet", "w"), replica_set(None), set(), id="no selector"),
        pytest.param(make_owner("ReplicaSet", "w"), replica_set(MALFORMED), set(), id="malformed"),
        pytest.param(
            make_owner("StatefulSet", "w"), replica_set(make_selector(LABELS)), set(), id="kind"
        ),
        pytest.param(make_owner("Job", "w"), replica_set(make_selector(LABELS)), set(), id="Job"),
        pytest.param(None, replica_set(make_selector(LABELS)), set(), id="no owner"),
        pytest.param(make_owner("ReplicationController", "w"), controller(None), set(), id="empty"),
    ],
)
def test_the_controller_gives_its_selector(owner, workload, requirements):
    assert deduced(workload, owner=owner) == requirements


def test_services_and_controller_are_joined():
    found = deduced(
        make_service(selector={"app": "web"}),
        replica_set(make_selector({"tier": "fe"})),
        owner=make_owner("ReplicaSet", "w"),
    )

    assert found == {"app In web", "tier In fe"}


def test_a_replication_controller_overrides_what_services_say():
    found = deduced(
        make_service(selector={"app": "web"}),
        controller({"app": "other"}),
        owner=make_owner("ReplicationController", "w"),
    )

    assert found == {"app In other"}


def test_a_change_of_listed_objects_is_heeded_at_once():
    listers = Listers()
    selectors = DeducedSelectors(listers)
    pod = make_pod(labels=LABELS)
    service = make_service(selector={"app": "web"})
    assert selectors.of(pod) == EVERYTHING

    listers.put(service)
    assert selectors.of(pod) != EVERYTHING

    listers.drop(service)
    assert selectors.of(pod) == EVERYTHING
