"""What Prometheus reads is what dashboards for kube-scheduler expect."""

from __future__ import annotations

import pytest

from mooring.live.metrics import CacheSizes, LiveMetrics
from mooring.queue.scheduling_queue import QueueCounts


def lines_of(metrics: LiveMetrics) -> set[str]:
    return set(metrics.exposition().decode().splitlines())


def test_attempts_are_counted_and_timed_by_result_and_profile():
    metrics = LiveMetrics()

    metrics.attempt("scheduled", "default-scheduler", 0.0015)

    labels = 'profile="default-scheduler",result="scheduled"'
    lines = metrics.exposition().decode()
    assert (
        'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1.0'
        in (lines)
    )
    assert (
        f'scheduler_scheduling_attempt_duration_seconds_bucket{{le="0.001",{labels}}} 0.0' in lines
    )
    assert (
        f'scheduler_scheduling_attempt_duration_seconds_bucket{{le="0.002",{labels}}} 1.0' in lines
    )
    assert (
        f'scheduler_scheduling_attempt_duration_seconds_bucket{{le="16.384",{labels}}} 1.0' in lines
    )
    assert "_created" not in lines


@pytest.mark.parametrize(("attempts", "label"), [(1, "1"), (14, "14"), (15, "15+"), (99, "15+")])
def test_many_attempts_are_counted_together(attempts, label):
    metrics = LiveMetrics()

    metrics.pod_scheduled(attempts, 0.5)

    series = f'scheduler_pod_scheduling_sli_duration_seconds_count{{attempts="{label}"}} 1.0'
    assert series in lines_of(metrics)


def test_sizes_are_those_last_told():
    metrics = LiveMetrics()

    metrics.sizes(QueueCounts(1, 2, 3, 4), CacheSizes(5, 6, 7), 8)

    assert {
        'scheduler_pending_pods{queue="active"} 1.0',
        'scheduler_pending_pods{queue="backoff"} 2.0',
        'scheduler_pending_pods{queue="unschedulable"} 3.0',
        'scheduler_pending_pods{queue="gated"} 4.0',
        'scheduler_cache_size{type="nodes"} 5.0',
        'scheduler_cache_size{type="assumed_pods"} 7.0',
        'scheduler_goroutines{operation="binding"} 8.0',
    } <= lines_of(metrics)


def test_a_replaced_queue_begins_with_nothing_in_flight():
    metrics = LiveMetrics()
    metrics.inflight_events("PodPopped", 3)
    metrics.unschedulable_pods("NodeResourcesFit", "default-scheduler", 2)

    metrics.queue_replaced()

    assert 'scheduler_inflight_events{event="PodPopped"} 0.0' in lines_of(metrics)


def test_two_schedulers_in_one_process_do_not_mix_their_figures():
    one, other = LiveMetrics(), LiveMetrics()

    one.attempt("error", "x", 0.1)

    assert 'result="error"' not in other.exposition().decode()


def test_attempts_at_pod_groups_have_the_names_of_the_reference():
    metrics = LiveMetrics()

    metrics.group_attempt("waiting_on_preemption", "x", 0.1)
    metrics.group_algorithm_duration(0.1)

    labels = '{profile="x",result="waiting_on_preemption"}'
    assert {
        f"scheduler_podgroup_schedule_attempts_total{labels} 1.0",
        f"scheduler_podgroup_scheduling_attempt_duration_seconds_count{labels} 1.0",
        "scheduler_podgroup_scheduling_algorithm_duration_seconds_count 1.0",
    } <= lines_of(metrics)
