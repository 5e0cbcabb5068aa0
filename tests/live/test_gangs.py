"""Gangs on a real API server with the alpha gates on: a gang is bound whole, whatever dies in the middle.

The clusters have room for one gang, to the last core. A gang of which some pods are bound when the
scheduler dies must be completed by the next one, or said to be pending; and what a gang does not get in the
end must be free for others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from control_plane import Binaries, ControlPlane, ControlPlaneError
from plain_client import Json, PlainClient

from tests.live import objects, test_devices
from tests.live.cluster import Cluster, node_name, scheduled_condition
from tests.live.conftest import DEPLOY, REQUIRED, StartMooring
from tests.live.objects import DEFAULT_SCHEDULER
from tests.live.process import SHORT_LEASE, Mooring, configuration
from tests.live.proxy import Proxy, Request, binds
from tests.live.waiting import hold_for, wait_for

pytestmark = pytest.mark.live

API = "scheduling.k8s.io/v1alpha2"
GATES = (
    "GenericWorkload",
    "GangScheduling",
    "TopologyAwareWorkloadScheduling",
    "WorkloadAwarePreemption",
    "DRAWorkloadResourceClaims",
)
RACK = "example.com/rack"
SIZE = 4


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """One of its own: the others test what the gates change when they are off."""
    try:
        binaries = Binaries.find()
    except ControlPlaneError as error:
        if REQUIRED:
            pytest.fail(str(error))
        pytest.skip(str(error))
    with ControlPlane(binaries=binaries, gates=GATES, apis=[API]) as control_plane:
        control_plane.kubectl("apply", "--kustomize", DEPLOY / "base")
        yield control_plane


@pytest.fixture(scope="module")
def client(control_plane: ControlPlane) -> Iterator[PlainClient]:
    with control_plane.client() as client:
        yield client


@pytest.fixture(autouse=True)
def no_groups_left(client: PlainClient) -> Iterator[None]:
    """A group has a finalizer, which a controller would take away."""
    yield
    for kind in ("Pod", "PodGroup", "Workload"):
        client.delete_all(kind)
    for group in client.list("PodGroup"):
        client.patch("PodGroup", group["metadata"]["name"], {"metadata": {"finalizers": None}})


StartGangs = Callable[..., Mooring]


@pytest.fixture
def start(start_mooring: StartMooring) -> StartGangs:
    """Start mooring with the gates on."""

    def start(
        config: Json | None = None, *, name: str = "mooring", through: Proxy | None = None
    ) -> Mooring:
        on = ",".join(f"{gate}=true" for gate in GATES)
        return start_mooring(
            config, name=name, through=through, arguments=[f"--feature-gates={on}"]
        )

    return start


def pod_group(name: str = "gang", *, least: int = SIZE, rack: bool = False, **spec: object) -> Json:
    if rack:
        spec["schedulingConstraints"] = {"topology": [{"key": RACK}]}
    return {
        "apiVersion": API,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": least}}, **spec},
    }


def members(
    group: str = "gang", count: int = SIZE, *, first: int = 0, **given: object
) -> list[Json]:
    return [
        objects.pod(f"{group}-{n}", cpu="1", schedulingGroup={"podGroupName": group}, **given)
        for n in range(first, first + count)
    ]


def nodes(count: int = SIZE) -> list[Json]:
    """Room for one pod on each."""
    return [
        objects.node(f"node-{n}", cpu="1", labels={RACK: f"rack-{n // 2}"}) for n in range(count)
    ]


def bound(cluster: Cluster, group: str = "gang") -> list[str]:
    """The members that have a node."""
    return sorted(
        pod["metadata"]["name"]
        for pod in cluster.pods()
        if node_name(pod) and pod["spec"].get("schedulingGroup", {}).get("podGroupName") == group
    )


def condition(cluster: Cluster, group: str = "gang") -> Json | None:
    conditions = cluster.client.get("PodGroup", group).get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == "PodGroupScheduled"), None)


def wait_for_condition(cluster: Cluster, status: str, group: str = "gang") -> Json:
    def look() -> Json | None:
        found = condition(cluster, group)
        return found if found and found["status"] == status else None

    found = wait_for(
        look, lambda: f"{group} has the condition {status}: {condition(cluster, group)}"
    )
    assert found is not None
    return found


def test_a_gang_is_bound_when_its_last_member_comes(cluster: Cluster, start: StartGangs) -> None:
    mooring = start()
    cluster.add(*nodes(), pod_group())
    cluster.add(*members(count=SIZE - 1))
    cluster.add(objects.pod("small", cpu="100m", nodeName="node-0"))
    hold_for(lambda: not bound(cluster), "no member is bound", seconds=1)

    cluster.client.delete("Pod", "small")
    cluster.add(*members(count=1, first=SIZE - 1))

    assert len(set(cluster.wait_until_bound().values())) == SIZE
    assert wait_for_condition(cluster, "True")["reason"] == "Scheduled"
    assert mooring.metric("scheduler_podgroup_schedule_attempts_total", result="scheduled") == 1
    cluster.check_books()


def test_a_group_may_come_after_its_pods(cluster: Cluster, start: StartGangs) -> None:
    start()
    cluster.add(*nodes(), *members())
    hold_for(lambda: not bound(cluster), "no member is bound", seconds=1)

    cluster.add(pod_group())

    cluster.wait_until_bound()
    cluster.check_books()


def test_a_gang_without_room_holds_nothing_and_goes_when_there_is_room(
    cluster: Cluster, start: StartGangs
) -> None:
    start()
    cluster.add(*nodes(SIZE - 1), pod_group(), *members())

    told = wait_for_condition(cluster, "False")
    assert told["reason"] == "Unschedulable"
    assert "pod group is unschedulable" in told["message"]
    for pod in ("gang-0", f"gang-{SIZE - 1}"):
        cluster.wait_until_refused(pod)
    assert bound(cluster) == []
    cluster.add(objects.pod("single", cpu="1"))
    cluster.wait_until_bound("single")

    cluster.add(*(objects.node(f"late-{n}", cpu="1") for n in range(2)))

    cluster.wait_until_bound()
    wait_for_condition(cluster, "True")
    cluster.check_books()


def test_a_gang_stays_in_one_rack(cluster: Cluster, start: StartGangs) -> None:
    start()
    cluster.add(*nodes(4), objects.pod("there", cpu="1", nodeName="node-0"))
    cluster.add(pod_group(least=2, rack=True), *members(count=2))

    placed = cluster.wait_until_bound()

    assert {placed["gang-0"], placed["gang-1"]} == {"node-2", "node-3"}


def test_of_two_gangs_that_need_the_same_room_one_gets_it_and_the_other_follows(
    cluster: Cluster, start: StartGangs
) -> None:
    start()
    cluster.add(*nodes(), pod_group("a"), pod_group("b"))
    cluster.add(*(each for n in range(SIZE) for g in "ab" for each in members(g, 1, first=n)))

    wait_for(lambda: len(bound(cluster, "a") + bound(cluster, "b")) == SIZE, "one gang is bound")
    first, second = ("a", "b") if bound(cluster, "a") else ("b", "a")
    assert (len(bound(cluster, first)), bound(cluster, second)) == (SIZE, [])
    wait_for_condition(cluster, "False", second)

    for name in bound(cluster, first):
        cluster.client.delete("Pod", name)

    wait_for(lambda: len(bound(cluster, second)) == SIZE, f"{second} is bound")
    cluster.check_books()


def test_preemption_makes_room_for_the_whole_gang_or_evicts_nobody(
    cluster: Cluster, start: StartGangs
) -> None:
    cluster.add(objects.priority_class("high", 1000), *nodes())
    cluster.add(*(objects.pod(f"low-{n}", cpu="1", nodeName=f"node-{n}") for n in range(SIZE)))
    start()
    cluster.add(pod_group("big", least=SIZE + 1, priorityClassName="high"))
    cluster.add(*members("big", SIZE + 1, priorityClassName="high"))
    wait_for_condition(cluster, "False", "big")
    assert sum(pod["metadata"]["name"].startswith("low") for pod in cluster.pods()) == SIZE

    cluster.add(pod_group(priorityClassName="high"), *members(priorityClassName="high"))

    wait_for(lambda: len(bound(cluster)) == SIZE, "the gang that fits has the room")
    assert not any(pod["metadata"]["name"].startswith("low") for pod in cluster.pods())
    assert bound(cluster, "big") == []


class WritesAfter:
    """Chooses the binds and patches of status that come after the first `count` of them."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.seen = 0

    def __call__(self, request: Request) -> bool:
        if not (request.is_bind or (request.method == "PATCH" and "/status" in request.path)):
            return False
        self.seen += 1
        return self.seen > self.count


