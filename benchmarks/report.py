"""From results to plots, and to the tables in docs/performance.md.

    python -m benchmarks.report [--results benchmarks/results] [--page docs/performance.md]

A table stands on the page between `<!-- begin: name -->` and `<!-- end: name -->`, and is written again;
all else on the page is left as it is.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import beside_reference, growth, live_table, memory, plots, pressure_table, suite
from benchmarks.workloads import WORKLOADS

_ROOT = Path(__file__).resolve().parents[1]
_STANDARD_NODES = 5000
_LARGE_NODES = 15_000

#: What is asked for at 5,000 nodes and 150,000 pods; and of the largest cluster's cost.
MOST_MEMORY_MB = 1500
MOST_START_S = 15
MOST_TIMES = 2
#: How many times less processor time than the reference with its sample.
TIMES_SAMPLING = 20

#: The heading on the page after the results.
_METHOD = "## What is measured"

Data = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, default=_ROOT / "benchmarks" / "results")
    parser.add_argument("--page", type=Path, default=_ROOT / "docs" / "performance.md")
    options = parser.parse_args(arguments)
    write_plots(options.results)
    found = tables(options.results)
    page = options.page.read_text()
    if "pressure" in found:
        page = with_section(page, pressure_table.SECTION, before=_METHOD)
    options.page.write_text(with_tables(page, found))
    return 0


def tables(folder: Path) -> dict[str, str]:
    """Every table that there are results for, by its name on the page."""
    found: dict[str, str] = {}
    files = (suite.FILE, growth.FILE, memory.FILE, live_table.FILE, pressure_table.FILE)
    measured, grown, held, live, pressed = (_load(folder / name) for name in files)
    if measured:
        found["machine"] = _machine(measured["machine"])
        found["workloads"] = _workloads(measured["results"])
        found["sizes"] = _sizes(measured["results"])
    if (beside := _load(folder / beside_reference.FILE)) is not None:
        found["reference"] = f"{_machine(beside['machine'])}\n\n{_beside(beside)}"
    if measured or held:
        found["goals"] = _goals(measured, held)
    if grown:
        found["growth"] = _growth(grown["results"])
    if held:
        found["memory"] = _memory(held)
    if live:
        found["live"] = f"{_machine(live['machine'])}\n\n{live_table.markdown(live)}"
    if pressed:
        found["pressure"] = f"{_machine(pressed['machine'])}\n\n{pressure_table.markdown(pressed)}"
    return found


def with_section(page: str, section: str, *, before: str) -> str:
    """The page with a section before a heading (at the end if there is none), unless it has it already."""
    heading = section.partition("\n")[0]
    if f"{heading}\n" in page:
        return page
    start, found, rest = page.partition(f"{before}\n")
    return f"{start.rstrip()}\n\n{section}" + (f"\n{found}{rest}" if found else "")


def with_tables(page: str, found: dict[str, str]) -> str:
    """Raises ValueError if the page has no place for a table."""
    for name, table in found.items():
        begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
        place = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        text = f"{begin}\n{table}\n{end}"
        page, count = place.subn(lambda _, text=text: text, page)  # type: ignore[misc]
        if count != 1:
            raise ValueError(f"the page has {count} places for {name}, and not one")
    return page


def write_plots(folder: Path) -> None:
    measured, grown = _load(folder / suite.FILE), _load(folder / growth.FILE)
    if measured:
        rows = [_bar(result) for result in _at(measured["results"], _STANDARD_NODES)]
        if rows:
            title = f"Decisions per second at {_STANDARD_NODES:,} nodes"
            (folder / "rates.svg").write_text(plots.bars(title, "per second of CPU", rows))
    for against in dict.fromkeys(result["against"] for result in (grown or {}).get("results", ())):
        series: dict[str, list[tuple[float, float]]] = {}
        for result in grown["results"] if grown else ():
            if result["against"] == against:
                point = (result["x"], 1e6 / result["per_cpu_s"]["median"])
                series.setdefault(result["series"], []).append(point)
        title = f"Cost of a decision against {against}"
        drawn = plots.lines(title, against, "µs of CPU", series)
        (folder / f"growth-{against.replace(' ', '-')}.svg").write_text(drawn)


def _bar(result: Data) -> plots.Bar:
    workload, rate = WORKLOADS[result["workload"]], result["per_cpu_s"]
    marks: dict[str, float] = {}
    if workload.goal is not None:
        marks["goal"] = workload.goal
    return plots.Bar(workload.name, rate["median"], rate["low"], rate["high"], marks)


# Tables


def _machine(facts: Data) -> str:
    start, end = (
        ", ".join(f"{load:.1f}" for load in facts[f"load_average_at_{when}"])
        for when in ("start", "end")
    )
    cores = "1 core" if facts["cores"] == 1 else f"{facts['cores']} cores"
    return (
        f"{cores} of {facts['cpu']}, {facts['memory_gb']} GB, {facts['system']},"
        f" {facts['python']}, NumPy {facts['numpy']}, commit {facts['commit']},"
        f" {facts['started'][:10]}. Load average at the start {start}; at the end {end}."
    )


def _goals(measured: Data | None, held: Data | None) -> str:
    rows = [*_rate_goals(measured["results"])] if measured else []
    if held:
        rows += _memory_goals(held)
    return _table(["goal", "wanted", "measured (CPU)", "measured (wall)", "reached"], rows)


def _rate_goals(results: Sequence[Data]) -> Iterator[list[str]]:
    for result in _at(results, _STANDARD_NODES):
        goal = WORKLOADS[result["workload"]].goal
        if goal is None:
            continue
        cpu, wall = result["per_cpu_s"]["median"], result["per_wall_s"]["median"]
        yield [
            f"{result['workload']}, decisions/s",
            f"≥ {goal:,}",
            f"{cpu:,.0f}",
            f"{wall:,.0f}",
            _share(cpu, goal),
        ]
        larger = _find(results, result["workload"], _LARGE_NODES)
        if larger is not None:
            times = cpu / larger["per_cpu_s"]["median"]
            wall_times = wall / larger["per_wall_s"]["median"]
            yield [
                f"{result['workload']}, cost at {_LARGE_NODES:,} nodes",
                f"≤ {MOST_TIMES} ×",
                f"{times:.2f} ×",
                f"{wall_times:.2f} ×",
                _yes(times <= MOST_TIMES),
            ]


def _memory_goals(held: Data) -> list[list[str]]:
    size = f"{held['nodes']:,} nodes and {held['pods']:,} pods"
    start = held["start"]
    return [
        [
            f"memory held, {size}",
            f"< {MOST_MEMORY_MB:,} MB",
            f"{held['resident_mb']:,.0f} MB",
            "",
            _yes(held["peak_mb"] < MOST_MEMORY_MB),
        ],
        [
            f"cold start, {size}",
            f"< {MOST_START_S} s",
            f"{start['total_cpu_s']:.1f} s",
            f"{start['total_wall_s']:.1f} s",
            _yes(start["total_cpu_s"] < MOST_START_S),
        ],
    ]


def _beside(data: Data) -> str:
    measured = beside_reference.rows_of(data)
    rows = [
        [
            row.workload,
            f"{row.nodes:,}",
            f"{row.sampling_cpu_ms:.2f}",
            f"{row.all_nodes_cpu_ms:.1f}",
            f"{row.mooring_cpu_ms:.3f}",
            f"{row.times_sampling:.0f}",
            f"{row.times_all_nodes:.0f}",
        ]
        for row in measured
    ]
    heads = [
        "workload",
        "nodes",
        "kube-scheduler, sampling",
        "kube-scheduler, all nodes",
        "mooring",
    ]
    table = _table([*heads, "× sampling", "× all nodes"], rows)
    return f"{table}\n\n{_below(measured)}"


def _below(rows: Sequence[beside_reference.Row]) -> str:
    """Which rows miss the goal, and what mooring would have to take."""
    missed = [
        f"{row.workload} at {row.nodes:,} nodes ({row.times_sampling:.1f};"
        f" {row.sampling_cpu_ms / TIMES_SAMPLING:.3f} ms would do)"
        for row in rows
        if row.times_sampling < TIMES_SAMPLING
    ]
    goal = f"{TIMES_SAMPLING} times faster than kube-scheduler with its sample"
    if not missed:
        return f"Every row reaches the goal, {goal}."
    return f"Rows that miss the goal, {goal}: {', '.join(missed)}."


def _workloads(results: Sequence[Data]) -> str:
    rows = []
    for result in _at(results, _STANDARD_NODES):
        workload, cpu = WORKLOADS[result["workload"]], result["per_cpu_s"]
        rows.append(
            [
                workload.name,
                workload.says,
                f"{cpu['median']:,.0f}",
                f"{cpu['low']:,.0f} – {cpu['high']:,.0f}",
                f"{result['per_wall_s']['median']:,.0f}",
                f"{result['passes_per_decision']:.2f}",
                f"{result['attempt_us']['median']:,.0f} / {result['attempt_us']['p99']:,.0f}",
            ]
        )
    heads = ["workload", "", "per CPU s", "low – high", "per wall s", "NumPy passes"]
    return _table([*heads, "attempt µs, median / p99"], rows)


def _sizes(results: Sequence[Data]) -> str:
    nodes = sorted({result["nodes"] for result in results})
    rows = []
    for name in dict.fromkeys(result["workload"] for result in results):
        row = [name, WORKLOADS[name].upstream]
        for count in nodes:
            found = _find(results, name, count)
            row.append(f"{found['per_cpu_s']['median']:,.0f}" if found else "")
        rows.append(row)
    heads = ["workload", "in scheduler_perf", *(f"{count:,} nodes" for count in nodes)]
    return _table(heads, rows)


def _growth(results: Sequence[Data]) -> str:
    parts = []
    for against in dict.fromkeys(result["against"] for result in results):
        here = [result for result in results if result["against"] == against]
        xs = sorted({result["x"] for result in here})
        rows = []
        for series in dict.fromkeys(result["series"] for result in here):
            cost = {r["x"]: 1e6 / r["per_cpu_s"]["median"] for r in here if r["series"] == series}
            rows.append([series, *(f"{cost[x]:,.0f}" if x in cost else "" for x in xs)])
        parts.append(_table([f"µs of CPU, by {against}", *(f"{x:,}" for x in xs)], rows))
    return "\n\n".join(parts)


def _memory(held: Data) -> str:
    start = held["start"]
    fastest, slowest = held["start_wall_s"]
    rows = [
        ["an empty scheduler", f"{held['empty_mb']:,.0f} MB resident"],
        ["a node", f"{held['node_kb']:.1f} kB"],
        ["a pod", f"{held['pod_kb']:.1f} kB"],
        [
            f"{held['nodes']:,} nodes and {held['pods']:,} pods, one by one",
            f"{held['resident_mb']:,.0f} MB resident, {held['peak_mb']:,.0f} MB at the most",
        ],
        [
            f"the same from a file of {held['file_mb']:,.0f} MB",
            f"{start['resident_mb']:,.0f} MB resident, {start['peak_mb']:,.0f} MB at the most",
        ],
        [
            "from the file to the first decision",
            f"{start['total_cpu_s']:.1f} s of CPU, {start['total_wall_s']:.1f} s of wall time"
            f" ({fastest:.1f} – {slowest:.1f})",
        ],
        *(
            [f"… of it: {said}", f"{start[f'{part}_cpu_s']:.2f} s of CPU"]
            for part, said in (
                ("read", "read, decode, check, fill in defaults"),
                ("build", "tell the scheduler, build the columns"),
                ("first_decision", "the first decision"),
            )
        ),
    ]
    return _table(["", ""], rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _share(got: float, wanted: float) -> str:
    return "yes" if got >= wanted else f"{got / wanted:.0%}"


def _yes(reached: bool) -> str:
    return "yes" if reached else "no"


def _at(results: Sequence[Data], nodes: int) -> list[Data]:
    return [result for result in results if result["nodes"] == nodes]


def _find(results: Sequence[Data], workload: str, nodes: int) -> Data | None:
    return next((r for r in _at(results, nodes) if r["workload"] == workload), None)


def _load(path: Path) -> Data | None:
    """None if it has not been measured."""
    return json.loads(path.read_text()) if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())
