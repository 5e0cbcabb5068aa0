"""Queueing hints: which are asked about a pod, and what comes of their answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.framework.events import (
    FORCE_ACTIVATE,
    UNSCHEDULABLE_TIMEOUT,
    Action,
    ClusterEvent,
    EventResource,
    Hint,
)
from mooring.objects.pod import DEFAULT_SCHEDULER
from mooring.queue.hints import QueueingHints, Strategy
from mooring.queue.in_flight import RecordedEvent
from mooring.queue.metrics import QueueMetrics
from mooring.queue.queued_pod import QueuedPodInfo
from tests.makers import make_node, make_pod
from tests.queue.world import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    CLAIM_ADD,
    CLAIMS,
    FIT,
    NODE_ADD,
    NODE_LABEL,
    POD_DELETE,
    HintSpy,
    Recorder,
)

QUEUE, SKIP = Hint.QUEUE, Hint.SKIP
NODE_UPDATE = ClusterEvent(EventResource.NODE, Action.UPDATE)


def hints_of(*registered, metrics=None, reports=None) -> QueueingHints:
    report = (reports if reports is not None else []).append
    return QueueingHints({DEFAULT_SCHEDULER: registered}, metrics or QueueMetrics(), report)


def pod_rejected_by(*plugins: str, pending: tuple[str, ...] = (), **fields) -> QueuedPodInfo:
    queued = QueuedPodInfo(make_pod(**fields), 0)
    queued.unschedulable_plugins = {*plugins, *pending}
    queued.pending_plugins = set(pending)
    return queued


def strategy(hints: QueueingHints, queued: QueuedPodInfo, event=NODE_ADD, old=None, new=None):
    return hints.is_pod_worth_requeuing(queued, event, old, new)


def test_a_pod_that_no_plugin_rejected_is_always_worth_another_try():
    assert strategy(hints_of(), pod_rejected_by()) == Strategy.AFTER_BACKOFF


def test_an_event_for_everyone_is_reason_for_every_pod():
    assert strategy(hints_of(), pod_rejected_by(FIT), UNSCHEDULABLE_TIMEOUT) == (
        Strategy.AFTER_BACKOFF
    )


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param(make_pod(uid="1"), Strategy.AFTER_BACKOFF, id="this pod"),
        pytest.param(make_pod(uid="2"), Strategy.SKIP, id="its namesake"),
        pytest.param(make_node(uid="1"), Strategy.SKIP, id="no pod at all"),
    ],
)
def test_an_event_for_everyone_that_names_a_pod_is_for_that_pod(target, expected):
    queued = pod_rejected_by(FIT, uid="1")

    assert strategy(hints_of(), queued, FORCE_ACTIVATE, None, target) == expected


def test_an_event_for_everyone_asks_no_hints():
    hint = HintSpy(SKIP)

    strategy(hints_of((NODE_ADD, FIT, hint)), pod_rejected_by(FIT), UNSCHEDULABLE_TIMEOUT)

    assert hint.asked == []


def test_a_pod_of_a_profile_without_hints_is_tried_again_and_that_is_reported():
    reports: list[str] = []
    hints = hints_of((NODE_ADD, FIT, None), reports=reports)

    assert strategy(hints, pod_rejected_by(FIT, scheduler="other")) == Strategy.AFTER_BACKOFF
    assert "other" in reports[0]


def test_an_event_without_a_hint_function_is_always_a_reason():
    assert strategy(hints_of((NODE_ADD, FIT, None)), pod_rejected_by(FIT)) == (
        Strategy.AFTER_BACKOFF
    )


@pytest.mark.parametrize(
    ("answer", "expected"), [(QUEUE, Strategy.AFTER_BACKOFF), (SKIP, Strategy.SKIP)]
)
def test_a_hint_is_asked_about_the_pod_with_the_object_before_and_after(answer, expected):
    hint, old, new = HintSpy(answer), make_node("old"), make_node("new")
    queued = pod_rejected_by(FIT)

    assert strategy(hints_of((NODE_ADD, FIT, hint)), queued, NODE_ADD, old, new) == expected
    assert hint.asked == [(queued.pod, old, new)]


def test_only_the_plugins_that_rejected_a_pod_are_asked_about_it():
    hint = HintSpy(QUEUE)

    assert strategy(hints_of((NODE_ADD, CLAIMS, hint)), pod_rejected_by(FIT)) == Strategy.SKIP
    assert hint.asked == []


@pytest.mark.parametrize(
    ("registered", "happened", "is_asked"),
    [
        pytest.param(NODE_ADD, NODE_ADD, True, id="the same"),
        pytest.param(NODE_ADD, NODE_LABEL, False, id="another action"),
        pytest.param(NODE_UPDATE, NODE_LABEL, True, id="a special case of it"),
        pytest.param(NODE_LABEL, NODE_UPDATE, False, id="something more general"),
        pytest.param(POD_DELETE, ASSIGNED_POD_DELETE, True, id="of an assigned pod"),
        pytest.param(POD_DELETE, ASSIGNED_POD_ADD, False, id="another action on a pod"),
        pytest.param(
            ClusterEvent(EventResource.WILDCARD, Action.ADD), NODE_ADD, True, id="of any resource"
        ),
        pytest.param(
            ClusterEvent(EventResource.WILDCARD, Action.ALL), NODE_LABEL, True, id="anything"
        ),
    ],
)
def test_a_plugin_hears_of_the_events_that_it_registered(registered, happened, is_asked):
    hint = HintSpy(QUEUE)
    hints = hints_of((registered, FIT, hint))

    strategy(hints, pod_rejected_by(FIT), happened)

    assert bool(hint.asked) is is_asked
    assert hints.is_of_interest(happened) is is_asked


def test_queue_from_a_pending_plugin_means_at_once():
    hints = hints_of((NODE_ADD, CLAIMS, None))

    assert strategy(hints, pod_rejected_by(pending=(CLAIMS,))) == Strategy.IMMEDIATELY


def test_a_pending_plugin_is_asked_even_after_another_said_queue():
    pending = HintSpy(QUEUE)
    hints = hints_of((NODE_ADD, FIT, None), (NODE_ADD, CLAIMS, pending))

    assert strategy(hints, pod_rejected_by(FIT, pending=(CLAIMS,))) == Strategy.IMMEDIATELY


def test_queue_from_another_plugin_stands_when_the_pending_one_says_skip():
    hints = hints_of((NODE_ADD, FIT, None), (NODE_ADD, CLAIMS, HintSpy(SKIP)))

    assert strategy(hints, pod_rejected_by(FIT, pending=(CLAIMS,))) == Strategy.AFTER_BACKOFF


def test_without_pending_plugins_the_first_queue_ends_the_asking():
    second = HintSpy(QUEUE)
    hints = hints_of((NODE_ADD, FIT, None), (NODE_ADD, CLAIMS, second))

    strategy(hints, pod_rejected_by(FIT, CLAIMS))

    assert second.asked == []


def test_skip_from_one_plugin_does_not_end_the_asking():
    hints = hints_of((NODE_ADD, FIT, HintSpy(SKIP)), (NODE_ADD, CLAIMS, None))

    assert strategy(hints, pod_rejected_by(FIT, CLAIMS)) == Strategy.AFTER_BACKOFF


def test_a_hint_that_raises_counts_as_queue_and_is_reported():
    reports: list[str] = []
    hint = HintSpy(ValueError("no such label"))
    hints = hints_of((NODE_ADD, FIT, hint), reports=reports)

    assert strategy(hints, pod_rejected_by(FIT)) == Strategy.AFTER_BACKOFF
    assert FIT in reports[0]
    assert "no such label" in reports[0]


def test_every_answer_is_timed_under_its_name():
    metrics = Recorder()
    hints = hints_of(
        (NODE_ADD, "Skips", HintSpy(SKIP)),
        (NODE_ADD, "Fails", HintSpy(ValueError())),
        (NODE_ADD, "Queues", HintSpy(QUEUE)),
        metrics=metrics,
    )

    strategy(hints, pod_rejected_by("Skips", "Fails", "Queues", pending=("Waits",)))

    assert metrics.hints == [
        ("Skips", "NodeAdd", "QueueSkip", 1),
        ("Fails", "NodeAdd", "Error", 1),
        ("Queues", "NodeAdd", "Queue", 1),
    ]


def recorded(*events: ClusterEvent) -> list[RecordedEvent]:
    return [RecordedEvent(event, None, None) for event in events]


@pytest.mark.parametrize(
    ("happened", "expected"),
    [
        pytest.param([], Strategy.SKIP, id="nothing"),
        pytest.param([NODE_LABEL], Strategy.SKIP, id="nothing that helps"),
        pytest.param([NODE_LABEL, NODE_ADD], Strategy.AFTER_BACKOFF, id="what another waits for"),
        pytest.param([CLAIM_ADD], Strategy.IMMEDIATELY, id="what the pending plugin waits for"),
        pytest.param([NODE_ADD, CLAIM_ADD], Strategy.IMMEDIATELY, id="both, the best wins"),
    ],
)
def test_for_a_pod_that_comes_back_the_best_of_what_happened_decides(happened, expected):
    hints = hints_of((NODE_ADD, FIT, None), (CLAIM_ADD, CLAIMS, None))
    queued = pod_rejected_by(FIT, pending=(CLAIMS,))

    assert hints.strategy_after(queued, recorded(*happened)) == expected


def test_for_a_pod_without_pending_plugins_the_first_reason_is_enough():
    hint = HintSpy(QUEUE)
    hints = hints_of((NODE_ADD, FIT, hint))

    hints.strategy_after(pod_rejected_by(FIT), recorded(NODE_ADD, NODE_ADD))

    assert len(hint.asked) == 1


def test_the_events_of_a_plugin_are_those_of_all_profiles():
    hints = QueueingHints(
        {"one": [(NODE_ADD, FIT, None)], "two": [(POD_DELETE, FIT, None)]},
        QueueMetrics(),
        [].append,
    )

    assert set(hints.events_of(FIT)) == {NODE_ADD, POD_DELETE}
    assert hints.events_of("unknown") == ()


PLUGINS = ("A", "B", "C")
EVENTS = (NODE_ADD, NODE_LABEL, NODE_UPDATE, ASSIGNED_POD_DELETE, FORCE_ACTIVATE)


@given(
    registered=st.lists(
        st.tuples(st.sampled_from((*EVENTS[:4], POD_DELETE)), st.sampled_from(PLUGINS), st.none())
    ),
    rejectors=st.frozensets(st.sampled_from(PLUGINS)),
    event=st.sampled_from(EVENTS),
    profile=st.sampled_from((DEFAULT_SCHEDULER, "other")),
)
def test_pods_that_are_dismissed_together_would_each_have_been_skipped(
    registered, rejectors, event, profile
):
    hints = hints_of(*registered)
    queued = pod_rejected_by(*rejectors, scheduler=profile)

    may_help = hints.may_help(event, profile=profile, rejectors=rejectors)

    assert may_help is (strategy(hints, queued, event) != Strategy.SKIP)
