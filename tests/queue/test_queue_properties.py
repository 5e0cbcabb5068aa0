"""Whatever happens: no pod is lost, none is in two places, and shortcuts change nothing.

The machine plays the scheduler and its event handlers: it adds, changes and deletes pods, pops them,
fails or places them, lets time pass and things happen, opens and shuts gates. It keeps its own list
of the pods that must be somewhere.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mooring.framework.events import (
    UNSCHEDULABLE_TIMEOUT,
    Action,
    ClusterEvent,
    EventResource,
    Hint,
)
from mooring.framework.interface import Nomination
from mooring.framework.status import unresolvable
from mooring.objects.pod import DEFAULT_SCHEDULER, Pod
from mooring.queue.hints import Strategy
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.queue.scheduling_queue import SchedulingQueue
from tests.clock import FakeClock
from tests.makers import make_pod
from tests.queue.world import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    CLAIM_ADD,
    NODE_ADD,
    NODE_LABEL,
    POD_DELETE,
    POD_LABEL,
    ByPriority,
    ByPriorityKey,
)

NAMES = st.sampled_from("abcdef")
PLUGINS = ("A", "B", "Gate")
PLUGIN_SETS = st.frozensets(st.sampled_from(PLUGINS))
REGISTERED = (NODE_ADD, NODE_LABEL, POD_DELETE, POD_LABEL, CLAIM_ADD)
INCOMING = st.sampled_from(
    (NODE_ADD, NODE_LABEL, ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE, CLAIM_ADD, UNSCHEDULABLE_TIMEOUT)
)


class QueueMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.queue: SchedulingQueue = SchedulingQueue(
            clock=self.clock,
            queue_sort=ByPriorityKey(),
            pre_enqueue={DEFAULT_SCHEDULER: [("Gate", self.gate)]},
            hints={
                DEFAULT_SCHEDULER: [
                    (event, plugin, self.hint) for plugin in PLUGINS for event in REGISTERED
                ]
            },
            report=self.reports_append,
        )
        self.reports: list[str] = []
        self.closed_to: set[str] = set()
        self.answer = Hint.QUEUE
        self.breaks = False
        self.uids = 0
        #: The pods that exist and wait, by name, and those in flight, by UID. A pod in flight that is
        #: not among the existing ones was deleted meanwhile.
        self.waiting: dict[str, Pod] = {}
        self.flying: dict[str, QueuedPodInfo] = {}
        self.exists: dict[str, Pod] = {}

    def reports_append(self, text: str) -> None:
        self.reports.append(text)

    def gate(self, pod):
        if self.breaks:
            raise RuntimeError("a broken gate")
        return unresolvable("shut") if pod.name in self.closed_to else None

    def hint(self, pod, old, new):
        if self.breaks:
            raise RuntimeError("a broken hint")
        return self.answer

    # The world around

    @rule(seconds=st.sampled_from((0, 0.3, 1, 2.5, 40, 400)))
    def time_passes(self, seconds):
        self.clock.advance(seconds)

    @rule(answer=st.sampled_from(list(Hint)), breaks=st.booleans())
    def plugins_change_their_mind(self, answer, breaks):
        self.answer, self.breaks = answer, breaks

    @rule(name=NAMES, is_open=st.booleans())
    def a_gate_moves(self, name, is_open):
        (self.closed_to.discard if is_open else self.closed_to.add)(name)

    # Pods

    @rule(name=NAMES, priority=st.integers(0, 2), nominated=st.sampled_from((None, "n1")))
    def a_pod_appears(self, name, priority, nominated):
        if name in self.exists:
            return
        self.uids += 1
        pod = make_pod(name, uid=str(self.uids), priority=priority, nominated=nominated)
        self.exists[name] = self.waiting[name] = pod
        self.queue.add(pod)

    @rule(name=NAMES, priority=st.integers(0, 2), labels=st.sampled_from(({}, {"a": "b"})))
    def a_pod_changes(self, name, priority, labels):
        old = self.exists.get(name)
        if old is None:
            return
        new = make_pod(name, uid=old.uid, priority=priority, labels=labels)
        self.exists[name] = new
        if name in self.waiting:
            self.waiting[name] = new
        self.queue.update(old, new)

    @rule(name=NAMES)
    def a_pod_is_deleted(self, name):
        if name in self.exists:
            self.waiting.pop(name, None)
            self.queue.delete(self.exists.pop(name))

    # Attempts

    @rule()
    def pop(self):
        ready = self.queue.ready
        queued = self.queue.pop()
        assert (queued is not None) is ready
        if queued is not None:
            self.took_off(queued)

    @rule(name=NAMES)
    def pop_specific(self, name):
        queued = self.queue.pop_specific(make_pod(name))
        if queued is not None:
            assert queued.pod.name == name
            self.took_off(queued)

    def took_off(self, queued):
        assert self.waiting.pop(queued.pod.name) is queued.pod
        self.flying[queued.uid] = queued

    @precondition(lambda self: self.flying)
    @rule(which=st.integers(0, 10), rejectors=PLUGIN_SETS, pending=PLUGIN_SETS)
    def an_attempt_fails(self, which, rejectors, pending):
        queued = self.fly_out(which)
        queued.clear_rejectors()
        queued.unschedulable_plugins = set(rejectors | pending)
        queued.pending_plugins = set(pending)
        known = self.exists.get(queued.pod.name)
        if known is None or known.uid != queued.uid:
            self.queue.done(queued.uid)
            return
        queued.pod = self.waiting[known.name] = known
        assert self.queue.add_unschedulable_if_not_present(queued)
        self.queue.nominator.add(known, Nomination("n2"))

    @precondition(lambda self: self.flying)
    @rule(which=st.integers(0, 10))
    def a_pod_is_placed(self, which):
        queued = self.fly_out(which)
        self.queue.done(queued.uid)
        known = self.exists.get(queued.pod.name)
        if known is not None and known.uid == queued.uid:
            self.queue.delete(self.exists.pop(known.name))

    def fly_out(self, which) -> QueuedPodInfo:
        uids = list(self.flying)
        return self.flying.pop(uids[which % len(uids)])

    # Reasons to try again

    @rule(event=INCOMING, limit=st.none() | st.integers(0, 2))
    def something_happens(self, event, limit):
        pre_check = None if limit is None else lambda pod: pod.priority <= limit
        self.queue.move_all(event, None, None, pre_check)

    @rule(names=st.frozensets(NAMES))
    def pods_are_activated(self, names):
        self.queue.activate({n: self.exists.get(n, make_pod(n)) for n in sorted(names)})

    @rule()
    def flush_backoff_completed(self):
        self.queue.flush_backoff_completed()

    @rule()
    def flush_unschedulable_leftover(self):
        self.queue.flush_unschedulable_leftover()

    # What must hold

    @invariant()
    def the_books_add_up(self):
        self.queue.validate()
        assert sum(self.queue.counts()) == len(self.waiting)

    @invariant()
    def every_waiting_pod_is_in_the_queue_and_no_other(self):
        pods, _ = self.queue.pending_pods()
        assert {pod.name: pod for pod in pods} == self.waiting
        assert all(pod is self.waiting[pod.name] for pod in pods)

    @invariant()
    def every_pod_in_flight_is_known_to_be(self):
        assert {pod.uid for pod in self.queue.in_flight_pods()} == set(self.flying)

    @invariant()
    def only_pods_that_exist_are_nominated(self):
        uids = {pod.uid for pod in self.exists.values()}
        nominated = {
            pod.uid
            for node in self.queue.nominator.nodes()
            for pod in self.queue.nominator.nominated_pods_for_node(node)
        }
        assert nominated <= uids

    @invariant()
    def nothing_impossible_was_reported(self):
        assert all("broken" in report for report in self.reports)

    def teardown(self):
        """Open every gate and let time pass: every waiting pod can be popped in the end."""
        self.breaks = False
        self.closed_to.clear()
        names = []
        for _ in range(40):
            self.clock.advance(60)
            self.queue.flush_unschedulable_leftover()
            self.queue.flush_backoff_completed()
            while (queued := self.queue.pop()) is not None:
                names.append(queued.pod.name)
        assert sorted(names) == sorted(self.waiting)


TestQueueMachine = QueueMachine.TestCase

EVERYTHING = ClusterEvent(EventResource.POD, Action.ALL)


@given(
    pods=st.lists(
        st.tuples(PLUGIN_SETS, PLUGIN_SETS, st.sampled_from((DEFAULT_SCHEDULER, "other"))),
        max_size=8,
    ),
    registered=st.lists(
        st.tuples(st.sampled_from((*REGISTERED, EVERYTHING)), st.sampled_from(PLUGINS))
    ),
    skips=PLUGIN_SETS,
    event=INCOMING,
)
def test_moving_files_of_pods_moves_the_pods_that_asking_about_each_would(
    pods, registered, skips, event
):
    def hint_of(plugin):
        return lambda pod, old, new: Hint.SKIP if plugin in skips else Hint.QUEUE

    hints = [(known, plugin, hint_of(plugin)) for known, plugin in registered]
    queue = SchedulingQueue(
        clock=FakeClock(),
        queue_sort=ByPriorityKey(),
        hints={DEFAULT_SCHEDULER: hints, "other": hints[:1]},
    )
    for number, (plugins, pending, scheduler) in enumerate(pods):
        queue.add(make_pod(f"p{number}", scheduler=scheduler))
        queued = queue.pop()
        queued.unschedulable_plugins = set(plugins | pending) or {"A"}
        queued.pending_plugins = set(pending)
        queue.add_unschedulable_if_not_present(queued)
    assert queue.counts().unschedulable == len(pods)
    is_of_interest = event.wildcard or any(known.covers(event) for known, _, _ in hints)
    stay = {
        queued.key
        for queued in queue.unschedulable_pods()
        if not is_of_interest or queue.is_pod_worth_requeuing(queued, event) == Strategy.SKIP
    }

    queue.move_all(event)

    assert {queued.key for queued in queue.unschedulable_pods()} == stay


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("add", "update", "delete", "pop", "reject", "move", "flush")),
            st.sampled_from("abcde"),
            st.integers(0, 2),
        ),
        max_size=60,
    )
)
def test_the_same_story_ends_the_same_with_less_and_with_sort_keys(steps):
    stories = []
    for sort in (ByPriority(), ByPriorityKey()):
        clock, story = FakeClock(), []
        queue = SchedulingQueue(
            clock=clock,
            queue_sort=sort,
            hints={DEFAULT_SCHEDULER: [(NODE_ADD, "A", None)]},
            report=story.append,
        )
        flying = []
        for step, name, number in steps:
            pod = make_pod(name, priority=number)
            match step:
                case "add" if name not in {other.pod.name for other in flying}:
                    queue.add(pod)
                case "update" if pod.key in queue:
                    queue.update(queue.get(pod.key).pod, pod)
                case "delete":
                    queue.delete(pod)
                case "pop":
                    if (queued := queue.pop()) is not None:
                        story.append(queued.pod.name)
                        flying.append(queued)
                case "reject" if flying:
                    queued = flying.pop(number % len(flying))
                    queued.unschedulable_plugins = {"A"}
                    queue.add_unschedulable_if_not_present(queued)
                case "move":
                    queue.move_all(NODE_ADD)
                case "flush":
                    clock.advance(number)
                    queue.flush_backoff_completed()
            queue.validate()
        while (queued := queue.pop()) is not None:
            story.append(queued.pod.name)
        stories.append(story)

    assert stories[0] == stories[1]
