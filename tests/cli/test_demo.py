"""`mooring demo`: the first thing that people run."""

from __future__ import annotations

import json
import re

from tests.cli.running import mooring, mooring_process


def test_the_demo_shows_what_it_promises_and_exits_0():
    result = mooring("demo")

    assert result.exit_code == 0
    assert "mooring simulate " in result.stdout
    assert "WHY IS ml/finetune PENDING?" in result.stdout
    assert "ops/debugger (100000)  batch/crawler-4 (-10)" in result.stdout
    assert "finished at 10m0s" in result.stdout
    assert result.stderr == ""


def test_the_command_that_the_demo_names_gives_the_same_placements():
    demo = mooring("demo").stdout
    command = next(line.split() for line in demo.splitlines() if line.startswith("  mooring "))

    result = mooring(*command[1:])

    placements = result.stdout.partition("NODES")[0]
    assert placements in demo


def test_the_demo_runs_from_anywhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    assert mooring_process("demo").returncode == 0


def test_the_demo_of_devices_says_who_holds_them_why_one_pod_gets_none_and_what_would_help():
    result = mooring("demo", "devices")

    assert result.exit_code == 0
    assert result.stderr == ""
    assert "7 placed, 1 pending" in result.stdout
    assert "bandwidth 120G of 200G" in result.stdout
    assert re.search(r"gpu-1-nic/nic-0 +ml/train-kr8w2 +nic +bandwidth 40G", result.stdout)
    assert "WHY IS ml/finetune PENDING?" in result.stdout
    assert 'quantity("96Gi")) >= 0' in result.stdout
    assert re.search(r"accept a device with memory 80Gi instead of 96Gi .* gpu-2 ", result.stdout)


def test_explain_says_why_devices_are_refused():
    demo = mooring("demo", "devices").stdout
    folder = next(line.split()[-1] for line in demo.splitlines() if line.startswith("  mooring "))

    table = mooring("explain", "ml/finetune", folder)
    data = json.loads(mooring("explain", "ml/finetune", folder, "-o", "json").stdout)

    assert table.exit_code == 1
    assert "DEVICES" in table.stdout
    reasons = {each["reason"] for each in data["devices"]}
    assert reasons == {"selector", "in use"}
    refused = [each for each in data["devices"] if "of the claim" in each["detail"]]
    assert [each["devices"] for each in refused] == [
        ["gpu-2: gpu.example.com/gpu-2/gpu-3", "slices-1: gpu.example.com/slices-1/gpu-0"]
    ]
    placed = json.loads(mooring("explain", "ml/notebook", folder, "-o", "json").stdout)
    assert placed["devices"] == []
