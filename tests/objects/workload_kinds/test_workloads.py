"""Custom resources of the ecosystem, and the pods that their controllers give them."""

import io
import json

import pytest

from mooring.errors import InputError
from mooring.objects.kinds import Deployment, Job, ReplicaSet, StatefulSet
from mooring.objects.manifests import ReadOptions, read_manifests
from mooring.objects.skipped_kinds import Effect
from mooring.objects.storage import PersistentVolumeClaim


def template(cpu="1", **labels):
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    return {"metadata": {"labels": labels}, "spec": {"containers": containers}}


def resource(api_version, kind, spec, **metadata):
    metadata = {"name": "x", **metadata}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def read(*bodies, **options):
    text = "\n---\n".join(map(json.dumps, bodies))
    return read_manifests(["-"], stdin=io.BytesIO(text.encode()), options=ReadOptions(**options))


def names(manifests):
    return [pod.name for pod in manifests.pods]


def of_type(manifests, kind):
    return [obj for obj in manifests.objects if isinstance(obj, kind)]


def test_a_custom_resource_with_replicas_and_a_template_becomes_pods():
    thing = resource("example.com/v1", "CloneSet", {"replicas": 2, "template": template(app="a")})

    manifests = read(thing)

    assert [name[:2] for name in names(manifests)] == ["x-", "x-"]
    assert {pod.labels["app"] for pod in manifests.pods} == {"a"}
    assert manifests.pods[0].metadata.controller.kind == "CloneSet"
    assert manifests.skipped == {}


@pytest.mark.parametrize(
    ("name", "replicas", "pod", "mark"),
    [
        ("x-${JOB_ID}", 1, {}, "${JOB_ID}"),
        ("x", "$WORKERS", {}, "$WORKERS"),
        ("x", 1, {"nodeSelector": {"gpu": "{{ .gpu }}"}}, "{{ .gpu }}"),
    ],
)
def test_a_template_of_a_custom_resource_is_recognised(name, replicas, pod, mark):
    spec = template()
    spec["spec"] |= pod
    cluster = {
        "headGroupSpec": {"template": template()},
        "workerGroupSpecs": [{"groupName": "w", "replicas": replicas, "template": spec}],
    }
    mpi = {"mpiReplicaSpecs": {"Worker": {"replicas": replicas, "template": spec}}}

    for body in (
        resource("ray.io/v1", "RayCluster", cluster, name=name),
        resource("kubeflow.org/v2beta1", "MPIJob", mpi, name=name),
    ):
        with pytest.raises(InputError) as error:
            read(body)
        (line,) = error.value.problems
        assert f": is a template, as {mark!r} shows; " in line


def test_text_for_other_programs_makes_no_template_of_a_custom_resource():
    spec = {
        "serveConfigV2": "{{ prompt }}",
        "rayClusterConfig": {
            "headGroupSpec": {"rayStartParams": {"key": "$KEY"}, "template": template()}
        },
    }

    assert len(read(resource("ray.io/v1", "RayService", spec)).pods) == 1


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "Prometheus): metadata.name: is missing; every object needs a name"),
        (
            "My_Metrics",
            "Prometheus default/My_Metrics): metadata.name: 'My_Metrics' is not a name; ",
        ),
    ],
)
def test_a_bad_name_is_told_of_the_custom_resource_itself(name, problem):
    with pytest.raises(InputError) as error:
        read(resource("monitoring.coreos.com/v1", "Prometheus", {"replicas": 2}, name=name))

    (line,) = error.value.problems
    assert line.startswith(f"standard input: document 1 ({problem}")


def test_a_count_that_is_no_number_is_not_taken_for_none():
    mpi = {"mpiReplicaSpecs": {"Worker": {"replicas": "two", "template": template()}}}

    manifests = read(resource("kubeflow.org/v2beta1", "MPIJob", mpi))

    assert manifests.effects == {"MPIJob.kubeflow.org": Effect.MAKES_PODS}
    assert "MPIJob default/x: 'two' is not a whole number" in manifests.warnings[0]


