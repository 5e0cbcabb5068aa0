import io
import json
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.objects.defaults import TROUBLE_TOLERATIONS, Defaults
from mooring.objects.manifests import decode_object, read_manifests
from mooring.objects.meta import encode_hook
from mooring.objects.pod import Container, ContainerPort, ResourceRequirements
from mooring.objects.selectors import LabelSelector
from mooring.objects.storage import PersistentVolumeClaimSpec
from mooring.objects.taints import Toleration
from tests.makers import (
    HOSTNAME,
    make_affinity_term,
    make_container,
    make_namespace,
    make_node,
    make_pod,
    make_pod_affinity,
    make_priority_class,
    make_selector,
    make_spread,
    resources,
)

PLAIN = Defaults()


def obj(api_version, kind, **fields):
    name = {"name": "o", "namespace": "default", **fields.pop("metadata", {})}
    return decode_object({"apiVersion": api_version, "kind": kind, "metadata": name, **fields})


def test_a_pod_says_what_the_api_server_would_have_written():
    pod = PLAIN.of(make_pod(ports=[ContainerPort(container_port=80)]))

    assert pod.spec.scheduler_name == "default-scheduler"
    assert pod.spec.termination_grace_period_seconds == 30
    assert pod.spec.priority == 0
    assert pod.spec.preemption_policy == "PreemptLowerPriority"
    assert pod.spec.containers[0].ports[0].protocol == "TCP"
    assert pod.status.phase == "Pending"


class TestRequests:
    def test_a_limit_stands_for_a_request_that_is_missing(self):
        container = make_container(cpu="500m", limits={"cpu": 1, "memory": "1Gi"})
        pod = PLAIN.of(make_pod(containers=[container], init_containers=[container]))

        expected = resources(cpu="500m", memory="1Gi")
        assert pod.spec.containers[0].resources.requests == expected
        assert pod.spec.init_containers[0].resources.requests == expected

    def test_an_explicit_zero_stays(self):
        pod = PLAIN.of(make_pod(cpu=0, limits={"cpu": 1}))

        assert pod.requests == {"cpu": 0}

    def test_thousandths_are_kept_and_nothing_finer(self):
        containers = [make_container("a", cpu="0.5m"), make_container("b", cpu="0.5m")]
        pod = make_pod(containers=containers, overhead={"cpu": "1u"})

        assert pod.requests == {"cpu": 2}  # 0.5 + 0.5 + 0.001
        assert PLAIN.of(pod).requests == {"cpu": 3}

    @pytest.mark.parametrize(
        ("level", "containers", "expected"),
        [
            pytest.param(
                {"limits": {"cpu": 4}}, [{"cpu": 1}, {"cpu": 2}], {"cpu": 3}, id="from containers"
            ),
            pytest.param({"limits": {"cpu": 4}}, [{}], {"cpu": 4}, id="from the pod's limit"),
            pytest.param(
                {"limits": {"memory": "1Gi"}},
                [{"cpu": 1}],
                {"cpu": 1, "memory": "1Gi"},
                id="each resource by itself",
            ),
            pytest.param(
                {"requests": {"cpu": 2}},
                [{"cpu": 1, "memory": 5}],
                {"cpu": 2},
                id="no limits: as is",
            ),
            pytest.param(
                {"requests": {"cpu": 2}, "limits": {"cpu": 4}}, [{"cpu": 1}], {"cpu": 2}, id="given"
            ),
        ],
    )
    def test_what_is_open_for_the_pod_follows_from_its_parts(self, level, containers, expected):
        pod = obj(
            "v1",
            "Pod",
            spec={
                "containers": [
                    {"name": f"c{n}", "resources": {"requests": each}}
                    for n, each in enumerate(containers)
                ],
                "resources": level,
            },
        )

        assert PLAIN.of(pod).spec.resources.requests == resources(expected)

    def test_huge_pages_of_containers_become_the_pods_limit_and_request(self):
        pages = {"hugepages-2Mi": "4Mi", "cpu": 1}
        level = ResourceRequirements(requests=resources(cpu=2))
        pod = make_pod(limits=pages)
        pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, resources=level))

        complete = PLAIN.of(pod).spec.resources
        assert complete.limits == resources({"hugepages-2Mi": "4Mi"})
        assert complete.requests == resources({"cpu": 2, "hugepages-2Mi": "4Mi"})


