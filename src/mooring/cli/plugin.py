"""`mooring plugin`: does a plugin keep its promises, and how to start one."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from mooring.cli import output
from mooring.cli.main import print_notes
from mooring.cli.options import file_option, number_option, output_option
from mooring.cli.output import Column, counted
from mooring.cli.progress import Progress
from mooring.plugin_kit.case import read_pool
from mooring.plugin_kit.check import COST_NODES, DEFAULT_SEEDS, Report, check_subject
from mooring.plugin_kit.cost import Cost
from mooring.plugin_kit.package import write_package
from mooring.plugin_kit.rules import RULES
from mooring.plugin_kit.subject import load_subject


@click.group()
def plugin() -> None:
    """Check that a plugin keeps its promises, or start a package with one.

    Exits 0 if it does or the package is written, 1 if it does not, 2 if mooring cannot answer.
    """


@plugin.command()
@click.argument("name", metavar="MODULE:CLASS")
@click.option("--args", "args_text", metavar="JSON", help="The plugin's args, as in pluginConfig.")
@number_option("--seeds", default=DEFAULT_SEEDS, help="How many random clusters to draw.")
@number_option("--first-seed", default=0, least=0, help="The seed of the first one.")
@file_option(
    "--objects",
    help="YAML with nodes and pods that the plugin is about; cases are drawn from them.",
)
@number_option(
    "--nodes",
    default=COST_NODES,
    least=0,
    help="The size of the cluster on which to measure the cost; 0 does not measure it.",
)
@output_option("table", "json", help="json has the cases as objects.")
def check(
    name: str,
    args_text: str | None,
    seeds: int,
    first_seed: int,
    objects: Path | None,
    nodes: int,
    form: str,
) -> None:
    """Check on random clusters that a plugin does what it says of itself.

    MODULE:CLASS is a Python class; modules in the current folder are found. It can also be the name of an
    installed or a built-in plugin. mooring draws small clusters and lets things happen to them. After each
    event it compares the plugin's answers: rows with nodes, kept ones with new ones, those of pods with
    equal signatures; it looks for pods that no hint wakes though they fit, for calls that block or change
    what they are given, and for reservations that are not undone. Last, it measures what a decision costs.

    Each finding names the rule that is broken, the smallest case found, and what to do.

    Exits 0 if the plugin keeps its promises, 1 if it does not, 2 if it cannot be checked.

    \b
    Examples:
      mooring plugin check quiet:QuietNodes
      mooring plugin check quiet:QuietNodes --args '{"most": 5}' --seeds 500
      mooring plugin check quiet:QuietNodes --objects nodes.yaml -o json
    """
    subject = load_subject(name, _args(args_text))
    pool = read_pool(objects) if objects is not None else None
    with Progress("checking", seeds) as progress:
        report = check_subject(
            subject,
            seeds=seeds,
            first_seed=first_seed,
            pool=pool,
            target=name,
            cost_nodes=nodes,
            progress=progress.update,
        )
    if form == "json":
        output.write_json(report.to_data())
    else:
        _write(report)
    sys.exit(0 if report.honest else 1)


@plugin.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    metavar="FOLDER",
    help="Where to make the folder of the package.  [default: here]",
)
def new(name: str, folder: Path) -> None:
    """Start a Python package with a plugin that works and is tested.

    NAME is the name of the plugin in configurations, such as QuietNodes. The package is written to a new
    folder, quiet-nodes: a plugin with a Filter and a Score, for a node and for all rows, with what it depends
    on, its signature and its hints; tests; and the entry point by which mooring finds the plugin. Nothing
    that exists is overwritten.

    Exits 0 if the package was written, 2 if it could not be.

    \b
    Examples:
      mooring plugin new QuietNodes
    """
    package = write_package(name, folder)
    page = output.Page()
    page.line(f"{package.folder}: written")
    page.line()
    page.line("Next:")
    page.line(f"  cd {package.folder}")
    page.line("  pip install --editable '.[test]'")
    page.line("  pytest")
    page.line(f"  mooring plugin check {package.target}")
    page.line(f"  edit {package.module_file}")
    page.write()


def _args(text: str | None) -> Mapping[str, Any] | None:
    if text is None:
        return None
    try:
        args = json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"is not JSON: {error}", param_hint="--args") from None
    if not isinstance(args, dict):
        raise click.BadParameter(
            f"is not a mapping; write it as '{{\"most\": 5}}', not {text}", param_hint="--args"
        )
    return args


def _write(report: Report) -> None:
    page = output.Page()
    broken = {finding.rule for finding in report.findings}
    page.table(
        [Column("RULE"), Column("COMPARED", right=True), Column("")],
        [
            [
                rule.title,
                f"{report.checked.get(rule.name, 0):,}",
                output.Cell("broken", "bold red")
                if rule in broken
                else output.Cell("holds", "green")
                if report.checked.get(rule.name)
                else output.Cell("not tried", "dim"),
            ]
            for rule in RULES
        ],
    )
    for finding in report.findings:
        page.line()
        for line in str(finding).splitlines():
            page.line(line)
    if report.cost is not None:
        _add_cost(page, report.cost)
    page.line()
    found = counted(len(report.findings), "rule") + " broken" if broken else "keeps its promises"
    page.line(
        f"{report.plugin}: {found}, on {counted(report.seeds, 'random cluster')}",
        "red" if broken else "green",
    )
    page.write()
    print_notes(report.notes)


def _add_cost(page: output.Page, cost: Cost) -> None:
    page.heading(f"COST OF A DECISION AT {cost.nodes:,} NODES (processor time)")
    rows = [
        ["the default profile without it", f"{cost.without_us:,.0f} µs", ""],
        ["with it", f"{cost.with_us:,.0f} µs", f"{cost.ratio:.2f} ×"],
        *([f"  {method}", f"{us:,.1f} µs", ""] for method, us in cost.by_method_us.items()),
    ]
    page.table([Column(""), Column("TIME", right=True), Column("", right=True)], rows)
