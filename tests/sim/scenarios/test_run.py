"""Scenarios played: what happens at each step, and what is said where it is not as expected."""

from __future__ import annotations

import pytest

from mooring.errors import InputError
from mooring.sim.scenarios.run import play
from mooring.sim.scenarios.scenario import read_scenarios
from tests.makers import make_node
from tests.sim.scenarios.playing import HEAD, ZONES, node, played, pod, scenario, workload

SPREAD = (
    ", topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone,"
    " whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]"
)
WEB = workload("Deployment", "web", replicas=6, spec=SPREAD)


def found(outcome) -> list[str]:
    return [failure.difference.found for failure in outcome.failures]


def test_a_scenario_passes_if_everything_is_as_expected(tmp_path):
    outcome = played(
        tmp_path,
        *ZONES,
        WEB,
        body="""
        expect:
          - all pods of app=web spread over 3 zones with skew at most 1
          - 6 pods of app=web placed
          - no pods pending
          - cpu of the cluster between 50% and 50%
        """,
    )

    assert outcome.passed, outcome.report()
    assert outcome.checked == 4
    assert outcome.elapsed_s == 0


def test_every_difference_is_told_with_the_pods_that_it_is_about(tmp_path):
    outcome = played(
        tmp_path,
        *ZONES,
        WEB,
        pod("big", cpu="8"),
        body="""
        steps:
          - name: first look
            expect: all pods placed
        expect:
          - all pods of app=web on node a-1
          - no pods of app=web in zone a
          - all pods of app=web spread over 2 zones
          - all pods of app=web on distinct nodes
          - all pods of app=nothing placed
          - pod big gone
          - 1 pods preempted
          - cpu of every node at most 40%
        """,
    )

    assert found(outcome) == [
        "6 of 7 pods",
        "2 of 6 pods",
        "2 of 6 pods",
        "3 zones: a 2, b 2, c 2",
        "3 nodes: a-1 2, b-1 2, c-1 2",
        "no such pod",
        "it exists",
        "0 pods preempted",
        "a-1 50.0%, b-1 50.0%, c-1 50.0%",
    ]
    first, second, third = outcome.failures[:3]
    assert first.after == "step 1 (first look)"
    assert first.where.endswith("s.scenario.yaml:12")
    (line,) = first.difference.pods
    assert (line.pod, line.node) == ("default/big", "")
    assert "pending (unschedulable): 0/3 nodes are available: 3 Insufficient cpu" in line.why
    assert line.why.endswith("[NodeResourcesFit]")
    assert {each.node for each in second.difference.pods} == {"b-1", "c-1"}
    assert {each.node for each in third.difference.pods} == {"a-1"}
    assert "expected  all pods placed\n  found     6 of 7 pods\n" in outcome.report()


def test_fields_say_the_same_as_lines(tmp_path):
    outcome = played(
        tmp_path,
        *ZONES,
        WEB,
        pod("big", cpu="8"),
        body="""
        expect:
          - {pods: app=web, placed: true, count: 6, spread: {over: zones, domains: 3, maxSkew: 1}}
          - {owner: deployment/web, within: 10s, notOnNodes: {labels: pool=gpu}}
          - {pods: app=web, distinct: nodes}
          - {pods: app=web, count: {atLeast: 7}}
          - {pods: app=web, onNodes: a-1}
          - {pods: app=web, onNodes: {nodes: [a-1], taint: "gpu:NoSchedule"}}
          - {pod: big, pending: {because: insufficient CPU, plugin: NodeResourcesFit}}
          - {pod: big, pending: {plugin: NodePorts}}
          - {pods: app=web, preempted: {by: big}}
          - {utilisation: {resource: cpu, eachNode: true, atMost: 40%}}
          - {utilisation: {resource: cpu, nodes: topology.kubernetes.io/zone=a, atLeast: 60%}}
        """,
    )

    assert [failure.difference.expected for failure in outcome.failures] == [
        "all pods of app=web on distinct nodes",
        "at least 7 pods of app=web exist",
        "all pods of app=web on node a-1",
        "all pods of app=web on node a-1 and on nodes with taint gpu:NoSchedule",
        "pod default/big pending by NodePorts",
        "all pods of app=web preempted by default/big",
        "cpu of every node at most 40%",
        "cpu of nodes with topology.kubernetes.io/zone=a at least 60%",
    ]


