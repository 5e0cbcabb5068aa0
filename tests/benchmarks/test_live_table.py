"""The table of live measurements says what the figures say."""

from __future__ import annotations

from benchmarks import live_table


def spread(median: float) -> dict[str, float]:
    return {"median": median, "low": median - 1, "high": median + 1}


def result(scheduler: str, rate: float, cost: float) -> dict[str, object]:
    return {
        "load": "plain",
        "scheduler": scheduler,
        "pods_per_s": spread(rate),
        "with_events_per_s": spread(rate / 2),
        "cpu_ms_per_pod": spread(cost),
        "peak_mb": spread(150),
    }


def test_a_row_has_both_schedulers_and_how_they_compare():
    results = [result("mooring", 900, 2), result("kube-scheduler", 300, 4)]

    data = {"nodes": 5000, "pods": 2000, "repeats": 3, "results": results}
    *_, row, _, goals = live_table.markdown(data).splitlines()

    assert row == (
        "| plain | 900 (899 – 901) | 300 (299 – 301) | 3.0 | 450, 150 | 3.0"
        " | 2.00 (1.00 – 3.00) | 4.00 (3.00 – 5.00) | 0.50 | 150, 150 |"
    )
    assert goals.endswith(" Missed: plain (CPU 0.50).")


def test_starts_are_said_below_the_table():
    data = {"nodes": 5000, "pods": 2000, "repeats": 3, "results": []}
    starts_s = {"mooring": spread(2.0), "kube-scheduler": spread(3.0)}

    *_, said = live_table.markdown({**data, "starts_s": starts_s}).splitlines()

    assert said == (
        "From the start of the process to the first bind:"
        " mooring 2.00 (1.00 – 3.00) s, kube-scheduler 3.00 (2.00 – 4.00) s."
    )
