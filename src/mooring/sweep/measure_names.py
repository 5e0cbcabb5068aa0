"""The names of measures; `docs/sweep.md` says what each one means."""

from __future__ import annotations

from mooring.sim.scenarios.fields import did_you_mean

#: Measures that every cell has.
FIXED = (
    "nodes",
    "nodes_in_use",
    "pods",
    "placed",
    "pending",
    "never_placed",
    "preempted",
    "decisions",
    "elapsed_seconds",
    "cpu_seconds",
    "waiting_mean_s",
    "waiting_median_s",
    "waiting_p99_s",
    "waiting_longest_s",
)
#: Measures of a resource, which follows the dot: `utilisation.cpu`.
OF_A_RESOURCE = (
    "utilisation",
    "fragmentation",
    "imbalance",
    "mean_utilisation",
    "mean_fragmentation",
)


def measure_problem(name: str) -> str:
    """What is wrong with the name of a measure; "" if nothing is."""
    kind, _, resource = name.partition(".")
    if name in FIXED or (kind in OF_A_RESOURCE and resource):
        return ""
    known = [*FIXED, *(f"{each}.cpu" for each in OF_A_RESOURCE)]
    return f"there is no measure {name!r}{did_you_mean(name, known) or '; see docs/sweep.md'}"


def is_share(name: str) -> bool:
    """Whether a measure is a share, which is shown in percent."""
    return name.removeprefix("mean_").startswith(("utilisation.", "fragmentation."))
