"""The API server in memory: what it does to writes, and whom it tells."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mooring.errors import Conflict, Forbidden, NotFound
from mooring.framework.api import PodStatusPatch
from mooring.objects.pod import Pod, PodCondition
from mooring.sim.api import RUN_SECONDS, SimApi, run_seconds
from mooring.sim.clock import VirtualClock, VirtualLoop
from tests.makers import make_node, make_pod
from tests.volume_world import make_claim, make_volume, with_version

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class Notes:
    """A watcher that takes down what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def added(self, obj) -> None:
        self.notes.append(f"+{obj.name}")

    def updated(self, old, new) -> None:
        assert old.metadata.resource_version != new.metadata.resource_version
        self.notes.append(f"~{new.name}")

    def deleted(self, obj) -> None:
        self.notes.append(f"-{obj.name}")


class Server:
    def __init__(self) -> None:
        self.loop = VirtualLoop()
        self.api = SimApi(self.loop, VirtualClock(self.loop, EPOCH.timestamp()))
        self.watcher = Notes()
        self.api.watch(self.watcher)

    def write(self, coroutine):
        return self.loop.run_until_complete(coroutine)

    def run(self) -> None:
        self.loop.run_forever()

    def pod(self, name: str = "p") -> Pod | None:
        return self.api.get(Pod, f"default/{name}")

    @property
    def told(self) -> list[str]:
        return self.watcher.notes


@pytest.fixture
def server():
    server = Server()
    yield server
    server.loop.close()


# Storing and telling


def test_every_change_is_told_in_order_and_only_after_the_write(server):
    pod = server.api.create(make_pod("p"))
    server.api.update(make_pod("p", labels={"a": "b"}))
    server.api.delete(pod)
    assert server.told == []

    server.run()

    assert server.told == ["+p", "~p", "-p"]
    assert server.pod() is None


def test_all_watchers_hear_of_a_change_before_the_next_one(server):
    heard = []

    class Shared(Notes):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def added(self, obj):
            heard.append((self.name, obj.name))

    for name in "ab":
        server.api.watch(Shared(name))
    server.api.create(make_pod("p"))
    server.api.create(make_pod("q"))

    server.run()

    assert heard == [("a", "p"), ("b", "p"), ("a", "q"), ("b", "q")]


def test_whoever_begins_to_watch_is_told_what_is_there(server):
    server.api.create(make_node("n"))
    server.run()
    late = Notes()

    server.api.watch(late)

    assert late.notes == ["+n"]


def test_every_write_has_a_version_of_its_own(server):
    first = server.api.create(make_pod("p"))
    second = server.api.update(make_pod("p"))
    third = server.api.create(make_node("n"))

    versions = [int(obj.metadata.resource_version) for obj in (first, second, third)]
    assert versions == sorted(set(versions))


def test_an_object_is_created_once_and_changed_only_while_it_is_there(server):
    server.api.create(make_pod("p"))

    with pytest.raises(Conflict, match="Pod default/p already exists"):
        server.api.create(make_pod("p"))
    with pytest.raises(NotFound, match="Pod default/q not found"):
        server.api.update(make_pod("q"))
    with pytest.raises(NotFound):
        server.api.delete(make_pod("q"))


# Binding


def test_a_binding_sets_the_node_and_the_condition_and_takes_the_nomination_back(server):
    pod = server.api.create(make_pod("p", nominated="elsewhere"))

    server.write(server.api.bind(pod, "n"))

    bound = server.pod()
    assert (bound.node_name, bound.nominated_node_name, bound.status.phase) == ("n", "", "Running")
    assert bound.status.start_time == EPOCH
    condition = bound.condition("PodScheduled")
    assert (condition.status, condition.last_transition_time) == ("True", EPOCH)


@pytest.mark.parametrize(
    ("stored", "error"),
    [
        pytest.param(make_pod("p", node="m"), "already assigned to node m", id="bound"),
        pytest.param(make_pod("p", deleting=EPOCH), "is being deleted", id="going away"),
        pytest.param(make_pod("p", uid="another"), "has another UID: another", id="another pod"),
    ],
)
def test_a_pod_that_cannot_be_bound_is_a_conflict(server, stored, error):
    server.api.create(stored)

    with pytest.raises(Conflict, match=error):
        server.write(server.api.bind(make_pod("p"), "n"))
    assert server.pod().node_name == stored.node_name


def test_a_pod_that_is_gone_cannot_be_bound(server):
    with pytest.raises(NotFound):
        server.write(server.api.bind(make_pod("p"), "n"))


# Patching


def condition(status: str = "False", message: str = "m") -> PodCondition:
    return PodCondition(type="PodScheduled", status=status, reason="r", message=message)


