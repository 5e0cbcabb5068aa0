"""What `benchmarks.pressure` found, as tables: one for a terminal, one for the page.

A result is of one scenario, one limit of requests and one scheduler. It has one or several runs; a figure
is the median of its runs.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

FILE = "pressure.json"

#: The limit of requests that a scheduler has if its configuration does not say.
DEFAULT_QPS = "default"

_OURS, _THEIRS = "mooring", "kube-scheduler"

_NOT_MEASURED = "–"

#: What is wanted: how fast beside kube-scheduler without a limit of requests, and at which share of its CPU.
_TWICE = 2.0
_MOST_CPU = 0.33
#: In these the API server sets the pace: not slower is enough.
_SLOW_SERVERS = ("f", "g")

Result = Mapping[str, Any]

#: What the page gets if it has no place for the table.
SECTION = """\
## Under pressure

`make bench-pressure` runs mooring and kube-scheduler in turns, each time against a fresh kube-apiserver and
etcd, in situations in which much happens at once. `qps` is `clientConnection.qps` and `burst` of both
schedulers; the default is 50 and 100. Figures stand as mooring / kube-scheduler. Seconds are from the start
of the pressure to the last bind; p50 and p99 from the answer to a pod's creation to that to its bind, by
the API server's audit log. CPU is the scheduler's own, until it is idle; "grew" is its memory at the end
against that before the pressure. Requests are counted from the audit log. A run in which a node has more pods
than it can hold, or a pod is where it must not be, gives no figures.

