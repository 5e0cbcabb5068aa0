"""The ElasticQuota of scheduler-plugins."""

from __future__ import annotations

from mooring.objects.kinds import custom_kind
from mooring.objects.meta import KubeObject, Part, ResourceList


class ElasticQuotaSpec(Part, frozen=True):
    #: What the namespace gets back from others by preemption; None is nothing.
    min: ResourceList | None = None
    #: What the namespace may use at most; None is no limit. A resource that is not listed is 0.
    max: ResourceList | None = None


class ElasticQuota(KubeObject, frozen=True):
    spec: ElasticQuotaSpec = ElasticQuotaSpec()


ELASTIC_QUOTAS = custom_kind(
    ElasticQuota, "scheduling.x-k8s.io", "elasticquotas", version="v1alpha1"
)
