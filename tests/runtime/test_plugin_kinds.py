"""A plugin may bring kinds of its own: they are read, listed, watched, and their changes wake pods."""

from __future__ import annotations

from mooring.config import load_config
from mooring.live.resources import kinds_to_watch
from mooring.objects.kinds import custom_kind
from mooring.objects.manifests import ReadOptions, read_manifests
from mooring.objects.meta import KubeObject, ObjectMeta, Part
from mooring.plugin import (
    SUCCESS,
    Action,
    ClusterEvent,
    CycleState,
    EventWithHint,
    Handle,
    NodeInfo,
    Status,
    unschedulable,
)
from mooring.runtime.build import plugin_kinds
from tests.engine import Engine, registry_with
from tests.makers import make_node, make_pod


class Ticket(KubeObject, frozen=True):
    class Spec(Part, frozen=True):
        seats: int = 0

    spec: Spec = Spec()


TICKETS = custom_kind(Ticket, "example.dev", "tickets", version="v1beta1")


class NeedsTicket:
    name = "NeedsTicket"
    kinds = (TICKETS,)

    def __init__(self, args: object, handle: Handle) -> None:
        self._listers = handle.cluster.listers

    def filter(self, state: CycleState, pod: object, node: NodeInfo) -> Status:
        ticket = self._listers.get(Ticket, "default/t")
        return SUCCESS if ticket is not None and ticket.spec.seats else unschedulable("no ticket")

    def events_to_register(self) -> list[EventWithHint]:
        return [EventWithHint(ClusterEvent(TICKETS.event_resource, Action.ADD | Action.UPDATE))]


PLUGINS = {"NeedsTicket": NeedsTicket}
CONFIG = load_config(
    {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "NeedsTicket"}]}}}],
    }
)
TEXT = """
apiVersion: example.dev/v1beta1
kind: Ticket
metadata: {name: t}
spec: {seats: 2, colour: red}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: g}
spec: {minMember: 2}
"""


class PodGroup(KubeObject, frozen=True):
    pass


def ticket(seats: int) -> Ticket:
    return Ticket(metadata=ObjectMeta(name="t", namespace="default"), spec=Ticket.Spec(seats=seats))


def test_the_kinds_of_enabled_plugins_are_known_from_the_configuration():
    assert plugin_kinds(CONFIG, registry_with(PLUGINS)) == (TICKETS,)


def test_objects_of_these_kinds_are_read_from_files(tmp_path):
    (tmp_path / "a.yaml").write_text(TEXT)

    read = read_manifests([tmp_path], options=ReadOptions(kinds=(TICKETS,)))

    (found,) = [obj for obj in read.objects if isinstance(obj, Ticket)]
    assert (found.key, found.spec.seats) == ("default/t", 2)
    assert not read.skipped


def test_what_a_plugin_makes_of_a_pod_group_goes_before_a_gang(tmp_path):
    (tmp_path / "a.yaml").write_text(TEXT)
    kind = custom_kind(PodGroup, "scheduling.x-k8s.io", "podgroups", version="v1alpha1")

    read = read_manifests([tmp_path], options=ReadOptions(kinds=(kind,)))

    assert [type(obj) for obj in read.objects] == [PodGroup]
    assert not any("read as a gang" in warning for warning in read.warnings)


def test_a_change_of_such_an_object_wakes_the_pods_that_the_plugin_refused():
    world = Engine(make_node("n"), make_pod("p"), config=CONFIG, plugins=PLUGINS)
    world.scheduler.schedule_one()
    assert not world.placements()

    world.scheduler.added(ticket(0))
    world.clock.advance(2)
    world.scheduler.queue.flush_backoff_completed()
    world.scheduler.schedule_one()
    assert not world.placements()

    world.scheduler.updated(ticket(0), ticket(1))
    world.clock.advance(20)
    world.scheduler.queue.flush_backoff_completed()
    world.scheduler.schedule_one()
    assert world.placements() == {"default/p": "n"}


def test_a_live_scheduler_watches_the_kind_and_another_engine_takes_its_objects_over():
    first = Engine(ticket(1), config=CONFIG, plugins=PLUGINS)
    assert kinds_to_watch(first.scheduler)[-1] is TICKETS
    assert TICKETS.path == "/apis/example.dev/v1beta1/tickets"

    second = Engine(config=CONFIG, plugins=PLUGINS)
    second.scheduler.take_over(first.scheduler)
    assert second.scheduler.cluster.listers.get(Ticket, "default/t") == ticket(1)