def test_ports_of_a_pod_on_its_nodes_network_are_host_ports():
    ports = [ContainerPort(container_port=80), ContainerPort(container_port=81, host_port=81)]

    assert PLAIN.of(make_pod(ports=ports, host_network=True)).host_ports == (
        ("0.0.0.0", "TCP", 80),
        ("0.0.0.0", "TCP", 81),
    )
    assert PLAIN.of(make_pod(ports=ports)).host_ports == (("0.0.0.0", "TCP", 81),)


class TestPriority:
    CLASSES = (
        make_priority_class("high", 1000),
        make_priority_class("polite", 5, preemption_policy="Never"),
    )

    @pytest.mark.parametrize(
        ("name", "priority", "policy"),
        [
            ("high", 1000, "PreemptLowerPriority"),
            ("polite", 5, "Never"),
            ("system-cluster-critical", 2_000_000_000, "PreemptLowerPriority"),
            ("system-node-critical", 2_000_001_000, "PreemptLowerPriority"),
            ("", 0, "PreemptLowerPriority"),
        ],
    )
    def test_a_class_stands_for_a_number(self, name, priority, policy):
        pod = Defaults(self.CLASSES).of(make_pod(priority_class=name))

        assert (pod.priority, pod.spec.preemption_policy) == (priority, policy)

    def test_the_lowest_of_several_defaults_counts(self):
        defaults = Defaults(
            [
                make_priority_class("a", 7, global_default=True),
                make_priority_class("b", 3, global_default=True),
            ]
        )
        pod = defaults.of(make_pod())

        assert (pod.priority, pod.spec.priority_class_name) == (3, "b")

    def test_a_priority_that_is_set_stays(self):
        pod = Defaults(self.CLASSES).of(make_pod(priority=1, priority_class="high"))

        assert pod.priority == 1

    def test_an_unknown_class_is_left_for_the_reader_to_tell(self):
        pod = make_pod(priority_class="no")

        assert PLAIN.priority_classes.unknown_to(pod.spec)
        assert PLAIN.of(pod).spec.priority is None


class TestLabelKeys:
    LABELS = {"app": "web", "version": "2"}

    def test_match_label_keys_join_the_selector(self):
        term = msgspec.structs.replace(
            make_affinity_term({"app": "web"}),
            match_label_keys=["version", "missing"],
            mismatch_label_keys=["app"],
        )
        affinity = make_pod_affinity(
            term, preferred=[(1, term)], anti=[term], anti_preferred=[(1, term)]
        )
        spec = PLAIN.of(make_pod(labels=self.LABELS, affinity=affinity)).spec

        merged = make_selector({"app": "web"}, ("version", "In", ["2"]), ("app", "NotIn", ["web"]))
        for side in (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity):
            assert side.required[0].label_selector == merged
            assert side.preferred[0].pod_affinity_term.label_selector == merged

    def test_so_do_those_of_spread_constraints(self):
        spread = make_spread(labels={"app": "web"}, match_label_keys=["version"])
        (constraint,) = PLAIN.of(
            make_pod(labels=self.LABELS, spread=[spread])
        ).spec.topology_spread_constraints

        assert constraint.label_selector == make_selector({"app": "web"}, ("version", "In", ["2"]))

    def test_a_selector_that_is_missing_stays_missing(self):
        spread = make_spread(match_label_keys=["version"])
        pod = PLAIN.of(make_pod(labels=self.LABELS, spread=[spread]))

        assert pod.spec.topology_spread_constraints[0].label_selector is None

    def test_an_empty_selector_is_joined(self):
        spread = make_spread(labels=LabelSelector(), match_label_keys=["version"])
        pod = PLAIN.of(make_pod(labels=self.LABELS, spread=[spread]))

        selector = pod.spec.topology_spread_constraints[0].label_selector
        assert selector == make_selector(None, ("version", "In", ["2"]))


