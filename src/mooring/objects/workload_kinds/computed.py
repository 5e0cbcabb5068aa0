"""Values that a description cannot say with placeholders, because they need arithmetic or a choice."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mooring.objects.workload_kinds.placeholders import DescriptionError, merged, merged_by_name
from mooring.objects.workload_kinds.world import World

Values = Mapping[str, Any]

_STRIMZI = "kafka.strimzi.io"
_CLUSTER_LABEL = "strimzi.io/cluster"


def _map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


# Spark

_MEMORY = re.compile(r"(\d+)\s*([kmgtp]?)i?b?", re.IGNORECASE)
_MEBIBYTES = {"k": 1 / 1024, "": 1, "m": 1, "g": 1024, "t": 1024**2, "p": 1024**3}
_LEAST_OVERHEAD_MIB = 384
#: Python and R processes run beside the JVM.
_FACTOR, _FACTOR_NON_JVM = 0.1, 0.4


def spark(values: Values, world: World) -> dict[str, Any]:
    """`driver`, `executor` and `instances`, with what Spark requests for each container."""
    spec = _map(values.get("spec"))
    conf = _map(spec.get("sparkConf"))
    factor = _FACTOR_NON_JVM if str(spec.get("type")).lower() in ("python", "r") else _FACTOR
    factor = _float(
        spec.get("memoryOverheadFactor") or conf.get("spark.kubernetes.memoryOverheadFactor"),
        factor,
    )
    return {role: _spark_role(spec, conf, role, factor) for role in ("driver", "executor")} | {
        "instances": _spark_instances(spec, conf),
        "driverPodName": f"{values['name']}-driver",
    }


# Knative

_AUTOSCALING = "autoscaling.knative.dev/"


def knative(values: Values, world: World) -> dict[str, Any]:
    """`revision`: the name of the first one; `scale`: the number of pods that it starts with."""
    template = _map(_map(_map(values.get("spec")).get("template")).get("metadata"))
    annotations = _map(template.get("annotations"))

    def number(default: int, *names: str) -> int:
        given = (annotations.get(_AUTOSCALING + name) for name in names)
        return next((_int(each, default) for each in given if each is not None), default)

    least = number(0, "min-scale", "minScale")
    return {
        "revision": f"{values['name']}-00001",
        "scale": max(least, number(1, "initial-scale", "initialScale")),
    }


# Spark, its parts


def _spark_role(
    spec: Mapping[str, Any], conf: Mapping[str, Any], role: str, factor: float
) -> dict[str, Any]:
    given = _map(spec.get(role))
    memory = _mebibytes(given.get("memory") or conf.get(f"spark.{role}.memory") or "1g")
    overhead = given.get("memoryOverhead") or conf.get(f"spark.{role}.memoryOverhead")
    extra = _mebibytes(overhead) if overhead else max(int(memory * factor), _LEAST_OVERHEAD_MIB)
    cores = given.get("cores") or conf.get(f"spark.{role}.cores") or 1
    cpu = given.get("coreRequest") or conf.get(f"spark.kubernetes.{role}.request.cores") or cores
    limit = given.get("coreLimit") or conf.get(f"spark.kubernetes.{role}.limit.cores")
    amount = f"{int(memory) + int(extra)}Mi"
    limits: dict[str, Any] = {"memory": amount}
    if limit:
        limits["cpu"] = limit
    gpu = _map(given.get("gpu"))
    if gpu.get("name"):
        limits[gpu["name"]] = gpu.get("quantity", 1)
    mounted = {_map(mount).get("name") for mount in _list(given.get("volumeMounts"))}
    return given | {
        "resources": {"requests": {"cpu": cpu, "memory": amount}, "limits": limits},
        "volumes": [v for v in _list(spec.get("volumes")) if _map(v).get("name") in mounted],
    }


def _spark_instances(spec: Mapping[str, Any], conf: Mapping[str, Any]) -> int:
    instances = _map(spec.get("executor")).get("instances")
    instances = _int(instances or conf.get("spark.executor.instances"), 0)
    dynamic = _map(spec.get("dynamicAllocation"))
    if dynamic.get("enabled"):
        least = _int(dynamic.get("minExecutors"), 0)
        return max(least, _int(dynamic.get("initialExecutors"), least), instances)
    return instances or 1


def _mebibytes(text: object) -> float:
    found = _MEMORY.fullmatch(str(text).strip())
    if found is None:
        raise DescriptionError(f"{text!r} is not an amount of memory; write it as 512m or 4g")
    return int(found[1]) * _MEBIBYTES[found[2].lower()]


def _float(value: object, default: float) -> float:
    try:
        return float(str(value))
    except ValueError:
        return default


def _int(value: object, default: int) -> int:
    if isinstance(value, str) and not value.isdecimal():
        raise DescriptionError(f"{value!r} is not a whole number")
    return int(str(value)) if str(value).isdecimal() else default


# Prometheus


def shards(values: Values, world: World) -> dict[str, Any]:
    """`shards`: each with its number and the end of its name; the first has none."""
    number = max(1, _int(_map(values.get("spec")).get("shards"), 1))
    return {
        "shards": [
            {"number": shard, "suffix": f"-shard-{shard}" if shard else ""}
            for shard in range(min(number, 1000))
        ]
    }


# Ray


def ray(values: Values, world: World) -> dict[str, Any]:
    """`groups`: the worker groups, each with the number of pods within its bounds."""
    groups = []
    for group in _list(_map(values.get("spec")).get("workerGroupSpecs")):
        group = _map(group)
        least = _int(group.get("minReplicas"), 0)
        wanted = max(_int(group.get("replicas"), least), least)
        if group.get("maxReplicas") is not None:
            wanted = min(wanted, max(_int(group["maxReplicas"], wanted), least))
        pods = 0 if group.get("suspend") else wanted * _int(group.get("numOfHosts"), 1)
        groups.append(group | {"pods": pods})
    return {"groups": groups}


# Strimzi


def kafka(values: Values, world: World) -> dict[str, Any]:
    """`alone`: whether the Kafka itself has the brokers, as no KafkaNodePool does; and what else runs."""
    pools = _node_pools(values["namespace"], values["name"], world)
    spec = _map(values.get("spec"))
    operators = _map(spec.get("entityOperator"))
    return {
        "alone": next(pools, None) is None,
        # `topicOperator: {}` is enough to have one.
        "hasTopicOperator": "topicOperator" in operators,
        "hasUserOperator": "userOperator" in operators,
        "hasEntityOperator": "topicOperator" in operators or "userOperator" in operators,
        "hasCruiseControl": "cruiseControl" in spec,
        "hasKafkaExporter": "kafkaExporter" in spec,
    }


def kafka_node_pool(values: Values, world: World) -> dict[str, Any]:
    """`ids`: the node IDs of this pool. IDs are unique in a cluster, and pools take them in order.

    Each has the `volumes` of its pod; `claims` has all their claims.
    """
    labels = _map(_map(values.get("metadata")).get("labels"))
    cluster = str(labels.get(_CLUSTER_LABEL, ""))
    taken: set[int] = set()
    ids: list[int] = []
    for pool in _node_pools(values["namespace"], cluster, world):
        metadata = _map(pool.get("metadata"))
        wanted = _int(_map(pool.get("spec")).get("replicas"), 0)
        asked = _map(metadata.get("annotations")).get("strimzi.io/next-node-ids", "")
        free = (each for each in (*_ranges(str(asked)), *range(100_000)) if each not in taken)
        mine = list(dict.fromkeys(next(free) for _ in range(min(wanted, 10_000))))
        taken |= set(mine)
        if metadata.get("name") == values["name"]:
            ids = mine
    spec = _map(values.get("spec"))
    roles = _list(spec.get("roles"))
    disks = dict(_disks(_map(spec.get("storage"))))
    pods = {each: f"{cluster}-{values['name']}-{each}" for each in ids}
    return {
        "ids": [
            {
                "id": each,
                "volumes": [
                    {"name": name, "persistentVolumeClaim": {"claimName": f"{name}-{pod}"}}
                    for name in disks
                ],
            }
            for each, pod in pods.items()
        ],
        "claims": [
            {"name": f"{name}-{pod}", "size": disk.get("size"), "class": disk.get("class")}
            for pod in pods.values()
            for name, disk in disks.items()
        ],
        "cluster": cluster,
        "isBroker": "broker" in roles,
        "isController": "controller" in roles,
    }


def _disks(storage: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The persistent disks of a node, by the names of their volumes."""
    if storage.get("type") == "persistent-claim":
        yield "data", dict(storage)
    for volume in map(_map, _list(storage.get("volumes"))):
        if volume.get("type") == "persistent-claim":
            yield f"data-{volume.get('id', 0)}", volume


