"""Workloads and pod groups (scheduling.k8s.io/v1alpha2): pods that are scheduled together.

A pod names its group in `spec.schedulingGroup`. The scheduler reads pod groups; a Workload has the
templates that a controller makes them from.
"""

from __future__ import annotations

from msgspec.structs import replace

from mooring.objects.meta import KubeObject, Part
from mooring.objects.pod import PodCondition, PodResourceClaim, PodResourceClaimStatus

#: The group condition that a scheduler writes.
POD_GROUP_SCHEDULED = "PodGroupScheduled"

#: Evict the group's pods one by one, or all of them together.
DISRUPT_POD, DISRUPT_POD_GROUP = "Pod", "PodGroup"


class BasicPolicy(Part, frozen=True):
    """Pods of the group are scheduled one by one."""


class GangPolicy(Part, frozen=True):
    """No pod is bound before this many have a node."""

    min_count: int = 0


class SchedulingPolicy(Part, frozen=True):
    """Exactly one of the two."""

    basic: BasicPolicy | None = None
    gang: GangPolicy | None = None


class TopologyConstraint(Part, frozen=True):
    """All pods of the group go to nodes with the same value of this label."""

    key: str = ""


class SchedulingConstraints(Part, frozen=True):
    topology: list[TopologyConstraint] = []


class WorkloadPodGroupTemplate(Part, frozen=True):
    workload_name: str = ""
    pod_group_template_name: str = ""


class PodGroupTemplateReference(Part, frozen=True):
    workload: WorkloadPodGroupTemplate | None = None


class PodGroupSpec(Part, frozen=True):
    pod_group_template_ref: PodGroupTemplateReference | None = None
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    #: Claims that all pods of the group share which name them in the same words.
    resource_claims: list[PodResourceClaim] = []
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: int | None = None


class PodGroupStatus(Part, frozen=True):
    conditions: list[PodCondition] = []
    resource_claim_statuses: list[PodResourceClaimStatus] = []


class PodGroup(KubeObject, frozen=True):
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def min_count(self) -> int | None:
        """How many pods a gang needs at least; None if the group is no gang."""
        gang = self.spec.scheduling_policy.gang
        return None if gang is None else gang.min_count

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    @property
    def topology_key(self) -> str | None:
        """The label whose value all pods of the group share; None if they may be apart."""
        constraints = self.spec.scheduling_constraints
        if constraints is None or not constraints.topology:
            return None
        return constraints.topology[0].key

    @property
    def evicted_whole(self) -> bool:
        return self.spec.disruption_mode == DISRUPT_POD_GROUP

    def condition(self, kind: str) -> PodCondition | None:
        return next((c for c in self.status.conditions if c.type == kind), None)

    def with_condition(self, condition: PodCondition) -> PodGroup:
        others = [known for known in self.status.conditions if known.type != condition.type]
        return replace(self, status=replace(self.status, conditions=[*others, condition]))


class PodGroupTemplate(Part, frozen=True):
    """The pod groups that a controller makes have this spec."""

    name: str = ""
    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    #: Claims that all pods of the group share which name them in the same words.
    resource_claims: list[PodResourceClaim] = []
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: int | None = None


class ControllerReference(Part, frozen=True):
    api_group: str = ""
    kind: str = ""
    name: str = ""


class WorkloadSpec(Part, frozen=True):
    controller_ref: ControllerReference | None = None
    pod_group_templates: list[PodGroupTemplate] = []


class Workload(KubeObject, frozen=True):
    spec: WorkloadSpec = WorkloadSpec()