#: A whole gang writes this often: a bind for each pod, and the condition of the group.
WRITES = SIZE + 1


@pytest.mark.parametrize("answered", [True, False], ids=["answered", "answers-lost"])
@pytest.mark.parametrize("written", range(WRITES))
def test_a_scheduler_killed_after_any_write_leaves_a_gang_that_the_next_one_completes(
    cluster: Cluster, start: StartGangs, proxy: Proxy, written: int, answered: bool
) -> None:
    """With lost answers, the dead scheduler did not know what it had written last."""
    cluster.add(*nodes(), pod_group())
    killed = start(name="killed", through=proxy)
    held = proxy.hold(WritesAfter(written))
    if not answered:
        proxy.lose_answers(binds, times=1)
    cluster.add(*members())
    wait_for(lambda: held.met, f"write {written + 1} is made")

    killed.kill()
    proxy.release(held, forwards=False)
    start(name="next")

    assert len(set(cluster.wait_until_bound().values())) == SIZE
    wait_for_condition(cluster, "True")
    cluster.check_books()


def test_a_half_bound_gang_whose_room_was_taken_is_reported_and_holds_no_node(
    cluster: Cluster, start: StartGangs, proxy: Proxy
) -> None:
    """The scheduler dies after two of four binds, and others take the room of the rest meanwhile.

    It has written a nomination for each member that was not bound yet. The next scheduler takes them back
    when the gang is refused, so that a pod of the same priority gets the place.
    """
    cluster.add(*nodes(), pod_group())
    killed = start(name="killed", through=proxy)
    written = WritesAfter(2)
    held = proxy.hold(lambda request: request.is_bind and written(request))
    cluster.add(*members())
    wait_for(lambda: held.met and len(bound(cluster)) == 2, "two members are bound")
    killed.kill()
    proxy.release(held, forwards=False)
    taken = {node_name(pod) for pod in cluster.pods()}
    free = [f"node-{n}" for n in range(SIZE) if f"node-{n}" not in taken]
    cluster.add(objects.pod("thief", cpu="1", nodeName=free[0]))
    left = [f"gang-{n}" for n in range(SIZE) if f"gang-{n}" not in bound(cluster)]
    for name in left:
        nomination = {"status": {"nominatedNodeName": free[1]}}
        cluster.client.patch("Pod", name, nomination, part="status")

    start(name="next")

    for name in left:
        cluster.wait_until_refused(name)
    cluster.add(objects.pod("single", cpu="1"))
    cluster.wait_until_bound("single")
    assert len(bound(cluster)) == 2
    for name in left:
        assert "nominatedNodeName" not in cluster.pod(name)["status"]

    cluster.client.delete("Pod", "thief")
    cluster.client.delete("Pod", "single")

    cluster.wait_until_bound()
    cluster.check_books()