def _node_pools(namespace: str, cluster: str, world: World) -> Iterator[Mapping[str, Any]]:
    for pool in world.all(_STRIMZI, "KafkaNodePool", namespace):
        labels = _map(_map(pool.get("metadata")).get("labels"))
        if labels.get(_CLUSTER_LABEL) == cluster:
            yield pool


def _ranges(text: str) -> Iterator[int]:
    """`[0-2, 7]` is 0, 1, 2 and 7."""
    for first, last in re.findall(r"(\d+)(?:\s*-\s*(\d+))?", text):
        yield from range(int(first), min(int(last or first), int(first) + 10_000) + 1)


# Kubeflow Trainer

_ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"


def train_job(values: Values, world: World) -> dict[str, Any]:
    """`jobs`: the replicated jobs of the runtime, with what the TrainJob says otherwise."""
    spec = _map(values.get("spec"))
    runtime = _map(_map(values.get("runtime")).get("spec"))
    policy = _map(runtime.get("mlPolicy"))
    trainer = _map(spec.get("trainer"))
    mpi = _map(policy.get("mpi"))
    nodes = _int(trainer.get("numNodes"), _int(policy.get("numNodes"), 1))
    jobs = copy.deepcopy(
        _list(_map(_map(runtime.get("template")).get("spec")).get("replicatedJobs"))
    )
    for job in map(_map, jobs):
        template = _map(job.get("template"))
        ancestor = _map(_map(template.get("metadata")).get("labels")).get(_ANCESTOR)
        is_node = job.get("name") == "node" if "mpi" in policy else ancestor == "trainer"
        if ancestor:
            job["replicas"] = 1
        inner = _map(template.get("spec"))
        if is_node:
            pods = nodes - bool(mpi.get("runLauncherAsNode"))
            inner |= {"parallelism": pods, "completions": pods}
        if is_node or ancestor == "trainer":
            resources = trainer.get("resourcesPerNode")
            for container in _list(_map(_map(inner.get("template")).get("spec")).get("containers")):
                if resources and _map(container).get("name") == "node":
                    container["resources"] = resources
        job["template"] = template | {"spec": inner}
    return {"jobs": [_with_overrides(job, spec) for job in jobs]}


