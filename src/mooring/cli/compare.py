"""`mooring compare`: what changes with another configuration, or on another cluster?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from mooring.cli import output
from mooring.cli.comparison_page import comparison_page
from mooring.cli.comparison_tables import write_comparison
from mooring.cli.config_inputs import (
    LoadedConfig,
    ignore_unknown_option,
    read_config,
    scheduler_name_option,
    unasked_for,
)
from mooring.cli.inputs import ClusterInput, check_something_to_place, read_cluster
from mooring.cli.options import (
    cluster_input,
    feature_gates_option,
    number_option,
    output_option,
    rows_option,
    seed_option,
)
from mooring.cli.progress import Progress
from mooring.errors import InputError
from mooring.explain.compare import (
    Comparison,
    Threshold,
    Variant,
    parse_threshold,
    regression_data,
    regressions,
    values_of,
)
from mooring.explain.compare import compare as compare_variants
from mooring.explain.past_decision import RunInput
from mooring.objects.kinds import Kind
from mooring.objects.meta import KubeObject
from mooring.objects.scheduler_names import asking_for

#: A value of `--config`: the default configuration of kube-scheduler.
DEFAULT = "default"

#: Option → the measure that it limits.
_LIMITS = {
    "max_pending": "pending",
    "max_preemptions": "preempted",
    "max_fragmentation": "fragmentation.",
    "max_zone_skew": "zoneSkew.max",
}


class _Limit(click.ParamType[Threshold]):
    name = "limit"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> Threshold:
        assert param is not None
        assert param.name is not None
        try:
            return parse_threshold(_LIMITS[param.name], value)
        except ValueError:
            self.fail(
                f"{value!r} is not a limit; write 5, or +0 or +10% relative to the baseline", param
            )


@click.command()
@cluster_input
@click.option(
    "--config",
    "configs",
    multiple=True,
    metavar="FILE",
    help="A KubeSchedulerConfiguration file, or 'default'. Give two or more; the first is the baseline.",
)
@ignore_unknown_option
@scheduler_name_option
@click.option(
    "--cluster",
    "clusters",
    multiple=True,
    metavar="PATH",
    help="A file or folder with a cluster. Give two or more, instead of several configurations."
    " mooring adds the objects of PATH and -f to each.",
)
@feature_gates_option
@seed_option
@number_option(
    "--why",
    "explained",
    default=3,
    least=0,
    help="Explain the first N decisions that differ.",
)
@click.option(
    "--fail-on-regression",
    is_flag=True,
    help="Exit 1 if a limit is exceeded; without other limits, if more pods are pending or preempted"
    " than with the baseline.",
)
@click.option(
    "--max-pending",
    type=_Limit(),
    metavar="LIMIT",
    help="The most pending pods: a number, or +0 or +10% relative to the baseline.",
)
@click.option("--max-preemptions", type=_Limit(), metavar="LIMIT", help="The most preempted pods.")
@click.option(
    "--max-fragmentation",
    type=_Limit(),
    metavar="LIMIT",
    help="The highest fragmentation of any resource, for example +0.05.",
)
@click.option(
    "--max-zone-skew", type=_Limit(), metavar="LIMIT", help="The largest zone skew of a workload."
)
@output_option(
    "table",
    "json",
    "csv",
    "html",
    help="csv has one line per measure and per pod that differs; html is one self-contained file.",
)
@rows_option
def compare(
    cluster: ClusterInput,
    configs: tuple[str, ...],
    ignores_unknown: bool,
    scheduler_name: str | None,
    clusters: tuple[str, ...],
    seed: int | None,
    explained: int,
    fail_on_regression: bool,
    form: str,
    rows: int,
    **limits: Threshold | None,
) -> None:
    """Show what changes with another configuration, or on another cluster.

    mooring simulates every variant with the same pods and compares it with the first: which pods go to
    another node and why, which are pending, and how full, balanced and fragmented the nodes are
    (docs/compare.md has the formulas). Pods that ask for another scheduler are counted apart. If no pod asks
    for the scheduler of a configuration, --scheduler-name schedules them with it.

    Exits 0; 1 if a limit is exceeded; 2 if the input is invalid. A limit implies
    --fail-on-regression.

    \b
    Examples:
      mooring compare -f cluster/ --config default --config most-allocated.yaml
      mooring compare -f pods.yaml --cluster small/ --cluster large/ -o html > report.html
      mooring compare -f cluster/ --config a.yaml --config b.yaml --max-pending +0
    """
    sources = list(_sources(cluster, configs, clusters, ignores_unknown=ignores_unknown))
    variants = list(_variants(sources, scheduler_name, seed))
    with Progress("deciding") as progress:
        total = 0

        def count(name: str, decisions: int) -> None:
            nonlocal total
            total += 1
            progress.update(total)

        comparison = compare_variants(variants, explained=explained, on_progress=count)
    thresholds = [limit for limit in limits.values() if limit is not None]
    if fail_on_regression and not thresholds:
        thresholds = [parse_threshold("pending", "+0"), parse_threshold("preempted", "+0")]
    worse = regressions(comparison, thresholds)
    checked = bool(thresholds)
    output.answer(
        form,
        yes=not worse,
        data=lambda: {
            **_approximate(sources),
            **comparison.to_data(),
            "regressions": [regression_data(each) for each in worse],
        },
        csv=lambda: output.write_csv(
            ("kind", "name", *(run.name for run in comparison.runs)), _csv_rows(comparison)
        ),
        html=lambda: output.write(comparison_page(comparison, worse, checked=checked)),
        table=lambda: write_comparison(comparison, worse, checked=checked, rows=rows),
    )


#: The name of a variant, its objects and its configuration.
_Source = tuple[str, Sequence[KubeObject], LoadedConfig]


def _sources(
    cluster: ClusterInput,
    configs: Sequence[str],
    clusters: Sequence[str],
    *,
    ignores_unknown: bool,
) -> Iterator[_Source]:
    if len(clusters) > 1 and len(configs) > 1:
        raise click.UsageError("give several --cluster or several --config, not both")
    if len(clusters) < 2 and len(configs) < 2:
        raise click.UsageError(
            "nothing to compare: give --config twice or more (one can be 'default'), or --cluster"
        )
    paths = [None if path == DEFAULT else path for path in configs or (DEFAULT,)]
    if len(clusters) > 1:
        loaded = read_config(paths[0], ignores_unknown=ignores_unknown)
        for name, path in zip(_distinct(clusters), clusters, strict=True):
            yield name, _objects(cluster, loaded.kinds, path), loaded
        return
    read = [read_config(path, ignores_unknown=ignores_unknown) for path in paths]
    # Each configuration gets the kinds that its own plugins declare.
    by_kinds: dict[tuple[Kind, ...], list[KubeObject]] = {}
    for each in read:
        if each.kinds not in by_kinds:
            by_kinds[each.kinds] = _objects(cluster, each.kinds, *clusters)
    for name, each in zip(_distinct(configs), read, strict=True):
        yield name, by_kinds[each.kinds], each


def _objects(cluster: ClusterInput, kinds: tuple[Kind, ...], *paths: str) -> list[KubeObject]:
    manifests = read_cluster(cluster, *paths, kinds=kinds)
    check_something_to_place(manifests, cluster.options.selector)
    return manifests.objects


def _variants(
    sources: Sequence[_Source], scheduler_name: str | None, seed: int | None
) -> Iterator[Variant]:
    """Raises InputError if a configuration has no pods to schedule: there would be nothing to compare."""
    known = list(dict.fromkeys(name for _, _, loaded in sources for name in loaded.profiles))
    if scheduler_name is not None and scheduler_name not in known:
        raise InputError(
            [
                f"--scheduler-name {scheduler_name}: no configuration has it; they have {', '.join(known)}"
            ]
        )
    renamed: dict[int, Sequence[KubeObject]] = {}
    problems: list[str] = []
    for name, objects, loaded in sources:
        if scheduler_name is not None and scheduler_name in loaded.profiles:
            if id(objects) not in renamed:
                renamed[id(objects)] = asking_for(objects, scheduler_name)
            objects = renamed[id(objects)]
        elif unasked := unasked_for(objects, loaded):
            problems.append(unasked)
        yield Variant(name, RunInput(objects, loaded.config, seed))
    if problems:
        raise InputError(list(dict.fromkeys(problems)))


def _approximate(sources: Sequence[_Source]) -> dict[str, Any]:
    left_out = {name: list(loaded.left_out) for name, _, loaded in sources if loaded.left_out}
    return {"approximate": True, "leftOutPlugins": left_out} if left_out else {}


def _distinct(names: Sequence[str]) -> list[str]:
    """Number repeated names, so that each variant has its own."""
    return [
        name if names.index(name) == i else f"{name} ({names[: i + 1].count(name)})"
        for i, name in enumerate(names)
    ]


def _csv_rows(comparison: Comparison) -> Iterator[tuple[object, ...]]:
    columns = [{key: value for key, _, value in values_of(run)} for run in comparison.runs]
    for key in dict.fromkeys(key for column in columns for key in column):
        cells = (column.get(key) for column in columns)
        yield "measure", key, *("" if cell is None else cell for cell in cells)
    for pod in moved_pods(comparison):
        yield "pod", pod, *(run.where.get(pod, "-") for run in comparison.runs)


def moved_pods(comparison: Comparison) -> list[str]:
    return list(dict.fromkeys(pod for each in comparison.differences for pod, _, _ in each.moved))