def test_a_killed_leader_is_succeeded_in_the_middle_of_a_gang(
    cluster: Cluster, start: StartGangs, proxy: Proxy
) -> None:
    elected = configuration(DEFAULT_SCHEDULER, leaderElection=SHORT_LEASE)
    cluster.add(*nodes(), pod_group())
    leader = start(elected, name="first", through=proxy)
    wait_for(lambda: leader.metric("leader_election_master_status") == 1, "the first one leads")
    standby = start(elected, name="second")
    written = WritesAfter(2)
    held = proxy.hold(lambda request: request.is_bind and written(request))
    cluster.add(*members())
    wait_for(lambda: held.met and len(bound(cluster)) == 2, "two members are bound")

    leader.kill()
    proxy.release(held, forwards=False)

    cluster.wait_until_bound()
    assert standby.metric("leader_election_master_status") == 1
    cluster.check_books()


def test_a_member_deleted_while_the_gang_waits_leaves_the_others_waiting(
    cluster: Cluster, start: StartGangs
) -> None:
    start()
    cluster.add(*nodes(SIZE - 1), pod_group(), *members())
    wait_for_condition(cluster, "False")

    cluster.client.delete("Pod", "gang-0")
    cluster.add(objects.node("late", cpu="1"))

    cluster.add(objects.pod("single", cpu="1"))
    cluster.wait_until_bound("single")
    hold_for(lambda: not bound(cluster), "three of four are not bound", seconds=1)

    cluster.add(objects.node("later", cpu="1"), *members(count=1, first=SIZE))
    cluster.wait_until_bound()
    cluster.check_books()


