import io
import json
import re

import msgspec
import pytest

from mooring.objects.controllers import made_by_controllers
from mooring.objects.daemons import NETWORK_TOLERATION, TOLERATIONS
from mooring.objects.kinds import Deployment, Job, ReplicaSet
from mooring.objects.manifests import decode_object, read_manifests
from mooring.objects.meta import encode_hook
from mooring.objects.pod import Pod
from mooring.objects.selectors import compile_selector
from mooring.objects.storage import PersistentVolumeClaim
from mooring.objects.taints import Toleration
from tests.makers import make_node, make_owner, make_pod

TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c"}]}}
SELECTOR = {"matchLabels": {"app": "web"}}
GROUPS = {"Job": "batch/v1", "CronJob": "batch/v1", "ReplicationController": "v1"}


def workload(kind, name="web", *, template=TEMPLATE, metadata=None, status=None, **spec):
    if kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"):
        spec.setdefault("selector", SELECTOR)
    return decode_object(
        {
            "apiVersion": GROUPS.get(kind, "apps/v1"),
            "kind": kind,
            "metadata": {
                "name": name,
                "namespace": "shop",
                "uid": f"{kind}-{name}",
                **(metadata or {}),
            },
            "spec": {"template": template, **spec},
            "status": status or {},
        }
    )


def templated(**spec):
    return {**TEMPLATE, "spec": {**TEMPLATE["spec"], **spec}}


def owned_pod(name, owner, *, namespace="shop", **fields):
    return make_pod(name, namespace=namespace, owner=owner, **fields)


def expand_controllers(objects, **options):
    """The objects, each followed by what controllers create for it."""
    made = made_by_controllers(objects, **options)
    return [each for obj, more in zip(objects, made, strict=True) for each in (obj, *more)]


def expanded(*objects, kind=Pod):
    return [obj for obj in expand_controllers(objects) if isinstance(obj, kind)]


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController"])
def test_replicas_are_alike_but_for_their_names(kind):
    pods = expanded(workload(kind, replicas=3))

    assert len({pod.name for pod in pods}) == 3
    assert len({pod.uid for pod in pods}) == 3
    for pod in pods:
        assert re.fullmatch(r"web-[bcdfghjklmnpqrstvwxz2456789]{5}", pod.name)
        assert pod.namespace == "shop"
        assert pod.labels == {"app": "web"}
        assert pod.spec is pods[0].spec
        owner = pod.metadata.controller
        assert (owner.kind, owner.name, owner.uid) == (kind, "web", f"{kind}-web")
        assert owner.api_version == GROUPS.get(kind, "apps/v1")


@pytest.mark.parametrize(
    "kind", ["Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"]
)
def test_one_replica_is_the_default(kind):
    assert len(expanded(workload(kind))) == 1
    assert len(expanded(workload(kind, replicas=0))) == 0


def test_a_paused_deployment_makes_no_replica_set():
    """Its controller scales what exists, and creates nothing; mooring placed its pods."""
    paused = workload("Deployment", replicas=3, paused=True)
    existing = workload("ReplicaSet", "web-1", metadata=_owned_by(paused), replicas=1)

    assert expanded(paused) == []
    assert len(expanded(paused, existing)) == 3


def test_it_is_the_same_every_time():
    objects = [
        make_node(),
        *(workload(kind) for kind in ("Deployment", "DaemonSet", "StatefulSet", "Job")),
    ]

    assert expand_controllers(objects) == expand_controllers(objects)


def test_what_is_made_follows_its_maker():
    kinds = [
        obj.kind for obj in expand_controllers([workload("Deployment", replicas=2), make_node()])
    ]

    assert kinds == ["Deployment", "ReplicaSet", "Pod", "Pod", "Node"]


