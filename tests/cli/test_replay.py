"""`mooring replay` plays a trace and writes down what it sees."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.cli.running import mooring

DATA = Path(__file__).parents[1] / "data"


def test_the_table_ends_with_the_answer():
    result = mooring("replay", DATA / "trace")

    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1].startswith("7 of 8 pods placed, 1 never placed, waited ")


def test_json_has_samples_over_virtual_time():
    data = json.loads(mooring("replay", DATA / "openb", "-o", "json", "--samples", 5).stdout)

    times = [sample["atSeconds"] for sample in data["samples"]]
    assert (len(times), times[0]) == (5, 0)
    assert times == sorted(times)
    assert set(data["samples"][0]["resources"]) >= {"cpu", "memory", "mooring.dev/gpu-milli"}


def test_csv_has_one_line_a_moment():
    text = mooring("replay", DATA / "trace", "-o", "csv", "--samples", 4).stdout
    rows = list(csv.DictReader(io.StringIO(text)))

    assert len(rows) == 4
    assert "fragmentation.cpu" in rows[0]


def test_the_plot_is_well_formed(tmp_path):
    path = tmp_path / "plot.svg"

    mooring("replay", DATA / "trace", "--plot", path)

    root = ET.parse(path).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(root.findall("{*}polyline")) > 5


def test_the_manifests_of_a_trace_serve_other_commands(tmp_path):
    path = tmp_path / "openb.json"

    assert mooring("replay", DATA / "openb", "--manifests", path).exit_code == 0
    report = json.loads(mooring("simulate", path, "-o", "json").stdout)

    assert report["summary"]["placed"] + report["summary"]["pending"] == 7


def test_a_higher_class_preempts_a_lower_one(tmp_path):
    """One node with one GPU: a best-effort pod holds it when a guaranteed one comes."""
    (tmp_path / "openb_node_list_all_node.csv").write_text(
        "sn,cpu_milli,memory_mib,gpu,model\nt4,16000,32768,1,T4\n"
    )
    (tmp_path / "openb_pod_list_default.csv").write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
        "deletion_time,scheduled_time\n"
        "first,1000,1024,1,1000,,BE,Running,0,1000,0\n"
        "second,1000,1024,1,1000,,Guaranteed,Running,10,1000,10\n"
    )
    arguments = ("replay", tmp_path, "--endless", "-o", "json")

    plain = json.loads(mooring(*arguments).stdout)
    ranked = json.loads(mooring(*arguments, "--priority", "Guaranteed=1000").stdout)

    assert plain["summary"]["preempted"] == 0
    assert [each["pod"] for each in plain["pending"]] == ["default/second"]
    assert ranked["summary"]["preempted"] == 1
    assert ranked["summary"]["placed"] == 2
    assert ranked["pending"] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["/no/such"], "cannot be read", id="no trace"),
        pytest.param([DATA], "has no file with pods", id="no trace in the folder"),
        pytest.param([DATA / "trace", "--nodes", "/no"], "/no: cannot be read", id="no nodes"),
        pytest.param([DATA / "openb", "--priority", "LS"], "'LS' is not QOS=N", id="no priority"),
        pytest.param([DATA / "trace", "--config", "/no"], "/no: cannot be read", id="no config"),
        pytest.param(
            [DATA / "trace", "--plot", "/no/such/plot.svg"], "cannot be written", id="no folder"
        ),
    ],
)
def test_nonsense_is_refused(arguments, said):
    result = mooring("replay", *arguments)

    assert result.exit_code == 2, result.output
    assert said in result.stderr


def test_a_trace_without_nodes_places_nothing(tmp_path):
    (tmp_path / "nodes.csv").write_text("name,cpu,memory\n")
    (tmp_path / "pods.csv").write_text("name,arrives_s,cpu,memory\np,0,1,1Gi\n")

    result = mooring("replay", tmp_path)

    assert result.exit_code == 1
    assert "0 of 1 pod placed, 1 pending" in result.stdout
