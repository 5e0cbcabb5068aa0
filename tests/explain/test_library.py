"""`mooring.Cluster`, and the page that shows it."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mooring
from mooring.errors import ConfigError, InputError
from mooring.explain.explanation import CannotAnswer
from mooring.library import Cluster
from tests.cli.clusters import NODES, pod
from tests.makers import make_node, make_pod

PAGE = Path(__file__).parent.parent.parent / "docs" / "library.md"
GPU = """
---
apiVersion: v1
kind: Node
metadata: {name: n-3}
spec: {taints: [{key: gpu, value: "true", effect: NoSchedule}]}
status: {allocatable: {cpu: "8", memory: 4Gi, pods: "10"}}
"""
#: The cluster that the page is about.
SHOWN = (
    NODES
    + GPU
    + pod("here", spec=", nodeName: n-1")
    + pod("api", cpu="500m")
    + pod("web")
    + pod("big", cpu="6")
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    cluster = tmp_path / "cluster"
    cluster.mkdir()
    (cluster / "all.yaml").write_text(SHOWN)
    return cluster


def blocks() -> list[tuple[str, str | None]]:
    """Each example of the page, with the output printed beside it."""
    found = re.findall(r"```python\n(.*?)```(?:\n\n```output\n(.*?)```)?", PAGE.read_text(), re.S)
    return [(code, output or None) for code, output in found]


def test_the_page_prints_what_it_says(folder: Path):
    assert len(blocks()) >= 6
    names: dict[str, object] = {}
    with contextlib.chdir(folder.parent):
        for code, expected in blocks():
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(code, str(PAGE), "exec"), names)
            if expected is not None:
                assert printed.getvalue() == expected, code
    names.clear()
    gc.collect()


def test_the_package_is_light_until_the_library_is_used():
    script = (
        "import sys, mooring; assert 'numpy' not in sys.modules; print(mooring.Cluster.__name__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ},
    )
    assert (done.stdout, done.stderr) == ("Cluster\n", "")


def test_the_package_has_no_other_names():
    assert "Cluster" in dir(mooring)
    with pytest.raises(AttributeError, match="no attribute 'Clutser'"):
        _ = mooring.Clutser


def test_paths_may_be_given_one_by_one_or_as_a_list(folder: Path):
    path = folder / "all.yaml"
    assert len(Cluster.load(path).pods) == len(Cluster.load([str(path)]).pods) == 4


def test_nothing_to_load_and_nothing_to_be_found_are_errors():
    with pytest.raises(InputError, match="nothing to read"):
        Cluster.load()
    with pytest.raises(InputError, match="/no/such"):
        Cluster.load("/no/such/folder")


def test_a_configuration_may_be_a_mapping_or_a_file(tmp_path: Path):
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "mine"}],
    }
    path = tmp_path / "config.json"
    path.write_text(str(config).replace("'", '"'))
    cluster = Cluster.of([make_node(), make_pod(scheduler="mine")])

    for form in (config, path, str(path)):
        with cluster.simulate(config=form) as result:
            assert result.all_placed
    with cluster.simulate() as result:
        assert not result.all_placed
        assert not result.pending
        assert result.other_schedulers[0].state == "ignored"
    with pytest.raises(ConfigError):
        cluster.simulate(config={**config, "kind": "Nonsense"})


def test_the_end_may_be_given_in_words():
    runs = {"mooring.dev/run-seconds": "60"}
    cluster = Cluster.of([make_node(), make_pod(annotations=runs)])

    with cluster.simulate(until="30s") as at_30, cluster.simulate(until=90) as at_90:
        assert (len(at_30.report.finished), len(at_90.report.finished)) == (0, 1)
    with pytest.raises(InputError, match="'soon' is not a duration"):
        cluster.simulate(until="soon")


def test_a_result_answers_until_it_is_closed():
    result = Cluster.of([make_node("n"), make_pod(cpu=9), make_pod("q")]).simulate()

    assert result.explain("p").state == "unschedulable"
    assert result.explain("q").node == "n"
    assert result.counterfactuals("p").answers
    result.close()
    result.close()
    with pytest.raises(CannotAnswer, match="is closed"):
        result.explain("p")
    assert result.to_data()["summary"]["pending"] == 1


def test_every_result_is_a_frame_too():
    result = Cluster.of([make_node("n"), make_pod(cpu=9), make_pod("q")]).simulate()

    assert list(result.to_frame()["pod"]) == ["default/q", "default/p"]
    assert list(result.to_frame()["state"]) == ["running", "unschedulable"]
    assert set(result.nodes_frame()["resource"]) == {"cpu", "memory", "pods"}
    assert set(result.explain("p").to_frame()["node"]) == {"n"}
    assert len(result.counterfactuals("p").to_frame())


def test_what_would_not_be_created_is_part_of_the_result(tmp_path: Path):
    quota = """
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: q}
spec: {hard: {pods: "1"}}
"""
    path = tmp_path / "cluster.yaml"
    path.write_text(NODES + quota + pod("web") + pod("api"))
    cluster = Cluster.load(path)

    assert [each.object.key for each in cluster.refused] == ["default/api"]
    with cluster.simulate() as simulated:
        assert not simulated.pending
        assert not simulated.all_placed
        assert [each.object for each in simulated.report.not_created] == ["default/api"]
        assert simulated.to_data()["summary"]["notCreated"] == 1
    for question in (cluster.explain, cluster.counterfactuals):
        with pytest.raises(CannotAnswer, match="default/api would not be created: exceeded quota"):
            question("api")
