"""A shadow beside kube-scheduler: it writes nothing, and says pod by pod whether it would do the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from control_plane import MOORING
from plain_client import Json

from tests.live import objects
from tests.live.cluster import Cluster, bind_by_hand
from tests.live.command import Printed, Running
from tests.live.waiting import wait_for

pytestmark = pytest.mark.live


@pytest.fixture
def shadow(cluster: Cluster, tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path)
    running.start(
        *("shadow", "--kubeconfig", cluster.control_plane.kubeconfig(MOORING)),
        *("--output", "json", "-v", "4"),
    )
    yield running
    running.process.kill()
    running.process.wait()
    print(running.log.read_text()[-3000:])


def compared(shadow: Running) -> dict[str, Json]:
    """What it has said so far of each pod, by name."""
    lines = [json.loads(line) for line in shadow.output.read_text().splitlines()]
    return {line["pod"].partition("/")[2]: line for line in lines if "pod" in line}


def wait_until_it_watches(cluster: Cluster, shadow: Running) -> None:
    """It compares what happens after it has seen everything: so make something happen until it does."""
    number = 0

    def is_watching() -> bool:
        nonlocal number
        number += 1
        cluster.add(objects.pod(f"probe-{number}", cpu="0"))
        bind_by_hand(cluster.client, f"probe-{number}", "node-a")
        return bool(compared(shadow))

    wait_for(is_watching, lambda: f"the shadow watches\n{shadow.log.read_text()}")


def sums(printed: Printed) -> Json:
    last: Json = json.loads(printed.output.splitlines()[-1])
    return last


def test_it_agrees_with_kube_scheduler_and_touches_nothing(
    cluster: Cluster, shadow: Running
) -> None:
    cluster.add(
        objects.node("node-a", zone="z1", labels={"disk": "ssd"}), objects.node("node-b", zone="z2")
    )
    wait_until_it_watches(cluster, shadow)
    kube_scheduler = cluster.control_plane.start_scheduler()
    asked: dict[str, Json] = {
        "selected": {"nodeSelector": {"disk": "ssd"}},
        "large": {"cpu": "3"},
        "beside": {"cpu": "2"},
        "too-large": {"cpu": "64"},
        "nowhere": {"nodeSelector": {"disk": "none"}},
    }

    # One after the other, so that both have seen the same when they decide.
    for name, asks in asked.items():
        cluster.add(objects.pod(name, **asks))
        wait_for(lambda name=name: name in compared(shadow), f"{name} was compared")  # type: ignore[misc]
    kube_scheduler.kill()
    printed = shadow.end()

    verdicts = {name: line["verdict"] for name, line in compared(shadow).items()}
    assert {name: verdicts[name] for name in asked} == {
        "selected": "same",
        "large": "same",
        "beside": "same",
        "too-large": "both refuse",
        "nowhere": "both refuse",
    }
    assert compared(shadow)["large"]["actual"] in ("node-a", "node-b")
    assert sums(printed)["compared"] >= len(asked)
    users = {user for _, user, _ in cluster.answers_to_binds()}
    assert MOORING.name not in users


def test_it_says_why_it_would_have_done_otherwise(cluster: Cluster, shadow: Running) -> None:
    cluster.add(objects.node("node-a"), objects.node("node-b", cpu="1"))
    wait_until_it_watches(cluster, shadow)
    cluster.add(objects.pod("misplaced", cpu="2"))

    bind_by_hand(cluster.client, "misplaced", "node-b")
    wait_for(lambda: "misplaced" in compared(shadow), "it was compared")
    printed = shadow.end()

    line = compared(shadow)["misplaced"]
    assert (line["verdict"], line["actual"], line["best"]) == ("refused", "node-b", ["node-a"])
    assert "Insufficient cpu" in line["explanation"]
    assert printed.exit_code == 1
    assert sums(printed)["agreed"] < sums(printed)["compared"]
