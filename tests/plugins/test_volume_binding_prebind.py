import asyncio

import pytest

from mooring.config.args import VolumeBindingArgs
from mooring.errors import ApiError, MooringError
from mooring.framework.status import SUCCESS
from mooring.objects.claims import BOUND_BY_CONTROLLER, SELECTED_NODE
from mooring.objects.storage import AWSElasticBlockStore, ObjectReference
from mooring.plugins.volume_binding import VolumeBinding
from tests.makers import make_node, make_node_term
from tests.volume_world import (
    World,
    make_claim,
    make_class,
    make_csi_node,
    make_volume,
    pod_with,
    with_annotations,
    with_version,
)

NODE = make_node("n1", zone="a")
IN_ZONE_A = [make_node_term(("topology.kubernetes.io/zone", "In", ["a"]))]
MIGRATED = make_csi_node("n1", migrated="kubernetes.io/aws-ebs")
#: Later than anything that the writer hands out.
LATER = "1000"


class Attempt:
    """A pod on its way from Reserve through PreBind."""

    def __init__(self, world, pod, *, timeout_s=600):
        self.world = world
        self.plugin = VolumeBinding(VolumeBindingArgs(bind_timeout_seconds=timeout_s), world)
        self.pod = pod.placed_on("n1")
        world.show(pod)
        self.state, status = world.pre_filter(self.plugin, pod)
        assert status == SUCCESS
        assert self.plugin.filter(self.state, pod, world.node("n1")) == SUCCESS
        self.plugin.reserve(self.state, self.pod, "n1")
        self.task = None

    async def start(self):
        self.task = asyncio.ensure_future(self.plugin.pre_bind(self.state, self.pod, "n1"))
        await settle()
        return self

    async def after(self, seconds=1):
        """What has become of it by then: None as long as it waits."""
        for _ in range(seconds):
            self.world.clock.advance(1.0)
            await settle()
        return self.answer()

    def answer(self):
        if not self.task.done():
            return None
        error = self.task.exception()
        return SUCCESS if error is None else str(error)

    async def cancel(self):
        self.task.cancel()
        await settle()


async def settle():
    for _ in range(10):
        await asyncio.sleep(0)


def to_bind(**options):
    """Of two volumes on the node, the smaller one is for the claim."""
    world = World(
        NODE,
        make_class("wait"),
        make_claim("c"),
        make_volume("a", storage="5Gi", terms=IN_ZONE_A),
        make_volume("b", storage="2Gi", terms=IN_ZONE_A),
    )
    return Attempt(world, pod_with("c"), **options)


def to_provide():
    """A volume is to be made for the claim, on this node."""
    world = World(
        NODE,
        make_class("made", provisioner="drv"),
        make_claim("c", storage_class="made", annotations={"kept": "yes"}),
    )
    return Attempt(world, pod_with("c"))


def bound_volume(**changes):
    """The volume as the API server shows it once the write is through."""
    given = {"claim": "c", "claim_uid": "uid-c", "storage": "2Gi", "terms": IN_ZONE_A}
    return make_volume("b", version=LATER, phase="Bound", **{**given, **changes})


def provided_claim(**changes):
    given = {"storage_class": "made", "selected_node": "n1", "version": LATER}
    return make_claim("c", **{**given, **changes})


COMPLETED = make_claim("c", volume="b", bound=True, version=LATER)


async def test_the_volume_is_written_and_then_waited_for():
    attempt = await to_bind().start()
    world = attempt.world

    (written,) = world.writer.volumes
    assert written.name == "b"
    assert written.metadata.annotations == {BOUND_BY_CONTROLLER: "yes"}
    assert written.spec.claim_ref == ObjectReference(
        kind="PersistentVolumeClaim",
        api_version="v1",
        namespace="ns",
        name="c",
        uid="uid-c",
        resource_version="1",
    )
    assert world.writer.claims == []
    world.show(bound_volume(), COMPLETED)
    assert attempt.answer() is None, "the first look is after a second"
    assert await attempt.after(1) == SUCCESS


async def test_a_claim_to_be_provided_for_is_written_and_then_waited_for():
    attempt = await to_provide().start()
    world = attempt.world

    (written,) = world.writer.claims
    assert written.metadata.annotations == {"kept": "yes", SELECTED_NODE: "n1"}
    assert world.writer.volumes == []
    world.show(make_volume("made", terms=IN_ZONE_A), provided_claim(volume="made", bound=True))
    assert await attempt.after(1) == SUCCESS


async def test_volumes_are_written_before_claims_even_unchanged_ones():
    world = World(
        NODE,
        make_class("made", provisioner="drv"),
        make_claim("c", storage_class="made"),
        make_claim("d", storage_class="made", storage="5Gi"),
        make_volume("b", storage_class="made", claim="c", claim_uid="uid-c"),
    )
    attempt = await Attempt(world, pod_with("d", "c")).start()

    assert [volume.name for volume in world.writer.volumes] == ["b"]
    assert [claim.name for claim in world.writer.claims] == ["d"]
    await attempt.cancel()