@pytest.mark.parametrize(
    ("given_ones", "added"),
    [
        pytest.param([], list(TROUBLE_TOLERATIONS), id="none"),
        pytest.param([Toleration(operator="Exists")], [], id="tolerates everything"),
        pytest.param(
            [Toleration(key=TROUBLE_TOLERATIONS[0].key, operator="Exists")],
            [TROUBLE_TOLERATIONS[1]],
            id="one of the two",
        ),
        pytest.param(
            [Toleration(operator="Exists", effect="NoSchedule")],
            list(TROUBLE_TOLERATIONS),
            id="other effect",
        ),
    ],
)
def test_pods_tolerate_their_nodes_trouble_for_a_while(given_ones, added):
    pod = PLAIN.of(make_pod(tolerations=given_ones))

    assert pod.spec.tolerations == [*given_ones, *added]


def test_a_gated_pod_says_so():
    pod = PLAIN.of(make_pod(gates=["later"]))

    assert pod.condition("PodScheduled").reason == "SchedulingGated"
    assert PLAIN.of(make_pod()).condition("PodScheduled") is None


def test_a_node_offers_its_capacity_unless_it_says_less():
    node = obj("v1", "Node", status={"capacity": {"cpu": "4.0001", "pods": 110}})
    less = obj("v1", "Node", status={"capacity": {"cpu": 4}, "allocatable": {"cpu": 3}})

    assert PLAIN.of(node).status.allocatable == resources(cpu="4001m", pods=110)
    assert PLAIN.of(less).status.allocatable == resources(cpu=3)


def test_a_namespace_carries_its_name_as_a_label():
    assert PLAIN.of(make_namespace("shop")).labels == {"kubernetes.io/metadata.name": "shop"}


class TestStorage:
    @staticmethod
    def storage_class(name, *, created=None, default=True):
        annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
        metadata = {"name": name, "annotations": annotations, "creationTimestamp": created}
        return obj("storage.k8s.io/v1", "StorageClass", metadata=metadata)

    def test_a_claim_without_a_class_gets_the_default(self):
        defaults = Defaults([self.storage_class("slow", default=False), self.storage_class("fast")])
        claim = defaults.of(obj("v1", "PersistentVolumeClaim"))

        assert claim.spec == PersistentVolumeClaimSpec(
            storage_class_name="fast", volume_mode="Filesystem"
        )
        assert claim.status.phase == "Pending"

    @pytest.mark.parametrize(
        "fields",
        [
            {"spec": {"storageClassName": ""}},
            {"metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "x"}}},
            {"status": {"phase": "Bound"}},
            {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}},
        ],
    )
    def test_a_claim_that_wants_none_or_had_its_chance_gets_none(self, fields):
        claim = obj("v1", "PersistentVolumeClaim", **fields)
        complete = Defaults([self.storage_class("fast")]).of(claim)

        assert complete.spec.storage_class_name == claim.spec.storage_class_name

    def test_the_youngest_default_counts_then_the_name(self):
        old, b, a = (
            self.storage_class("old", created="2020-01-01T00:00:00Z"),
            self.storage_class("b", created="2025-01-01T00:00:00Z"),
            self.storage_class("a", created="2025-01-01T00:00:00Z"),
        )

        assert Defaults([old, b, a]).storage_class == "a"
        assert Defaults([]).storage_class is None

    def test_a_volume_that_no_one_has_is_there_to_be_had(self):
        free = PLAIN.of(obj("v1", "PersistentVolume"))
        taken = PLAIN.of(obj("v1", "PersistentVolume", spec={"claimRef": {"uid": "u"}}))

        assert (free.status.phase, taken.status.phase) == ("Available", "Bound")
        assert free.spec.volume_mode == "Filesystem"

    def test_a_class_binds_at_once_unless_it_says_otherwise(self):
        assert PLAIN.of(self.storage_class("c")).volume_binding_mode == "Immediate"


