"""A kit that catches lies: whether a plugin keeps the promises of the contract, on random clusters.

`mooring plugin check` runs it, and so does a test of a plugin:

    def test_it_keeps_its_promises(check_plugin):
        check_plugin(QuietNodes)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mooring.plugin_kit.case import Manifest, pool_of
from mooring.plugin_kit.check import TEST_SEEDS, Report, check_subject
from mooring.plugin_kit.subject import load_subject, subject_of


class BrokenPromise(AssertionError):
    """A plugin that does not keep its promises; `report` has the findings."""

    def __init__(self, report: Report) -> None:
        super().__init__(f"{report.plugin} does not keep its promises\n\n{report}")
        self.report = report


def check_plugin(
    plugin: type | str,
    args: Mapping[str, Any] | None = None,
    *,
    seeds: int = TEST_SEEDS,
    first_seed: int = 0,
    objects: Sequence[Manifest] = (),
) -> Report:
    """Check a plugin class, or `module:Class`, on random clusters.

    `objects` are manifests of nodes and pods that the plugin is about; half of the objects of each case are
    drawn from them. Raises BrokenPromise, an AssertionError, with the smallest case of each finding; and
    PluginError, ConfigError or InputError if the plugin cannot be checked.
    """
    is_name = isinstance(plugin, str)
    subject = load_subject(plugin, args) if isinstance(plugin, str) else subject_of(plugin, args)
    report = check_subject(
        subject,
        seeds=seeds,
        first_seed=first_seed,
        pool=pool_of(objects),
        target=str(plugin) if is_name else None,
    )
    if not report.honest:
        raise BrokenPromise(report)
    return report
