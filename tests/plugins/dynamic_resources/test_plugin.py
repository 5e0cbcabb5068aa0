"""DynamicResources beyond `test_worked_examples`: what pods get, what is skipped, what is asked again."""

from __future__ import annotations

import pytest

from mooring.framework.cycle_state import CycleState
from mooring.framework.events import Hint
from mooring.framework.status import SKIP, SUCCESS, Code, Status, unresolvable, unschedulable
from mooring.objects.devices import DeviceRequest
from mooring.plugins.dynamic_resources.hints import Hints
from tests.device_world import GPU, NS, claim, gpu_class, pod_with
from tests.devices.device_makers import (
    make_class,
    make_device,
    make_request,
    make_slice,
    make_subrequest,
)
from tests.makers import make_node, make_pod
from tests.plugins.preemption_world import World as Scheduler

N1 = make_node("n1")
CLASS = make_class()
POD = pod_with("c")
TPU = "example.com/tpu"
BY_CLASS = "deviceclass.resource.kubernetes.io/gpu"
NONE_LEFT = unresolvable("cannot allocate all claims")


def test_post_filter_fails_where_an_earlier_pre_filter_ended_the_attempt(world_of):
    assert world_of().post_filter(CycleState(), POD) == Status(Code.ERROR, ("not found",))


def test_after_a_pre_filter_that_gives_up_preemption_is_not_tried():
    """VolumeBinding comes first, and ends the attempt: the pod's message ends in `not found`."""
    world = Scheduler([make_node()], [make_pod("low", node="n")])
    pod = make_pod(priority=1000, claims=["missing"])
    decision, state = world.attempt(pod)

    result, status = world.framework.run_post_filters(state, pod, decision.diagnosis)

    assert result is None
    assert (status.code, status.message, status.plugin) == (
        Code.ERROR,
        "not found",
        "DynamicResources",
    )


def test_pods_with_claims_have_no_signature(world_of):
    plugin = world_of().plugin

    assert plugin.sign(make_pod()) == {}
    assert plugin.sign(POD) == unschedulable("pods with dra resource claims are not signable")


@pytest.mark.parametrize(
    ("pod", "problem"),
    [
        pytest.param(POD, 'could not find ResourceClaim "ns/c"', id="no claim"),
        pytest.param(
            pod_with(templates={"g": "c2"}),
            "ResourceClaim ns/c2 was not created for Pod ns/pod (Pod is not owner)",
            id="somebody else's claim",
        ),
    ],
)
def test_a_pod_that_cannot_use_a_claim_is_held_back(world_of, pod, problem):
    world = world_of(N1, claim("c2", owner=make_pod("owner", namespace=NS)))

    assert world.plugin.pre_enqueue(pod) == unresolvable(problem)
    assert world.pre_filter(pod) == unresolvable(problem)


def test_an_entry_that_needs_no_claim_is_passed_over(world_of):
    pod = pod_with(templates={"g": None})

    assert world_of(N1).plugin.pre_enqueue(pod) == SUCCESS
    assert world_of(N1).pre_filter(pod) == SKIP


def test_a_request_of_no_known_kind_is_refused(world_of):
    world = world_of(N1, claim("c", DeviceRequest(name="r")))

    assert world.pre_filter(POD) == unresolvable(
        "resource claim ns/c, request r: unknown request type"
    )


def test_a_class_that_is_missing_is_named_with_the_alternative(world_of):
    asked = DeviceRequest(name="r", first_available=[make_subrequest("a", device_class="none")])

    assert world_of(N1, claim("c", asked)).pre_filter(POD) == unresolvable(
        "request r/a: device class none does not exist"
    )


def test_earlier_alternatives_score_higher(world_of):
    asked = DeviceRequest(
        name="r",
        first_available=[
            make_subrequest("big", 'device.capacity["d"].mem.compareTo(quantity("2Gi")) >= 0'),
            make_subrequest("any"),
        ],
    )
    world = world_of(
        N1,
        make_node("n2"),
        CLASS,
        make_slice(make_device("x", capacity={"mem": "2Gi"}), name="s1"),
        make_slice(make_device("y", capacity={"mem": "1Gi"}), name="s2", pool="q", node="n2"),
        claim("c", asked),
    )
    snapshot = world.cluster.snapshot()
    one_by_one, _ = world.filter(POD)
    at_once, _ = world.filter_rows(POD)
    for state in (one_by_one, at_once):
        scores = world.plugin.score_rows(state, POD, snapshot.columns, snapshot.columns.all_rows)
        by_node = {node.name: int(scores[node.row]) for node in snapshot}

        assert by_node == {"n1": 8, "n2": 7}
        assert by_node == {n.name: world.plugin.score(state, POD, n) for n in snapshot}
        world.plugin.normalize_scores(state, POD, scores)
        assert sorted(scores.tolist()) == [87, 100]


