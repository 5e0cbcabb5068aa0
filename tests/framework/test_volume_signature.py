import pytest

from mooring.framework.status import Status
from mooring.framework.volume_signature import sign_volumes
from mooring.objects.storage import ISCSI, RBD, AWSElasticBlockStore, Volume
from tests.volume_world import make_ephemeral, pod_with

A, B = Volume(name="a", iscsi=ISCSI(iqn="1")), Volume(name="b", rbd=RBD(monitors=["m"]))


def test_pods_with_the_same_disks_are_alike_whatever_the_disks_are_called():
    renamed = Volume(name="other", iscsi=ISCSI(iqn="1"))

    assert sign_volumes(pod_with(volumes=[A, B])) == sign_volumes(pod_with(volumes=[B, renamed]))
    assert sign_volumes(pod_with(volumes=[A])) != sign_volumes(pod_with(volumes=[B]))


def test_volumes_that_no_plugin_looks_at_make_no_difference():
    assert sign_volumes(pod_with(volumes=[Volume(name="config")])) == sign_volumes(pod_with())


def test_a_signature_can_be_a_key():
    hash(tuple(sign_volumes(pod_with(volumes=[A, B])).items()))


@pytest.mark.parametrize(
    "pod",
    [
        pod_with("c"),
        pod_with(volumes=[make_ephemeral("data")]),
        pod_with(volumes=[Volume(aws_elastic_block_store=AWSElasticBlockStore())]),
    ],
    ids=["a claim", "an ephemeral volume", "a volume that a driver attaches"],
)
def test_pods_whose_volumes_depend_on_other_objects_are_never_alike(pod):
    assert isinstance(sign_volumes(pod), Status)
