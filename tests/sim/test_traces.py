"""Traces are read as they are written down, and played in their own time."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.errors import InputError
from mooring.explain.over_time import replay
from mooring.objects.pod import Pod
from mooring.sim.build_report import build_report
from mooring.sim.traces.openb import GPU, GPU_MILLI, GPU_MODEL, Sharing
from mooring.sim.traces.reading import TraceOptions, read_trace
from mooring.sim.traces.replay import Replay

DATA = Path(__file__).parents[1] / "data"
OPENB = Path(__file__).parents[3] / "shared" / "traces" / "openb"

needs_openb = pytest.mark.skipif(not OPENB.is_dir(), reason=f"the OpenB trace is not at {OPENB}")


def pods_of(trace) -> dict[str, Pod]:
    return {each.pod.name: each.pod for each in trace.pods}


# OpenB


def test_gpus_become_a_pool_of_thousandths_beside_whole_ones():
    trace = read_trace(DATA / "openb")
    pods, nodes = pods_of(trace), {node.name: node for node in trace.nodes}

    assert str(nodes["t4-node-0"].status.allocatable[GPU_MILLI]) == "2k"
    assert str(nodes["t4-node-0"].status.allocatable[GPU]) == "2"
    assert nodes["t4-node-0"].labels[GPU_MODEL] == "T4"
    assert GPU not in nodes["cpu-node-0"].status.allocatable
    assert pods["pod-0001"].requests == {"cpu": 2000, "memory": 4 << 30, GPU_MILLI: 460}
    assert pods["pod-0003"].requests[GPU_MILLI] == 4000
    assert pods["pod-0003"].requests[GPU] == 4
    assert GPU_MILLI not in pods["pod-0002"].requests


def test_a_share_takes_a_whole_gpu_if_that_is_asked_for():
    trace = read_trace(DATA / "openb", options=TraceOptions(sharing=Sharing.WHOLE))

    assert pods_of(trace)["pod-0001"].requests[GPU_MILLI] == 1000
    assert pods_of(trace)["pod-0001"].requests[GPU] == 1


def test_times_begin_with_the_first_pod_and_run_times_with_the_placement():
    by_name = {each.pod.name: each for each in read_trace(DATA / "openb").pods}

    assert by_name["pod-0000"].arrives_s == 0
    # Placed at 160, gone at 400; it arrived at 150, 50 after the first.
    assert (by_name["pod-0001"].arrives_s, by_name["pod-0001"].run_s) == (50, 240)
    # Never placed: gone at 900, which is 800 after the first arrival.
    assert (by_name["pod-0003"].run_s, by_name["pod-0003"].leaves_s) == (None, 800)
    # Neither placed nor deleted by its file: for ever.
    assert (by_name["pod-0006"].run_s, by_name["pod-0006"].leaves_s) == (None, None)


def test_quality_of_service_is_a_label_and_a_priority_if_one_is_given():
    trace = read_trace(DATA / "openb", options=TraceOptions(priorities={"LS": 1000}))

    assert pods_of(trace)["pod-0000"].labels == {"qos": "LS"}
    assert pods_of(trace)["pod-0000"].priority == 1000
    assert pods_of(trace)["pod-0002"].priority == 0


def test_lists_of_openb_without_times_and_models_are_read(tmp_path):
    """The lists with more pods of several GPUs have these five columns only."""
    pods = tmp_path / "openb_pod_list_multigpu.csv"
    pods.write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
        "pod-0000,12000,16384,1,460\n"
        "pod-0001,6000,4096,4,1000\n"
    )

    trace = read_trace(pods, nodes_path=DATA / "openb" / "openb_node_list_all_node.csv")

    assert pods_of(trace)["pod-0000"].requests == {"cpu": 12000, "memory": 16 << 30, GPU_MILLI: 460}
    assert pods_of(trace)["pod-0001"].requests[GPU] == 4
    assert [(each.arrives_s, each.run_s, each.leaves_s) for each in trace.pods] == [
        (0.0, None, None),
        (0.0, None, None),
    ]


def test_pods_go_only_where_their_gpu_model_is():
    with Replay(read_trace(DATA / "openb")) as simulation:
        simulation.run()
        report = build_report(simulation)
    where = {placed.pod: placed.node for placed in report.placements}

    assert where["default/pod-0001"].startswith("t4-")
    assert where["default/pod-0003"] == "v100-node-0"
    assert "default/pod-0005" not in where


# Our own form


def test_our_own_form_says_all_that_it_documents():
    trace = read_trace(DATA / "trace")
    pods, nodes = pods_of(trace), {node.name: node for node in trace.nodes}

    assert nodes["n-1"].labels["topology.kubernetes.io/zone"] == "a"
    assert nodes["n-1"].labels["disk"] == "ssd"
    assert [taint.key for taint in nodes["gpu-1"].taints] == ["gpu"]
    assert str(nodes["gpu-1"].status.allocatable["pods"]) == "110"
    assert pods["web-1"].labels == {"app": "web", "tier": "front"}
    assert pods["web-1"].metadata.controller == pods["web-2"].metadata.controller
    assert pods["train-1"].requests["nvidia.com/gpu"] == 2
    assert pods["pinned"].spec.node_selector == {"disk": "ssd"}


def test_a_pod_that_waits_runs_its_whole_time_after_that():
    """train-1 has both GPUs from 30 to 330; train-2, there since 40, then has them for 300."""
    with Replay(read_trace(DATA / "trace")) as simulation:
        simulation.run()
        placed = {each.bound.assumed.name: each for each in simulation.summary.placements.values()}

    bound_s = placed["train-2"].bound.at_s
    assert placed["train-1"].ended_s == 330
    assert 330 <= bound_s <= 341
    assert placed["train-2"].ended_s == pytest.approx(bound_s + 300)


def test_a_pod_that_gives_up_leaves_without_a_node():
    report = replay(read_trace(DATA / "trace"), samples=5)

    assert (report.arrived, report.placed, report.never_placed) == (8, 7, 1)
    assert not report.pending


def test_a_replay_repeats_itself():
    trace = read_trace(DATA / "trace")

    assert replay(trace, samples=7).samples == replay(trace, samples=7).samples


def test_what_never_ends_fills_the_cluster():
    report = replay(read_trace(DATA / "trace"), samples=3, pods_end=False)

    # The batch pods keep their nodes full, so what is pinned to one of them waits too.
    pending = {each.pod for each in report.pending}
    assert pending == {"default/gives-up", "default/train-2", "default/pinned"}
    assert report.samples[-1].running == 5
    assert report.samples[-1].pending == 3


def test_a_replay_ends_where_it_is_told_to():
    report = replay(read_trace(DATA / "trace"), samples=2, until_s=35)

    assert report.arrived == 5
    assert report.samples[-1].at_s == 35


# Nonsense


@pytest.mark.parametrize(
    ("nodes", "pods", "said"),
    [
        pytest.param("", "", "is empty", id="empty files"),
        pytest.param(
            "name,cpu,memory\n", "a,b\n1,2\n", "lacks the columns name", id="other columns"
        ),
        pytest.param(
            "name,cpu,memory\nn,4,1Gi\n",
            "name,arrives_s,cpu,memory\np,soon,1,1Gi\n",
            "pods.csv: line 2: arrives_s: 'soon' is not a number of seconds",
            id="a time in words",
        ),
        pytest.param(
            "name,cpu,memory\nn,lots,1Gi\n",
            "name,arrives_s,cpu,memory\n",
            "nodes.csv: line 2: cpu: 'lots' is not a quantity",
            id="an amount in words",
        ),
        pytest.param(
            "name,cpu,memory\nn,4,1Gi\nn,4,1Gi\n",
            "name,arrives_s,cpu,memory\n",
            "n is a duplicate",
            id="a name twice",
        ),
        pytest.param(
            "name,cpu,memory,colour\nn,4,1Gi,red\n",
            "name,arrives_s,cpu,memory\n",
            "unknown column 'colour'",
            id="a column that means nothing",
        ),
        pytest.param(
            "name,cpu,memory\nn,4,1Gi\n",
            "name,arrives_s,cpu,memory\np,nan,1,1Gi\n",
            "'nan' is not a number of seconds",
            id="not a number",
        ),
    ],
)
def test_a_trace_that_cannot_be_used_is_refused_with_its_line(tmp_path, nodes, pods, said):
    (tmp_path / "nodes.csv").write_text(nodes)
    (tmp_path / "pods.csv").write_text(pods)

    with pytest.raises(InputError) as caught:
        read_trace(tmp_path)

    assert said in str(caught.value)


def test_a_trace_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="has no file with pods"):
        read_trace(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        read_trace(tmp_path / "nothing.csv")


# The whole of it


@needs_openb
def test_all_of_openb_is_read():
    trace = read_trace(OPENB)

    assert (len(trace.nodes), len(trace.pods)) == (1523, 8152)


@pytest.mark.long
@needs_openb
def test_all_of_openb_plays_and_no_pod_is_lost():
    report = replay(read_trace(OPENB), samples=50)

    assert report.arrived == 8152
    assert report.placed + report.never_placed + len(report.pending) == 8152


# Parquet


def as_parquet(folder: Path, target: Path) -> None:
    """The same tables, with the types that whoever writes Parquet would give them."""
    polars = pytest.importorskip("polars")
    for name in ("nodes", "pods"):
        polars.read_csv(folder / f"{name}.csv").write_parquet(target / f"{name}.parquet")


def test_a_trace_in_parquet_is_the_same_as_in_csv(tmp_path):
    as_parquet(DATA / "trace", tmp_path)

    written, read = read_trace(DATA / "trace"), read_trace(tmp_path)

    assert read.nodes == written.nodes
    assert read.pods == written.pods


def test_a_trace_in_parquet_is_played(tmp_path):
    as_parquet(DATA / "trace", tmp_path)

    report, again = replay(read_trace(tmp_path)), replay(read_trace(DATA / "trace"))

    assert (report.arrived, report.placed) == (again.arrived, again.placed)
    assert report.placed > 0


def test_numbers_with_gaps_between_them_stay_whole(tmp_path):
    polars = pytest.importorskip("polars")
    polars.DataFrame({"name": ["n"], "cpu": [4], "memory": ["8Gi"]}).write_parquet(
        tmp_path / "nodes.parquet"
    )
    polars.DataFrame(
        {
            "name": ["p", "q"],
            "arrives_s": [0, 5],
            "cpu": [1.0, 0.5],
            "memory": ["1Gi", "1Gi"],
            "priority": [3.0, None],
            "runs_s": [float("nan"), 2.5],
        }
    ).write_parquet(tmp_path / "pods.parquet")

    first, second = read_trace(tmp_path).pods

    assert (first.pod.priority, second.pod.priority) == (3, 0)
    assert (first.run_s, second.run_s) == (None, 2.5)
    assert (first.pod.requests["cpu"], second.pod.requests["cpu"]) == (1000, 500)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"name,cpu\n"])
def test_what_is_no_parquet_is_refused(tmp_path, content):
    (tmp_path / "pods.parquet").write_bytes(content)
    (tmp_path / "nodes.parquet").write_bytes(content)

    with pytest.raises(InputError, match=r"parquet: cannot be read"):
        read_trace(tmp_path)
