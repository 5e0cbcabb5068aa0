"""Read the input of `mooring ui` and `mooring report`: files, a real cluster, or a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mooring.cli.config_inputs import ConfigInput, LoadedConfig, naming
from mooring.cli.inputs import ClusterInput, read_cluster
from mooring.cli.options import (
    Command,
    cluster_input,
    config_input,
    priority_of,
    seed_option,
    until_option,
    what_if_option,
)
from mooring.config import KubeSchedulerConfiguration
from mooring.errors import InputError
from mooring.objects.meta import KubeObject
from mooring.sim.simulation import SimOptions, Simulation
from mooring.sim.traces.openb import Sharing
from mooring.sim.traces.reading import TraceOptions, read_trace

if TYPE_CHECKING:
    from mooring.web.origin import Origin
    from mooring.web.run_spec import RunSpec


def page_input(command: Command) -> Command:
    """The options for `checked_page_input`."""
    command = click.option(
        "--trace",
        type=click.Path(path_type=Path),
        metavar="TRACE",
        help="Replay this trace instead of reading a cluster, as `mooring replay` does.",
    )(trace_options(seed_option(until_option(what_if_option(command)))))
    return cluster_input(config_input(command))


def trace_options(command: Command) -> Command:
    """How `mooring replay` reads a trace; the command gets them as one TraceInput, `trace_input`."""

    @wraps(command)
    def with_trace(
        *arguments: Any,
        nodes_path: Path | None,
        endless: bool,
        gpu_sharing: str,
        priorities: tuple[str, ...],
        **others: Any,
    ) -> Any:
        options = TraceOptions(Sharing(gpu_sharing), dict(map(priority_of, priorities)))
        return command(
            *arguments, trace_input=TraceInput(nodes_path, options, endless=endless), **others
        )

    decorated: Command = with_trace
    for option in reversed(
        (
            click.option(
                "--trace-nodes",
                "nodes_path",
                type=click.Path(path_type=Path),
                metavar="FILE",
                help="With --trace: the file with the nodes, if it is not in the folder of the pods.",
            ),
            click.option(
                "--endless",
                is_flag=True,
                help="With --trace: pods never end, so the cluster fills up.",
            ),
            click.option(
                "--gpu-sharing",
                type=click.Choice([each.value for each in Sharing]),
                default=Sharing.POOL.value,
                show_default=True,
                help="With --trace, OpenB: pods share the sum of a node's GPUs, or each takes whole GPUs.",
            ),
            click.option(
                "--priority",
                "priorities",
                multiple=True,
                metavar="QOS=N",
                help="With --trace, OpenB: the priority of a quality of service; can be repeated.",
            ),
        )
    ):
        decorated = option(decorated)
    return decorated


@dataclass(frozen=True, slots=True)
class TraceInput:
    """How to read and replay a trace."""

    nodes_path: Path | None = None
    options: TraceOptions = field(default_factory=TraceOptions)
    endless: bool = False


@dataclass(frozen=True, slots=True)
class PageInput:
    """What to read, and a configuration that can be used. Another process can do the reading."""

    cluster: ClusterInput
    config: ConfigInput
    loaded: LoadedConfig
    trace: Path | None
    trace_input: TraceInput
    seed: int | None
    until_s: float | None
    what_if: Path | None
    #: The arguments with which a command reads the same.
    arguments: tuple[str, ...] = ()

    def origin(self) -> Origin:
        """What is known before anything is read."""
        from mooring.web.origin import Origin

        cluster = self.cluster
        if self.trace is not None:
            return Origin(str(self.trace), "trace", arguments=self.arguments)
        live = [cluster.context or "a real cluster"] if cluster.kubeconfig is not None else []
        groups = (group.text for group in cluster.node_groups)
        return Origin(
            title=", ".join([*live, *cluster.paths, *groups]),
            source="cluster" if live else "files",
            arguments=self.arguments,
        )

    def read(self, on_progress: Callable[[int, int], None] | None = None) -> tuple[Origin, RunSpec]:
        """`on_progress` gets the bytes read, and how many there are.

        Raises InputError, ConfigError, ApiError and CredentialsError.
        """
        if self.trace is None:
            origin, run_spec = self._of_cluster(on_progress)
        else:
            origin, run_spec = self._of_trace(self.trace)
        if self.loaded.left_out:
            approximate = f"the answer is approximate, without {', '.join(self.loaded.left_out)}"
            origin = replace(origin, warnings=(*origin.warnings, approximate))
        run_spec = replace(
            run_spec, config=self.loaded.config, seed=self.seed, until_s=self.until_s
        )
        return origin, run_spec if self.what_if is None else _changed(run_spec, self.what_if)

    def _of_cluster(self, on_progress: Callable[[int, int], None] | None) -> tuple[Origin, RunSpec]:
        from mooring.web.run_spec import RunSpec

        manifests = read_cluster(self.cluster, kinds=self.loaded.kinds, on_progress=on_progress)
        origin = replace(
            self.origin(),
            warnings=(*manifests.warnings, *manifests.refusals),
            skipped=manifests.skipped,
        )
        return origin, RunSpec(tuple(self.config.choose_pods(manifests.objects, self.loaded)))

    def _of_trace(self, path: Path) -> tuple[Origin, RunSpec]:
        from mooring.web.run_spec import RunSpec

        how = self.trace_input
        trace = read_trace(path, nodes_path=how.nodes_path, options=how.options)
        run_spec = RunSpec.of_trace(trace)
        if how.endless and run_spec.times is not None:
            times = {
                key: replace(each, run_s=None, leaves_s=None)
                for key, each in run_spec.times.items()
            }
            run_spec = replace(run_spec, times=times)
        return replace(self.origin(), warnings=trace.notes), run_spec


def checked_page_input(
    cluster: ClusterInput,
    *,
    config: ConfigInput,
    trace: Path | None,
    seed: int | None,
    until_s: float | None,
    trace_input: TraceInput | None = None,
    what_if: Path | None = None,
) -> PageInput:
    """Find the mistakes that can be found without reading the cluster. Raises InputError and ConfigError."""
    if trace is not None and (
        cluster.paths or cluster.node_groups or cluster.kubeconfig is not None
    ):
        raise click.UsageError(
            "--trace brings its own cluster; give no PATH, -f, --nodes or --kubeconfig"
        )
    if trace is not None and config.scheduler_name is not None:
        raise click.UsageError("--scheduler-name cannot be used with --trace")
    if trace is None:
        cluster.check()
        cluster.check_files()
    elif not trace.exists():
        raise InputError([f"{trace}: no such file or folder"])
    how = trace_input or TraceInput()
    if trace is None and how != TraceInput():
        raise click.UsageError(
            "--trace-nodes, --endless, --gpu-sharing and --priority are about a trace; give one with"
            " --trace"
        )
    loaded = config.read()
    with naming(loaded.path):
        # Plugins check their own arguments. Report a mistake before anything that takes long.
        Simulation(SimOptions(config=loaded.config)).close()
    return PageInput(cluster, config, loaded, trace, how, seed, until_s, what_if)


def changed_by_file(
    objects: Sequence[KubeObject], config: KubeSchedulerConfiguration | None, path: Path
) -> tuple[list[KubeObject], KubeSchedulerConfiguration | None]:
    """A cluster and its configuration with the changes of a file. Raises InputError and ConfigError."""
    from mooring.web.run_spec import RunSpec

    run_spec = _changed(RunSpec(tuple(objects), config=config), path)
    return list(run_spec.objects), run_spec.config


def _changed(run_spec: RunSpec, path: Path) -> RunSpec:
    from mooring.web.changes_file import read_changes
    from mooring.web.what_if import apply

    changes = read_changes(path)
    try:
        return apply(run_spec, changes).run_spec
    except InputError as error:
        raise InputError([f"{path}: {problem}" for problem in error.problems]) from error