def test_a_member_deleted_while_its_bind_is_under_way_is_replaced(
    cluster: Cluster, start: StartGangs, proxy: Proxy
) -> None:
    start(through=proxy)
    cluster.add(*nodes(), pod_group())
    held = proxy.hold(lambda request: request.is_bind and request.subject == "gang-1")
    cluster.add(*members())
    wait_for(lambda: held.met and len(bound(cluster)) == SIZE - 1, "all but one are bound")

    cluster.client.delete("Pod", "gang-1")
    proxy.release(held)
    cluster.add(*members(count=1, first=SIZE))

    assert len(set(cluster.wait_until_bound().values())) == SIZE
    cluster.check_books()


def test_a_node_lost_between_members_is_made_up_for_by_another(
    cluster: Cluster, start: StartGangs, proxy: Proxy
) -> None:
    """Two members are bound when the node of a third goes, and the pods that it had."""
    start(through=proxy)
    cluster.add(*nodes(SIZE), pod_group())
    written = WritesAfter(2)
    held = proxy.hold(lambda request: request.is_bind and written(request))
    cluster.add(*members())
    wait_for(lambda: len(held.met) == 2 and len(bound(cluster)) == 2, "two members are bound")
    lost = next(
        f"node-{n}"
        for n in range(SIZE)
        if f"node-{n}" not in cluster.nodes_of(bound(cluster)).values()
    )

    cluster.client.delete("Node", lost)
    proxy.release(held)
    # The API server binds to nodes that are gone; a controller deletes such pods, and the Job makes others.
    stranded = wait_for(
        lambda: [pod for pod in cluster.pods() if node_name(pod) == lost or not node_name(pod)],
        "a member is stranded",
    )
    for pod in stranded:
        cluster.client.delete("Pod", pod["metadata"]["name"])
    cluster.add(objects.node("late", cpu="1"), *members(count=len(stranded), first=SIZE))

    placed = cluster.wait_until_bound()
    assert lost not in placed.values()
    assert len(set(placed.values())) == SIZE
    cluster.check_books()


def test_the_api_server_refuses_a_bind_of_a_member_and_the_gang_is_completed(
    cluster: Cluster, start: StartGangs, proxy: Proxy
) -> None:
    start(through=proxy)
    cluster.add(*nodes(), pod_group())
    refused = proxy.refuse(
        lambda request: request.is_bind and request.subject == "gang-2", status=500, times=2
    )

    cluster.add(*members())

    cluster.wait_until_bound()
    assert len(refused.met) == 2
    assert scheduled_condition(cluster.pod("gang-2"))
    cluster.check_books()


def test_the_pods_of_a_gang_share_the_device_that_their_group_claims(
    control_plane: ControlPlane, cluster: Cluster, start: StartGangs
) -> None:
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    controller = control_plane.start_controllers("resourceclaim-controller")
    try:
        start()
        cluster.add(
            test_devices.device_class(),
            test_devices.slice_of("node-0", "gpu-0", "gpu-1"),
            test_devices.template(),
            objects.node("node-0", cpu="8"),
            pod_group(resourceClaims=claims, least=2),
            *members(count=2, resourceClaims=claims),
        )

        wait_for(lambda: len(bound(cluster)) == 2, what="both members are bound")

        (claim,) = cluster.client.list("ResourceClaim")
        users = [(user["resource"], user["name"]) for user in claim["status"]["reservedFor"]]
        assert users == [("podgroups", "gang")]
    finally:
        controller.kill()
        for kind in ("ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass"):
            cluster.client.delete_all(kind)
