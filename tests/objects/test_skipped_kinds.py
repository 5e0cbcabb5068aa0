import io

import pytest

from mooring.objects.manifests import read_manifests
from mooring.objects.skipped_kinds import Effect, effect_of


@pytest.mark.parametrize(
    ("group", "kind", "effect"),
    [
        ("", "ConfigMap", Effect.NONE),
        ("networking.k8s.io", "Ingress", Effect.NONE),
        ("networking.istio.io", "VirtualService", Effect.NONE),
        ("cert-manager.io", "Certificate", Effect.NONE),
        ("monitoring.coreos.com", "ServiceMonitor", Effect.NONE),
        ("apiextensions.k8s.io", "CustomResourceDefinition", Effect.NONE),
        ("", "LimitRange", Effect.SHAPES_PODS),
        ("autoscaling", "HorizontalPodAutoscaler", Effect.SHAPES_PODS),
        ("keda.sh", "ScaledObject", Effect.SHAPES_PODS),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration", Effect.SHAPES_PODS),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", Effect.NONE),
        ("kueue.x-k8s.io", "ClusterQueue", Effect.SHAPES_PODS),
        ("argoproj.io", "Application", Effect.MAKES_PODS),
        ("argoproj.io", "AnalysisTemplate", Effect.NONE),
        ("helm.toolkit.fluxcd.io", "HelmRelease", Effect.MAKES_PODS),
        ("postgresql.cnpg.io", "Cluster", Effect.MAKES_PODS),
        ("enterprisesearch.k8s.elastic.co", "EnterpriseSearch", Effect.MAKES_PODS),
        ("packageregistry.k8s.elastic.co", "PackageRegistry", Effect.MAKES_PODS),
        ("ceph.rook.io", "CephBlockPool", Effect.NONE),
        ("ceph.rook.io", "CephCluster", Effect.MAKES_PODS),
        ("postgresql.cnpg.io", "ImageCatalog", Effect.NONE),
        ("serving.kserve.io", "ClusterServingRuntime", Effect.NONE),
        ("serving.kserve.io", "InferenceService", Effect.MAKES_PODS),
        ("kubeflow.org", "Notebook", Effect.MAKES_PODS),
        ("kubeflow.org", "PodDefault", Effect.SHAPES_PODS),
        ("crdb.cockroachlabs.com", "CrdbCluster", Effect.MAKES_PODS),
        ("opentelemetry.io", "Instrumentation", Effect.SHAPES_PODS),
        ("tekton.dev", "Task", Effect.NONE),
        ("tekton.dev", "TaskRun", Effect.MAKES_PODS),
        ("triggers.tekton.dev", "EventListener", Effect.MAKES_PODS),
        ("triggers.tekton.dev", "TriggerBinding", Effect.NONE),
        ("argoproj.io", "ArgoCD", Effect.MAKES_PODS),
        ("argoproj.io", "EventBus", Effect.MAKES_PODS),
        ("argoproj.io", "Experiment", Effect.MAKES_PODS),
        ("nvidia.com", "ClusterPolicy", Effect.MAKES_PODS),
        ("mlops.seldon.io", "SeldonRuntime", Effect.MAKES_PODS),
        ("mlops.seldon.io", "ServerConfig", Effect.NONE),
        ("pkg.crossplane.io", "Provider", Effect.MAKES_PODS),
        ("pkg.crossplane.io", "DeploymentRuntimeConfig", Effect.SHAPES_PODS),
        ("acid.zalan.do", "postgresql", Effect.MAKES_PODS),
        ("acid.zalan.do", "OperatorConfiguration", Effect.NONE),
        ("clickhouse.altinity.com", "ClickHouseInstallation", Effect.MAKES_PODS),
        ("cloud.google.com", "ComputeClass", Effect.SHAPES_PODS),
        ("cloud.google.com", "BackendConfig", Effect.NONE),
        ("serving.kubeflow.org", "InferenceService", Effect.MAKES_PODS),
        ("maistra.io", "ServiceMeshControlPlane", Effect.MAKES_PODS),
        ("security-profiles-operator.x-k8s.io", "ProfileBinding", Effect.NONE),
        ("data.fluid.io", "ThinRuntimeProfile", Effect.NONE),
        ("kaito.sh", "Workspace", Effect.MAKES_PODS),
        ("psmdb.percona.com", "PerconaServerMongoDB", Effect.MAKES_PODS),
        ("psmdb.percona.com", "PerconaServerMongoDBBackup", Effect.NONE),
        ("", "Template", Effect.MAKES_PODS),
        ("cluster.redpanda.com", "Redpanda", Effect.MAKES_PODS),
        ("cluster.redpanda.com", "Topic", Effect.NONE),
        ("opensearch.opster.io", "OpenSearchCluster", Effect.MAKES_PODS),
        ("opensearch.org", "OpensearchRole", Effect.NONE),
        ("loki.grafana.com", "LokiStack", Effect.MAKES_PODS),
        ("loki.grafana.com", "AlertingRule", Effect.NONE),
        ("clickhouse.altinity.com", "ClickHouseInstallationTemplate", Effect.NONE),
        ("nvidia.com", "DynamoModel", Effect.NONE),
        ("dragonflydb.io", "Dragonfly", Effect.MAKES_PODS),
        ("production-stack.vllm.ai", "CacheServer", Effect.MAKES_PODS),
        ("production-stack.vllm.ai", "LoraAdapter", Effect.NONE),
        ("pool.kubevirt.io", "VirtualMachinePool", Effect.MAKES_PODS),
        ("operator.yugabyte.io", "YBUniverse", Effect.MAKES_PODS),
        ("operator.yugabyte.io", "Backup", Effect.NONE),
        ("datadoghq.com", "DatadogAgent", Effect.MAKES_PODS),
        ("nfd.kubernetes.io", "NodeFeatureDiscovery", Effect.MAKES_PODS),
        ("nfd.kubernetes.io", "NodeFeature", Effect.SHAPES_PODS),
        ("kops.k8s.io", "InstanceGroup", Effect.SHAPES_PODS),
        ("fleet.cattle.io", "GitRepo", Effect.MAKES_PODS),
        ("zookeeper.pravega.io", "ZookeeperCluster", Effect.MAKES_PODS),
    ],
)
def test_well_known_kinds_are_told_apart(group, kind, effect):
    assert effect_of(group, kind, {}) is effect


