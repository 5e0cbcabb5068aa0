"""Writes to claims: patches with what changed, and nothing that mooring does not know is lost."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from mooring.errors import Conflict, NotFound
from mooring.live.claim_writer import LiveClaims, status_changes
from mooring.objects.devices import CLAIM_FINALIZER, ResourceClaimStatus
from mooring.objects.pod import ContainerExtendedResourceRequest, PodExtendedResourceClaimStatus
from mooring.objects.resource_claims import reference_to
from tests.device_world import claim, pod_with

POD = pod_with("c", uid="u-pod")
PATH = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
AS_READ = {"uid": "uid-c", "resourceVersion": "1"}


class Server:
    """Answers every request with the same claim."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked: list[tuple[str, str, Any, str]] = []
        self._error = error

    async def send(self, method, path, document, content_type="application/json", *, priority):
        # Whatever is sent must be JSON.
        plain = None if document is None else msgspec.json.decode(msgspec.json.encode(document))
        self.asked.append((method, path, plain, content_type))
        if self._error is not None:
            raise self._error
        return b'{"metadata": {"name": "c", "namespace": "ns", "resourceVersion": "2"}}'


async def test_each_write_is_one_request_with_what_changes():
    server = Server()
    writer = LiveClaims(server.send)
    free, held = claim(), claim(holds=["x"], on="n1")
    reserved = replace(held.status, reserved_for=[reference_to(POD)])

    stored = await writer.set_finalizers(free, [CLAIM_FINALIZER])
    await writer.set_finalizers(free, [])
    await writer.set_status(free, reserved)
    await writer.remove_reservation(held, POD)
    await writer.get(free)

    assert stored.metadata.resource_version == "2"
    reference = {"resource": "pods", "name": "pod", "uid": "u-pod"}
    result = {"request": "r", "driver": "d", "pool": "p", "device": "x"}
    (_, _, document, _) = server.asked[2]
    assert document["status"]["allocation"]["devices"] == {"results": [result]}
    assert document["status"]["reservedFor"] == [reference]
    assert document["metadata"] == AS_READ
    assert [each for i, each in enumerate(server.asked) if i != 2] == [
        ("PATCH", f"{PATH}/c", {"metadata": {**AS_READ, "finalizers": [CLAIM_FINALIZER]}}, MERGE),
        ("PATCH", f"{PATH}/c", {"metadata": {**AS_READ, "finalizers": None}}, MERGE),
        (
            "PATCH",
            f"{PATH}/c/status",
            {
                "metadata": {"uid": "uid-c"},
                "status": {"reservedFor": [{"$patch": "delete", "uid": "u-pod"}]},
            },
            STRATEGIC,
        ),
        ("GET", f"{PATH}/c", None, "application/json"),
    ]
    assert server.asked[2][:2] == ("PATCH", f"{PATH}/c/status")


async def test_a_claim_is_created_without_status_and_deleted_by_its_uid():
    server = Server()
    writer = LiveClaims(server.send)

    await writer.create(claim(holds=["x"]))
    await writer.delete(claim())

    method, path, document, _ = server.asked[0]
    assert (method, path) == ("POST", PATH)
    assert not document["status"], "the API server would ignore it"
    method, path, document, _ = server.asked[1]
    assert (method, path, document["preconditions"]) == ("DELETE", f"{PATH}/c", {"uid": "uid-c"})
    with pytest.raises(NotFound):
        await LiveClaims(Server(Conflict("another uid")).send).delete(claim())


async def test_the_pod_is_told_of_its_claim():
    server = Server()
    mapping = ContainerExtendedResourceRequest(
        container_name="app", resource_name="example.com/gpu", request_name="container-0-request-0"
    )
    told = PodExtendedResourceClaimStatus(request_mappings=[mapping], resource_claim_name="c")

    await LiveClaims(server.send).set_extended_resource_claim(POD, told)

    method, path, document, kind = server.asked[0]
    assert (method, path, kind) == ("PATCH", "/api/v1/namespaces/ns/pods/pod/status", STRATEGIC)
    status = document["status"]["extendedResourceClaimStatus"]
    assert status["resourceClaimName"] == "c"
    assert status["requestMappings"][0]["containerName"] == "app"


HELD = claim(holds=["x"], on="n1").status
USED = replace(HELD, reserved_for=[reference_to(POD)])
TIMED = replace(HELD.allocation, allocation_timestamp=datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        pytest.param(HELD, HELD, {}, id="nothing"),
        pytest.param(USED, replace(USED, reserved_for=[]), {"reservedFor": None}, id="unreserved"),
        pytest.param(
            USED, ResourceClaimStatus(), {"allocation": None, "reservedFor": None}, id="freed"
        ),
        pytest.param(
            HELD,
            replace(HELD, allocation=TIMED),
            {"allocation": {"allocationTimestamp": "2026-01-01T00:00:00Z"}},
            id="only the time: the rest of the allocation may hold what mooring does not know",
        ),
    ],
)
def test_only_what_differs_is_written(before, after, changes):
    assert status_changes(before, after) == changes