class TestDeployment:
    def test_a_replica_set_stands_between_it_and_its_pods(self):
        (replica_set,) = expanded(workload("Deployment", replicas=2), kind=ReplicaSet)
        pods = expanded(workload("Deployment", replicas=2))
        digest = replica_set.labels["pod-template-hash"]

        assert replica_set.name == f"web-{digest}"
        assert re.fullmatch(r"[bcdfghjklmnpqrstvwxz2456789]{6,10}", digest)
        assert replica_set.metadata.controller.kind == "Deployment"
        for pod in pods:
            assert re.fullmatch(rf"web-{digest}-\w{{5}}", pod.name)
            assert pod.labels == {"app": "web", "pod-template-hash": digest}
            assert pod.metadata.controller.uid == replica_set.uid
            assert compile_selector(replica_set.spec.selector).matches(pod.labels)
        assert not compile_selector(replica_set.spec.selector).matches({"app": "web"})

    def test_another_template_has_another_hash(self):
        one, other = (
            expanded(workload("Deployment", template=template), kind=ReplicaSet)[0].name
            for template in (TEMPLATE, templated(priority=1))
        )

        assert one != other

    def test_a_long_name_is_cut_as_the_api_cuts_it(self):
        (pod,) = expanded(workload("Deployment", "w" * 60))

        assert len(pod.name) == 63

    def test_replica_sets_and_pods_of_a_dump_are_counted(self):
        deployment = workload("Deployment", replicas=3)
        replica_set = workload(
            "ReplicaSet",
            "web-abc",
            replicas=3,
            metadata={"ownerReferences": [_raw_owner(deployment)]},
        )
        pods = [
            owned_pod(f"p{n}", make_owner("ReplicaSet", "web-abc", uid=replica_set.uid))
            for n in range(2)
        ]

        everything = expand_controllers([deployment, replica_set, *pods])

        made = [obj for obj in everything if obj not in (deployment, replica_set, *pods)]
        assert [pod.metadata.controller.name for pod in made] == ["web-abc"]

    def test_pods_of_a_dump_without_replica_sets_are_counted(self):
        """`kubectl get deployments,pods` leaves the ReplicaSets out; names and labels tell."""
        owner = make_owner("ReplicaSet", "web-abc123", uid="rs")
        labels = {"app": "web", "pod-template-hash": "abc123"}
        pods = [owned_pod(f"p{n}", owner, labels=labels) for n in range(2)]

        everything = expand_controllers([workload("Deployment", replicas=3), *pods])

        (replica_set,) = (obj for obj in everything if isinstance(obj, ReplicaSet))
        (made,) = (obj for obj in everything if isinstance(obj, Pod) and obj not in pods)
        assert (replica_set.name, replica_set.uid) == ("web-abc123", "rs")
        assert made.labels == labels

    def test_a_deployment_that_was_scaled_up_grows_its_latest_replica_set(self):
        deployment = workload("Deployment", replicas=3)
        sets = [
            workload(
                "ReplicaSet",
                f"web-{name}",
                replicas=replicas,
                metadata={
                    "ownerReferences": [_raw_owner(deployment)],
                    "annotations": {"deployment.kubernetes.io/revision": revision},
                },
            )
            for name, replicas, revision in (("new", 1, "10"), ("old", 0, "9"))
        ]

        owners = [pod.metadata.controller.name for pod in expanded(deployment, *sets)]

        assert owners == ["web-new"] * 3


def _owned_by(obj):
    return {"ownerReferences": [_raw_owner(obj)]}


def _raw_owner(obj):
    return {
        "apiVersion": obj.api_version,
        "kind": obj.kind,
        "name": obj.name,
        "uid": obj.uid,
        "controller": True,
    }


class TestExistingPods:
    SET = workload("ReplicaSet", replicas=3)
    OWNER = make_owner("ReplicaSet", "web", uid=SET.uid)

    def made(self, *pods):
        return len(expanded(self.SET, *pods)) - len(pods)

    def test_only_the_missing_ones_are_made(self):
        assert self.made(owned_pod("a", self.OWNER)) == 2
        assert self.made(*(owned_pod(name, self.OWNER) for name in "abc")) == 0
        assert self.made(*(owned_pod(name, self.OWNER) for name in "abcd")) == 0

    def test_an_owner_is_known_by_kind_and_name_too(self):
        assert self.made(owned_pod("a", make_owner("ReplicaSet", "web", uid="another"))) == 2

    @pytest.mark.parametrize(
        "pod",
        [
            pytest.param(owned_pod("a", OWNER, phase="Succeeded"), id="finished"),
            pytest.param(owned_pod("a", OWNER, phase="Failed"), id="failed"),
            pytest.param(owned_pod("a", make_owner("StatefulSet", "web")), id="another kind's"),
            pytest.param(owned_pod("a", make_owner("ReplicaSet", "x")), id="another name's"),
            pytest.param(
                owned_pod("a", make_owner("ReplicaSet", "web"), namespace="other"), id="elsewhere"
            ),
            pytest.param(make_pod("a", namespace="shop", labels={"app": "web"}), id="no one's"),
        ],
    )
    def test_other_pods_do_not_count(self, pod):
        assert self.made(pod) == 3

    def test_a_name_that_is_taken_is_not_given_again(self):
        (first, *_) = expanded(self.SET)
        taken = make_pod(first.name, namespace="shop")

        names = [pod.name for pod in expanded(self.SET, taken)]

        assert len(set(names)) == 4


