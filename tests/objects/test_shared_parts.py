"""Pods that one controller made share their parts, and nothing else about them changes."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from mooring.objects.manifests import read_manifests
from mooring.objects.pod import ContainerStatus, Pod, PodStatus, ResourceRequirements
from mooring.objects.shared_parts import MOST_CONTROLLERS, SharedParts, have_same_parts
from mooring.objects.storage import AWSElasticBlockStore, Volume
from tests.makers import make_owner, make_pod, quantity

OWNER = make_owner("ReplicaSet", "web", uid="web-uid")


def web(name: str, **fields) -> Pod:
    return make_pod(name, **{"cpu": "1", "labels": {"app": "web"}, "owner": OWNER, **fields})


def test_pods_of_one_controller_are_put_together_from_the_same_parts():
    shared_parts = SharedParts()
    first, second = web("a", node="n1"), web("b", node="n2")

    assert shared_parts.join(first) == (first, None)
    joined, shares_with = shared_parts.join(second)

    assert shares_with is first
    assert joined == second
    assert have_same_parts(joined.spec, first.spec)
    assert not have_same_parts(second.spec, first.spec)
    assert joined.metadata.labels is first.metadata.labels


def test_pods_without_a_controller_that_take_turns_share_the_parts_of_their_app():
    shared_parts = SharedParts()
    pods = [make_pod(f"p{i}", image=f"app-{i % 2}", cpu=str(1 + i % 2)) for i in range(6)]

    joined = [shared_parts.join(pod) for pod in pods]

    assert [each.pod for each in joined] == pods
    assert [each.shares_with is not None for each in joined] == [False] * 2 + [True] * 4
    assert have_same_parts(joined[0].pod.spec, joined[4].pod.spec)
    assert not have_same_parts(joined[0].pod.spec, joined[5].pod.spec)


def test_pods_that_run_also_share_what_their_statuses_have_in_common():
    """With the latest of them: the first may have been seen when it did not run yet."""
    status = PodStatus(phase="Running", container_statuses=[ContainerStatus(name="c")])
    shared_parts = SharedParts()
    shared_parts.join(web("a"))
    first, _ = shared_parts.join(replace(web("b", node="n1"), status=status))
    second = replace(
        web("c", node="n2"),
        status=PodStatus(phase="Failed", container_statuses=[ContainerStatus(name="c")]),
    )

    joined, shares_with = shared_parts.join(second)

    assert joined == second
    assert shares_with is first
    assert joined.status.container_statuses is first.status.container_statuses


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(web("b", cpu="2"), id="another spec"),
        pytest.param(web("b", namespace="other"), id="another namespace"),
        pytest.param(web("b", owner=make_owner("ReplicaSet", "x", uid="x")), id="another owner"),
        pytest.param(web("b", owner=None), id="no owner"),
    ],
)
def test_pods_that_differ_share_nothing(other):
    shared_parts = SharedParts()
    shared_parts.join(web("a"))

    assert shared_parts.join(other) == (other, None)


def test_only_so_many_controllers_are_remembered():
    shared_parts = SharedParts()
    for i in range(MOST_CONTROLLERS + 1):
        shared_parts.join(web(f"p{i}", owner=make_owner("ReplicaSet", f"r{i}", uid=f"r{i}")))

    assert (
        shared_parts.join(web("again", owner=make_owner("ReplicaSet", "r0", uid="r0"))).shares_with
        is None
    )


def test_a_volume_that_no_rule_looks_at_does_not_tell_pods_apart():
    """Every pod has one with a name of its own, for its token."""
    disk = Volume(name="disk", aws_elastic_block_store=AWSElasticBlockStore(volume_id="v"))
    pods = [web(name, volumes=[Volume(name=f"token-{name}"), disk]) for name in ("a", "b")]

    assert pods[0].spec == pods[1].spec
    assert pods[0].spec.volumes == [disk]


def test_what_a_pod_holds_is_not_taken_from_another_that_was_resized():
    resources = ResourceRequirements(requests={"cpu": quantity("3")})
    status = PodStatus(container_statuses=[ContainerStatus(name="c", resources=resources)])
    resized = replace(web("a"), status=status)
    plain = web("b")

    plain.take_derived_from(resized)

    assert plain.held == web("c").held


def test_pods_of_one_controller_in_a_file_are_checked_and_completed_as_the_first_of_them(tmp_path):
    """Limits stand for requests, and a pod of another controller says the same."""

    def document(name: str, owner: str) -> dict[str, object]:
        container = {"name": "c", "resources": {"limits": {"cpu": "250m"}}}
        reference = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": owner,
            "uid": owner,
            "controller": True,
        }
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "uid": name, "ownerReferences": [reference]},
            "spec": {"nodeName": f"on-{name}", "containers": [container]},
        }

    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"on-{name}"}} for name in "abc"
    ]
    items = [*nodes, document("a", "one"), document("b", "one"), document("c", "two")]
    path = tmp_path / "pods.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))

    a, b, c = read_manifests([path]).pods

    assert have_same_parts(a.spec, b.spec)
    assert a.requests is b.requests
    assert a.requests == c.requests == {"cpu": 250}
    assert [pod.node_name for pod in (a, b, c)] == ["on-a", "on-b", "on-c"]
    assert replace(b.spec, node_name="") == replace(c.spec, node_name="")