def _with_overrides(job: dict[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    """Apply what the TrainJob changes in the pods of one job, in each form that has existed."""
    pod_specs = []
    for each in map(_map, _list(spec.get("podSpecOverrides"))):
        if _targets(each, job):
            pod_specs.append({k: v for k, v in each.items() if k != "targetJobs"})
    for each in map(_map, _list(spec.get("podTemplateOverrides"))):
        if _targets(each, job):
            pod_specs.append(_map(each.get("spec")))
    for each in map(_map, _list(spec.get("runtimePatches"))):
        patch = _map(_map(_map(each.get("trainingRuntimeSpec")).get("template")).get("spec"))
        for other in map(_map, _list(patch.get("replicatedJobs"))):
            if other.get("name") == job.get("name"):
                inner = _map(_map(_map(other.get("template")).get("spec")).get("template"))
                pod_specs.append(_map(inner.get("spec")))
    for pod_spec in pod_specs:
        job = merged(job, {"template": {"spec": {"template": {"spec": _without(job, pod_spec)}}}})
    return job


def _without(job: Mapping[str, Any], pod_spec: Mapping[str, Any]) -> dict[str, Any]:
    """The change to a pod spec, whose containers are merged by name with those of the job."""
    old = _map(_map(_map(_map(job.get("template")).get("spec")).get("template")).get("spec"))
    lists = {
        key: merged_by_name([old.get(key), pod_spec[key]])
        for key in ("containers", "initContainers", "volumes")
        if key in pod_spec
    }
    return {**pod_spec, **lists}


def _targets(override: Mapping[str, Any], job: Mapping[str, Any]) -> bool:
    names = [_map(each).get("name") for each in _list(override.get("targetJobs"))]
    return not names or job.get("name") in names


# Volcano


def volcano(values: Values, world: World) -> dict[str, Any]:
    """`gang`: the pods that a job needs; by default, and with 0, what each task needs or has."""
    spec = _map(values.get("spec"))
    tasks = [_map(task) for task in _list(spec.get("tasks"))]
    needed = [task.get("minAvailable", task.get("replicas", 1)) for task in tasks]
    total = sum(count for count in needed if isinstance(count, int))
    return {"gang": str(spec.get("minAvailable") or total or "false")}


FUNCTIONS: dict[str, Callable[[Values, World], dict[str, Any]]] = {
    "knative": knative,
    "spark": spark,
    "ray": ray,
    "shards": shards,
    "kafka": kafka,
    "kafka node pool": kafka_node_pool,
    "train job": train_job,
    "volcano": volcano,
}