class TestStatefulSet:
    def test_pods_are_numbered(self):
        pods = expanded(workload("StatefulSet", replicas=2))

        assert [pod.name for pod in pods] == ["web-0", "web-1"]
        assert pods[1].labels["statefulset.kubernetes.io/pod-name"] == "web-1"
        assert pods[1].labels["apps.kubernetes.io/pod-index"] == "1"
        assert pods[1].labels["app"] == "web"
        assert (
            pods[0].labels["controller-revision-hash"] == pods[1].labels["controller-revision-hash"]
        )

    def test_numbers_may_start_elsewhere(self):
        pods = expanded(workload("StatefulSet", replicas=2, ordinals={"start": 5}))

        assert [pod.name for pod in pods] == ["web-5", "web-6"]

    def test_gaps_are_filled(self):
        stateful_set = workload("StatefulSet", replicas=3)
        running = owned_pod("web-1", make_owner("StatefulSet", "web", uid=stateful_set.uid))

        assert [pod.name for pod in expanded(stateful_set, running)] == ["web-0", "web-2", "web-1"]

    def test_each_pod_has_claims_of_its_own(self):
        claim = {
            "metadata": {"name": "data", "labels": {"tier": "db"}},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
        other = {"name": "other", "image": {"reference": "models:1"}}
        template = templated(volumes=[{"name": "data"}, other])
        objects = [
            workload("StatefulSet", replicas=2, template=template, volumeClaimTemplates=[claim])
        ]

        claims = expanded(*objects, kind=PersistentVolumeClaim)
        pods = expanded(*objects)

        assert [each.name for each in claims] == ["data-web-0", "data-web-1"]
        assert claims[0].labels == {"tier": "db", "app": "web"}
        assert claims[0].spec.resources.requests["storage"].value == 2**30
        assert [volume.name for volume in pods[1].spec.volumes] == ["data", "other"]
        assert pods[1].spec.volumes[0].persistent_volume_claim.claim_name == "data-web-1"
        assert len(expanded(*objects, claims[0], kind=PersistentVolumeClaim)) == 2


class TestDaemonSet:
    NODES = (
        make_node("plain"),
        make_node("tainted", taints=["gpu=yes:NoSchedule"]),
        make_node("evicting", taints=["gone:NoExecute"]),
        make_node("soft", taints=["busy:PreferNoSchedule"]),
        make_node(
            "cordoned", taints=["node.kubernetes.io/unschedulable:NoSchedule"], unschedulable=True
        ),
        make_node("broken", taints=["node.kubernetes.io/not-ready:NoExecute"]),
        make_node("offline", taints=["node.kubernetes.io/network-unavailable:NoSchedule"]),
        make_node("labelled", labels={"disk": "ssd"}),
    )

    def placed(self, **spec):
        daemon_set = workload("DaemonSet", template=templated(**spec))
        return [_pinned_to(pod) for pod in expanded(daemon_set, *self.NODES)]

    @pytest.mark.parametrize(
        ("spec", "without"),
        [
            pytest.param({}, {"tainted", "evicting", "offline"}, id="as it stands"),
            pytest.param(
                {"tolerations": [{"key": "gpu", "operator": "Exists"}]},
                {"evicting", "offline"},
                id="tolerates one",
            ),
            pytest.param(
                {"hostNetwork": True}, {"tainted", "evicting"}, id="on its node's network"
            ),
            pytest.param({"tolerations": [{"operator": "Exists"}]}, set(), id="tolerates all"),
        ],
    )
    def test_one_pod_goes_to_each_node_whose_taints_it_tolerates(self, spec, without):
        everywhere = [node.name for node in self.NODES]

        assert self.placed(**spec) == [name for name in everywhere if name not in without]

    def test_only_nodes_that_it_selects_are_meant(self):
        in_term = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
        required = {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [in_term]}
        }

        assert self.placed(nodeSelector={"disk": "ssd"}) == ["labelled"]
        assert self.placed(affinity={"nodeAffinity": required}) == ["labelled"]
        assert self.placed(nodeName="plain") == ["plain"]

    def test_a_pod_is_tied_to_its_node_by_name(self):
        preference = {
            "weight": 1,
            "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
        }
        affinity = {
            "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preference]},
            "podAntiAffinity": {},
        }
        (pod,) = expanded(
            workload("DaemonSet", template=templated(affinity=affinity)), make_node("n")
        )

        (term,) = pod.spec.affinity.node_affinity.required.node_selector_terms
        assert term.match_expressions == []
        assert [(f.key, f.operator, f.values) for f in term.match_fields] == [
            ("metadata.name", "In", ["n"])
        ]
        assert len(pod.spec.affinity.node_affinity.preferred) == 1
        assert pod.spec.affinity.pod_anti_affinity is not None

    def test_a_daemon_tolerates_its_nodes_troubles(self):
        own = {
            "key": "node.kubernetes.io/not-ready",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 5,
        }
        template = templated(tolerations=[own], hostNetwork=True)
        (pod,) = expanded(workload("DaemonSet", template=template), make_node("n"))

        assert pod.spec.tolerations == [*TOLERATIONS, NETWORK_TOLERATION]
        assert (
            Toleration(key="node.kubernetes.io/not-ready", operator="Exists", effect="NoExecute")
            in pod.spec.tolerations
        )

    def test_nodes_that_have_their_pod_get_no_other(self):
        daemon_set = workload("DaemonSet")
        owner = make_owner("DaemonSet", "web", uid=daemon_set.uid)
        nodes = [make_node(name) for name in ("a", "b", "c")]
        (waiting,) = expanded(daemon_set, nodes[0])
        running = owned_pod("x", owner, node="b")
        failed = owned_pod("y", owner, node="c", phase="Failed")

        pods = expanded(daemon_set, *nodes, waiting, running, failed)

        assert [_pinned_to(pod) for pod in pods if pod not in (waiting, running, failed)] == ["c"]