def test_a_condition_is_dated_by_when_its_status_last_changed(server):
    pod = server.api.create(make_pod("p"))

    def patch(after_s: float, each: PodCondition) -> datetime:
        server.loop.call_later(after_s, lambda: None)
        server.run()
        server.write(server.api.patch_pod_status(pod, PodStatusPatch(each)))
        (stored,) = server.pod().status.conditions
        assert stored.message == each.message
        return stored.last_transition_time

    first = patch(10, condition())
    assert patch(10, condition(message="other")) == first
    assert patch(10, condition("True")) > first


def test_a_patch_changes_what_it_names_and_nothing_else(server):
    other = PodCondition(type="Ready", status="True")
    pod = server.api.create(make_pod("p", nominated="n", conditions=[other]))

    server.write(server.api.patch_pod_status(pod, PodStatusPatch(condition())))
    assert server.pod().nominated_node_name == "n"
    assert [each.type for each in server.pod().status.conditions] == ["Ready", "PodScheduled"]

    server.write(server.api.patch_pod_status(pod, PodStatusPatch(nominated_node_name="")))
    assert server.pod().nominated_node_name == ""
    assert len(server.pod().status.conditions) == 2


# Going away


def test_a_pod_without_a_node_is_deleted_at_once(server):
    pod = server.api.create(make_pod("p"))

    server.write(server.api.delete_pod(pod))

    assert server.pod() is None


@pytest.mark.parametrize(("grace_s", "after_s"), [(None, 30.0), (1, 1.0), (90, 90.0)])
def test_a_pod_on_a_node_terminates_first(server, grace_s, after_s):
    pod = server.api.create(make_pod("p", node="n", grace_period_s=grace_s))

    server.write(server.api.delete_pod(pod))
    assert server.pod().metadata.deletion_timestamp == EPOCH
    assert server.api.busy == 1
    server.write(server.api.delete_pod(pod))
    assert server.api.busy == 1, "it is going already"
    server.run()

    assert server.pod() is None
    assert server.loop.time() == after_s
    assert server.api.busy == 0


def test_a_pod_that_took_the_name_of_one_that_terminates_is_spared(server):
    pod = server.api.create(make_pod("p", node="n", uid="old"))
    server.write(server.api.delete_pod(pod))
    server.api.delete(pod)
    server.api.create(make_pod("p", uid="new"))

    server.run()

    assert server.pod().uid == "new"


# Running


@pytest.mark.parametrize("how", ["bound", "there from the start"])
def test_a_pod_succeeds_after_its_run_time(server, how):
    runs = {RUN_SECONDS: "90"}
    if how == "bound":
        pod = server.api.create(make_pod("p", annotations=runs))
        server.write(server.api.bind(pod, "n"))
    else:
        server.api.create(make_pod("p", node="n", annotations=runs))
    assert server.api.busy == 1

    server.run()

    assert (server.pod().status.phase, server.loop.time()) == ("Succeeded", 90.0)
    assert [pod.name for pod in server.api.finished] == ["p"]


def test_a_pod_that_is_gone_before_its_time_does_not_succeed(server):
    pod = server.api.create(make_pod("p", node="n", annotations={RUN_SECONDS: "90"}))
    server.api.delete(pod)
    server.api.create(make_pod("p", uid="another"))

    server.run()

    assert server.api.finished == []
    assert server.pod().status.phase == ""


@pytest.mark.parametrize("text", ["", "soon", "-1", "1e3", "nan", "1.", ".5", " 1"])
def test_a_run_time_that_is_no_number_of_seconds_is_refused(text):
    with pytest.raises(ValueError, match=r'is not a number of seconds; write one such as "90"'):
        run_seconds(make_pod("p", annotations={RUN_SECONDS: text}))


@pytest.mark.parametrize(("text", "seconds"), [("0", 0.0), ("90", 90.0), ("0.25", 0.25)])
def test_a_run_time_is_a_number_of_seconds(text, seconds):
    assert run_seconds(make_pod("p", annotations={RUN_SECONDS: text})) == seconds
    assert run_seconds(make_pod("p")) is None


# Volumes and claims


@pytest.mark.parametrize("obj", [make_volume(), make_claim()])
def test_a_volume_or_claim_is_written_only_over_the_version_that_was_read(server, obj):
    stored = server.api.create(obj)
    write = server.api.update_object

    newer = server.write(write(stored))

    assert int(newer.metadata.resource_version) > int(stored.metadata.resource_version)
    with pytest.raises(Conflict, match="has been modified"):
        server.write(write(with_version(obj, stored.metadata.resource_version)))


def test_a_scheduler_may_not_write_a_kind_that_is_not_writable(server):
    """A simulation refuses what the role in deploy/base/rbac.yaml does not grant."""
    stored = server.api.create(make_node("n"))

    with pytest.raises(Forbidden, match="cannot change a Node"):
        server.write(server.api.update_object(stored))