def test_pods_of_a_dump_are_not_made_again():
    thing = resource("example.com/v1", "CloneSet", {"replicas": 2, "template": template()})
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "x-1",
            "ownerReferences": [{"kind": "CloneSet", "name": "x", "controller": True}],
        },
        "spec": {"containers": [{"name": "c"}]},
    }

    assert names(read(thing, pod)) == ["x-1"]


def test_pods_keep_the_order_of_the_documents():
    thing = resource("example.com/v1", "CloneSet", {"replicas": 1, "template": template()})
    pods = [resource("v1", "Pod", {"containers": [{"name": "c"}]}, name=name) for name in "ab"]

    assert [name[0] for name in names(read(pods[0], thing, pods[1]))] == ["a", "x", "b"]


def test_a_mistake_in_a_template_is_told_with_the_resource():
    thing = resource("example.com/v1", "CloneSet", {"replicas": 1, "template": template(cpu="-1")})

    with pytest.raises(InputError, match=r"\(CloneSet default/x, its Pod default/x-.*\): spec.con"):
        read(thing)


class TestRollout:
    def test_it_has_a_replica_set(self):
        selector = {"matchLabels": {"app": "a"}}
        rollout = resource(
            "argoproj.io/v1alpha1",
            "Rollout",
            {"replicas": 2, "selector": selector, "template": template(app="a")},
        )

        manifests = read(rollout)

        (replica_set,) = of_type(manifests, ReplicaSet)
        digest = manifests.pods[0].labels["rollouts-pod-template-hash"]
        assert replica_set.name == f"x-{digest}"
        assert all(name.startswith(f"x-{digest}-") for name in names(manifests))
        assert len(manifests.pods) == 2

    def test_it_may_refer_to_a_deployment(self):
        deployment = resource(
            "apps/v1",
            "Deployment",
            {
                "replicas": 0,
                "selector": {"matchLabels": {"app": "a"}},
                "template": template(cpu="2", app="a"),
            },
            name="web",
        )
        spec = {"replicas": 3, "workloadRef": {"kind": "Deployment", "name": "web"}}

        manifests = read(resource("argoproj.io/v1alpha1", "Rollout", spec), deployment)

        assert [pod.requests for pod in manifests.pods] == [{"cpu": 2000}] * 3

    def test_what_it_refers_to_may_be_missing(self):
        spec = {"replicas": 3, "workloadRef": {"kind": "Deployment", "name": "web"}}

        manifests = read(resource("argoproj.io/v1alpha1", "Rollout", spec))

        assert manifests.pods == []
        assert manifests.effects == {"Rollout.argoproj.io": "makesPods"}
        assert "needs the Deployment web, which was not read; add it" in manifests.warnings[0]


class TestJobSet:
    def jobs(self, **annotations):
        job = {"parallelism": 2, "completions": 2, "template": template()}
        spec = {"replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": job}}]}
        return resource("jobset.x-k8s.io/v1alpha2", "JobSet", spec, annotations=annotations)

    def test_each_job_has_indexed_pods(self):
        manifests = read(self.jobs())

        assert [job.name for job in of_type(manifests, Job)] == ["x-w-0", "x-w-1"]
        assert [name[:-5] for name in names(manifests)] == [
            "x-w-0-0-",
            "x-w-0-1-",
            "x-w-1-0-",
            "x-w-1-1-",
        ]
        labels = manifests.pods[2].labels
        assert labels["jobset.sigs.k8s.io/jobset-name"] == "x"
        assert labels["jobset.sigs.k8s.io/replicatedjob-name"] == "w"
        assert labels["jobset.sigs.k8s.io/job-index"] == "1"
        assert labels["batch.kubernetes.io/job-completion-index"] == "0"

    def test_exclusive_topology_is_an_affinity(self):
        pod = read(self.jobs(**{"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"})).pods[0]

        (term,) = pod.spec.affinity.pod_affinity.required
        assert term.topology_key == "rack"
        key = term.label_selector.match_expressions[0]
        assert key.values == [pod.labels["jobset.sigs.k8s.io/job-key"]]
        assert read(self.jobs()).pods[0].spec.affinity is None

    def test_a_suspended_one_has_no_pods(self):
        jobs = self.jobs()
        jobs["spec"]["suspend"] = True

        manifests = read(jobs)

        assert (manifests.pods, manifests.skipped, manifests.idle) == ([], {}, [])
        assert manifests.notes == [
            "suspended, so no pods (set suspend: false to place them): JobSet default/x"
        ]