@pytest.mark.parametrize(
    ("spec", "effect"),
    [
        ({"template": {"spec": {"containers": [{"name": "c"}]}}}, Effect.MAKES_PODS),
        ({"nodeSets": [{"podTemplate": {}}]}, Effect.MAKES_PODS),
        ({"replicas": 3}, Effect.MAKES_PODS),
        ({"database": {"instances": 3}}, Effect.MAKES_PODS),
        ({"pod": {"tolerations": []}}, Effect.MAKES_PODS),
        ({"agent": {"resources": {"requests": {"cpu": "1"}}}}, Effect.MAKES_PODS),
        ({"storage": {"volumeClaimTemplate": {}}}, Effect.MAKES_PODS),
        ({"server": {"podSecurityContext": {}}}, Effect.MAKES_PODS),
        ({"resources": [{"name": "bucket"}]}, Effect.NONE),
        ({"resources": {"bucket": {"limits": "none"}}}, Effect.NONE),
        ({"host": "a", "rules": [{"to": "b"}]}, Effect.NONE),
        (None, Effect.NONE),
        ("text", Effect.NONE),
    ],
)
def test_unknown_kinds_are_judged_by_their_shape(spec, effect):
    assert effect_of("example.com", "Thing", {"spec": spec}) is effect


def test_each_skipped_kind_has_its_effect():
    text = """
{apiVersion: v1, kind: Secret, metadata: {name: a}}
---
{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}, spec: {rule: x}}
---
{apiVersion: example.com/v1, kind: Thing, metadata: {name: b}, spec: {replicas: 3}}
---
{apiVersion: keda.sh/v1, kind: ScaledObject, metadata: {name: a}}
"""
    manifests = read_manifests(["-"], stdin=io.BytesIO(text.encode()))

    assert manifests.skipped == {"Secret": 1, "Thing.example.com": 2, "ScaledObject.keda.sh": 1}
    assert manifests.effects == {
        "Secret": Effect.NONE,
        "Thing.example.com": Effect.MAKES_PODS,
        "ScaledObject.keda.sh": Effect.SHAPES_PODS,
    }