@pytest.mark.parametrize(
    ("requests", "offered", "verdict"),
    [
        pytest.param({TPU: 1}, {}, SKIP, id="no class serves it"),
        pytest.param({GPU: 0}, {}, SKIP, id="none is asked for"),
        pytest.param({GPU: 1}, {GPU: 4}, SUCCESS, id="the node has it without devices"),
        pytest.param({GPU: 1}, {GPU: 0}, SUCCESS, id="the node has 0, and a device"),
        pytest.param({GPU: 2}, {}, NONE_LEFT, id="there are too few devices"),
        pytest.param({BY_CLASS: 1}, {}, SUCCESS, id="by the name of the class"),
        pytest.param(
            {GPU: 1, TPU: 1},
            {GPU: 4},
            unresolvable("cannot fit resource"),
            id="another is not to be had at all",
        ),
        pytest.param({GPU: 1, TPU: 1}, {GPU: 4, TPU: 1}, SUCCESS, id="the node has both"),
    ],
)
def test_what_a_node_does_not_offer_itself_must_come_from_devices(
    world_of, requests, offered, verdict
):
    world = world_of(make_node("n1", **offered), gpu_class(resource=GPU), make_slice("x"))
    pod = make_pod("pod", namespace=NS, requests=requests)

    if verdict == SKIP:
        assert world.pre_filter(pod) == SKIP
    else:
        assert world.filter(pod)[1] == {"n1": verdict}
        assert world.filter_rows(pod)[1] == {"n1": verdict}


def test_a_claim_of_an_earlier_attempt_for_extended_resources_is_deleted(world_of):
    pod = make_pod("pod", namespace=NS, requests={GPU: 1})
    world = world_of(N1, gpu_class(resource=GPU), make_slice("x"))
    state = world.reserve(pod)
    world.pre_bind(state, pod)

    state, verdicts = world.filter(pod)

    assert verdicts == {"n1": unresolvable("cannot schedule extended resource claim")}
    assert world.post_filter(state, pod) == unschedulable("deletion of ResourceClaim completed")
    world.settle()
    assert world.filter(pod)[1] == {"n1": SUCCESS}


def test_a_pod_whose_claim_could_not_be_given_back_is_tried_again(world_of):
    from mooring.errors import ApiError

    world = world_of(N1, CLASS, claim(holds=["x"], on="n2"))
    world.claims.fails["set_status"] = [ApiError("no")]
    state, _ = world.filter(POD)

    world.post_filter(state, POD)
    world.settle()

    assert world.activated == ["ns/pod"]
    assert world.claim().status.allocation is not None


def test_explanations_do_not_give_claims_back(world_of):
    world = world_of(N1, CLASS, claim(holds=["x"], on="n2"))
    state, _ = world.filter(POD)

    _, status = world.plugin.answer_post_filter(state, POD, None)
    world.settle()

    assert status == unschedulable("deallocation of ResourceClaim completed")
    assert world.claims.writes == []


def test_two_pods_never_get_the_same_share(world_of):
    shared = make_slice(make_device("x", multiple=True, capacity={"mem": "10Gi"}))
    asked = make_request("r", capacity={"mem": "1Gi"})
    world = world_of(N1, CLASS, shared, claim("c", asked), claim("e", asked))
    for pod in (POD, pod_with("e", name="second")):
        world.pre_bind(world.reserve(pod), pod)

    shares = [
        world.claim(name).status.allocation.devices.results[0].share_id for name in ("c", "e")
    ]
    assert None not in shares
    assert len(set(shares)) == 2
    world.cluster.validate()


class TestHints:
    OTHER = claim("other")
    FREE, HELD = claim("c"), claim("c", holds=["x"])

    def hint(self, world, old, new, pod=POD):
        return Hints(world.cluster).after_claim_change(pod, old, new)

    def test_any_deallocated_claim_helps(self, world_of):
        world = world_of(self.FREE)

        assert self.hint(world, claim("other", holds=["x"]), self.OTHER) == Hint.QUEUE

    def test_a_claim_of_others_does_not_help(self, world_of):
        world = world_of(self.FREE)

        assert self.hint(world, None, self.OTHER) == Hint.SKIP
        assert self.hint(world, self.OTHER, claim("other", holds=["x"])) == Hint.SKIP

    def test_a_new_claim_of_the_pod_helps_and_so_does_a_new_status(self, world_of):
        world = world_of(self.FREE)

        assert self.hint(world, None, self.FREE) == Hint.QUEUE
        assert self.hint(world, self.FREE, self.HELD) == Hint.QUEUE
        assert self.hint(world, self.FREE, claim("c", version="2")) == Hint.SKIP

    def test_nothing_helps_a_pod_that_lacks_another_claim(self, world_of):
        world = world_of(self.FREE)

        assert self.hint(world, None, self.FREE, pod_with("c", "missing")) == Hint.SKIP

    def test_a_pod_whose_claims_were_made_is_tried(self, world_of):
        waiting, ready = pod_with(templates={"g": ""}), pod_with(templates={"g": "c"})
        world = world_of(claim("c", owner=ready))
        hint = Hints(world.cluster).after_pod_change

        assert hint(waiting, waiting, ready) == Hint.QUEUE
        assert hint(waiting, waiting, waiting) == Hint.SKIP
        assert hint(pod_with("c", name="another"), waiting, ready) == Hint.SKIP

    @pytest.mark.parametrize(
        ("other", "hint"),
        [
            pytest.param(POD.placed_on("n"), Hint.QUEUE, id="its allocation was never written"),
            pytest.param(POD, Hint.SKIP, id="it had no allocation: a node was only held for it"),
            pytest.param(
                pod_with("held").placed_on("n"), Hint.SKIP, id="its claim tells when it is free"
            ),
            pytest.param(pod_with("missing").placed_on("n"), Hint.SKIP, id="its claim is gone"),
            pytest.param(make_pod("plain", node="n"), Hint.SKIP, id="it has no claims"),
        ],
    )
    def test_a_pod_that_gave_up_before_its_claims_were_written_helps_others(
        self, world_of, other, hint
    ):
        """Its devices were in flight: no claim changes when they are given back."""
        world = world_of(self.FREE, claim("held", holds=["x"]))

        assert Hints(world.cluster).after_pod_delete(POD, other, None) == hint