#: As `kubectl get pod -o json` prints it, less what mooring does not read.
DUMPED = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web-7c5ddbdf54-abcde",
        "generateName": "web-7c5ddbdf54-",
        "namespace": "shop",
        "uid": "0b0e0c3a-9d55-4f3a-8a3e-0d8f2d6f9d11",
        "resourceVersion": "12345",
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"app": "web", "pod-template-hash": "7c5ddbdf54"},
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7c5ddbdf54", "uid": "r",
             "controller": True}
        ],
    },
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "nginx:1.29",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1", "memory": "64Mi"}},
            }
        ],
        "nodeName": "n1",
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 1000,
        "priorityClassName": "high",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "tolerations": [
            {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute",
             "tolerationSeconds": 300}
            for key in ("not-ready", "unreachable")
        ],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": HOSTNAME,
                "whenUnsatisfiable": "DoNotSchedule",
                "matchLabelKeys": ["pod-template-hash"],
                "labelSelector": {
                    "matchLabels": {"app": "web"},
                    "matchExpressions": [
                        {"key": "pod-template-hash", "operator": "In", "values": ["7c5ddbdf54"]}
                    ],
                },
            }
        ],
    },
    "status": {"phase": "Running", "startTime": "2026-01-01T00:00:05Z"},
}  # fmt: skip


def test_a_pod_from_an_api_server_comes_out_as_it_went_in():
    pod = decode_object(DUMPED)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [DUMPED, node]})

    assert PLAIN.of(pod) is pod
    assert read_manifests(["-"], stdin=io.BytesIO(text.encode())).pods == [pod]


AMOUNTS = st.sampled_from(["0", "1", "0.5m", "250m", "1.5Gi", "1n", "3"])
RESOURCES = st.dictionaries(st.sampled_from(["cpu", "memory", "hugepages-2Mi"]), AMOUNTS)
CONTAINERS = st.builds(
    Container,
    name=st.just("c"),
    resources=st.builds(
        lambda asked, limits: ResourceRequirements(
            requests=resources(asked), limits=resources(limits)
        ),
        RESOURCES,
        RESOURCES,
    ),
    ports=st.lists(st.builds(ContainerPort, container_port=st.just(80)), max_size=2),
    restart_policy=st.sampled_from(["", "Always"]),
)
LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"))
TERMS = st.builds(
    lambda labels, match, mismatch: msgspec.structs.replace(
        make_affinity_term(labels), match_label_keys=match, mismatch_label_keys=mismatch
    ),
    st.none() | LABELS,
    st.lists(st.sampled_from("abc"), unique=True),
    st.lists(st.sampled_from("abc"), unique=True),
)
PODS = st.builds(
    lambda level, terms, spread_keys, **fields: make_pod(
        pod_level=level,
        affinity=make_pod_affinity(*terms, anti=terms),
        spread=[make_spread(labels={"a": "x"}, match_label_keys=spread_keys)],
        **fields,
    ),
    level=st.none() | RESOURCES,
    terms=st.lists(TERMS, max_size=2),
    spread_keys=st.lists(st.sampled_from("abc"), unique=True),
    labels=LABELS,
    containers=st.lists(CONTAINERS, min_size=1, max_size=2),
    init_containers=st.lists(CONTAINERS, max_size=2),
    host_network=st.booleans(),
    priority=st.none() | st.integers(-5, 5),
    gates=st.sampled_from([[], ["g"]]),
    overhead=RESOURCES,
)


@given(PODS)
def test_doing_it_twice_changes_nothing_more(pod):
    once = PLAIN.of(pod)

    assert PLAIN.of(once) is once
    assert Defaults().of(once) is once


@given(PODS)
def test_what_is_written_out_and_read_again_is_the_same(pod):
    once = PLAIN.of(pod)
    again = decode_object(json.loads(msgspec.json.encode(once, enc_hook=encode_hook)))

    assert again == once


def test_objects_without_defaults_stay_as_they_are():
    service = obj("v1", "Service")
    node = make_node()

    assert PLAIN.of(service) is service
    assert PLAIN.of(node) is node
    started = make_pod(started=datetime(2026, 1, 1, tzinfo=UTC), phase="Running")
    assert PLAIN.of(started).status == started.status
