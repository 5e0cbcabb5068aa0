"""What `benchmarks.live` found, as a table for the page: one row a load, the two schedulers side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

FILE = "live.json"

_HEAD = (
    "| pods | mooring, bound/s | kube-scheduler, bound/s | times as many | with Events/s, both"
    " | times as many | mooring, CPU ms/pod | kube-scheduler, CPU ms/pod | share | peak MB, both |",
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
)


def markdown(data: Mapping[str, Any]) -> str:
    """Medians, with the extremes of all repeats in parentheses."""
    size = f"{data['nodes']:,} nodes, {data['pods']:,} pods a run, runs of each: {data['repeats']}."
    return "\n".join(
        [size, "", *_HEAD, *_rows(data["results"]), *_starts(data.get("starts_s", {}))]
    )


def _starts(starts_s: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    if starts_s:
        said = (f"{name} {_spread(start_s, 2)} s" for name, start_s in starts_s.items())
        yield f"\nFrom the start of the process to the first bind: {', '.join(said)}."


def _rows(results: list[dict[str, Any]]) -> Iterator[str]:
    by_key = {(each["load"], each["scheduler"]): each for each in results}
    for load in dict.fromkeys(each["load"] for each in results):
        ours, theirs = by_key[load, "mooring"], by_key[load, "kube-scheduler"]
        rates, told, costs = (
            [each[figure]["median"] for each in (ours, theirs)]
            for figure in ("pods_per_s", "with_events_per_s", "cpu_ms_per_pod")
        )
        yield (
            f"| {load} | {_spread(ours['pods_per_s'], 0)} | {_spread(theirs['pods_per_s'], 0)}"
            f" | {rates[0] / rates[1]:.1f} | {_both(ours, theirs, 'with_events_per_s')}"
            f" | {told[0] / told[1]:.1f}"
            f" | {_spread(ours['cpu_ms_per_pod'], 2)}"
            f" | {_spread(theirs['cpu_ms_per_pod'], 2)} | {costs[0] / costs[1]:.2f}"
            f" | {_both(ours, theirs, 'peak_mb')} |"
        )


def _both(ours: Mapping[str, Any], theirs: Mapping[str, Any], figure: str) -> str:
    return f"{ours[figure]['median']:.0f}, {theirs[figure]['median']:.0f}"


def _spread(figure: Mapping[str, float], digits: int) -> str:
    middle, low, high = (f"{figure[name]:.{digits}f}" for name in ("median", "low", "high"))
    return f"{middle} ({low} – {high})"