def nothing(world):
    pass


def node_gone(world):
    world.cluster.remove_node("n1")


def pod_gone(world):
    world.pods.clear()


def gone(*objects):
    def happen(world):
        for obj in objects:
            world.cluster.listers.drop(obj)

    return happen


def shown(*objects):
    return lambda world: world.show(*objects)


OTHER_ZONE = [make_node_term(("topology.kubernetes.io/zone", "In", ["b"]))]
NO_MATCH = 'pv "b" node affinity doesn\'t match node "n1": no matching NodeSelectorTerms'
UNTRANSLATABLE = (
    "could not translate pv: failed to translate Kubernetes ID to EBS Volume ID"
    " Invalid format for AWS volume (aws://x)"
)
BROKEN_EBS = {"aws_elastic_block_store": AWSElasticBlockStore(volume_id="aws://x")}


@pytest.mark.parametrize(
    ("happen", "expected"),
    [
        pytest.param(nothing, None, id="the volume as it was is older than the one written"),
        pytest.param(node_gone, 'failed to get node "n1": node "n1" not found', id="node gone"),
        pytest.param(pod_gone, 'pod does not exist any more: pod "p" not found', id="pod gone"),
        pytest.param(
            gone(make_volume("b")),
            'failed to check binding: persistentvolumes "b" not found',
            id="volume gone",
        ),
        pytest.param(
            gone(make_claim("c")),
            'failed to check binding: persistentvolumeclaims "ns/c" not found',
            id="claim gone",
        ),
        pytest.param(
            shown(bound_volume(terms=OTHER_ZONE), COMPLETED), NO_MATCH, id="volume out of reach"
        ),
        pytest.param(
            shown(make_node("n1", zone="c"), bound_volume(), COMPLETED),
            NO_MATCH,
            id="node out of reach",
        ),
        pytest.param(
            shown(MIGRATED, bound_volume(**BROKEN_EBS), COMPLETED),
            f"failed to translate pv to csi: {UNTRANSLATABLE}",
            id="volume without a CSI form",
        ),
        pytest.param(
            shown(bound_volume(claim=None), COMPLETED),
            'ClaimRef got reset for pv "b"',
            id="reference gone",
        ),
        pytest.param(
            shown(bound_volume(claim_uid="")), 'ClaimRef got reset for pv "b"', id="reference open"
        ),
        pytest.param(shown(bound_volume()), None, id="claim not bound yet"),
        pytest.param(
            shown(bound_volume(), make_claim("c", volume="b", version=LATER)),
            None,
            id="claim not completed yet",
        ),
        pytest.param(shown(bound_volume(), COMPLETED), SUCCESS, id="all done"),
        pytest.param(
            shown(MIGRATED, bound_volume(), COMPLETED), SUCCESS, id="with a CSINode as well"
        ),
    ],
)
async def test_a_volume_on_its_way_to_its_claim(happen, expected):
    attempt = await to_bind().start()
    happen(attempt.world)

    answer = await attempt.after(1)

    if expected is None or expected == SUCCESS:
        assert answer == expected
    else:
        assert answer == f"binding volumes: {expected}"
    await attempt.cancel()


@pytest.mark.parametrize(
    ("happen", "expected"),
    [
        pytest.param(nothing, None, id="the claim as it was is older than the one written"),
        pytest.param(
            gone(make_claim("c")),
            'failed to check provisioning pvc: persistentvolumeclaims "ns/c" not found',
            id="claim gone",
        ),
        pytest.param(
            shown(with_annotations(provided_claim(), {})),
            'selectedNode annotation reset for PVC "c"',
            id="no annotation left",
        ),
        pytest.param(
            shown(provided_claim(selected_node=None, annotations={"kept": "yes"})),
            'provisioning failed for PVC "c"',
            id="the provisioner gave up",
        ),
        pytest.param(
            shown(provided_claim(selected_node="n2")),
            'provisioning failed for PVC "c"',
            id="another node",
        ),
        pytest.param(shown(provided_claim()), None, id="no volume yet"),
        pytest.param(shown(provided_claim(volume="b", bound=True)), None, id="volume not seen yet"),
        pytest.param(
            shown(bound_volume(terms=OTHER_ZONE), provided_claim(volume="b")),
            NO_MATCH,
            id="volume out of reach",
        ),
        pytest.param(
            shown(MIGRATED, bound_volume(**BROKEN_EBS), provided_claim(volume="b")),
            UNTRANSLATABLE,
            id="volume without a CSI form",
        ),
        pytest.param(
            shown(bound_volume(), provided_claim(volume="b")), None, id="claim not completed yet"
        ),
        pytest.param(
            shown(bound_volume(), provided_claim(volume="b", bound=True)), SUCCESS, id="all done"
        ),
    ],
)
async def test_a_volume_being_made_for_a_claim(happen, expected):
    attempt = await to_provide().start()
    happen(attempt.world)

    answer = await attempt.after(1)

    if expected is None or expected == SUCCESS:
        assert answer == expected
    else:
        assert answer == f"binding volumes: {expected}"
    await attempt.cancel()


