from __future__ import annotations

import re
from contextlib import closing

import pytest

from mooring.errors import ConfigError, InputError
from mooring.objects.daemons import home
from mooring.objects.kubelet_labels import labelled
from mooring.objects.meta import ObjectMeta
from mooring.objects.pod import Pod
from mooring.objects.policies import ResourceQuota, ResourceQuotaSpec
from mooring.objects.quantity import Quantity
from mooring.web.changes_file import changes_text, read_changes
from mooring.web.requested_changes import Named, NodesLike, RequestedChanges, Scale
from mooring.web.what_if import (
    Applied,
    apply,
    config_text,
    object_text,
    read_beside,
    read_config,
)
from mooring.web.workloads import workload_name
from tests.makers import make_node, make_owner, make_pod, make_priority_class
from tests.web_unit.clusters import BIG, THERE, WEB, run_of, run_spec

POD = """
apiVersion: v1
kind: Pod
metadata: {name: big, namespace: default}
spec:
  containers: [{name: c, resources: {requests: {cpu: 100m}}}]
"""
MOST_ALLOCATED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""


def by_key(given):
    return {(obj.kind, obj.key): obj for obj in given.objects}


def test_an_object_of_the_same_name_is_replaced_where_it_stood():
    before = run_spec()

    outcome = apply(before, [RequestedChanges(objects=POD)], None)

    assert [obj.key for obj in outcome.run_spec.objects] == [obj.key for obj in before.objects]
    assert by_key(outcome.run_spec)["Pod", BIG].requests["cpu"] == 100
    assert outcome.changes == ("replace pod default/big",)


def test_an_object_of_another_name_is_added():
    outcome = apply(run_spec(), [RequestedChanges(objects=POD.replace("big", "other"))], None)

    assert ("Pod", "default/other") in by_key(outcome.run_spec)
    assert outcome.changes == ("add pod default/other",)


def test_texts_may_refer_to_what_the_cluster_has():
    text = POD.replace("spec:", "spec:\n  nodeName: n1\n  priorityClassName: urgent")

    (found,) = read_beside(text, run_spec(make_priority_class("urgent", 7)).objects)

    assert isinstance(found, Pod)
    assert found.priority == 7


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("", "no object", id="empty"),
        pytest.param("kind: Ingress\napiVersion: networking.k8s.io/v1", "does not read", id="kind"),
        pytest.param(POD.replace("100m", "-1"), "-1 is negative", id="negative"),
        pytest.param("a: [", "line 2", id="no YAML"),
    ],
)
def test_a_text_that_cannot_be_used_is_told(text, words):
    with pytest.raises(InputError, match=words):
        read_beside(text, run_spec().objects)


def test_a_removed_node_takes_its_own_pods_along_and_sends_the_others_away():
    daemon = make_pod("daemon", node="n1", owner=make_owner("DaemonSet", "daemon"))

    outcome = apply(run_spec(daemon), [RequestedChanges(remove=[Named("Node", "n1")])], None)

    left = by_key(outcome.run_spec)
    assert ("Node", "n1") not in left
    assert ("Pod", "default/daemon") not in left
    assert left["Pod", THERE].node_name == ""


