"""`mooring demo`: the first thing that people run."""

from __future__ import annotations

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
