"""`mooring report`: one file with everything in it."""

from __future__ import annotations

import base64
import json
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from mooring.objects.meta import encode_hook
from mooring.objects.taints import Taint
from mooring.web.messages import unpacked
from mooring.web.origin import Origin
from mooring.web.report import representatives, write_report
from tests.cli.running import mooring
from tests.makers import make_node, make_pod
from tests.web_unit.clusters import BIG, HOSTILE, run_of, run_spec
from tests.web_unit.test_assets import Elements

TRACE = Path(__file__).parent.parent / "data" / "trace"


def written(tmp_path, given, *arguments):
    cluster, target = tmp_path / "cluster.json", tmp_path / "report.html"
    document = {"apiVersion": "v1", "kind": "List", "items": given.objects}
    cluster.write_bytes(msgspec.json.encode(document, enc_hook=encode_hook))
    result = mooring("report", "-f", cluster, "-o", target, *arguments)
    assert result.exit_code == 0, result.output
    return Elements(target.read_text("utf-8"))


def page_of(answers, key):
    compressed = answers[f"api/runs/1/pod?key={key}"]["gzip"]
    return json.loads(unpacked(base64.b64decode(compressed)))


def test_a_report_answers_what_the_page_asks_for(tmp_path):
    elements = written(tmp_path, run_spec())

    answers = json.loads(elements.script("application/json"))
    session = answers["api/session"]
    assert session["report"] is True
    assert session["runs"][0]["state"] == "ready"
    assert answers["api/runs/1/map"]["nodes"]["name"] == ["n1", "n2", "gpu", "shut"]
    assert answers["api/runs/1/time"]["endSeconds"] == 10.0
    assert page_of(answers, "default%2Fbig")["pod"] == BIG
    assert answers["api/runs/1/counterfactuals?pod=default%2Fbig"]["answers"]
    assert page_of(answers, "default%2Fweb-1")["state"] == "placed"
    assert "KubeSchedulerConfiguration" in answers["api/runs/1/config"]["text"]


def test_a_report_loads_nothing(tmp_path):
    elements = written(tmp_path, run_spec(), "--budget", "0")

    assert all(not attributes.get("src") for attributes, _ in elements.scripts)


def test_hostile_texts_of_a_cluster_stay_texts():
    """Files with such names are not read, but a cluster may have been read by other means."""
    given = run_spec(
        make_pod(HOSTILE, labels={"x": HOSTILE}, image=HOSTILE, annotations={"y": HOSTILE}),
        make_node(HOSTILE, labels={"z": HOSTILE}, taints=[Taint(key=HOSTILE, effect="NoSchedule")]),
        make_pod("gates", gates=[HOSTILE]),
        make_pod("scheduler", scheduler=HOSTILE),
    )
    origin = Origin(HOSTILE, warnings=(HOSTILE,), skipped={HOSTILE: 1})

    text = write_report(origin, given, budget_s=0.0, on_progress=lambda *_: None)

    elements = Elements(text)
    kinds = [attributes.get("type") for attributes, _ in elements.scripts]
    assert kinds == ["importmap", "application/json", "module"]
    assert "img" not in elements.tags
    answers = json.loads(elements.script("application/json"))
    assert answers["api/session"]["title"] == HOSTILE
    assert HOSTILE in answers["api/runs/1/map"]["nodes"]["name"]
    assert HOSTILE in answers["api/runs/1/map"]["pods"]["name"]


def test_a_report_that_cannot_be_written_is_told(tmp_path):
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n")

    result = mooring("report", "-f", cluster, "-o", tmp_path / "no" / "such" / "folder.html")

    assert result.exit_code == 2
    assert "cannot be written" in result.output


@pytest.mark.parametrize("arguments", [("-f", "x"), ("-o", "x.html")])
def test_a_report_needs_a_cluster_and_a_file(arguments):
    assert mooring("report", *arguments).exit_code == 2


def test_a_report_of_a_trace_has_its_time_line(tmp_path):
    target = tmp_path / "report.html"

    result = mooring("report", "--trace", TRACE, "-o", target)

    assert result.exit_code == 0, result.output
    answers = json.loads(Elements(target.read_text("utf-8")).script("application/json"))
    time = answers["api/runs/1/time"]
    assert answers["api/session"]["source"] == "trace"
    assert set(time["start"]) == {-2}
    assert time["endSeconds"] > 0
    assert len(time["samples"]["step"]) > 2


def test_pods_that_wait_for_the_same_reason_share_a_page():
    """A report had 200 pages of pods that were alike, and none of the others."""
    many = [make_pod(f"late-{i}", cpu=50) for i in range(30)]
    with closing(run_of(run_spec(*many, make_pod("odd", cpu=1, node_selector={"a": "b"})))) as run:
        keys = representatives(run)

    assert keys[0] == "default/late-0"
    assert [key for key in keys if "late" in key] == ["default/late-0"]
    assert "default/odd" in keys