def _pinned_to(pod):
    (term,) = pod.spec.affinity.node_affinity.required.node_selector_terms
    return term.match_fields[0].values[0]


class TestJob:
    @pytest.mark.parametrize(
        ("spec", "number"),
        [
            ({}, 1),
            ({"parallelism": 3}, 3),
            ({"completions": 5}, 1),
            ({"completions": 2, "parallelism": 3}, 2),
            ({"completions": 5, "parallelism": 3}, 3),
            ({"parallelism": 0}, 0),
            ({"parallelism": 3, "suspend": True}, 0),
        ],
    )
    def test_as_many_pods_run_at_once_as_it_allows(self, spec, number):
        assert len(expanded(workload("Job", **spec))) == number

    def test_its_pods_carry_its_name(self):
        (pod,) = expanded(workload("Job"))

        assert re.fullmatch(r"web-\w{5}", pod.name)
        assert pod.labels == {
            "app": "web",
            "job-name": "web",
            "batch.kubernetes.io/job-name": "web",
            "controller-uid": "Job-web",
            "batch.kubernetes.io/controller-uid": "Job-web",
        }

    @pytest.mark.parametrize(
        ("status", "number"),
        [
            ({"succeeded": 3}, 2),
            ({"succeeded": 5}, 0),
            ({"conditions": [{"type": "Complete", "status": "True"}]}, 0),
            ({"conditions": [{"type": "Failed", "status": "True"}]}, 0),
            ({"conditions": [{"type": "Failed", "status": "False"}]}, 3),
        ],
    )
    def test_what_is_done_is_not_done_again(self, status, number):
        job = workload("Job", completions=5, parallelism=3, status=status)

        assert len(expanded(job)) == number

    def test_pods_that_ended_well_count_as_done(self):
        job = workload("Job", completions=3, parallelism=3)
        owner = make_owner("Job", "web", uid=job.uid)
        pods = [
            owned_pod("a", owner, phase="Succeeded"),
            owned_pod("b", owner, phase="Failed"),
            owned_pod("c", owner, phase="Running"),
        ]

        assert len(expanded(job, *pods)) - len(pods) == 1

    def test_indexed_pods_know_their_index(self):
        job = workload(
            "Job",
            completions=6,
            parallelism=2,
            completionMode="Indexed",
            status={"completedIndexes": "0,2-3", "succeeded": 3},
        )
        pods = expanded(job)

        assert [re.sub(r"\w{5}$", "", pod.name) for pod in pods] == ["web-1-", "web-4-"]
        assert pods[0].labels["batch.kubernetes.io/job-completion-index"] == "1"
        assert pods[0].metadata.annotations["batch.kubernetes.io/job-completion-index"] == "1"

    def test_an_index_that_runs_is_not_started_again(self):
        job = workload("Job", completions=3, parallelism=3, completionMode="Indexed")
        running = owned_pod(
            "x",
            make_owner("Job", "web", uid=job.uid),
            annotations={"batch.kubernetes.io/job-completion-index": "1"},
        )

        pods = expanded(job, running)

        assert sorted(pod.name[:6] for pod in pods if pod is not running) == ["web-0-", "web-2-"]


