"""Objects that shape pods before a scheduler sees them: they add to pods, limit them or count them."""

from __future__ import annotations

from mooring.objects.meta import KubeObject, Part, ResourceList
from mooring.objects.taints import Toleration


class RuntimeOverhead(Part, frozen=True):
    pod_fixed: ResourceList = {}


class RuntimeScheduling(Part, frozen=True):
    node_selector: dict[str, str] = {}
    tolerations: list[Toleration] = []


class RuntimeClass(KubeObject, frozen=True):
    overhead: RuntimeOverhead | None = None
    scheduling: RuntimeScheduling | None = None


class LimitRangeItem(Part, frozen=True):
    #: Container, Pod or PersistentVolumeClaim.
    type: str = ""
    max: ResourceList = {}
    min: ResourceList = {}
    #: The default limits.
    default: ResourceList = {}
    default_request: ResourceList = {}
    max_limit_request_ratio: ResourceList = {}


class LimitRangeSpec(Part, frozen=True):
    limits: list[LimitRangeItem] = []


class LimitRange(KubeObject, frozen=True):
    spec: LimitRangeSpec = LimitRangeSpec()


class ScopeRequirement(Part, frozen=True):
    scope_name: str = ""
    operator: str = ""
    values: list[str] = []


class ScopeSelector(Part, frozen=True):
    match_expressions: list[ScopeRequirement] = []


class ResourceQuotaSpec(Part, frozen=True):
    hard: ResourceList = {}
    scopes: list[str] = []
    scope_selector: ScopeSelector | None = None


class ResourceQuota(KubeObject, frozen=True):
    spec: ResourceQuotaSpec = ResourceQuotaSpec()


class ScaleTarget(Part, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""


class HorizontalPodAutoscalerSpec(Part, frozen=True):
    scale_target_ref: ScaleTarget = ScaleTarget()
    min_replicas: int | None = None
    max_replicas: int = 0


class HorizontalPodAutoscaler(KubeObject, frozen=True):
    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()