def test_a_skew_without_a_number_counts_the_domains_without_pods(tmp_path):
    pinned = workload("Deployment", "web", replicas=1)

    outcome = played(
        tmp_path,
        *ZONES,
        pinned,
        body="""
        expect:
          - all pods of app=web spread over zones with skew 1
          - all pods of app=web spread over zones with skew 0
          - all pods of app=web spread over 1 zones with skew 0
        """,
    )

    assert found(outcome) == ["1 zones: a 1"]


# Steps


def test_the_pods_of_a_lost_zone_are_replaced_and_come_back_no_more(tmp_path):
    outcome = played(
        tmp_path,
        *ZONES,
        WEB,
        pod("lonely", spec=", nodeSelector: {kubernetes.io/hostname: a-1}"),
        body="""
        steps:
          - fail: zone a
            expect:
              - 6 pods of app=web placed
              - all pods of app=web spread over 2 zones
              - pod lonely gone
          - recover: zone a
            expect: no pods of app=web in zone a
          - scale: {workload: deployment/web, replicas: 9}
            expect: all pods of app=web spread over 3 zones with skew 0
        """,
    )

    assert outcome.passed, outcome.report()


def test_a_drained_node_keeps_its_daemons_only(tmp_path):
    outcome = played(
        tmp_path,
        *ZONES,
        workload("Deployment", "web", replicas=6),
        workload("DaemonSet", "agent", cpu="100m"),
        body="""
        steps:
          - drain: a-1
            expect:
              - no pods of app=web on node a-1
              - 6 pods of app=web placed
              - 1 pods of app=agent on node a-1
          - uncordon: a-1
          - scale: {workload: deployment/web, replicas: 9}
            expect: at least 1 pods of app=web on node a-1
        """,
    )

    assert outcome.passed, outcome.report()


@pytest.mark.parametrize("allowed", ["minAvailable: 3", "maxUnavailable: 1", "maxUnavailable: 25%"])
def test_a_drain_takes_the_time_that_disruption_budgets_ask_for(tmp_path, allowed):
    """Four pods on one node, of which one may be missing at a time: they go one after another."""
    budget = (
        "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web},"
        f" spec: {{{allowed}, selector: {{matchLabels: {{app: web}}}}}}}}"
    )
    outcome = played(
        tmp_path,
        node("a-1"),
        budget,
        workload("Deployment", "web", replicas=4),
        body="""
        steps:
          - apply: "%s"
          - drain: a-1
            expect: 4 pods of app=web on node b-1
        """.replace('"%s"', node("b-1")),
    )

    assert outcome.passed, outcome.report()
    # As fast as replacements run: evicted every five seconds, and 30 s of grace for the last.
    assert outcome.elapsed_s > 3 * 5


def test_a_drain_that_a_budget_never_allows_is_given_up(tmp_path):
    budget = (
        "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web},"
        " spec: {minAvailable: 100%, selector: {matchLabels: {app: web}}}}"
    )
    outcome = played(
        tmp_path,
        *ZONES,
        budget,
        workload("Deployment", "web", replicas=3),
        body="""
        steps:
          - drain: a-1
            expect: no pods of app=web on node a-1
        """,
    )

    assert found(outcome) == ["1 of 3 pods"]


def test_a_cordoned_node_takes_no_new_pods(tmp_path):
    outcome = played(
        tmp_path,
        *ZONES,
        body=f"""
        steps:
          - cordon: [a-1, b-1]
          - apply: {workload("Deployment", "web", replicas=3)}
            expect: all pods of app=web on node c-1
          - delete: deployment/web
            expect: no pods exist
        """,
    )

    assert outcome.passed, outcome.report()
    assert [step.title for step in outcome.steps] == [
        "cordon a-1, b-1",
        "apply Deployment web",
        "delete deployment/default/web",
    ]


