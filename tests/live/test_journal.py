"""What a live scheduler was told is in a file, and `mooring replay` makes the same decisions again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.live import objects
from tests.live.cluster import Cluster
from tests.live.conftest import StartMooring
from tests.live.objects import node

pytestmark = pytest.mark.live


def test_the_journal_of_a_live_scheduler_is_replayed_decision_for_decision(
    cluster: Cluster, start_mooring: StartMooring, tmp_path: Path
) -> None:
    """With pods that wait, pods that are evicted, and an API server that was away."""
    journal = tmp_path / "journal"
    cluster.add(*(node(f"node-{number}", cpu="4") for number in range(5)))
    mooring = start_mooring(arguments=[f"--journal={journal}"])
    cluster.add(*objects.pods("web", 40, cpu="500m"))
    cluster.wait_until_bound()
    cluster.add(objects.priority_class("high", 1000))
    cluster.add(objects.pod("urgent", cpu="2", priorityClassName="high"))
    cluster.wait_until_bound()
    cluster.control_plane.restart_api_server()
    cluster.client.delete_all("Pod")
    cluster.add(*objects.pods("again", 40, cpu="500m"))
    cluster.wait_until_bound()
    mooring.stop()

    replayed = subprocess.run(
        [sys.executable, "-m", "mooring", "replay", journal],
        check=False,
        capture_output=True,
        text=True,
    )

    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    decided = journal.read_text().count('["decided"')
    assert decided > 80
    assert f"{decided}" in replayed.stdout
