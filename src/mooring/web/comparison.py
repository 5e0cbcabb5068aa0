"""Two runs side by side: what `mooring compare` says of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mooring.explain import compare
from mooring.explain.compare import Comparison, Variant, difference, values_of, where_of
from mooring.web.premise import Premise
from mooring.web.run import Run

#: How many decisions that come out otherwise are explained.
_EXPLAINED = 5

#: Told how many attempts both have made together.
OnProgress = Callable[[int], None]


def comparison_data(
    names: tuple[str, str], premises: tuple[Premise, Premise], on_progress: OnProgress
) -> dict[str, Any]:
    """The baseline first. Raises InputError and ConfigError."""
    both = _distinct(names)
    comparison = _compared(both, premises, on_progress)
    labels = {key: words for run in comparison.runs for key, words, _ in values_of(run)}
    return {**comparison.to_data(), "labels": labels}


def _compared(
    names: tuple[str, str], premises: tuple[Premise, Premise], on_progress: OnProgress
) -> Comparison:
    first, second = premises
    if first.objects == second.objects:
        # They came here apart; that decisions were taken on one and the same cluster is worth telling.
        premises = first, replace(second, objects=first.objects)
    variants = [
        Variant(name, premise.objects, premise.config, premise.seed)
        for name, premise in zip(names, premises, strict=True)
    ]
    if any(each.times is not None or each.until_s is not None for each in premises):
        baseline, other = (
            _run(variant, premise, on_progress)
            for variant, premise in zip(variants, premises, strict=True)
        )
        return Comparison((baseline, other), (difference(baseline, other, 0),))
    attempts = 0

    def count(_: str, __: int) -> None:
        nonlocal attempts
        attempts += 1
        on_progress(attempts)

    return compare.compare(variants, explained=_EXPLAINED, on_progress=count)


def _run(variant: Variant, premise: Premise, on_progress: OnProgress) -> compare.Run:
    """Over time: `compare` itself knows only clusters whose pods are all there at once."""
    run = Run.of(premise, on_progress)
    run.close()
    return compare.Run(
        variant=variant,
        report=run.report,
        measures=run.measures,
        decisions=run.decisions,
        decisions_per_s=len(run.decisions) / run.took_s if run.took_s > 0 else 0.0,
        where=where_of(variant, run.report),
    )


def _distinct(names: tuple[str, str]) -> tuple[str, str]:
    first, second = names
    return (first, second) if first != second else (first, f"{second} (2)")
