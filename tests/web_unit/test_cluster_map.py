from __future__ import annotations

import re
from dataclasses import replace
from importlib import resources

import pytest

from mooring.config import default_config
from mooring.web.cluster_map import STATES, first_group_key, group_keys, map_data, start_map_data
from mooring.web.run import Run
from tests.groups import BY_RACK, gates, members
from tests.makers import HOSTNAME, ZONE, make_group, make_node
from tests.web_unit.clusters import BIG, GATED, THERE, WEB, run_of, run_spec, trace_run_spec


@pytest.fixture(scope="module")
def run():
    run = run_of(run_spec())
    yield run
    run.close()


@pytest.fixture(scope="module")
def data(run):
    return map_data(run)


def state_of(data, run, key):
    return data["states"][data["pods"]["state"][run.places.pod_index[key]]]


def test_every_column_of_nodes_and_of_pods_has_an_entry_for_each(data, run):
    nodes, pods = data["nodes"], data["pods"]
    assert {len(nodes[name]) for name in ("name", "labels", "taints", "cordoned")} == {4}
    assert {len(column) for column in nodes["allocatable"] + nodes["requested"]} == {4}
    assert {len(column) for column in pods.values()} == {len(run.run_spec.pods)}


def test_what_nodes_hold_is_what_the_report_says(data, run):
    for i, each in enumerate(run.report.utilisation):
        assert data["nodes"]["name"][i] == each.node
        for r, usage in enumerate(each.usages):
            assert data["resources"][r]["name"] == usage.resource
            assert data["nodes"]["requested"][r][i] == usage.requested
            assert data["nodes"]["allocatable"][r][i] == usage.allocatable


def test_what_nodes_hold_is_the_sum_of_the_shapes_of_their_pods(data):
    for r in range(len(data["resources"])):
        sums = [0] * 4
        for node, shape in zip(data["pods"]["node"], data["pods"]["shape"], strict=True):
            if node >= 0:
                sums[node] += data["shapes"][shape][r]
        assert sums == data["nodes"]["requested"][r]


@pytest.mark.parametrize(
    ("key", "state"),
    [
        (THERE, "running"),
        (WEB, "running"),
        (BIG, "unschedulable"),
        (GATED, "gated"),
        ("default/short", "finished"),
    ],
)
def test_pods_are_in_the_state_that_the_simulation_left_them_in(data, run, key, state):
    assert state_of(data, run, key) == state


def test_placed_pods_are_on_the_nodes_of_the_report(data, run):
    for placed in run.report.placements:
        index = run.places.pod_index[placed.pod]
        node = data["pods"]["node"][index]
        if placed.state == "running":
            assert data["nodes"]["name"][node] == placed.node
        else:
            assert node == -1


def test_cordoned_and_tainted_nodes_are_marked(data):
    nodes = data["nodes"]
    by_name = {name: i for i, name in enumerate(nodes["name"])}
    assert nodes["cordoned"][by_name["shut"]] == 1
    assert nodes["cordoned"][by_name["n1"]] == 0
    assert data["taintSets"][nodes["taints"][by_name["gpu"]]] == ("gpu=yes:NoSchedule",)
    assert data["taintSets"][nodes["taints"][by_name["n1"]]] == ()


def test_labels_can_be_read_back(data, run):
    strings, sets = data["strings"], data["labelSets"]
    for node, code in zip(run.run_spec.nodes, data["nodes"]["labels"], strict=True):
        words = [strings[each] for each in sets[code]]
        assert dict(zip(words[::2], words[1::2], strict=True)) == node.labels


def test_pending_pods_come_with_their_reason_and_plugins(data, run):
    pending, strings = data["pending"], data["strings"]
    place = pending["pod"].index(run.places.pod_index[BIG])
    expected = next(each for each in run.report.pending if each.pod == BIG)
    assert strings[pending["message"][place]] == expected.message
    assert tuple(strings[each] for each in pending["plugins"][place]) == expected.plugins
    assert STATES[pending["state"][place]] == "unschedulable"


def test_groups_are_offered_by_zone_first_and_never_one_for_each_node():
    nodes = [make_node(f"n{i}", zone=f"z{i % 2}", labels={"pool": "a"}) for i in range(4)]

    keys = group_keys(nodes)

    assert keys[0] == ZONE
    assert "pool" in keys
    assert HOSTNAME not in keys


@pytest.mark.parametrize(
    ("nodes", "key"),
    [
        pytest.param([make_node("a", zone="z"), make_node("b", zone="z")], ZONE, id="one zone"),
        pytest.param([make_node("a", labels={"pool": "x"})], "", id="all in one group"),
        pytest.param(
            [make_node(f"n{i}", labels={"rack": f"r{i % 2}"}) for i in range(4)], "rack", id="racks"
        ),
        pytest.param([], "", id="no nodes"),
    ],
)
def test_the_map_is_grouped_by_what_tells_nodes_apart(nodes, key):
    assert first_group_key(nodes) == key


def test_pods_of_a_trace_that_have_left_are_on_no_node():
    run = run_of(trace_run_spec())
    data = map_data(run)
    run.close()

    assert data["pods"]["node"] == [-1, -1, -1]
    assert {data["states"][code] for code in data["pods"]["state"]} == {"deleted"}


def test_an_empty_cluster_has_a_map_too():
    run = run_of(type(run_spec())(()))
    data = map_data(run)
    run.close()

    assert data["nodes"]["name"] == []
    assert [each["name"] for each in data["resources"]] == ["cpu", "memory", "pods"]


def test_pods_of_a_group_name_it_and_groups_say_what_they_need():
    gang = make_group("gang", min_count=3, rack_key=ZONE)
    spec = replace(run_spec(gang, *members(3, cpu=3)), config=default_config(gates(BY_RACK)))
    run = run_of(spec)
    try:
        data = map_data(run)
    finally:
        run.close()

    named = [data["strings"][code] for code in data["pods"]["gang"]]
    assert named.count("default/gang") == 3
    assert set(named) == {"", "default/gang"}
    (told,) = data["gangs"]
    assert (told["name"], told["minCount"], told["topologyKey"]) == ("default/gang", 3, ZONE)
    assert "placements are available" in told["message"]


@pytest.mark.parametrize("make", [run_spec, trace_run_spec], ids=["a cluster", "a trace"])
def test_the_map_before_the_run_and_what_moved_since_are_the_places_at_the_end(make):
    """The page shows both while the simulation runs, by the same indices."""
    spec = make()
    seen: list[int] = []
    run = Run.of(spec, lambda progress: seen.append(len(progress.places.pods)))
    before, after = start_map_data(spec), map_data(run)
    places = list(before["start"])
    for pod, place in zip(run.places.pods, run.places.moved_to, strict=True):
        places[pod] = place
    assert [max(place, -1) for place in places] == after["pods"]["node"]
    assert before["nodes"]["name"] == after["nodes"]["name"]
    assert before["nodes"]["allocatable"] == after["nodes"]["allocatable"]
    assert before["pods"]["name"] == after["pods"]["name"]
    assert before["resources"] == after["resources"]
    assert seen == sorted(seen)
    assert 0 < max(seen) <= len(run.places.pods)
    run.close()


def test_the_filter_of_the_page_knows_every_state():
    script = resources.files("mooring.web").joinpath("static", "search.js").read_text("utf-8")
    lists = re.findall(r"^const (?:OVER|STATES) = \[(.*)\];", script, re.MULTILINE)

    assert set(re.findall(r'"([a-z]+)"', " ".join(lists))) == {*STATES, "pending"}
