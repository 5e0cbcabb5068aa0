"""The scheduler's writes, and what becomes of them when the API server is not at its best."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web
from msgspec.structs import replace

from mooring import errors
from mooring.framework.api import PodStatusPatch
from mooring.live.bind_traffic import BindTraffic
from mooring.live.client import ApiClient
from mooring.live.event_recorder import EventRecorder
from mooring.live.rate_limit import RateLimiter
from mooring.live.status_patches import FIRST_AFTER_S
from mooring.live.writer import LiveWriter
from mooring.objects.meta import ObjectMeta
from mooring.objects.pod import Pod, PodCondition, PodSpec, PodStatus
from mooring.objects.storage import (
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
)
from tests.live_unit.api_server import ApiServer, Asked, JumpingClock, hang_up, ok, refusal
from tests.makers import make_group

PATH = "/api/v1/namespaces/ns/pods/p"
POD = Pod(
    metadata=ObjectMeta(name="p", namespace="ns", uid="u1", resource_version="7", generation=3),
    spec=PodSpec(node_name="n1"),
)
CREATED = {"kind": "Status", "status": "Success", "code": 201}


def stored(*, node: str = "", uid: str = "u1", deleted: str | None = None) -> web.Response:
    meta = {"name": "p", "namespace": "ns", "uid": uid, "deletionTimestamp": deleted}
    return ok({"kind": "Pod", "apiVersion": "v1", "metadata": meta, "spec": {"nodeName": node}})


class Desk:
    def __init__(
        self, server: ApiServer, client: ApiClient, writer: LiveWriter, clock: JumpingClock
    ) -> None:
        self.server = server
        self.client = client
        self.writer = writer
        self.clock = clock

    def asked(self) -> list[tuple[str, str]]:
        return [(asked.method, asked.path.removeprefix(PATH)) for asked in self.server.asked]


@asynccontextmanager
async def desk(
    *answers: Any,
    may_write: Any = lambda: True,
    limiter: RateLimiter | None = None,
    clock: JumpingClock | None = None,
) -> AsyncIterator[Desk]:
    async with ApiServer() as server:
        server.answers = list(answers)
        clock = clock or JumpingClock()
        traffic, rng = BindTraffic(clock), random.Random(1)
        async with ApiClient(server.connection(), limiter, clock=clock) as client:
            recorder = EventRecorder(client, traffic, clock=clock, rng=rng)
            writer = LiveWriter(
                client, recorder, traffic, clock=clock, rng=rng, may_write=may_write
            )
            yield Desk(server, client, writer, clock)
            await writer.close()
            assert not server.answers, "more was expected to be asked"
            assert traffic.under_way == 0


POST, GET = ("POST", "/binding"), ("GET", "")


async def test_a_bind_names_the_pod_by_uid_and_the_node():
    async with desk(ok(CREATED, status=201)) as d:
        await d.writer.bind(POD, "n1")

        assert d.asked() == [POST]
        assert d.server.asked[0].body == {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": "ns", "name": "p", "uid": "u1"},
            "target": {"kind": "Node", "name": "n1"},
        }


@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        ([refusal(409), stored(node="n2")], errors.Conflict),
        ([refusal(409), stored()], errors.Conflict),
        ([refusal(404)], errors.NotFound),
        ([refusal(403)], errors.Forbidden),
    ],
)
async def test_a_bind_that_is_refused_is_not_tried_again(answers, kind):
    async with desk(*answers) as d:
        with pytest.raises(kind):
            await d.writer.bind(POD, "n1")

        assert [method for method, _ in d.asked()].count("POST") == 1


async def test_a_bind_that_conflicts_with_itself_is_done():
    """Seed 5 of the random worlds: something on the way sent the request twice.

    The second one was answered: the pod is already assigned, namely to the node that it was meant for. To
    take that for a failure gives the place away while the pod is on it.
    """
    async with desk(refusal(409), stored(node="n1")) as d:
        await d.writer.bind(POD, "n1")

        assert d.asked() == [("POST", "/binding"), ("GET", "")]


async def test_a_pod_whose_bind_conflicts_keeps_its_place_until_it_is_known_why():
    async with desk(refusal(409), refusal(503), hang_up, hang_up, stored(node="n1")) as d:
        await d.writer.bind(POD, "n1")

        assert d.asked()[0] == ("POST", "/binding")


async def test_credentials_that_expire_after_a_conflict_say_nothing_about_the_bind():
    """Safety seed 6000818: the look at the pod was answered 401, and a bound pod counted as not bound."""
    async with desk(refusal(409), refusal(401), stored(node="n1")) as d:
        await d.writer.bind(POD, "n1")

        assert d.asked()[0] == ("POST", "/binding")


async def test_a_scheduler_that_may_not_read_pods_takes_a_conflict_for_one():
    async with desk(refusal(409), *(refusal(403) for _ in range(11))) as d:
        with pytest.raises(errors.Conflict):
            await d.writer.bind(POD, "n1")


async def test_a_bind_waits_for_the_patch_under_way_and_replaces_the_one_that_waits():
    """A pod waited for Permit on a node, and was rejected.

    1. Its nomination is taken back, and its next attempt begins before that has arrived.
    2. The attempt nominates it to another node: this waits, since the first is under way.
    3. It is bound. Overtaking the first patch, the bound pod would be told that it fits nowhere.
       The second patch no longer matters.
    """
    go_on = asyncio.Event()

    async def slowly(request: web.Request, asked: Asked) -> web.StreamResponse:
        await go_on.wait()
        return ok()

    async with desk(slowly, ok(), ok(CREATED, status=201)) as d:
        writes = [
            asyncio.ensure_future(d.writer.patch_pod_status(POD, PodStatusPatch(None, ""))),
        ]
        await d.server.until(lambda: bool(d.server.asked))
        writes += [
            asyncio.ensure_future(d.writer.patch_pod_status(POD, PodStatusPatch(None, "n1"))),
            asyncio.ensure_future(d.writer.bind(POD, "n1")),
        ]
        other = Pod(metadata=ObjectMeta(name="other", namespace="ns", uid="u2"))
        await d.writer.patch_pod_status(other, PodStatusPatch(None, "n1"))
        go_on.set()
        await asyncio.gather(*writes)

        assert [asked.path.rpartition("/")[2] for asked in d.server.asked] == [
            *("status", "status", "binding")
        ]
        assert "other" in d.server.asked[1].path


async def test_a_bind_that_waits_for_its_turn_is_not_made_to_a_pod_that_is_gone():
    clock = JumpingClock()
    async with desk(limiter=RateLimiter(1.0, 1, clock), clock=clock) as d:
        await d.client.turn()
        bind = asyncio.ensure_future(d.writer.bind(POD, "n1"))
        await asyncio.sleep(0)
        d.writer.pod_gone(POD.uid)
        with pytest.raises(errors.NotFound):
            await bind

        assert d.asked() == []


async def test_a_bind_whose_answer_was_lost_is_found_to_be_done():
    async with desk(hang_up, stored(node="n1")) as d:
        await d.writer.bind(POD, "n1")

        assert d.asked() == [POST, GET]


async def test_a_bind_that_was_lost_with_its_answer_is_made_again():
    async with desk(hang_up, stored(), ok(CREATED, status=201)) as d:
        await d.writer.bind(POD, "n1")

        assert d.asked() == [POST, GET, POST]


async def test_a_bind_taken_for_lost_may_arrive_late():
    """1. The first request is slow. 2. It has not arrived when we look. 3. It arrives before the second."""
    async with desk(hang_up, stored(), refusal(409), stored(node="n1")) as d:
        await d.writer.bind(POD, "n1")

        assert d.asked() == [POST, GET, POST, GET]


async def test_a_pod_keeps_its_place_until_the_api_server_is_back():
    gone = [hang_up, hang_up]
    starting = [refusal(503), refusal(403), refusal(500)]
    async with desk(hang_up, *gone, *starting, stored(node="n1")) as d:
        await d.writer.bind(POD, "n1")

        # A read that breaks off is made again at once.
        assert len(d.asked()) == 7
        assert d.clock.delays == sorted(d.clock.delays)


@pytest.mark.parametrize(
    ("found", "kind", "words"),
    [
        pytest.param(stored(node="n2"), errors.Conflict, "already assigned to node", id="taken"),
        pytest.param(stored(uid="u2"), errors.NotFound, "not found", id="another pod"),
        pytest.param(refusal(404, message="not found"), errors.NotFound, "not found", id="gone"),
        pytest.param(
            stored(deleted="2026-01-01T00:00:00Z"), errors.Conflict, "deleted", id="going"
        ),
    ],
)
async def test_a_lost_bind_that_cannot_be_made_any_more_fails(found, kind, words):
    async with desk(hang_up, found) as d:
        with pytest.raises(kind, match=words):
            await d.writer.bind(POD, "n1")


async def test_a_bind_that_failed_inside_the_server_is_looked_after_before_it_counts_as_failed():
    async with desk(refusal(500, message="etcd"), stored(), refusal(500), stored(node="n1")) as d:
        with pytest.raises(errors.ServerUnavailable, match="etcd"):
            await d.writer.bind(POD, "n1")
        await d.writer.bind(POD, "n1")

        assert d.asked() == [POST, GET, POST, GET]


async def test_a_bind_that_failed_inside_the_server_keeps_its_place_until_it_can_be_looked_after():
    """The bind took effect, then neither it nor the look at it was answered: it counted as failed."""
    async with desk(refusal(500, message="etcd"), refusal(500), stored(node="n1")) as d:
        await d.writer.bind(POD, "n1")

        assert d.asked() == [POST, GET, GET]


async def test_a_gateway_that_did_not_wait_leaves_the_bind_unknown():
    async with desk(refusal(504), stored(), ok(CREATED, status=201)) as d:
        await d.writer.bind(POD, "n1")


async def test_a_refused_connection_has_bound_nothing():
    async with desk() as d:
        await d.server.__aexit__()
        with pytest.raises(errors.Unanswered):
            await d.writer.bind(POD, "n1")

        assert d.asked() == []


async def test_endless_refusals_end():
    answers = [hang_up, *(refusal(403) for _ in range(11))]
    async with desk(*answers) as d:
        with pytest.raises(errors.ServerUnavailable, match="cannot find out whether"):
            await d.writer.bind(POD, "n1")


async def test_nothing_is_written_once_another_leads():
    leads = iter([True, False])
    async with desk(hang_up, stored(), may_write=lambda: next(leads)) as d:
        with pytest.raises(errors.NotLeading):
            await d.writer.bind(POD, "n1")

        assert d.asked() == [POST, GET]


# Status


CONDITION = PodCondition(
    type="PodScheduled",
    status="False",
    reason="Unschedulable",
    message="0/3 nodes are available",
    observed_generation=3,
)


async def test_a_condition_is_merged_by_its_type_with_the_time_of_the_change():
    async with desk(ok()) as d:
        await d.writer.patch_pod_status(POD, PodStatusPatch(CONDITION, "n2"))

        (asked,) = d.server.asked
        assert (asked.method, asked.path) == ("PATCH", f"{PATH}/status")
        assert asked.headers["Content-Type"] == "application/strategic-merge-patch+json"
        assert asked.body == {
            "metadata": {"uid": "u1"},
            "status": {
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": "0/3 nodes are available",
                        "observedGeneration": 3,
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                    }
                ],
                "nominatedNodeName": "n2",
            },
        }


async def test_the_time_of_the_change_moves_only_with_the_status():
    since = datetime(2025, 1, 1, tzinfo=UTC)
    known = replace(CONDITION, message="before", last_transition_time=since)
    pod = replace(POD, status=PodStatus(conditions=[known]))
    async with desk(ok()) as d:
        await d.writer.patch_pod_status(pod, PodStatusPatch(CONDITION))

        (condition,) = d.server.asked[0].body["status"]["conditions"]
        assert "lastTransitionTime" not in condition
        assert "nominatedNodeName" not in d.server.asked[0].body["status"]


async def test_a_nomination_is_taken_back_with_a_null():
    async with desk(ok()) as d:
        await d.writer.patch_pod_status(POD, PodStatusPatch(nominated_node_name=""))

        assert d.server.asked[0].body["status"] == {"nominatedNodeName": None}


async def test_a_status_patch_is_tried_four_times_with_growing_pauses():
    async with desk(refusal(409), hang_up, refusal(503), ok()) as d:
        await d.writer.patch_pod_status(POD, PodStatusPatch(CONDITION))

        first, *pauses = d.clock.delays
        assert first == FIRST_AFTER_S
        for delay, base in zip(pauses, (0.01, 0.05, 0.25), strict=True):
            assert base <= delay <= base * 1.1
    async with desk(*(refusal(500) for _ in range(4))) as d:
        with pytest.raises(errors.ServerUnavailable):
            await d.writer.patch_pod_status(POD, PodStatusPatch(CONDITION))


async def test_a_status_patch_that_cannot_succeed_is_not_tried_again():
    async with desk(refusal(404)) as d:
        with pytest.raises(errors.NotFound):
            await d.writer.patch_pod_status(POD, PodStatusPatch(CONDITION))


# Deleting, volumes and claims


async def test_only_the_very_pod_is_deleted():
    async with desk(refusal(409), refusal(404), ok()) as d:
        with pytest.raises(errors.NotFound):
            await d.writer.delete_pod(POD)
        with pytest.raises(errors.NotFound):
            await d.writer.delete_pod(POD)
        await d.writer.delete_pod(POD)

        assert d.server.asked[0].method == "DELETE"
        assert d.server.asked[0].body["preconditions"] == {"uid": "u1"}


async def test_a_pod_is_deleted_once_however_many_preempt_it():
    async with desk(ok()) as d:
        await asyncio.gather(d.writer.delete_pod(POD), d.writer.delete_pod(POD))
        await d.writer.delete_pod(POD)

        assert len(d.server.asked) == 1


async def test_of_a_volume_only_its_claim_and_annotations_are_written_and_only_if_unchanged():
    ref = ObjectReference(
        kind="PersistentVolumeClaim", api_version="v1", namespace="ns", name="c", uid="uc"
    )
    volume = PersistentVolume(
        metadata=ObjectMeta(name="v", uid="uv", resource_version="5", annotations={"a": "b"}),
        spec=PersistentVolumeSpec(claim_ref=ref, storage_class_name="fast"),
    )
    answer = {
        "kind": "PersistentVolume",
        "apiVersion": "v1",
        "metadata": {"name": "v", "uid": "uv", "resourceVersion": "6"},
        "spec": {"storageClassName": "fast", "claimRef": {"name": "c"}},
    }
    async with desk(ok(answer), refusal(409)) as d:
        written = await d.writer.update_object(volume)
        with pytest.raises(errors.Conflict):
            await d.writer.update_object(volume)

        assert written.metadata.resource_version == "6"
        asked = d.server.asked[0]
        assert (asked.method, asked.path) == ("PATCH", "/api/v1/persistentvolumes/v")
        assert asked.headers["Content-Type"] == "application/merge-patch+json"
        assert asked.body == {
            "metadata": {"uid": "uv", "resourceVersion": "5", "annotations": {"a": "b"}},
            "spec": {
                "claimRef": {
                    "kind": "PersistentVolumeClaim",
                    "apiVersion": "v1",
                    "namespace": "ns",
                    "name": "c",
                    "uid": "uc",
                }
            },
        }


async def test_of_a_claim_only_its_annotations_are_written():
    claim = PersistentVolumeClaim(
        metadata=ObjectMeta(
            name="c", namespace="ns", uid="uc", resource_version="5", annotations={"node": "n1"}
        )
    )
    answer = {"metadata": {"name": "c", "namespace": "ns", "resourceVersion": "6"}}
    async with desk(ok(answer)) as d:
        written = await d.writer.update_object(claim)

        assert written.metadata.resource_version == "6"
        assert d.server.asked[0].path == "/api/v1/namespaces/ns/persistentvolumeclaims/c"
        assert d.server.asked[0].body == {
            "metadata": {"uid": "uc", "resourceVersion": "5", "annotations": {"node": "n1"}}
        }


async def test_many_binds_at_once_each_get_their_own_answer():
    async def bind(request: web.Request, asked: Asked) -> web.StreamResponse:
        await asyncio.sleep(0)
        if asked.method == "GET":
            return refusal(404)
        odd = int(asked.body["metadata"]["name"][1:]) % 2
        return refusal(409) if odd else ok(CREATED, status=201)

    pods = [
        replace(POD, metadata=replace(POD.metadata, name=f"p{n}", uid=f"u{n}")) for n in range(100)
    ]
    async with desk() as d:
        d.server._handler = bind
        results = await asyncio.gather(
            *(d.writer.bind(pod, "n1") for pod in pods), return_exceptions=True
        )

    assert [isinstance(result, errors.Conflict) for result in results] == [False, True] * 50


async def test_the_condition_of_a_pod_group_is_merged_by_its_type():
    since = datetime(2025, 1, 1, tzinfo=UTC)
    condition = PodCondition(
        type="PodGroupScheduled", status="True", reason="Scheduled", observed_generation=2
    )
    known = replace(condition, status="False", last_transition_time=since)
    group = make_group("gang", min_count=2, conditions=[known])
    async with desk(ok()) as d:
        await d.writer.patch_pod_group_status(group, condition)

        (asked,) = d.server.asked
        path = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups/gang/status"
        assert (asked.method, asked.path) == ("PATCH", path)
        assert asked.headers["Content-Type"] == "application/strategic-merge-patch+json"
        assert asked.body == {
            "metadata": {"uid": "group:default/gang"},
            "status": {
                "conditions": [
                    {
                        "type": "PodGroupScheduled",
                        "status": "True",
                        "reason": "Scheduled",
                        "message": "",
                        "observedGeneration": 2,
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                    }
                ]
            },
        }
