"""The pods and claims that controllers would create for Deployments, StatefulSets, Jobs and others.

Manifests describe workloads; a scheduler places pods. Here each controller acts once, on the
objects that were read: it counts existing pods, creates missing ones, and deletes nothing. Names
look like those of the real controllers and are the same on every run. The pods of a StatefulSet are
created all at once.

    CronJob → Job ──────────→ Pod
    Deployment → ReplicaSet → Pod → PersistentVolumeClaim (of its ephemeral volumes)
    StatefulSet ────────────→ Pod, PersistentVolumeClaim
    DaemonSet, ReplicationController → Pod
"""

from __future__ import annotations

import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from mooring.objects import daemons
from mooring.objects.generated_names import NameMaker, content_hash, generated_uid
from mooring.objects.kinds import (
    KIND_OF,
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    PodTemplate,
    ReplicaSet,
    ReplicaSetSpec,
    ReplicationController,
    StatefulSet,
)
from mooring.objects.meta import KubeObject, ObjectMeta, OwnerReference
from mooring.objects.node import Node
from mooring.objects.pod import Pod, PodSpec
from mooring.objects.selectors import LabelSelector
from mooring.objects.storage import (
    ClaimTemplate,
    ClaimVolumeSource,
    PersistentVolumeClaim,
    Volume,
)

TEMPLATE_HASH = "pod-template-hash"
REVISION_HASH = "controller-revision-hash"
REVISION = "deployment.kubernetes.io/revision"
POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
JOB_NAMES = ("batch.kubernetes.io/job-name", "job-name")
JOB_UIDS = ("batch.kubernetes.io/controller-uid", "controller-uid")

_LONGEST_BASE = 58

Admit = Callable[[PodSpec], PodSpec]


def made_by_controllers(
    objects: Sequence[KubeObject], *, admit: Admit = lambda spec: spec
) -> list[list[KubeObject]]:
    """For each object, what controllers create for it.

    Objects must have names, namespaces and UIDs. `admit` is applied once to the spec of each
    template, so that the pods of a template share one spec.
    """
    controllers = _Controllers(objects, admit)
    return [list(controllers.made_for(obj)) for obj in objects]


