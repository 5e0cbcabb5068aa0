"""What `benchmarks.live` found, as a table for the page: one row a load, the two schedulers side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

FILE = "live.json"

#: How many times as many pods are wanted with their Events, and at which share of the CPU.
_WANTED = {"plain": 2.5}
_WANTED_OF_OTHERS = 4.0
_MOST_CPU = 0.33

_COMPARED = ("pods_per_s", "with_events_per_s", "cpu_ms_per_pod")

_HEAD = (
    "| pods | mooring, bound/s | kube-scheduler, bound/s | times as many | with Events/s, both"
    " | times as many | mooring, CPU ms/pod | kube-scheduler, CPU ms/pod | share | peak MB, both |",
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
)


def markdown(data: Mapping[str, Any]) -> str:
    """Medians, with the extremes of all repeats in parentheses."""
    size = f"{data['nodes']:,} nodes, {data['pods']:,} pods a run, runs of each: {data['repeats']}."
    return "\n".join(
        [size, "", *_HEAD, *_rows(data["results"]), *_goals(data["results"]), *_starts(data)]
    )


def _goals(results: list[dict[str, Any]]) -> Iterator[str]:
    """What was wanted: so many times as many pods with their Events, at a third of the CPU."""
    missed = []
    for load, figures in _by_load(results):
        told, costs = figures["with_events_per_s"], figures["cpu_ms_per_pod"]
        wanted = _WANTED.get(load, _WANTED_OF_OTHERS)
        if round(told[0] / told[1], 1) < wanted:
            missed.append(f"{load} ({told[0] / told[1]:.1f} times as many with Events)")
        if round(costs[0] / costs[1], 2) > _MOST_CPU:
            missed.append(f"{load} (CPU {costs[0] / costs[1]:.2f})")
    yield ""
    yield (
        f"Wanted: {_WANTED['plain']:g} times as many plain pods and {_WANTED_OF_OTHERS:g} times as many"
        f" others, with their Events, at {_MOST_CPU} of the CPU. Missed: {', '.join(missed) or 'nothing'}."
    )


def _starts(data: Mapping[str, Any]) -> Iterator[str]:
    starts_s = data.get("starts_s")
    if starts_s:
        said = (f"{name} {_spread(start_s, 2)} s" for name, start_s in starts_s.items())
        yield f"\nFrom the start of the process to the first bind: {', '.join(said)}."


def _rows(results: list[dict[str, Any]]) -> Iterator[str]:
    by_key = {(each["load"], each["scheduler"]): each for each in results}
    for load, figures in _by_load(results):
        ours, theirs = by_key[load, "mooring"], by_key[load, "kube-scheduler"]
        rates, told, costs = figures.values()
        yield (
            f"| {load} | {_spread(ours['pods_per_s'], 0)} | {_spread(theirs['pods_per_s'], 0)}"
            f" | {rates[0] / rates[1]:.1f} | {_both(ours, theirs, 'with_events_per_s')}"
            f" | {told[0] / told[1]:.1f}"
            f" | {_spread(ours['cpu_ms_per_pod'], 2)}"
            f" | {_spread(theirs['cpu_ms_per_pod'], 2)} | {costs[0] / costs[1]:.2f}"
            f" | {_both(ours, theirs, 'peak_mb')} |"
        )


def _by_load(results: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, list[float]]]]:
    """The medians that are compared, of mooring and of kube-scheduler."""
    by_key = {(each["load"], each["scheduler"]): each for each in results}
    for load in dict.fromkeys(each["load"] for each in results):
        both = [by_key[load, scheduler] for scheduler in ("mooring", "kube-scheduler")]
        yield load, {name: [each[name]["median"] for each in both] for name in _COMPARED}


def _both(ours: Mapping[str, Any], theirs: Mapping[str, Any], figure: str) -> str:
    return f"{ours[figure]['median']:.0f}, {theirs[figure]['median']:.0f}"


def _spread(figure: Mapping[str, float], digits: int) -> str:
    middle, low, high = (f"{figure[name]:.{digits}f}" for name in ("median", "low", "high"))
    return f"{middle} ({low} – {high})"