def test_time_passes_as_it_is_told_to(tmp_path):
    runs = pod("p", labels="{app: p}, annotations: {mooring.dev/run-seconds: '600'}")
    outcome = played(
        tmp_path,
        *ZONES,
        runs,
        body=f"""
        steps:
          - expect: no pods finished
          - wait: 5m
            expect: no pods finished
          - waitUntil: all pods of app=p finished
          - at: 20m
            apply: {pod("q")}
            expect: pod q placed within 1s
        """,
    )

    assert outcome.passed, outcome.report()
    assert [step.at_s for step in outcome.steps] == [0, 0, 300, 1200]
    assert outcome.elapsed_s == 1200


def test_a_wait_in_vain_ends_the_scenario(tmp_path):
    outcome = played(
        tmp_path,
        *ZONES,
        pod("big", cpu="8"),
        body="""
        steps:
          - waitUntil: all pods placed
            timeout: 10m
          - drain: a-1
        expect: no pods pending
        """,
    )

    (failure,) = outcome.failures
    assert failure.after == "step 1 (wait until all pods placed)"
    assert failure.difference.found == "not within 10m0s: 0 of 1 pod"
    assert outcome.elapsed_s == 600
    assert len(outcome.steps) == 1


def test_pods_can_be_deleted_by_labels(tmp_path):
    outcome = played(
        tmp_path,
        *ZONES,
        pod("p", labels="{app: p}"),
        pod("q", labels="{app: q}"),
        body="""
        steps:
          - delete: {pods: app=p}
        expect:
          - pod p gone
          - pod q placed
        """,
    )

    assert outcome.passed, outcome.report()


def test_preempted_pods_are_known_by_their_labels_and_by_whom(tmp_path):
    high = "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 100}"
    outcome = played(
        tmp_path,
        node("a-1", cpu=1),
        high,
        pod("low", labels="{app: low}"),
        body=f"""
        steps:
          - apply: {pod("urgent", spec=", priorityClassName: high")}
            expect:
              - pod urgent placed within 1m
              - 1 pods of app=low preempted by urgent
              - all pods of app=low preempted
              - pod low preempted
              - pod low gone
              - no pods of app=high preempted
        """,
    )

    assert outcome.passed, outcome.report()


def test_a_configuration_of_its_own_decides(tmp_path):
    config = (
        "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles:"
        " [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}],"
        " plugins: {multiPoint: {disabled: [{name: NodeResourcesBalancedAllocation}]}}}]}"
    )
    packed = played(
        tmp_path,
        *ZONES,
        pod("p"),
        pod("q"),
        body=f"""
        config: {config}
        expect: all pods on node a-1
        """,
    )
    spread = played(
        tmp_path, *ZONES, pod("p"), pod("q"), body="expect: all pods on distinct nodes\n"
    )

    assert packed.passed, packed.report()
    assert spread.passed, spread.report()


def test_files_are_found_beside_the_scenario_and_several_may_stand_in_one_file(tmp_path):
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster" / "nodes.yaml").write_text("\n---\n".join(ZONES))
    (tmp_path / "web.yaml").write_text(WEB)
    path = tmp_path / "two.scenario.yaml"
    path.write_text(
        f"{HEAD}cluster: cluster\nsteps: [{{apply: web.yaml}}]\nexpect: 6 pods placed\n"
        f"---\n{HEAD}name: empty\ncluster: [cluster]\nexpect: no pods exist\n"
    )

    first, second = read_scenarios(path)

    assert (first.name, second.name) == ("two", "empty")
    assert (first.line, second.line) == (1, 6)
    assert play(first).passed
    assert play(second).passed


def test_a_scenario_may_begin_with_a_cluster_from_elsewhere(tmp_path):
    outcome = played(tmp_path, pod("p"), body="expect: all pods on node n\n", base=[make_node("n")])

    assert outcome.passed, outcome.report()