class _Controllers:
    def __init__(self, objects: Sequence[KubeObject], admit: Admit) -> None:
        self._admit = admit
        self._names = NameMaker(objects)
        self._nodes = [obj for obj in objects if isinstance(obj, Node)]
        self._existing = {(obj.kind, obj.key) for obj in objects}
        self._by_owner: dict[object, list[KubeObject]] = defaultdict(list)
        for obj in objects:
            owner = obj.metadata.controller
            if owner is not None:
                self._by_owner[owner.uid].append(obj)
                self._by_owner[obj.namespace, owner.kind, owner.name].append(obj)
        self._orphans = self._pods_by_deployment(objects)

    def made_for(self, obj: KubeObject) -> Iterator[KubeObject]:
        for made in self._made_for(obj):
            yield made
            if isinstance(made, Pod):
                yield from self._ephemeral_claims(made)

    def _made_for(self, obj: KubeObject) -> Iterator[KubeObject]:
        match obj:
            case Pod():
                yield from self._ephemeral_claims(obj)
            case ReplicaSet() | ReplicationController():
                yield from self._replicas(obj, obj.spec.template, _or_one(obj.spec.replicas))
            case Deployment():
                yield from self._deployment(obj)
            case StatefulSet():
                yield from self._stateful_set(obj)
            case DaemonSet():
                yield from self._daemon_set(obj)
            case Job():
                yield from self._job(obj)
            case CronJob():
                yield from self._cron_job(obj)

    # Existing objects

    def _children(self, owner: KubeObject) -> list[KubeObject]:
        named = self._by_owner.get((owner.namespace, owner.kind, owner.name), ())
        known = self._by_owner.get(owner.uid, ()) if owner.uid else ()
        return list({id(child): child for child in (*known, *named)}.values())

    def _pods_of(self, owner: KubeObject) -> list[Pod]:
        return [child for child in self._children(owner) if isinstance(child, Pod)]

    def _pods_by_deployment(
        self, objects: Sequence[KubeObject]
    ) -> dict[tuple[str, str], list[tuple[Pod, OwnerReference]]]:
        """Pods of ReplicaSets that were not read, by the Deployment in their names."""
        known = {(obj.namespace, obj.name) for obj in objects if isinstance(obj, ReplicaSet)}
        found = defaultdict(list)
        for pod in objects:
            if not isinstance(pod, Pod):
                continue
            owner = pod.metadata.controller
            suffix = f"-{pod.labels.get(TEMPLATE_HASH)}"
            if (
                owner is not None
                and owner.kind == "ReplicaSet"
                and owner.name.endswith(suffix)
                and (pod.namespace, owner.name) not in known
            ):
                deployment = owner.name.removesuffix(suffix)
                found[pod.namespace, deployment].append((pod, owner))
        return found

    # Replicas

    def _replicas(
        self, owner: KubeObject, template: PodTemplate | None, wanted: int
    ) -> Iterator[Pod]:
        missing = wanted - sum(map(active, self._pods_of(owner)))
        yield from self._alike(owner, template, missing)

    def _alike(self, owner: KubeObject, template: PodTemplate | None, number: int) -> Iterator[Pod]:
        if template is None or number <= 0:
            return
        first = self._pod(owner, template, self._admit(template.spec))
        yield first
        for _ in range(number - 1):
            yield self._like(first)

    def _like(self, pod: Pod) -> Pod:
        """Another pod from the same template."""
        metadata = pod.metadata
        name = self._names.name(Pod, metadata.namespace, metadata.generate_name)
        uid = generated_uid("", "Pod", metadata.namespace, name)
        return replace(pod, metadata=replace(metadata, name=name, uid=uid))

    def _pod(
        self,
        owner: KubeObject,
        template: PodTemplate,
        spec: PodSpec,
        *,
        name: str = "",
        base: str = "",
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> Pod:
        base = base or f"{owner.name}-"
        name = name or self._names.name(Pod, owner.namespace, base)
        return Pod(
            api_version="v1",
            kind="Pod",
            metadata=ObjectMeta(
                name=name,
                generate_name=base,
                namespace=owner.namespace,
                uid=generated_uid("", "Pod", owner.namespace, name),
                labels={**template.metadata.labels, **(labels or {})},
                annotations={**template.metadata.annotations, **(annotations or {})},
                owner_references=[_reference(owner)],
            ),
            spec=spec,
        )

    def _deployment(self, deployment: Deployment) -> Iterator[KubeObject]:
        template, wanted = deployment.spec.template, _or_one(deployment.spec.replicas)
        if template is None:
            return
        sets = [child for child in self._children(deployment) if isinstance(child, ReplicaSet)]
        if sets:
            missing = wanted - sum(_or_one(each.spec.replicas) for each in sets)
            current = max(sets, key=revision)
            yield from self._alike(current, current.spec.template, missing)
            return
        pods = self._orphans.get((deployment.namespace, deployment.name), ())
        if deployment.spec.paused and not pods:
            # A paused Deployment scales the ReplicaSets that it has, and creates none.
            return
        replica_set = _replica_set(deployment, template, [owner for _, owner in pods])
        yield replica_set
        missing = wanted - sum(active(pod) for pod, _ in pods)
        yield from self._alike(replica_set, replica_set.spec.template, missing)

    # StatefulSets

    def _stateful_set(self, stateful_set: StatefulSet) -> Iterator[KubeObject]:
        template = stateful_set.spec.template
        if template is None:
            return
        spec = self._admit(template.spec)
        revision = f"{stateful_set.name}-{content_hash(template)}"
        start = stateful_set.spec.ordinals.start
        for ordinal in range(start, start + _or_one(stateful_set.spec.replicas)):
            name = f"{stateful_set.name}-{ordinal}"
            claims = {
                each.metadata.name: _ordinal_claim(stateful_set, each, ordinal)
                for each in stateful_set.spec.volume_claim_templates
            }
            yield from (claim for claim in claims.values() if not self._exists(claim))
            if ("Pod", f"{stateful_set.namespace}/{name}") not in self._existing:
                yield self._pod(
                    stateful_set,
                    template,
                    _mounting(spec, claims) if claims else spec,
                    name=name,
                    labels={REVISION_HASH: revision, POD_NAME: name, POD_INDEX: str(ordinal)},
                )

    def _exists(self, obj: KubeObject) -> bool:
        return (obj.kind, obj.key) in self._existing

    # DaemonSets

    def _daemon_set(self, daemon_set: DaemonSet) -> Iterator[Pod]:
        template = daemon_set.spec.template
        if template is None:
            return
        spec = daemons.tolerant(template.spec)
        wanted = [node for node in self._nodes if daemons.runs_on(spec, node)]
        taken = {daemons.target(pod) for pod in self._pods_of(daemon_set) if not pod.finished}
        spec = self._admit(spec)
        revision = {REVISION_HASH: content_hash(template)}
        for node in wanted:
            if node.name not in taken:
                pinned = daemons.pinned(spec, node.name)
                yield self._pod(daemon_set, template, pinned, labels=revision)

    # Jobs

    def _job(self, job: Job) -> Iterator[Pod]:
        template = job.spec.template
        if template is None or job.spec.suspend or job.finished:
            return
        pods = self._pods_of(job)
        missing = wanted_pods(job, pods) - sum(map(active, pods))
        labels = {} if job.spec.manual_selector else _job_labels(job)
        template = _labelled(template, {**labels, **template.metadata.labels})
        if job.spec.completion_mode != "Indexed":
            yield from self._alike(job, template, missing)
            return
        spec = self._admit(template.spec)
        for index in _open_indexes(job, pods)[: max(missing, 0)]:
            mark = {COMPLETION_INDEX: str(index)}
            base = _indexed_base(job.name, index)
            yield self._pod(job, template, spec, base=base, labels=mark, annotations=mark)

    def _cron_job(self, cron_job: CronJob) -> Iterator[KubeObject]:
        if cron_job.spec.suspend or any(isinstance(c, Job) for c in self._children(cron_job)):
            return
        template = cron_job.spec.job_template
        # Real names end in the scheduled time, in minutes since 1970.
        name = f"{cron_job.name}-{20_000_000 + zlib.crc32(cron_job.key.encode()) % 10_000_000}"
        job = Job(
            api_version="batch/v1",
            kind="Job",
            metadata=ObjectMeta(
                name=name,
                namespace=cron_job.namespace,
                uid=generated_uid("batch", "Job", cron_job.namespace, name),
                labels=template.metadata.labels,
                annotations=template.metadata.annotations,
                owner_references=[_reference(cron_job)],
            ),
            spec=template.spec,
        )
        yield job
        yield from self._job(job)

    # Claims of ephemeral volumes

    def _ephemeral_claims(self, pod: Pod) -> Iterator[PersistentVolumeClaim]:
        """For a pod without a node: the claims of a running pod exist already."""
        if pod.node_name or pod.finished:
            return
        for volume in pod.spec.volumes:
            if volume.ephemeral is None or volume.ephemeral.volume_claim_template is None:
                continue
            template = volume.ephemeral.volume_claim_template
            claim = _claim(template, f"{pod.name}-{volume.name}", pod.namespace, owner=pod)
            if not self._exists(claim):
                yield claim


def _or_one(replicas: int | None) -> int:
    return 1 if replicas is None else replicas


def active(pod: Pod) -> bool:
    """Whether controllers count the pod as one of their replicas."""
    return not pod.finished and not pod.terminating


def _reference(owner: KubeObject) -> OwnerReference:
    return OwnerReference(
        api_version=KIND_OF[type(owner)].api_version,
        kind=owner.kind,
        name=owner.name,
        uid=owner.uid,
        controller=True,
    )


def _labelled(template: PodTemplate, labels: dict[str, str]) -> PodTemplate:
    return replace(template, metadata=replace(template.metadata, labels=labels))


def revision(replica_set: ReplicaSet) -> int:
    """The revision of a ReplicaSet. A Deployment creates pods with the highest one."""
    number = replica_set.metadata.annotations.get(REVISION, "")
    return int(number) if number.isdecimal() else 0


def _replica_set(
    deployment: Deployment, template: PodTemplate, references: Sequence[OwnerReference]
) -> ReplicaSet:
    """The ReplicaSet of a Deployment: the one that existing pods refer to, or a new one."""
    if references:
        name, uid = Counter((each.name, each.uid) for each in references).most_common(1)[0][0]
        digest = name.removeprefix(f"{deployment.name}-")
    else:
        digest = content_hash(template)
        name = f"{deployment.name}-{digest}"
        uid = generated_uid("apps", "ReplicaSet", deployment.namespace, name)
    labels = {**template.metadata.labels, TEMPLATE_HASH: digest}
    selector = deployment.spec.selector or LabelSelector(match_labels=template.metadata.labels)
    return ReplicaSet(
        api_version="apps/v1",
        kind="ReplicaSet",
        metadata=ObjectMeta(
            name=name,
            namespace=deployment.namespace,
            uid=uid,
            labels=labels,
            owner_references=[_reference(deployment)],
        ),
        spec=ReplicaSetSpec(
            replicas=_or_one(deployment.spec.replicas),
            selector=replace(
                selector, match_labels={**selector.match_labels, TEMPLATE_HASH: digest}
            ),
            template=_labelled(template, labels),
        ),
    )


def _ordinal_claim(
    stateful_set: StatefulSet, template: ClaimTemplate, ordinal: int
) -> PersistentVolumeClaim:
    selector = stateful_set.spec.selector
    labels = selector.match_labels if selector is not None else {}
    metadata = replace(template.metadata, labels={**template.metadata.labels, **labels})
    return _claim(
        replace(template, metadata=metadata),
        f"{template.metadata.name}-{stateful_set.name}-{ordinal}",
        stateful_set.namespace,
    )


def _claim(
    template: ClaimTemplate, name: str, namespace: str, *, owner: KubeObject | None = None
) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(
        api_version="v1",
        kind="PersistentVolumeClaim",
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=generated_uid("", "PersistentVolumeClaim", namespace, name),
            labels=template.metadata.labels,
            annotations=template.metadata.annotations,
            owner_references=[] if owner is None else [_reference(owner)],
        ),
        spec=template.spec,
    )


