"""Backoff: how long, in which windows, in which heap."""

from __future__ import annotations

from math import inf

import pytest

from mooring.errors import InvariantError
from mooring.queue.backoff import BackoffQueue, backoff_duration_s
from mooring.queue.heap import order_by
from mooring.queue.queued_pod import QueuedPodInfo
from tests.clock import FakeClock
from tests.makers import make_pod
from tests.queue.world import FIT, ByPriorityKey


@pytest.mark.parametrize(
    ("count", "seconds"),
    [(0, 0), (1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (63, 10), (64, 10), (5000, 10)],
)
def test_the_wait_doubles_with_each_failure_up_to_the_limit(count, seconds):
    assert backoff_duration_s(count, 1, 10) == seconds


@pytest.mark.parametrize(
    ("initial_s", "max_s", "waits"),
    [
        pytest.param(1, 8, [1, 2, 4, 8, 8], id="the limit is reached exactly"),
        pytest.param(3, 10, [3, 6, 10, 10], id="the limit is no multiple"),
        pytest.param(10, 10, [10, 10], id="the first wait is the limit"),
    ],
)
def test_the_wait_follows_the_configured_bounds(initial_s, max_s, waits):
    counted = [backoff_duration_s(count, initial_s, max_s) for count in range(1, len(waits) + 1)]

    assert counted == waits


class Backoff(BackoffQueue):
    """The queue of the default configuration, at 1000.25 s."""

    def __init__(self, **options) -> None:
        self.clock = FakeClock(1000.25)
        settings = {"initial_s": 1, "max_s": 10, **options}
        super().__init__(self.clock, order_by(ByPriorityKey()), **settings)


def rejected(name: str = "p", *, count: int = 1, at: float = 1000.25, **fields) -> QueuedPodInfo:
    return QueuedPodInfo(
        make_pod(name, **fields), at, unschedulable_count=count, unschedulable_plugins={FIT}
    )


def failed(name: str = "p", *, count: int = 1, at: float = 1000.25, **fields) -> QueuedPodInfo:
    return QueuedPodInfo(make_pod(name, **fields), at, consecutive_errors_count=count)


def names(pods: list[QueuedPodInfo]) -> list[str]:
    return [queued.pod.name for queued in pods]


def test_a_pod_that_never_failed_has_no_backoff():
    backoff = Backoff()

    assert backoff.expiration(rejected(count=0)) == -inf
    assert not backoff.is_backing_off(rejected(count=0))


def test_a_limit_of_zero_switches_backoff_off():
    assert not Backoff(max_s=0).is_backing_off(rejected(count=5))


def test_errors_in_a_row_count_before_rejections():
    queued = rejected(count=4)
    queued.consecutive_errors_count = 1

    assert Backoff().expiration(queued) == 1001


def test_the_end_of_a_backoff_is_rounded_down_to_a_whole_second():
    assert Backoff().expiration(rejected(at=1000.99)) == 1001


def test_the_end_of_a_backoff_is_worked_out_once():
    backoff, queued = Backoff(), rejected()
    backoff.expiration(queued)

    queued.unschedulable_count = 4

    assert backoff.expiration(queued) == 1001


@pytest.mark.parametrize(
    ("now", "is_backing_off"), [(1000.25, True), (1001.0, True), (1001.99, True), (1002.0, False)]
)
def test_a_pod_backs_off_through_the_whole_second_in_which_its_backoff_ends(now, is_backing_off):
    backoff, queued = Backoff(), rejected()

    backoff.clock.advance(now - 1000.25)

    assert backoff.is_backing_off(queued) is is_backing_off


@pytest.mark.parametrize(("now", "is_backing_off"), [(1001.25, True), (1001.26, False)])
def test_without_windows_a_backoff_ends_when_it_ends(now, is_backing_off):
    backoff, queued = Backoff(by_window=False), rejected()

    backoff.clock.advance(now - 1000.25)

    assert backoff.is_backing_off(queued) is is_backing_off


def test_rejected_pods_come_by_window_and_within_it_as_the_active_queue_sorts_them():
    backoff = Backoff()
    for queued in (
        rejected("next-window", at=1001.0, priority=100),
        rejected("low", at=1000.0, priority=1),
        rejected("high", at=1000.9, priority=2),
    ):
        backoff.add(queued)

    assert names([backoff.pop_rejected() for _ in range(3)]) == ["high", "low", "next-window"]


def test_failed_pods_come_by_window_alone():
    backoff = Backoff()
    backoff.add(failed("first", priority=1))
    backoff.add(failed("second", priority=2))
    backoff.clock.advance(2)

    assert names(backoff.pop_completed()) == ["first", "second"]


def test_only_rejected_pods_can_be_taken_before_their_backoff_is_over():
    backoff = Backoff()
    backoff.add(failed())

    assert len(backoff) == 1
    assert not backoff.has_rejected
    assert backoff.pop_rejected() is None


def test_a_pending_plugin_makes_a_pod_a_rejected_one():
    backoff, queued = Backoff(), failed()
    queued.pending_plugins = {FIT}

    backoff.add(queued)

    assert backoff.has_rejected


def test_pods_whose_backoff_is_over_are_taken_from_both_heaps_and_no_others():
    backoff = Backoff()
    for queued in (
        failed("failed"),
        rejected("rejected"),
        rejected("rejected-long", count=3),
        failed("failed-long", count=3),
    ):
        backoff.add(queued)
    backoff.clock.advance(2)

    assert names(backoff.pop_completed()) == ["rejected", "failed"]
    assert names(list(backoff)) == ["rejected-long", "failed-long"]


def test_a_whole_window_is_over_at_once():
    backoff = Backoff()
    backoff.add(rejected("early", at=1000.0))
    backoff.add(rejected("late", at=1000.99))

    backoff.clock.advance(1.74)
    assert backoff.pop_completed() == []
    backoff.clock.advance(0.01)
    assert names(backoff.pop_completed()) == ["early", "late"]


def test_a_pod_is_found_in_either_heap_by_its_name():
    backoff = Backoff()
    one, other = rejected("one"), failed("other")
    backoff.add(one)
    backoff.add(other)

    assert backoff.get("default/one") is one
    assert backoff.get("default/other") is other
    assert backoff.get("default/none") is None
    assert "default/one" in backoff
    assert "default/other" in backoff
    assert "default/none" not in backoff
    assert backoff.remove("default/other") is other
    assert backoff.remove("default/other") is None


def test_a_pod_that_is_added_again_leaves_the_other_heap():
    backoff = Backoff()
    backoff.add(failed())

    backoff.add(rejected())

    backoff.validate()
    assert len(backoff) == 1
    assert backoff.has_rejected


@pytest.mark.parametrize("make", [rejected, failed])
def test_a_pod_that_changed_takes_its_place_again(make):
    backoff, queued = Backoff(), make()
    backoff.add(queued)

    queued.pod = make_pod(priority=7)
    backoff.reorder(queued)

    backoff.validate()
    assert backoff.get("default/p").pod.priority == 7


def test_a_pod_in_the_wrong_heap_is_found_out():
    backoff, queued = Backoff(), failed()
    backoff.add(queued)

    queued.unschedulable_plugins = {FIT}

    with pytest.raises(InvariantError, match="wrong backoff heap"):
        backoff.validate()
