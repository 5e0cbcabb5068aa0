import pytest

from mooring.cluster.cache import Cluster
from mooring.framework.cycle_state import CycleState
from mooring.framework.status import SKIP, SUCCESS, Code, Status, unresolvable, unschedulable
from mooring.objects.devices import DeviceClass, DeviceClassSpec
from mooring.objects.meta import ObjectMeta
from mooring.objects.pod import PodResourceClaim
from mooring.plugins.dynamic_resources import DynamicResources
from tests.makers import make_node, make_pod
from tests.plugins.agreement import assert_scores_agree
from tests.plugins.preemption_world import World

CLAIM = PodResourceClaim(name="gpu", resource_claim_name="my-gpu")
UNSUPPORTED = unresolvable("mooring does not support resource claims (devices) yet")
NOT_FROM_DEVICES = unresolvable(
    "mooring does not support extended resources served by device classes yet"
)
GPU = "example.com/gpu"
TPU = "example.com/tpu"
BY_CLASS = "deviceclass.resource.kubernetes.io/gpus"


class FakeHandle:
    def __init__(self, cluster):
        self.cluster = cluster


def device_class(name="gpus", resource=GPU):
    return DeviceClass(
        metadata=ObjectMeta(name=name), spec=DeviceClassSpec(extended_resource_name=resource)
    )


def build(*nodes, classes=()):
    cluster = Cluster()
    for node in nodes:
        cluster.add_node(node)
    for each in classes:
        cluster.listers.put(each)
    return DynamicResources(None, FakeHandle(cluster)), cluster.snapshot()


class TestPodsWithoutClaims:
    def test_they_may_enter_the_queue(self):
        plugin, _ = build()

        assert plugin.pre_enqueue(make_pod()) == SUCCESS

    def test_they_are_not_filtered(self):
        plugin, snapshot = build(make_node())

        assert plugin.pre_filter(CycleState(), make_pod(cpu=1), snapshot) == SKIP

    def test_post_filter_has_nothing_to_take_back(self):
        plugin, snapshot = build(make_node())
        state = CycleState()
        plugin.pre_filter(state, make_pod(), snapshot)

        assert plugin.post_filter(state, make_pod(), None) == (
            None,
            unschedulable("no new claims to deallocate"),
        )

    def test_post_filter_fails_where_an_earlier_pre_filter_ended_the_attempt(self):
        plugin, _ = build()

        assert plugin.post_filter(CycleState(), make_pod(), None) == (
            None,
            Status(Code.ERROR, ("not found",)),
        )

    def test_every_node_scores_0(self):
        plugin, snapshot = build(make_node("a"), make_node("b"))

        assert [plugin.score(CycleState(), make_pod(), node) for node in snapshot] == [0, 0]
        assert_scores_agree(plugin, CycleState(), make_pod(), snapshot)

    def test_they_are_all_alike(self):
        plugin, _ = build()

        assert plugin.sign(make_pod()) == {}


class TestPodsWithClaims:
    POD = make_pod(resource_claims=[CLAIM])

    def test_they_are_held_back(self):
        plugin, _ = build()

        assert plugin.pre_enqueue(self.POD) == UNSUPPORTED

    def test_they_fit_nowhere(self):
        plugin, snapshot = build(make_node())

        assert plugin.pre_filter(CycleState(), self.POD, snapshot) == UNSUPPORTED

    def test_they_have_no_signature(self):
        plugin, _ = build()

        assert plugin.sign(self.POD) == unschedulable(
            "pods with dra resource claims are not signable"
        )


class TestResourcesServedByDevices:
    def filtered(self, requests, *, classes, **offered):
        plugin, snapshot = build(make_node("n", **offered), classes=classes)
        pod, state = make_pod(requests=requests), CycleState()
        status = plugin.pre_filter(state, pod, snapshot)
        return status if status == SKIP else plugin.filter(state, pod, snapshot.get("n"))

    @pytest.mark.parametrize(
        ("requests", "offered", "verdict"),
        [
            pytest.param({TPU: 1}, {}, SKIP, id="no class serves it"),
            pytest.param({GPU: 0}, {}, SKIP, id="none is asked for"),
            pytest.param({GPU: 1}, {GPU: 4}, SUCCESS, id="the node has it without devices"),
            pytest.param({GPU: 1}, {GPU: 0}, NOT_FROM_DEVICES, id="the node has 0"),
            pytest.param({GPU: 1}, {}, NOT_FROM_DEVICES, id="the node does not name it"),
            pytest.param({BY_CLASS: 1}, {}, NOT_FROM_DEVICES, id="by the name of the class"),
            pytest.param(
                {GPU: 1, TPU: 1},
                {GPU: 4},
                unresolvable("cannot fit resource"),
                id="another is not to be had at all",
            ),
            pytest.param({GPU: 1, TPU: 1}, {GPU: 4, TPU: 1}, SUCCESS, id="the node has both"),
        ],
    )
    def test_a_node_must_offer_them_by_itself(self, requests, offered, verdict):
        assert self.filtered(requests, classes=[device_class()], **offered) == verdict

    def test_post_filter_says_that_they_are_claims(self):
        plugin, snapshot = build(make_node(), classes=[device_class()])
        pod, state = make_pod(requests={GPU: 1}), CycleState()
        plugin.pre_filter(state, pod, snapshot)

        assert plugin.post_filter(state, pod, None) == (
            None,
            unschedulable("still not schedulable"),
        )


def test_after_a_pre_filter_that_gives_up_preemption_is_not_tried():
    """VolumeBinding comes first, and ends the attempt: the pod's message ends in `not found`."""
    world = World([make_node()], [make_pod("low", node="n")])
    pod = make_pod(priority=1000, claims=["missing"])
    decision, state = world.attempt(pod)

    result, status = world.framework.run_post_filters(state, pod, decision.diagnosis)

    assert result is None
    assert (status.code, status.message, status.plugin) == (
        Code.ERROR,
        "not found",
        "DynamicResources",
    )
