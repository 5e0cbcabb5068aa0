"""Pod groups for tests."""

from datetime import UTC, datetime

from mooring.objects.meta import ObjectMeta
from mooring.objects.pod import Pod
from mooring_policies.coscheduling import POD_GROUP_LABEL, PodGroup
from mooring_policies.coscheduling.objects import PodGroupSpec
from tests.makers import Amounts, make_pod, resources


def make_pod_group(
    name: str = "pg1",
    *,
    namespace: str = "ns",
    min_member: int = 0,
    min_resources: Amounts | None = None,
    timeout_s: int | None = None,
    created_s: float | None = None,
) -> PodGroup:
    created = None if created_s is None else datetime.fromtimestamp(created_s, UTC)
    return PodGroup(
        api_version="scheduling.x-k8s.io/v1alpha1",
        kind="PodGroup",
        metadata=ObjectMeta(name=name, namespace=namespace, creation_timestamp=created),
        spec=PodGroupSpec(
            min_member=min_member,
            min_resources=None if min_resources is None else resources(min_resources),
            schedule_timeout_seconds=timeout_s,
        ),
    )


def make_member(name: str, group: str = "pg1", *, namespace: str = "ns", **more: object) -> Pod:
    labels = {POD_GROUP_LABEL: group} if group else {}
    return make_pod(name, namespace=namespace, uid=name, labels=labels, **more)  # type: ignore[arg-type]