def test_the_timeline_is_there_if_asked_for(tmp_path):
    outcome = played(tmp_path, *ZONES, pod("p"), body="expect: no pods pending\n", timeline=True)

    assert [str(each.what) for each in outcome.timeline] == ["queued", "bound"]
    assert outcome.to_data()["timeline"][1]["node"] == "a-1"


# What cannot be read or played


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("stepz: []\nexpect: no pods pending", ":7: stepz: unknown field; did you mean 'steps'?"),
        ("expect: 5", ":7: expect: must be a line of text or a mapping, not 5"),
        ("expect: []", "expects nothing, so it cannot fail; add expect"),
        ("expect: {pods: app=web}", "expects nothing of the pods; add placed"),
        ("expect: {pods: app=web, placed: maybe}", ":7: expect.placed: must be true or false"),
        ("expect: {pods: app=web, spred: {}}", "did you mean 'spread'?"),
        ("expect: {pods: app=web, spread: {over: zones, domain: 3}}", "did you mean 'domains'?"),
        ("expect: {utilisation: {resource: cpu}}", "needs a limit: add atLeast or atMost"),
        ("expect: {utilisation: {atMost: lots}}", "must be a percentage such as 80%, not 'lots'"),
        ("expect: {pods: a=b, onNodes: {}}", "must name nodes, labels or a taint"),
        ("expect: {pods: a=b, onNodes: []}", "must name at least one node"),
        ("expect: {pods: a=b, count: {about: 3}}", "with atLeast and atMost"),
        ("steps:\n- {}", "steps[0]: is empty; add one of apply, delete"),
        ("steps:\n- drain: a-1\n  fail: a-1", ":8: steps[0]: has several actions (drain, fail)"),
        ("steps:\n- drian: a-1", ":8: steps[0].drian: unknown field; did you mean 'drain'?"),
        ("steps:\n- wait: soon", "steps[0].wait: must be a duration"),
        ("steps:\n- {wait: 5s, timeout: 5s}", "steps[0].timeout: unknown field"),
        (
            "steps:\n- scale: {workload: web, replicas: 3}",
            "must be KIND/NAME or KIND/NAMESPACE/NAME",
        ),
        ("steps:\n- scale: {workload: deploy/web}", ":8: steps[0].scale.replicas: is missing"),
        ("steps:\n- scale: 5", "steps[0].scale: must be a mapping, not 5"),
        ("steps:\n- delete: node/x/y", "a Node has no namespace; write node/y"),
        ("steps:\n- delete: {pod: x}", "did you mean 'pods'?"),
        ("steps:\n- fail: the zone", "is not a node's name, 'zone NAME' or 'nodes with SELECTOR'"),
        ("steps:\n- apply: {a: b}", "must be the name of a file, or an object with apiVersion"),
        ("steps: {a: b}", "steps.a: unknown field"),
        (
            "devices: [gpu, 'gpu,patitions=2']\nexpect: no pods pending",
            ":7: devices[1]: there is no option 'patitions'",
        ),
        ("devices: {gpu: 8}\nexpect: no pods pending", ":7: devices: must be text"),
        (
            "devices: 'gpu,on=pool=none'\nexpect: no pods pending",
            ":7: devices: --devices gpu,on=pool=none: no node is chosen; the nodes are a-1",
        ),
        ("seed: x\nexpect: no pods pending", ":7: seed: must be a whole number, not 'x'"),
        ("config: 5\nexpect: no pods pending", "config: must be a file's name or a configuration"),
        ("expect: [\n", "s.scenario.yaml:8: "),
        ("expect: &a [*a]", "stands inside what it refers to"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_line_and_field(tmp_path, body, said):
    with pytest.raises(InputError) as error:
        played(tmp_path, *ZONES, body=body)

    assert said in str(error.value)
    assert all(line.startswith(str(tmp_path / "s.scenario.yaml:")) for line in error.value.problems)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("drain: a-9", "steps[0]: there is no node 'a-9'; did you mean 'a-1'?"),
        ("fail: zone x", "steps[0]: no node matches: zone x"),
        ("recover: a-1", "steps[0]: there is no node 'a-1'"),
        (
            "scale: {workload: deployment/wed, replicas: 1}",
            "there is no deployment/default/wed; did you mean 'default/web'?",
        ),
        ("scale: {workload: node/a-1, replicas: 1}", "a Node cannot be scaled; Deployment"),
        ("delete: pod/x", "there is no pod/default/x"),
        ("delete: {pods: app=x}", "no such pod"),
        ("apply: nothing.yaml", "nothing.yaml: no such file or folder"),
        ("apply: {apiVersion: v1, kind: Pod, metadata: {name: P}}", "steps[0].apply"),
        ("expect: all pods of deployment/x placed", "there is no deployment/default/x"),
    ],
)
def test_a_step_that_cannot_be_done_says_which_and_why(tmp_path, step, said):
    body = f"steps:\n  - {step}\nexpect: no pods of app=none exist\n"

    with pytest.raises(InputError) as error:
        played(tmp_path, *ZONES, WEB, body=body)

    assert said in str(error.value)
    assert str(error.value).startswith(str(tmp_path / "s.scenario.yaml:9: steps[0]"))


