from __future__ import annotations

import pytest

from mooring.web.cluster_map import map_data
from mooring.web.run_spec import RunSpec
from mooring.web.timeline import timeline_data
from mooring.web.what_if import read_beside
from tests.makers import make_pod
from tests.web_unit.clusters import run_of, run_spec, trace_run_spec


def played(given):
    run = run_of(given)
    data = timeline_data(run)
    run.close()
    return run, data


@pytest.mark.parametrize("given", [run_spec(), trace_run_spec()], ids=["cluster", "trace"])
def test_all_changes_made_one_after_another_lead_to_the_end(given):
    run, data = played(given)
    places, changes = list(data["start"]), data["changes"]
    for pod, node in zip(changes["pod"], changes["node"], strict=True):
        places[pod] = node

    assert places == run.places.places
    assert changes["atSeconds"] == sorted(changes["atSeconds"])


def test_a_trace_can_be_followed_pod_by_pod():
    _, data = played(trace_run_spec())

    changes = zip(*data["changes"].values(), strict=True)

    assert data["start"] == [-2, -2, -2]
    assert [(round(at_s), pod, node) for at_s, pod, node in changes] == [
        (0, 0, -1),
        (0, 0, 0),
        (10, 1, -1),
        (20, 2, -1),
        (60, 0, -2),
        (60, 1, 0),
        (90, 1, -2),
        (100, 2, -2),
    ]


def test_the_last_sample_measures_the_cluster_as_it_ends():
    run, data = played(run_spec())

    samples = data["samples"]
    assert samples["step"][-1] == len(data["changes"]["pod"])
    for each in run.measures.resources:
        last = {kind: values[-1] for kind, values in samples["resources"][each.resource].items()}
        assert last == {
            "utilisation": each.utilisation,
            "imbalance": each.imbalance,
            "fragmentation": each.fragmentation,
        }
    assert samples["pending"][-1] == len(run.report.pending)
    assert samples["nodesInUse"][-1] == run.measures.nodes_in_use


def test_the_first_sample_is_of_the_cluster_as_it_was_read():
    _, data = played(run_spec())

    assert data["samples"]["step"][0] == 0
    assert data["samples"]["running"][0] == 1


def test_events_are_the_timeline_of_simulate_and_know_their_step():
    run, data = played(run_spec())

    events, timeline = data["events"], run.report.timeline
    assert timeline is not None
    assert [events["kinds"][code] for code in events["kind"]] == [each.what for each in timeline]
    assert [events["strings"][code] for code in events["message"]] == [
        each.message for each in timeline
    ]
    assert events["step"] == sorted(events["step"])
    bound = [i for i, code in enumerate(events["kind"]) if events["kinds"][code] == "bound"]
    for i in bound:
        step = events["step"][i]
        later = zip(data["changes"]["pod"][step:], data["changes"]["node"][step:], strict=True)
        assert (events["pod"][i], events["node"][i]) in later


def test_preempted_pods_leave_and_are_counted():
    run, data = played(
        run_spec(make_pod("low", cpu=4, node="n2", priority=0), make_pod("high", cpu=4, priority=9))
    )

    victims = [victim.pod for each in run.report.preemptions for victim in each.victims]
    assert victims
    assert data["samples"]["preempted"][-1] == len(victims)
    assert {run.places.places[run.places.pod_index[pod]] for pod in victims} == {-2}


def test_a_run_of_nothing_has_a_timeline_too():
    _, data = played(RunSpec(()))

    assert data["start"] == []
    assert data["samples"]["step"] == [0]


def test_the_plugin_is_known_that_rejected_a_pod_which_got_its_node_later():
    """Plugins were learnt from the pods that were pending at the end, so the moments before had none."""
    _, data = played(trace_run_spec())

    reasons = [reason for cause in data["events"]["causes"] for reason in cause["reasons"]]

    assert ["Insufficient cpu", 1, "NodeResourcesFit"] in reasons


DEVICE_JOBS = """
apiVersion: v1
kind: Node
metadata: {name: g1}
status: {allocatable: {cpu: "8", memory: 64Gi, pods: "20"}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: g1-slice}
spec:
  driver: gpu.example.com
  nodeName: g1
  pool: {name: g1, generation: 1, resourceSliceCount: 1}
  devices: [{name: a}, {name: b}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus, namespace: default}
spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, count: 2}}]}}}
""" + "".join(
    f"""
---
apiVersion: v1
kind: Pod
metadata: {{name: job-{number}, annotations: {{mooring.dev/run-seconds: "60"}}}}
spec:
  containers: [{{name: c, image: i, resources: {{claims: [{{name: gpus}}]}}}}]
  resourceClaims: [{{name: gpus, resourceClaimTemplateName: gpus}}]
"""
    for number in (1, 2)
)


def test_devices_of_pods_that_have_finished_are_known_while_they_ran():
    """Claims are deleted with their pods, so a moment before the end showed that nobody had devices."""
    run, data = played(RunSpec(tuple(read_beside(DEVICE_JOBS, ()))))
    drawn = map_data(run)

    gpu = "deviceclass.resource.kubernetes.io/gpu"
    samples = data["samples"]
    at = dict(zip(samples["atSeconds"], samples["resources"][gpu]["utilisation"], strict=True))
    assert (at[0.0], at[120.0]) == (1.0, 0.0)
    assert at[60.0] == 1.0, "the second one has them by the end of this second"
    column = [each["name"] for each in drawn["resources"]].index(gpu)
    shapes = drawn["shapes"]
    assert [shapes[shape][column] for shape in drawn["pods"]["shape"]] == [2, 2]