DAEMON_SET = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: default}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: c, resources: {requests: {cpu: 10m}}}]}
"""


def daemon_pods(given):
    return [obj for obj in given.objects if isinstance(obj, Pod) and obj.belongs_to_node]


def test_daemon_pods_that_are_still_to_be_bound_go_with_their_node():
    """They stayed, pinned to a node that does not exist, and were counted as newly pending."""
    before = apply(run_spec(), [RequestedChanges(objects=DAEMON_SET)], None).run_spec
    assert {home(pod) for pod in daemon_pods(before)} == {"n1", "n2", "shut"}

    removed = apply(before, [RequestedChanges(remove=[Named("Node", "n1")])], None)
    lost = apply(before, [RequestedChanges(lose="b")], None)

    assert {home(pod) for pod in daemon_pods(removed.run_spec)} == {"n2", "shut"}
    assert {home(pod) for pod in daemon_pods(lost.run_spec)} == {"n1", "shut"}


def test_a_copy_of_a_node_gets_the_daemon_pods_that_its_model_is_to_get():
    before = apply(run_spec(), [RequestedChanges(objects=DAEMON_SET)], None).run_spec

    outcome = apply(before, [RequestedChanges(add_nodes=[NodesLike("n1", 2)])], None)

    homes = sorted(home(pod) for pod in daemon_pods(outcome.run_spec))
    assert homes == ["n1", "n1-copy-1", "n1-copy-2", "n2", "shut"]
    with closing(run_of(outcome.run_spec)) as run:
        assert [each for each in run.report.unplaced if "agent" in each.pod] == []


NODE = """
apiVersion: v1
kind: Node
metadata: {name: new}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
"""


@pytest.mark.parametrize(
    "change",
    [
        RequestedChanges(nodes="2xm5.xlarge"),
        RequestedChanges(objects=NODE),
        RequestedChanges(objects=NODE + "---" + DAEMON_SET.replace("agent", "other")),
    ],
    ids=["of a machine type", "as a manifest", "with a DaemonSet of their own"],
)
def test_nodes_that_join_get_daemon_pods(change):
    """Their room for other pods was overstated."""
    before = apply(run_spec(), [RequestedChanges(objects=DAEMON_SET)], None).run_spec
    # The user removed this one: it does not come back.
    gone = next(pod for pod in daemon_pods(before) if home(pod) == "n2")
    before = apply(before, [RequestedChanges(remove=[Named("Pod", gone.key)])], None).run_spec

    after = apply(before, [change], None).run_spec

    agents = [home(pod) for pod in daemon_pods(after) if pod.labels["app"] == "agent"]
    assert sorted(agents) == sorted({node.name for node in after.nodes} - {"n2", "gpu"})
    assert len({obj.key for obj in daemon_pods(after)}) == len(daemon_pods(after))
    with closing(run_of(after)) as run:
        assert [each for each in run.report.unplaced if "agent" in each.pod] == []


def test_a_removed_pod_is_gone():
    outcome = apply(run_spec(), [RequestedChanges(remove=[Named("Pod", BIG)])], None)

    assert ("Pod", BIG) not in by_key(outcome.run_spec)


def test_nodes_are_added_like_another_one():
    outcome = apply(run_spec(), [RequestedChanges(add_nodes=[NodesLike("n1", 2)])], None)

    assert len(outcome.run_spec.nodes) == len(run_spec().nodes) + 2
    assert outcome.changes == ("add 2 nodes like n1",)


@pytest.mark.parametrize(
    "what_if",
    [
        RequestedChanges(remove=[Named("Node", "nowhere")]),
        RequestedChanges(add_nodes=[NodesLike("nowhere")]),
        RequestedChanges(add_nodes=[NodesLike("n1", 0)]),
        RequestedChanges(add_nodes=[NodesLike("n1", 10_000_000)]),
    ],
)
def test_what_is_not_there_cannot_be_changed(what_if):
    with pytest.raises(InputError):
        apply(run_spec(), [what_if], None)


def test_another_configuration_is_read_and_built():
    outcome = apply(run_spec(), [RequestedChanges(config=MOST_ALLOCATED)], None)

    assert outcome.run_spec.config is not None
    assert outcome.changes == ("another configuration",)


@pytest.mark.parametrize(
    "text", ["kind: Pod", MOST_ALLOCATED.replace("MostAllocated", "Whatever"), "a: [", ""]
)
def test_a_configuration_that_cannot_be_used_is_told(text):
    with pytest.raises(ConfigError):
        read_config(text)


def test_a_counterfactual_that_is_made_true_places_the_pod():
    before = run_spec()
    run = run_of(before)
    answers = run.counterfactuals(BIG, budget_s=60.0, timer=lambda: 0.0).answers
    run.close()
    assert answers

    for answer in answers:
        outcome = apply(before, [], Applied(BIG, answer))
        again = run_of(outcome.run_spec)
        assert BIG in {each.pod for each in again.report.placements}, answer.text
        again.close()


def test_texts_of_a_run_can_be_read_back():
    given = run_spec(labelled(make_node("n9", zone="c")))

    assert read_config(config_text(given)) is not None
    for kind, key in (("Pod", WEB), ("Node", "n9")):
        text = object_text(given, Named(kind, key))
        assert text is not None
        assert text.startswith("apiVersion: v1\nkind: ")
        assert read_beside(text, given.objects) == [by_key(given)[kind, key]]


def test_there_is_no_text_of_what_is_not_there():
    assert object_text(run_spec(), Named("Node", "nowhere")) is None


def test_a_pod_that_a_quota_refuses_is_a_problem():
    quota = ResourceQuota(
        api_version="v1",
        kind="ResourceQuota",
        metadata=ObjectMeta(name="q", namespace="default"),
        spec=ResourceQuotaSpec(hard={"pods": Quantity(7)}),
    )
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: more}\nspec: {containers: [{name: c}]}\n"

    # There are 7 pods.
    with pytest.raises(InputError, match="default/more would not be created: exceeded quota: q"):
        read_beside(text, run_spec(quota).objects)
    assert read_beside(text, run_spec().objects)


# The list of changes


def pods_of(spec, workload):
    return [pod for pod in spec.pods if workload_name(pod) == workload]


def test_a_drained_node_takes_no_pods_and_its_pods_look_for_another():
    daemon = make_pod("agent", node="n1", owner=make_owner("DaemonSet", "agent"))
    outcome = apply(run_spec(daemon), [RequestedChanges(drain="n1, n2")])
    after = {obj.key: obj for obj in outcome.run_spec.objects}
    assert [after[name].spec.unschedulable for name in ("n1", "n2")] == [True, True]
    assert after[THERE].node_name == ""
    assert after["default/agent"].node_name == "n1"
    assert outcome.changes == ("drain n1, n2",)


def test_a_lost_zone_takes_its_nodes_along():
    outcome = apply(run_spec(), [RequestedChanges(lose="a")])
    assert {node.name for node in outcome.run_spec.nodes} == {"n2", "gpu"}
    assert outcome.changes == ("lose a (2 nodes)",)


@pytest.mark.parametrize(("replicas", "names"), [(0, 0), (2, 2), (3, 3), (7, 7)])
def test_a_workload_is_scaled(replicas, names):
    scale = RequestedChanges(scale=Scale("ReplicaSet default/web", replicas))
    after = apply(run_spec(), [scale]).run_spec
    pods = pods_of(after, "ReplicaSet default/web")
    assert len({pod.key for pod in pods}) == len({pod.uid for pod in pods}) == names
    more = RequestedChanges(scale=Scale("ReplicaSet default/web", replicas + 2))
    if replicas:
        again = pods_of(apply(after, [more]).run_spec, "ReplicaSet default/web")
        assert len({pod.key for pod in again}) == names + 2


def test_nodes_of_a_machine_type_are_added_with_names_of_their_own():
    twice = [RequestedChanges(nodes="2xm5.xlarge,zones=2"), RequestedChanges(nodes="m5.xlarge")]
    after = apply(run_spec(), twice).run_spec
    assert len({node.name for node in after.nodes}) == 7


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (RequestedChanges(drain="nowhere"), "no node 'nowhere'"),
        (RequestedChanges(drain=","), "name a node"),
        (RequestedChanges(lose="nowhere"), "no node is in zone 'nowhere'"),
        (RequestedChanges(nodes="3xnonsense"), "nonsense"),
        (RequestedChanges(nodes="20000xm5.xlarge"), "to 10,000"),
        (RequestedChanges(scale=Scale("ReplicaSet default/wob", 1)), "did you mean"),
        (RequestedChanges(scale=Scale("ReplicaSet default/web", -1)), "from 0 to"),
    ],
)
def test_a_change_that_cannot_be_made_is_told(change, words):
    with pytest.raises(InputError, match=re.escape(words)):
        apply(run_spec(), [change])


def test_changes_are_made_in_their_order_and_read_back_from_a_file(tmp_path):
    changes = [
        RequestedChanges(add_nodes=[NodesLike("n1", 2)]),
        RequestedChanges(lose="a"),
        RequestedChanges(objects=POD, config=MOST_ALLOCATED),
    ]
    after = apply(run_spec(), changes).run_spec
    assert {node.name for node in after.nodes} == {"n2", "gpu"}
    path = tmp_path / "changes.yaml"
    path.write_text(changes_text(after.applied), "utf-8")
    assert read_changes(path) == changes


@pytest.mark.parametrize("text", ["", "changes: []", "changes: [{dran: n1}]", "{", "changes: 7"])
def test_a_file_that_holds_no_changes_is_told(tmp_path, text):
    path = tmp_path / "changes.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError, match=re.escape(str(path))):
        read_changes(path)


def test_a_counterfactual_is_exported_as_what_it_changed(tmp_path):
    before = run_spec()
    with closing(run_of(before)) as run:
        answers = run.counterfactuals(BIG, budget_s=30, timer=lambda: 0.0).answers
    for answer in answers:
        after = apply(before, [], Applied(BIG, answer)).run_spec
        again = apply(before, after.applied).run_spec
        with closing(run_of(after)) as one, closing(run_of(again)) as other:
            assert [one.places.places, one.report.nodes] == [
                other.places.places,
                other.report.nodes,
            ]