def test_a_moment_that_has_passed_is_refused(tmp_path):
    body = "steps:\n  - wait: 1h\n  - at: 30m\n    expect: no pods pending\n"

    with pytest.raises(InputError, match=r"30m0s has passed: the time is already 1h0m0s"):
        played(tmp_path, *ZONES, body=body)


def test_a_cluster_that_cannot_be_read_says_so(tmp_path):
    path = tmp_path / "s.scenario.yaml"
    path.write_text(f"{HEAD}cluster: nowhere\nexpect: no pods pending\n")

    with pytest.raises(InputError, match=r"s\.scenario\.yaml:3: cluster: .*nowhere: no such file"):
        play(*read_scenarios(path))


@pytest.mark.parametrize(
    "content", [b"", b"\x00\x01\x02", b"just text", b"- a\n- b\n", b"# none\n"]
)
def test_a_file_without_a_scenario_is_refused(tmp_path, content):
    path = tmp_path / "s.scenario.yaml"
    path.write_bytes(content)

    with pytest.raises(InputError, match=r"s\.scenario\.yaml"):
        read_scenarios(path)


def test_a_scenario_repeats_itself(tmp_path):
    text = scenario(
        *ZONES, WEB, body="steps: [{fail: a-1}, {recover: a-1}]\nexpect: no pods of a=b exist\n"
    )
    path = tmp_path / "s.scenario.yaml"
    path.write_text(text)

    first, second = (play(*read_scenarios(path), timeline=True) for _ in range(2))

    assert first.timeline == second.timeline


QUOTA = "{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {pods: 4}}}"


def test_all_pods_include_those_that_are_not_created(tmp_path):
    """A scenario passed if all the pods that a quota allowed were placed."""
    outcome = played(
        tmp_path,
        *ZONES,
        QUOTA,
        workload("Deployment", "web", replicas=5),
        pod("late"),
        body="""
        expect:
          - all pods of app=web placed
          - all pods of deployment/web placed
          - 4 pods of app=web placed
          - all pods placed
          - pod late placed
        """,
    )

    assert found(outcome) == ["4 of 5 pods", "4 of 5 pods", "4 of 6 pods", "0 of 1 pod"]
    assert "not created: exceeded quota: q, requested: pods=1, used: pods=4" in outcome.report()


def test_nodes_of_a_scenario_have_the_devices_that_it_gives_them(tmp_path):
    outcome = played(
        tmp_path,
        *ZONES[:1],
        workload(
            "Deployment",
            "train",
            replicas=3,
            spec=", resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]",
        ),
        "{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: one},"
        " spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}}",
        body="""
        devices: 2xgpu.example.com,memory=80Gi
        expect:
        - 2 pods of app=train placed
        - 1 pods of app=train pending by DynamicResources because "cannot allocate all claims"
        """,
    )

    assert outcome.failures == ()