<!-- begin: pressure -->
<!-- end: pressure -->
"""


def line(run: Mapping[str, Any]) -> str:
    """What to say of one run while others are still to come."""
    time_s = f"{run['seconds']:.1f} s" if run["seconds"] is not None else "not finished"
    latency = f", p99 {run['p99_s']:.2f} s" if run["p99_s"] is not None else ""
    return (
        f"{run['bound']} of {run['wanted']} bound, {time_s}{latency}, {run['cpu_s']:.1f} s CPU,"
        f" {run['peak_mb']:.0f} MB"
    )


def plain(results: Sequence[Result]) -> str:
    """For a terminal: one row a result."""
    heads = ["scenario", "qps", "scheduler", *_COLUMNS]
    rows = [
        [
            f"{result['scenario']} {_name(result)}",
            result["qps"],
            result["scheduler"],
            *(_cell(result, column) for column in _COLUMNS),
        ]
        for result in results
    ]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    return "\n".join(
        "  ".join(
            text.ljust(width) if number < 3 else text.rjust(width)
            for number, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [heads, *rows]
    )


def markdown(data: Mapping[str, Any]) -> str:
    """For the page: the two schedulers side by side."""
    results = data["results"]
    heads = ["scenario", "qps", *_COLUMNS]
    rows = [heads, ["---", "---", *["---:"] * len(_COLUMNS)], *_rows(results)]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    said = {result["name"]: result["says"] for result in results}
    scenarios = [f"- **{name}**: {says}." for name, says in said.items()]
    return "\n".join([*scenarios, "", table, *_goals(results)])


#: Above the rows of the table of goals.
_GOALS = (
    "",
    "Against the goals: seconds and p99 of kube-scheduler divided by mooring's, and mooring's CPU divided by"
    " kube-scheduler's.",
    "",
    "| scenario | qps | as fast | wanted | p99 | CPU | wanted | missed |",
    "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |",
)


def _goals(results: Sequence[Result]) -> list[str]:
    """How the schedulers compare, and whether that is what is wanted; nothing without both."""
    rows = list(_goal_rows(results))
    return [*_GOALS, *rows] if rows else []


def _goal_rows(results: Sequence[Result]) -> Iterator[str]:
    for name, qps, (ours, theirs) in _pairs(results):
        if ours is None or theirs is None or ours["problems"] or theirs["problems"]:
            continue
        wanted = _TWICE if qps != DEFAULT_QPS and ours["scenario"] not in _SLOW_SERVERS else 1.0
        speed = _ratio(theirs, ours, "seconds")
        cost = _ratio(ours, theirs, "cpu_s")
        missed = [
            *(["speed"] if speed is not None and round(speed, 2) < wanted else []),
            *(["speed"] if _median(ours, "seconds") is None else []),
            *(["CPU"] if cost is not None and round(cost, 2) > _MOST_CPU else []),
        ]
        cells = [
            name,
            qps,
            _times(speed),
            f"≥ {wanted:g}",
            _times(_ratio(theirs, ours, "p99_s")),
            _times(cost),
            f"≤ {_MOST_CPU}",
            ", ".join(missed) or "–",
        ]
        yield "| " + " | ".join(cells) + " |"


def _times(ratio: float | None) -> str:
    return _NOT_MEASURED if ratio is None else f"{ratio:.2f}"


def _ratio(one: Result, other: Result, name: str) -> float | None:
    """None if a side has no such figure, or it is too small to divide by."""
    a, b = _median(one, name), _median(other, name)
    return a / b if a is not None and b else None


def _median(result: Result, name: str) -> float | None:
    values = [run[name] for run in result["runs"]]
    return None if None in values else statistics.median(values)


def _rows(results: Sequence[Result]) -> Iterator[list[str]]:
    for name, qps, both in _pairs(results):
        cells = (" / ".join(_cell(each, column) for each in both) for column in _COLUMNS)
        yield [name, qps, *cells]


def _pairs(results: Sequence[Result]) -> Iterator[tuple[str, str, list[Result | None]]]:
    """Each scenario and limit of requests, with the results of both schedulers."""
    by_key = {(_name(each), each["qps"], each["scheduler"]): each for each in results}
    for name, qps in dict.fromkeys((_name(each), each["qps"]) for each in results):
        yield name, qps, [by_key.get((name, qps, scheduler)) for scheduler in (_OURS, _THEIRS)]


def _name(result: Result) -> str:
    return f"{result['name']}{_of_full_size(result)}"


def _of_full_size(result: Result) -> str:
    return "" if result["scale"] == 1.0 else f", 1/{1 / result['scale']:.0f} of the size"


def _cell(result: Result | None, column: str) -> str:
    if result is None:
        return _NOT_MEASURED
    if result["problems"]:
        return "failed" if column == "bound" else _NOT_MEASURED
    return _COLUMNS[column](result)


def _bound(result: Result) -> str:
    runs = result["runs"]
    bound, wanted = min(run["bound"] for run in runs), runs[0]["wanted"]
    return f"{bound:,}" if bound >= wanted else f"{bound:,} of {wanted:,}"


def _figure(result: Result, name: str, digits: int) -> str:
    """The median; with the extremes where several runs differ; nothing if a run has no such figure."""
    values = [run[name] for run in result["runs"]]
    if None in values:
        return _NOT_MEASURED
    return _spread(values, digits)


def _grew(result: Result) -> str:
    return _spread([run["end_mb"] - run["start_mb"] for run in result["runs"]], 0)


def _spread(values: Sequence[float], digits: int) -> str:
    middle, low, high = (
        f"{value:,.{digits}f}" for value in (statistics.median(values), min(values), max(values))
    )
    return middle if low == high else f"{middle} ({low} – {high})"


def _requests(result: Result, name: str) -> str:
    return f"{statistics.median(run['requests'][name] for run in result['runs']):,.0f}"


def _with_part(result: Result, name: str, *parts: str) -> str:
    """A number of requests; in parentheses how many of them were of a kind, if any were."""
    counts = [_requests(result, part) for part in parts]
    whole = _requests(result, name)
    return whole if set(counts) == {"0"} else f"{whole} ({', '.join(counts)})"


#: The figures of both tables: the head of the column, and the text for a result.
_COLUMNS: dict[str, Callable[[Result], str]] = {
    "bound": _bound,
    "seconds": lambda result: _figure(result, "seconds", 1),
    "p50 s": lambda result: _figure(result, "p50_s", 2),
    "p99 s": lambda result: _figure(result, "p99_s", 2),
    "CPU s": lambda result: _figure(result, "cpu_s", 1),
    "peak MB": lambda result: _figure(result, "peak_mb", 0),
    "grew MB": _grew,
    "binds (refused)": lambda result: _with_part(result, "binds", "binds_refused"),
    "deletions (404)": lambda result: _with_part(result, "deletions", "deletions_gone"),
    "status patches (404, 409)": lambda result: _with_part(
        result, "status_patches", "status_gone", "status_conflicts"
    ),
    "most to one pod": lambda result: _requests(result, "most_status_patches"),
    "Events (patched)": lambda result: _with_part(result, "events_created", "events_patched"),
    "refused by proxy": lambda result: _figure(result, "refused_writes", 0),
}