class TestCronJob:
    def cron_job(self, **spec):
        return decode_object(
            {
                "apiVersion": "batch/v1",
                "kind": "CronJob",
                "metadata": {"name": "nightly", "namespace": "shop", "uid": "cron"},
                "spec": {"jobTemplate": {"spec": {"parallelism": 2, "template": TEMPLATE}}, **spec},
            }
        )

    def test_one_run_of_it_is_made(self):
        (job,) = expanded(self.cron_job(), kind=Job)

        assert re.fullmatch(r"nightly-\d{8}", job.name)
        assert job.metadata.controller.name == "nightly"
        assert {pod.metadata.controller.uid for pod in expanded(self.cron_job())} == {job.uid}
        assert len(expanded(self.cron_job())) == 2

    def test_none_if_it_is_suspended_or_has_run(self):
        cron_job = self.cron_job()
        run = workload(
            "Job", "nightly-1", suspend=True, metadata={"ownerReferences": [_raw_owner(cron_job)]}
        )

        assert expanded(self.cron_job(suspend=True), kind=Job) == []
        assert expanded(cron_job, run, kind=Job) == [run]


def test_a_pod_with_a_volume_of_its_own_gets_a_claim():
    volume = {
        "name": "scratch",
        "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}},
    }
    pods = [workload("ReplicaSet", template=templated(volumes=[volume]))]

    (pod,) = expanded(*pods)
    (claim,) = expanded(*pods, kind=PersistentVolumeClaim)

    assert claim.name == f"{pod.name}-scratch"
    assert claim.spec.storage_class_name == "fast"
    assert claim.metadata.controller.uid == pod.uid
    assert expanded(pod, kind=PersistentVolumeClaim) == [claim]
    assert expanded(pod.placed_on("n"), kind=PersistentVolumeClaim) == []


def test_templates_are_admitted_once():
    seen = []

    def admit(spec):
        seen.append(spec)
        return spec

    expand_controllers([workload("Deployment", replicas=50)], admit=admit)

    assert len(seen) == 1


def test_a_workload_from_a_file_becomes_complete_pods():
    text = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, resources: {limits: {cpu: 1}}}]
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {matchLabels: {app: web}}
        matchLabelKeys: [pod-template-hash]
"""
    manifests = read_manifests(["-"], stdin=io.BytesIO(text.encode()))
    one, other = manifests.pods
    (constraint,) = one.spec.topology_spread_constraints

    assert isinstance(manifests.objects[0], Deployment)
    assert one.requests == {"cpu": 1000}
    assert compile_selector(constraint.label_selector).matches(other.labels)
    assert not compile_selector(constraint.label_selector).matches({"app": "web"})
    # A dump of what was made is complete: nothing more is made of it.
    dump = [json.loads(_encoded(obj)) for obj in manifests.objects]
    again = read_manifests(
        ["-"],
        stdin=io.BytesIO(json.dumps({"apiVersion": "v1", "kind": "List", "items": dump}).encode()),
    )
    assert again.objects == manifests.objects


def _encoded(obj):
    return msgspec.json.encode(obj, enc_hook=encode_hook)