async def test_what_takes_its_time_is_looked_at_every_second():
    attempt = await to_bind().start()

    assert await attempt.after(99) is None
    attempt.world.show(bound_volume(), COMPLETED)
    assert await attempt.after(1) == SUCCESS


async def test_what_takes_too_long_is_given_up():
    attempt = await to_bind(timeout_s=5).start()

    assert await attempt.after(4) is None
    assert await attempt.after(1) == "binding volumes: context deadline exceeded"


async def test_without_any_time_it_is_given_up_once_written():
    attempt = await to_bind(timeout_s=0).start()

    assert attempt.answer() == "binding volumes: context deadline exceeded"
    assert len(attempt.world.writer.volumes) == 1


async def test_all_claims_of_a_pod_are_waited_for():
    world = World(
        NODE,
        make_class("wait"),
        make_claim("c"),
        make_claim("d", storage="5Gi"),
        make_volume("b", storage="2Gi", terms=IN_ZONE_A),
        make_volume("e", storage="5Gi", terms=IN_ZONE_A),
    )
    attempt = await Attempt(world, pod_with("c", "d")).start()

    world.show(bound_volume(), COMPLETED)
    assert await attempt.after(1) is None
    world.show(
        make_volume("e", claim="d", claim_uid="uid-d", version=LATER),
        make_claim("d", volume="e", bound=True, version=LATER),
    )
    assert await attempt.after(1) == SUCCESS


async def test_a_write_that_fails_takes_back_what_was_not_written():
    volumes = [make_volume(name, storage="1Gi", storage_class="made") for name in ("v1", "v2")]
    claims = [
        make_claim("c1", storage_class="made", storage="1Gi"),
        make_claim("c2", storage_class="made", storage="1Gi"),
        make_claim("c3", storage_class="made", storage="9Gi"),
    ]
    world = World(NODE, make_class("made", provisioner="drv"), *volumes, *claims)
    attempt = Attempt(world, pod_with("c1", "c2", "c3"))
    world.writer.broken.add("v2")

    with pytest.raises(ApiError, match=r"^cannot write v2$"):
        await attempt.plugin.pre_bind(attempt.state, attempt.pod, "n1")

    cache = world.cluster.volumes
    assert cache.volumes.get("v1").spec.claim_ref is not None, "it was written"
    assert cache.volumes.get("v2") is volumes[1]
    assert cache.claims.get("ns/c3") is claims[2]
    assert world.writer.claims == []

    # Unreserve comes next. What was written stays until the watch shows it.
    attempt.plugin.unreserve(attempt.state, attempt.pod, "n1")
    assert cache.volumes.get("v1").spec.claim_ref is not None
    world.show(with_version(world.writer.volumes[0], LATER))
    assert cache.volumes.observed("v1").spec.claim_ref is not None


async def test_a_written_claim_loses_its_assumption_with_the_reservation():
    attempt = await to_provide().start()
    cache = attempt.world.cluster.volumes
    assert SELECTED_NODE in cache.claims.get("ns/c").metadata.annotations

    await attempt.cancel()
    attempt.plugin.unreserve(attempt.state, attempt.pod, "n1")

    assert SELECTED_NODE not in cache.claims.get("ns/c").metadata.annotations


async def test_a_wait_that_is_cancelled_ends():
    attempt = await to_bind().start()

    await attempt.cancel()

    assert attempt.task.cancelled()


async def test_nothing_is_written_that_was_not_reserved():
    attempt = to_bind()
    state, _ = attempt.world.pre_filter(attempt.plugin, attempt.pod)
    attempt.plugin.unreserve(attempt.state, attempt.pod, "n1")
    attempt.plugin.filter(state, attempt.pod, attempt.world.node("n1"))

    with pytest.raises(MooringError) as failed:
        await attempt.plugin.pre_bind(state, attempt.pod, "n1")

    assert str(failed.value) == 'failed to get cached bindings for pod "ns/p"'
    assert attempt.world.writer.volumes == []


async def test_a_pod_whose_claims_are_all_bound_is_not_held_up():
    world = World(NODE, make_volume("v"), make_claim(volume="v", bound=True))
    attempt = await Attempt(world, pod_with("c")).start()

    assert attempt.answer() == SUCCESS
    assert world.writer.volumes == []


async def test_versions_are_compared_as_numbers():
    attempt = await to_bind().start()

    # The writer counts from 101; as text, this would be later.
    attempt.world.show(with_version(make_volume("b"), "99"))

    assert await attempt.after(1) is None
    await attempt.cancel()
