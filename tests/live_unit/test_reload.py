"""A configuration that changes while pods wait and bind: nothing is lost, nothing is placed twice."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from mooring.config import load_config
from mooring.errors import ConfigError
from mooring.live.reload import ConfigSource, Reloader, fresh_modules
from tests.live_unit.loop_api import Cluster
from tests.live_unit.test_runner import Slow
from tests.makers import make_node, make_pod

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def config_for(*names: str) -> str:
    return HEAD + "profiles:\n" + "".join(f"- schedulerName: {name}\n" for name in names)


async def test_pods_that_waited_are_placed_by_the_other_configuration():
    picky = HEAD + "profiles:\n- schedulerName: default-scheduler\n"
    cluster = Cluster(
        make_node("a", cpu=1),
        make_pod("big", cpu=64),
        make_pod("other", scheduler="other"),
        config=load_config(picky),
    )
    cluster.driver.start()
    scheduler = cluster.driver.scheduler
    await cluster.until(lambda: scheduler.queue.counts().unschedulable == 1)
    attempts = scheduler.queue.get("default/big").attempts

    cluster.driver.reload(load_config(config_for("default-scheduler", "other")))

    await cluster.until(lambda: cluster.node_of("other") == "a")
    waiting = cluster.driver.scheduler.queue
    await cluster.until(lambda: waiting.counts().unschedulable == 1)
    assert waiting.get("default/big").attempts == attempts + 1
    cluster.driver.close()


async def test_a_binding_under_way_is_kept_and_its_place_with_it():
    writers: list[Slow] = []

    def make(api):
        writers.append(Slow(api))
        return writers[0]

    cluster = Cluster(make_node("a", cpu=1), make_pod("p", cpu=1), writer=make)
    cluster.driver.start()
    await cluster.until(lambda: cluster.driver.tasks)

    cluster.driver.reload(load_config(config_for("default-scheduler")))
    assert [pod.name for pod in cluster.driver.scheduler.cluster.assumed_pods()] == ["p"]
    cluster.api.create(make_pod("rival", cpu=1))
    await cluster.turns()
    writers[0].go.set()

    await cluster.until(lambda: cluster.node_of("p") == "a")
    await cluster.until(lambda: not cluster.driver.scheduler.cluster.assumed_pods())
    await cluster.turns()
    assert cluster.node_of("rival") == ""
    cluster.driver.scheduler.validate()
    cluster.driver.close()


class FailingOnce(Slow):
    calls = 0

    async def bind(self, pod, node_name):
        self.calls += 1
        if self.calls == 1:
            await self.go.wait()
            raise ConnectionError("gone")
        await self._api.bind(pod, node_name)


async def test_a_binding_that_fails_after_the_reload_gives_the_pod_to_the_new_scheduler():
    writers: list[FailingOnce] = []

    def make(api):
        writers.append(FailingOnce(api))
        return writers[0]

    cluster = Cluster(make_node("a"), make_pod("p"), writer=make)
    cluster.driver.start()
    await cluster.until(lambda: cluster.driver.tasks)
    cluster.driver.reload(load_config(config_for("default-scheduler")))
    writers[0].go.set()

    await cluster.until(lambda: cluster.node_of("p") == "a")
    await cluster.until(lambda: not cluster.driver.scheduler.cluster.assumed_pods())
    cluster.driver.close()


async def test_a_configuration_whose_plugins_cannot_be_built_changes_nothing():
    cluster = Cluster(make_node("a"))
    cluster.driver.start()
    before = cluster.driver.scheduler
    broken = config_for("default-scheduler") + (
        "  plugins: {filter: {enabled: [{name: 'no_such_module:Nothing'}]}}\n"
    )

    with pytest.raises(ConfigError):
        cluster.driver.reload(load_config(broken))

    assert cluster.driver.scheduler is before
    cluster.api.create(make_pod("p"))
    await cluster.until(lambda: cluster.node_of("p") == "a")
    cluster.driver.close()


def test_a_bad_file_is_refused_and_the_good_one_stays(tmp_path: Path, caplog):
    path = tmp_path / "scheduler.yaml"
    path.write_text(config_for("one"))
    source = ConfigSource(path)
    applied = []
    reloader = Reloader(source, source.load(), applied.append)
    assert not reloader.changed()

    path.write_text("kind: nonsense")
    assert reloader.changed()
    assert not reloader.reload()
    assert applied == []
    assert str(path) in caplog.text

    path.write_text(config_for("two"))
    assert reloader.changed()
    assert reloader.reload()
    assert [config.profiles[0].scheduler_name for config in applied] == ["two"]
    assert not reloader.changed()


def test_a_file_that_is_gone_is_refused(tmp_path: Path):
    path = tmp_path / "scheduler.yaml"
    path.write_text(config_for("one"))
    source = ConfigSource(path)
    reloader = Reloader(source, source.load(), lambda config: None)
    path.unlink()

    assert reloader.changed()
    assert not reloader.reload()


def test_plugins_named_by_the_file_are_read_again_and_kept_if_they_are_broken(tmp_path: Path):
    module = tmp_path / "reloaded_plugin.py"
    module.write_text("VERSION = 1\n")
    sys.path.append(str(tmp_path))
    try:
        import reloaded_plugin

        module.write_text("VERSION = 'two'\n")
        with fresh_modules(["reloaded_plugin"]):
            import reloaded_plugin as again
        assert again.VERSION == "two"
        with pytest.raises(RuntimeError), fresh_modules(["reloaded_plugin"]):
            raise RuntimeError
        assert sys.modules["reloaded_plugin"] is again
        assert reloaded_plugin.VERSION == 1
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("reloaded_plugin", None)


async def test_who_waits_for_permit_is_tried_by_the_new_plugins():
    from mooring.framework.status import Code, Status

    class Holding:
        name = "Holding"

        def permit(self, state, pod, node_name):
            return Status(Code.WAIT), 600.0

    holding = config_for("default-scheduler") + (
        "  plugins: {permit: {enabled: [{name: Holding}]}}\n"
    )
    cluster = Cluster(
        make_node("a"),
        make_pod("p"),
        config=load_config(holding),
        plugins={"Holding": Holding},
    )
    cluster.driver.start()
    await cluster.until(lambda: len(cluster.driver.scheduler.waiting_pods))

    cluster.driver.reload(load_config(config_for("default-scheduler")))

    await cluster.until(lambda: cluster.node_of("p") == "a")
    await asyncio.sleep(0)
    cluster.driver.close()
