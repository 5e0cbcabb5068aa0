"""The PV controller and the provisioner of a simulated cluster."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mooring.objects.claims import SELECTED_NODE, fully_bound, is_accessible_from
from mooring.objects.selectors import LabelSelector
from mooring.objects.storage import ObjectReference, PersistentVolume, PersistentVolumeClaim
from mooring.sim.api import SimApi
from mooring.sim.clock import VirtualClock, VirtualLoop
from mooring.sim.volume_controller import PROVISION_FAILS, PROVISION_SECONDS, VolumeController
from tests.makers import HOSTNAME, make_node
from tests.volume_world import make_claim, make_class, make_volume, with_annotations


class Cluster:
    """An API with nobody but the controller watching."""

    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.api = SimApi(self.loop, VirtualClock(self.loop, 0.0))
        self.api.watch(VolumeController(self.api))

    def create(self, *objects) -> None:
        for obj in objects:
            self.api.create(obj)

    def run(self) -> None:
        self.loop.run_forever()

    def claim(self, name: str = "c") -> PersistentVolumeClaim:
        return self.api.get(PersistentVolumeClaim, f"ns/{name}")

    def volume(self, name: str = "v") -> PersistentVolume:
        return self.api.get(PersistentVolume, name)

    def select(self, node: str) -> None:
        claim = self.claim()
        notes = {**claim.metadata.annotations, SELECTED_NODE: node}
        self.api.update(with_annotations(claim, notes))


@pytest.fixture
def cluster():
    cluster = Cluster()
    yield cluster
    cluster.loop.close()


def made(mode: str = "WaitForFirstConsumer", **annotations: str):
    """A class whose volumes are made, on the disks of nodes."""
    return with_annotations(
        make_class("made", provisioner="rancher.io/local-path", mode=mode), annotations
    )


NOW = make_class("now", mode="Immediate")


def assert_bound(cluster: Cluster, claim: str, volume: str) -> None:
    stored, taken = cluster.claim(claim), cluster.volume(volume)
    assert fully_bound(stored)
    assert (stored.spec.volume_name, stored.status.phase) == (volume, "Bound")
    assert (taken.spec.claim_ref.uid, taken.status.phase) == (stored.uid, "Bound")


# Claims that wait for nobody


@pytest.mark.parametrize("claim_first", [True, False])
def test_an_immediate_claim_takes_the_smallest_volume_that_will_do(cluster, claim_first):
    claim = make_claim(storage="2Gi", storage_class="now")
    volumes = [
        make_volume(f"v{size}", storage=f"{size}Gi", storage_class="now") for size in (1, 8, 3, 4)
    ]
    cluster.create(NOW, *((claim, *volumes) if claim_first else (*volumes, claim)))

    cluster.run()

    assert_bound(cluster, "c", "v3")
    assert [v.name for v in cluster.api.all(PersistentVolume) if v.spec.claim_ref] == ["v3"]


@pytest.mark.parametrize("claim_first", [True, False])
@pytest.mark.parametrize("mode", ["Immediate", "WaitForFirstConsumer"])
@pytest.mark.parametrize("reserved_for", [None, "c"])
def test_a_claim_takes_the_volume_that_it_names(cluster, claim_first, mode, reserved_for):
    """Manifests for volumes made by hand name the volume in the claim, and often the claim in the volume."""
    claim = make_claim(storage_class="slow", volume="v")
    volume = make_volume(storage="5Gi", storage_class="slow", claim=reserved_for)
    smaller = make_volume("a", storage_class="slow")
    class_ = make_class("slow", mode=mode)
    cluster.create(class_, smaller, *((claim, volume) if claim_first else (volume, claim)))

    cluster.run()

    assert_bound(cluster, "c", "v")
    assert cluster.volume("a").spec.claim_ref is None


@pytest.mark.parametrize(
    "volume",
    [
        pytest.param(make_volume(storage="1Mi", storage_class="now"), id="too small"),
        pytest.param(make_volume(storage_class="other"), id="another class"),
        pytest.param(make_volume(storage_class="now", volume_mode="Block"), id="another mode"),
        pytest.param(make_volume(storage_class="now", modes=["ReadOnlyMany"]), id="access mode"),
        pytest.param(make_volume(storage_class="now", claim="d"), id="another claim's"),
        pytest.param(make_volume(storage_class="now", deleting=True), id="being deleted"),
        pytest.param(make_volume("w", storage_class="now"), id="not there"),
    ],
)
def test_a_claim_waits_for_the_volume_that_it_names(cluster, volume):
    cluster.create(NOW, make_claim(storage_class="now", volume="v"), volume)

    cluster.run()

    assert not fully_bound(cluster.claim())
    assert cluster.volume(volume.name).status.phase == "Available"


@pytest.mark.parametrize("volume_first", [True, False])
def test_a_volume_that_is_reserved_for_a_claim_comes_before_a_smaller_one(cluster, volume_first):
    claim = make_claim(storage_class="now")
    volumes = [
        make_volume("a", storage_class="now"),
        make_volume("z", storage="9Gi", storage_class="now", claim="c"),
    ]
    cluster.create(NOW, *((*volumes, claim) if volume_first else (claim, *volumes)))

    cluster.run()

    assert_bound(cluster, "c", "z")


def test_a_reserved_volume_that_is_too_small_is_not_taken(cluster):
    cluster.create(NOW, make_claim(storage="2Gi", storage_class="now"))
    cluster.create(make_volume("small", storage_class="now", claim="c"))
    cluster.create(make_volume("large", storage="4Gi", storage_class="now"))

    cluster.run()

    assert_bound(cluster, "c", "large")


def test_the_selector_of_a_claim_chooses_among_the_volumes(cluster):
    ssd = LabelSelector(match_labels={"disk": "ssd"})
    cluster.create(NOW, make_claim(storage_class="now", selector=ssd))
    cluster.create(make_volume("a", storage_class="now", labels={"disk": "hdd"}))
    cluster.create(make_volume("b", storage="9Gi", storage_class="now", labels={"disk": "ssd"}))

    cluster.run()

    assert_bound(cluster, "c", "b")


def test_a_claim_and_volumes_that_come_at_once_are_matched_one_to_one(cluster):
    """The watch tells of each one when the other is there already."""
    names = [f"x{i}" for i in range(3)]
    cluster.create(NOW)
    for name in names:
        cluster.create(make_volume(name, storage_class="now"))
        cluster.create(make_claim(name, storage_class="now"))

    cluster.run()

    bound = [cluster.claim(name).spec.volume_name for name in names]
    assert sorted(bound) == names
    owners = [cluster.volume(name).spec.claim_ref.name for name in names]
    assert sorted(owners) == names


@pytest.mark.parametrize(
    "volume",
    [
        pytest.param(make_volume(storage_class="other"), id="another class"),
        pytest.param(make_volume(storage_class="now", storage="1Mi"), id="too small"),
        pytest.param(make_volume(storage_class="now", modes=["ReadOnlyMany"]), id="another mode"),
        pytest.param(make_volume(storage_class="now", phase="Released"), id="not available"),
        pytest.param(
            make_volume(storage_class="now", claim="another", claim_uid="u"), id="set aside"
        ),
        pytest.param(make_volume(storage_class="now", volume_mode="Block"), id="a block device"),
    ],
)
def test_a_volume_that_will_not_do_is_left_alone(cluster, volume):
    cluster.create(NOW, volume, make_claim(storage_class="now"))

    cluster.run()

    assert cluster.claim().status.phase == "Pending"


def test_a_volume_that_comes_later_is_taken(cluster):
    cluster.create(NOW, make_claim(storage_class="now"))
    cluster.run()

    cluster.create(make_volume(storage_class="now"))
    cluster.run()

    assert_bound(cluster, "c", "v")


def test_an_immediate_claim_gets_a_volume_without_a_pod(cluster):
    cluster.create(made("Immediate"), make_claim(storage_class="made"))

    cluster.run()

    assert_bound(cluster, "c", "pvc-uid-c")
    assert cluster.volume("pvc-uid-c").spec.node_affinity is None


def test_an_immediate_claim_whose_volume_cannot_be_made_stays_pending(cluster):
    """And is not tried again at the same instant for ever."""
    cluster.create(made("Immediate", **{PROVISION_FAILS: "yes"}), make_claim(storage_class="made"))

    cluster.run()

    assert cluster.claim().status.phase == "Pending"


# Claims that wait for a pod


def test_a_claim_that_waits_for_a_pod_is_left_alone_until_then(cluster):
    cluster.create(make_class(), made(), make_volume(), make_claim(), make_claim("d"))

    cluster.run()

    assert cluster.claim().status.phase == "Pending"
    assert cluster.volume().status.phase == "Available"


def test_a_volume_that_the_scheduler_set_aside_is_bound_to_its_claim(cluster):
    cluster.create(make_class(), make_volume(), make_claim())
    cluster.run()
    volume, claim = cluster.volume(), cluster.claim()
    ref = ObjectReference(namespace="ns", name="c", uid=claim.uid)

    cluster.api.update(replace(volume, spec=replace(volume.spec, claim_ref=ref)))
    cluster.run()

    assert_bound(cluster, "c", "v")


def test_a_volume_is_made_for_the_node_that_was_selected_after_its_time(cluster):
    cluster.create(make_node("n"), made(**{PROVISION_SECONDS: "7.5"}))
    cluster.create(make_claim(storage_class="made", storage="3Gi"))
    cluster.run()

    cluster.select("n")
    cluster.run()

    assert cluster.loop.time() == 7.5
    assert_bound(cluster, "c", "pvc-uid-c")
    volume = cluster.volume("pvc-uid-c")
    assert volume.spec.capacity["storage"].value == 3 * 2**30
    assert is_accessible_from(volume, {HOSTNAME: "n"})
    assert not is_accessible_from(volume, {HOSTNAME: "m"})


def test_a_volume_that_cannot_be_made_is_said_by_taking_the_node_away(cluster):
    cluster.create(
        make_node("n"), made(**{PROVISION_FAILS: "yes"}), make_claim(storage_class="made")
    )

    cluster.select("n")
    cluster.run()

    assert SELECTED_NODE not in cluster.claim().metadata.annotations
    assert cluster.claim().status.phase == "Pending"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda c: c.api.delete(c.claim()), id="the claim is deleted"),
        pytest.param(
            lambda c: c.api.update(make_claim(storage_class="made")), id="no node any more"
        ),
        pytest.param(
            lambda c: (
                c.api.delete(c.claim()),
                c.api.create(replaced_uid(make_claim(storage_class="made"))),
            ),
            id="the claim is another one",
        ),
    ],
)
def test_a_volume_that_nobody_wants_any_more_is_not_made(cluster, change):
    cluster.create(make_node("n"), made(**{PROVISION_SECONDS: "5"}))
    cluster.create(make_claim(storage_class="made"))
    cluster.select("n")
    cluster.loop.call_later(2, lambda: change(cluster))

    cluster.run()

    assert list(cluster.api.all(PersistentVolume)) == []


def replaced_uid(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    return replace(claim, metadata=replace(claim.metadata, uid="another"))


def test_a_volume_is_made_once_however_often_its_claim_changes(cluster):
    cluster.create(make_node("n"), made(**{PROVISION_SECONDS: "5"}))
    cluster.create(make_claim(storage_class="made"))
    cluster.select("n")
    cluster.loop.call_later(2, lambda: cluster.select("n"))

    cluster.run()

    assert_bound(cluster, "c", "pvc-uid-c")
    assert len(list(cluster.api.all(PersistentVolume))) == 1


def test_a_claim_that_is_being_deleted_gets_nothing(cluster):
    cluster.create(NOW, make_volume(storage_class="now"))
    cluster.create(make_claim(storage_class="now", deleting=True))

    cluster.run()

    assert cluster.volume().status.phase == "Available"