def test_a_workload_that_makes_nothing_is_named():
    """Without its node pools, a Kafka makes no pods, and nothing said so."""
    kafka = resource("kafka.strimzi.io/v1beta2", "Kafka", {"kafka": {}})
    labels = {"strimzi.io/cluster": "x"}
    pool = resource(
        "kafka.strimzi.io/v1beta2",
        "KafkaNodePool",
        {"replicas": 1, "roles": ["broker"], "storage": {"type": "ephemeral"}},
        labels=labels,
    )

    alone = read(kafka)

    assert alone.idle == ["Kafka default/x"]
    assert alone.notes == ["no pods are made of Kafka default/x"]
    assert len(read(kafka, pool | {"metadata": {"name": "p", "labels": labels}}).pods) == 1


def test_a_leader_worker_set_has_leaders_and_workers():
    spec = {
        "replicas": 2,
        "leaderWorkerTemplate": {
            "size": 3,
            "leaderTemplate": template(cpu="2"),
            "workerTemplate": template(cpu="1"),
        },
    }

    manifests = read(resource("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec))

    assert sorted(names(manifests)) == ["x-0", "x-0-1", "x-0-2", "x-1", "x-1-1", "x-1-2"]
    pods = {pod.name: pod for pod in manifests.pods}
    assert pods["x-0"].requests == {"cpu": 2000}
    assert pods["x-0-1"].requests == {"cpu": 1000}
    prefix = "leaderworkerset.sigs.k8s.io/"
    assert pods["x-1"].labels[f"{prefix}worker-index"] == "0"
    assert pods["x-1"].labels[f"{prefix}group-key"] == pods["x-1-2"].labels[f"{prefix}group-key"]
    assert pods["x-1"].metadata.controller.kind == "StatefulSet"


@pytest.mark.parametrize(
    ("kind", "field", "operator"),
    [
        ("PyTorchJob", "pytorchReplicaSpecs", "pytorchjob"),
        ("TFJob", "tfReplicaSpecs", "tfjob"),
        ("XGBoostJob", "xgbReplicaSpecs", "xgboostjob"),
        ("PaddleJob", "paddleReplicaSpecs", "paddlejob"),
        ("JAXJob", "jaxReplicaSpecs", "jaxjob"),
        ("MXJob", "mxReplicaSpecs", "mxjob"),
    ],
)
def test_training_jobs_of_kubeflow(kind, field, operator):
    roles = {"Master": {"template": template()}, "Worker": {"replicas": 2, "template": template()}}

    manifests = read(resource("kubeflow.org/v1", kind, {field: roles}))

    assert names(manifests) == ["x-master-0", "x-worker-0", "x-worker-1"]
    labels = manifests.pods[2].labels
    assert labels["training.kubeflow.org/job-name"] == "x"
    assert labels["training.kubeflow.org/replica-type"] == "worker"
    assert labels["training.kubeflow.org/replica-index"] == "1"
    assert labels["training.kubeflow.org/operator-name"] == f"{operator}-controller"


@pytest.mark.parametrize("version", ["v1", "v2beta1"])
def test_an_mpi_job_has_one_launcher(version):
    roles = {
        "Launcher": {"replicas": 1, "template": template()},
        "Worker": {"replicas": 2, "template": template()},
    }

    manifests = read(resource(f"kubeflow.org/{version}", "MPIJob", {"mpiReplicaSpecs": roles}))

    assert names(manifests) == ["x-launcher", "x-worker-0", "x-worker-1"]


class TestTrainJob:
    def runtime(self, **policy):
        node = {"name": "node", "resources": {"requests": {"cpu": "1"}}}
        pod = {"spec": {"containers": [node]}}
        job = {
            "name": "node",
            "template": {
                "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                "spec": {"template": pod},
            },
        }
        spec = {
            "mlPolicy": {"numNodes": 2, **policy},
            "template": {"spec": {"replicatedJobs": [job]}},
        }
        return resource(
            "trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", spec, name="torch"
        )

    def job(self, **spec):
        spec = {"runtimeRef": {"name": "torch"}, **spec}
        return resource("trainer.kubeflow.org/v1alpha1", "TrainJob", spec)

    def test_it_follows_its_runtime(self):
        manifests = read(self.job(), self.runtime())

        assert [name[:-5] for name in names(manifests)] == ["x-node-0-0-", "x-node-0-1-"]
        assert manifests.pods[0].labels["jobset.sigs.k8s.io/jobset-name"] == "x"

    def test_it_says_some_things_otherwise(self):
        trainer = {"numNodes": 3, "resourcesPerNode": {"requests": {"cpu": "4"}}}
        override = {"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"gpu": "a100"}}}

        manifests = read(self.job(trainer=trainer, podTemplateOverrides=[override]), self.runtime())

        assert [pod.requests for pod in manifests.pods] == [{"cpu": 4000}] * 3
        assert manifests.pods[0].spec.node_selector == {"gpu": "a100"}

    def test_without_its_runtime_its_pods_are_missing(self):
        manifests = read(self.job())

        assert manifests.effects == {"TrainJob.trainer.kubeflow.org": "makesPods"}
        assert "needs the ClusterTrainingRuntime torch" in manifests.warnings[0]


class TestRay:
    CLUSTER = {
        "headGroupSpec": {"template": template(cpu="2")},
        "workerGroupSpecs": [
            {"groupName": "small", "replicas": 1, "minReplicas": 2, "template": template(cpu="1")},
            {
                "groupName": "big",
                "replicas": 9,
                "maxReplicas": 1,
                "numOfHosts": 2,
                "template": template(cpu="100m"),
            },
        ],
    }

    def test_a_cluster_has_a_head_and_workers_within_their_bounds(self):
        manifests = read(resource("ray.io/v1", "RayCluster", self.CLUSTER))

        assert names(manifests)[0] == "x-head"
        assert [name[:-5] for name in names(manifests)[1:]] == [
            "x-small-worker-",
            "x-small-worker-",
            "x-big-worker-",
            "x-big-worker-",
        ]
        assert manifests.pods[3].labels["ray.io/group"] == "big"
        # The init container of a worker asks for more than this one.
        assert manifests.pods[3].requests["cpu"] == 200

    def test_the_autoscaler_runs_in_the_head(self):
        spec = {**self.CLUSTER, "enableInTreeAutoscaling": True}

        assert read(resource("ray.io/v1", "RayCluster", spec)).pods[0].requests["cpu"] == 2500

    def test_a_job_has_a_cluster_and_a_submitter(self):
        manifests = read(resource("ray.io/v1", "RayJob", {"rayClusterSpec": self.CLUSTER}))

        assert len(manifests.pods) == 6
        assert [job.name for job in of_type(manifests, Job)] == ["x"]
        spec = {"rayClusterSpec": self.CLUSTER, "submissionMode": "HTTPMode"}
        assert of_type(read(resource("ray.io/v1", "RayJob", spec)), Job) == []

    @pytest.mark.parametrize(("suspend", "pods"), [(False, 6), (True, 0)])
    def test_a_cron_job_runs_once(self, suspend, pods):
        spec = {"jobTemplate": {"rayClusterSpec": self.CLUSTER}, "suspend": suspend}

        assert len(read(resource("ray.io/v1", "RayCronJob", spec)).pods) == pods

    def test_a_service_has_a_cluster(self):
        manifests = read(resource("ray.io/v1", "RayService", {"rayClusterConfig": self.CLUSTER}))

        assert len(manifests.pods) == 5
        assert manifests.pods[0].labels["ray.io/cluster"].startswith("x-")


class TestSpark:
    def app(self, kind="Scala", **spec):
        spec = {
            "type": kind,
            "driver": {"cores": 1, "memory": "512m", "labels": {"a": "b"}},
            "executor": {"cores": 2, "instances": 2, "memory": "10g"},
            **spec,
        }
        return resource("sparkoperator.k8s.io/v1beta2", "SparkApplication", spec)

    @pytest.mark.parametrize("memory", ["1x", "lots", "-1g", "1.5g"])
    def test_memory_that_is_no_amount_is_not_taken_for_another(self, memory):
        """It was read as one GiB, without a word."""
        manifests = read(self.app(driver={"memory": memory}))

        assert manifests.pods == []
        assert manifests.effects == {"SparkApplication.sparkoperator.k8s.io": Effect.MAKES_PODS}
        (warning,) = manifests.warnings
        assert f"SparkApplication default/x: {memory!r} is not an amount of memory" in warning

    def test_a_driver_and_executors_with_their_overhead(self):
        driver, one, other = read(self.app()).pods

        mebi = 2**20
        assert driver.name == "x-driver"
        # 512 MiB, and at least 384 MiB of overhead.
        assert driver.requests == {"cpu": 1000, "memory": (512 + 384) * mebi}
        # 10 GiB, and a tenth.
        assert one.requests == {"cpu": 2000, "memory": (10240 + 1024) * mebi}
        assert one.name.endswith("-exec-1")
        assert other.name.endswith("-exec-2")
        assert driver.labels["spark-role"] == "driver"
        assert driver.labels["a"] == "b"
        assert other.labels["spark-exec-id"] == "2"
        assert other.labels["sparkoperator.k8s.io/app-name"] == "x"

    def test_python_has_more_overhead(self):
        one = read(self.app("Python")).pods[1]

        assert one.requests["memory"] == (10240 + 4096) * 2**20

    def test_what_the_application_says_counts(self):
        executor = {
            "coreRequest": "500m",
            "memory": "1g",
            "memoryOverhead": "1g",
            "gpu": {"name": "nvidia.com/gpu", "quantity": 1},
        }
        dynamic = {"enabled": True, "minExecutors": 2, "initialExecutors": 3}

        pods = read(self.app(executor=executor, dynamicAllocation=dynamic)).pods

        assert len(pods) == 4
        assert pods[1].requests == {"cpu": 500, "memory": 2 * 2**30, "nvidia.com/gpu": 1}

    def test_a_scheduled_one_runs_once(self):
        spec = {"schedule": "@hourly", "template": self.app()["spec"]}
        app = resource("sparkoperator.k8s.io/v1beta2", "ScheduledSparkApplication", spec)

        assert len(read(app).pods) == 3


class TestVolcano:
    SPEC = {
        "queue": "q",
        "tasks": [
            {"name": "master", "replicas": 1, "template": template()},
            {"name": "worker", "replicas": 2, "template": template()},
        ],
    }

    @pytest.mark.parametrize(
        ("given", "scheduler"), [({}, "volcano"), ({"schedulerName": "s"}, "s")]
    )
    def test_a_job_has_tasks(self, given, scheduler):
        manifests = read(resource("batch.volcano.sh/v1alpha1", "Job", {**self.SPEC, **given}))

        assert names(manifests) == ["x-master-0", "x-worker-0", "x-worker-1"]
        assert manifests.pods[1].labels["volcano.sh/task-spec"] == "worker"
        assert manifests.pods[1].labels["volcano.sh/queue-name"] == "q"
        assert manifests.pods[0].spec.scheduler_name == scheduler

    def test_a_cron_job_runs_once(self):
        spec = {"schedule": "@daily", "jobTemplate": {"spec": self.SPEC}}

        assert len(read(resource("batch.volcano.sh/v1alpha1", "CronJob", spec)).pods) == 3


@pytest.mark.parametrize(
    ("annotations", "pods"),
    [
        ({}, 1),
        ({"autoscaling.knative.dev/min-scale": "3"}, 3),
        ({"autoscaling.knative.dev/minScale": "2"}, 2),
        ({"autoscaling.knative.dev/initial-scale": "0"}, 0),
    ],
)
def test_a_knative_service_starts_with_its_least_scale(annotations, pods):
    made = template()
    made["metadata"]["annotations"] = annotations

    manifests = read(resource("serving.knative.dev/v1", "Service", {"template": made}))

    (deployment,) = of_type(manifests, Deployment)
    assert deployment.name == "x-00001-deployment"
    assert len(manifests.pods) == pods
    for pod in manifests.pods:
        assert pod.labels["serving.knative.dev/service"] == "x"
        assert pod.requests["cpu"] == 1025  # with its queue-proxy


class TestKafka:
    def pool(self, name, roles, **spec):
        spec = {"replicas": 2, "roles": roles, "storage": {"type": "ephemeral"}, **spec}
        labels = {"strimzi.io/cluster": "my"}
        return resource("kafka.strimzi.io/v1beta2", "KafkaNodePool", spec, name=name, labels=labels)

    def kafka(self, **spec):
        return resource("kafka.strimzi.io/v1beta2", "Kafka", spec, name="my")

    def test_node_pools_share_the_ids_of_a_cluster(self):
        disk = {"type": "persistent-claim", "size": "10Gi", "id": 0}
        kafka = self.kafka(kafka={}, entityOperator={"topicOperator": {}, "userOperator": {}})
        controllers = self.pool("controller", ["controller"])
        brokers = self.pool(
            "broker",
            ["broker"],
            storage={"type": "jbod", "volumes": [disk]},
            resources={"requests": {"cpu": "2"}},
        )

        manifests = read(kafka, controllers, brokers)

        assert [name for name in names(manifests) if "operator" not in name] == [
            "my-controller-2",
            "my-controller-3",
            "my-broker-0",
            "my-broker-1",
        ]
        claims = [claim.name for claim in of_type(manifests, PersistentVolumeClaim)]
        assert claims == ["data-0-my-broker-0", "data-0-my-broker-1"]
        broker = manifests.pods[-1]
        assert broker.requests == {"cpu": 2000}
        assert broker.spec.volumes[0].persistent_volume_claim.claim_name == claims[1]
        assert broker.labels["strimzi.io/pool-name"] == "broker"
        assert broker.labels["strimzi.io/broker-role"] == "true"
        (deployment,) = of_type(manifests, Deployment)
        assert deployment.name == "my-entity-operator"

    def test_a_kafka_without_pools_has_brokers_itself(self):
        disk = {"type": "persistent-claim", "size": "1Gi"}
        kafka = self.kafka(
            kafka={"replicas": 2, "rack": {"topologyKey": "zone"}, "storage": disk},
            zookeeper={"replicas": 1, "storage": {"type": "ephemeral"}},
        )

        manifests = read(kafka)

        assert names(manifests) == ["my-kafka-0", "my-kafka-1", "my-zookeeper-0"]
        affinity = manifests.pods[0].spec.affinity
        assert affinity.pod_anti_affinity.preferred[0].pod_affinity_term.topology_key == "zone"
        assert len(of_type(manifests, PersistentVolumeClaim)) == 2

    def test_a_pool_needs_its_kafka(self):
        manifests = read(self.pool("a", ["broker"]))

        assert "needs the Kafka my" in manifests.warnings[0]

    @pytest.mark.parametrize(
        ("kind", "name"),
        [("KafkaConnect", "x-connect-0"), ("KafkaMirrorMaker2", "x-mirrormaker2-0")],
    )
    def test_clients_have_numbered_pods(self, kind, name):
        spec = {"replicas": 2, "resources": {"requests": {"cpu": "1"}}}

        manifests = read(resource("kafka.strimzi.io/v1beta2", kind, spec))

        assert names(manifests)[0] == name
        assert len(manifests.pods) == 2


class TestPrometheus:
    @pytest.mark.parametrize(
        ("kind", "name"),
        [
            ("Prometheus", "prometheus-x"),
            ("PrometheusAgent", "prom-agent-x"),
            ("Alertmanager", "alertmanager-x"),
            ("ThanosRuler", "thanos-ruler-x"),
        ],
    )
    def test_each_kind_has_a_stateful_set(self, kind, name):
        spec = {"replicas": 2, "nodeSelector": {"disk": "ssd"}}

        manifests = read(resource("monitoring.coreos.com/v1", kind, spec))

        assert names(manifests) == [f"{name}-0", f"{name}-1"]
        labels = manifests.pods[0].labels
        assert labels["app.kubernetes.io/instance"] == "x"
        assert labels["app.kubernetes.io/managed-by"] == "prometheus-operator"
        assert manifests.pods[0].spec.node_selector == {"disk": "ssd"}

    def test_shards_storage_and_containers(self):
        spec = {
            "shards": 2,
            "thanos": {"resources": {"requests": {"cpu": "100m"}}},
            "resources": {"requests": {"cpu": "500m"}},
            "containers": [{"name": "prometheus", "resources": {"requests": {"memory": "1Gi"}}}],
            "storage": {
                "volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}
            },
        }

        manifests = read(resource("monitoring.coreos.com/v1", "Prometheus", spec))

        assert [each.name for each in of_type(manifests, StatefulSet)] == [
            "prometheus-x",
            "prometheus-x-shard-1",
        ]
        assert manifests.pods[1].labels["operator.prometheus.io/shard"] == "1"
        # prometheus, config-reloader and thanos-sidecar
        assert manifests.pods[0].requests["cpu"] == 610
        assert manifests.pods[0].requests["memory"] == 2**30 + 50 * 2**20
        claims = [claim.name for claim in of_type(manifests, PersistentVolumeClaim)]
        assert claims[0] == "prometheus-x-db-prometheus-x-0"

    def test_alertmanager_has_a_default_request(self):
        (pod,) = read(resource("monitoring.coreos.com/v1", "Alertmanager", {})).pods

        assert pod.requests["memory"] == 250 * 2**20


DESCRIPTION = """
group: example.com
kind: Farm
makes:
- each: ${spec.barns}
  count: ${item.cows | 1}
  object:
    apiVersion: v1
    kind: Pod
    metadata: {name: "${name}-${item.name}-${index}", labels: {barn: "${item.name}", number: "${index}"}}
    spec: {containers: [{name: cow, resources: "${spec.resources}"}]}
"""


class TestDescriptionsOfUsers:
    FARM = resource("example.com/v1", "Farm", {"barns": [{"name": "a", "cows": 2}, {"name": "b"}]})

    @pytest.mark.parametrize("given", ["file", "folder"])
    def test_a_user_describes_a_kind(self, tmp_path, given):
        path = tmp_path / "farm.yaml"
        path.write_text(DESCRIPTION)

        manifests = read(self.FARM, workload_kinds=(str(path if given == "file" else tmp_path),))

        assert names(manifests) == ["x-a-0", "x-a-1", "x-b-0"]
        assert manifests.pods[1].labels == {"barn": "a", "number": "1"}

    def test_without_a_description_it_is_skipped(self):
        assert read(self.FARM).skipped == {"Farm.example.com": 1}

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("group: a\n", "missing required field"),
            ("group: a\nkind: b\nmaks: []\n", "unknown field `maks`"),
            ("a: [", "line 2"),
        ],
    )
    def test_a_wrong_description_is_told(self, tmp_path, text, said):
        path = tmp_path / "farm.yaml"
        path.write_text(text)

        with pytest.raises(InputError, match=said):
            read(self.FARM, workload_kinds=(str(path),))

    def test_a_description_that_is_not_there_is_told(self, tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            read(self.FARM, workload_kinds=(str(tmp_path / "no.yaml"),))

    def test_a_wrong_path_in_a_description_is_told_with_the_resource(self, tmp_path):
        path = tmp_path / "farm.yaml"
        path.write_text(DESCRIPTION.replace("${spec.resources}", "${spec..resources}"))

        manifests = read(self.FARM, workload_kinds=(str(path),))

        assert "Farm default/x: 'spec..resources' is not a path" in manifests.warnings[0]
        assert manifests.effects == {"Farm.example.com": "makesPods"}