def _mounting(spec: PodSpec, claims: Mapping[str, PersistentVolumeClaim]) -> PodSpec:
    volumes = [
        Volume(name=name, persistent_volume_claim=ClaimVolumeSource(claim_name=claim.name))
        for name, claim in claims.items()
    ]
    others = [volume for volume in spec.volumes if volume.name not in claims]
    return replace(spec, volumes=[*volumes, *others])


def wanted_pods(job: Job, pods: Iterable[Pod]) -> int:
    """How many active pods an unfinished Job wants, given the pods that it has had."""
    succeeded = sum(pod.status.phase == "Succeeded" for pod in pods)
    succeeded = max(succeeded, job.status.succeeded)
    parallelism, completions = _or_one(job.spec.parallelism), _completions(job)
    if completions is None:
        # A work queue: after the first success no more pods are created.
        return 0 if succeeded else parallelism
    return min(parallelism, completions - succeeded)


def _completions(job: Job) -> int | None:
    """None for a work queue, which only says its parallelism."""
    if job.spec.completions is None and job.spec.parallelism is None:
        return 1
    return job.spec.completions


def _job_labels(job: Job) -> dict[str, str]:
    return {**dict.fromkeys(JOB_UIDS, job.uid), **dict.fromkeys(JOB_NAMES, job.name)}


def _open_indexes(job: Job, pods: Sequence[Pod]) -> list[int]:
    completions = _completions(job) or 0
    done = set(_indexes(job.status.completed_indexes, completions))
    for pod in pods:
        index = pod.metadata.annotations.get(COMPLETION_INDEX, "")
        if index.isdecimal() and (active(pod) or pod.status.phase == "Succeeded"):
            done.add(int(index))
    return [index for index in range(completions) if index not in done]


def _indexes(text: str, end: int) -> Iterator[int]:
    """`1-3,7` is 1, 2, 3 and 7."""
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text):
        yield from range(int(first), min(int(last or first) + 1, end))


def _indexed_base(job_name: str, index: int) -> str:
    suffix = f"-{index}-"
    return job_name[: _LONGEST_BASE - len(suffix)] + suffix
