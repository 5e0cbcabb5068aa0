"""The options of commands. An option that several commands have is declared once, so it means the same."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from mooring.cli.config_inputs import (
    ConfigInput,
    ignore_unknown_option,
    scheduler_name_option,
)
from mooring.cli.inputs import GATES, ClusterInput
from mooring.config import parse_duration, parse_gates
from mooring.errors import ConfigError
from mooring.objects.device_groups import DeviceGroup, parse_device_group
from mooring.objects.manifests import ReadOptions
from mooring.objects.node_groups import NodeGroup, parse_node_group

Command = Callable[..., Any]
Option = Callable[[Command], Command]

DEFAULT_ROWS = 40


def duration(text: str) -> float:
    """The seconds of a Go duration such as `1h30m`, or of a plain number."""
    digits = text.replace(".", "", 1)
    try:
        if digits.isascii() and digits.isdigit():
            return float(text)
        seconds = parse_duration(text).seconds
    except ValueError:
        seconds = -1.0
    if seconds < 0:
        raise click.BadParameter(f"{text!r} is not a duration; write 1h30m, 90s or 5400")
    return seconds


def priority_of(text: str) -> tuple[str, int]:
    """The quality of service and the priority in `LS=1000`."""
    qos, _, number = text.partition("=")
    try:
        return qos, int(number)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not QOS=N; write LS=1000", param_hint="--priority"
        ) from None


# Kinds of options


def duration_option(*names: str, help: str | None = None, default: str | None = None) -> Option:
    return click.option(
        *names, type=duration, default=default, show_default=True, metavar="DURATION", help=help
    )


def number_option(*names: str, help: str, default: int | None = None, least: int = 1) -> Option:
    return click.option(
        *names,
        type=click.IntRange(min=least),
        default=default,
        show_default=True,
        metavar="N",
        help=help,
    )


def file_option(*names: str, help: str) -> Option:
    """A file to read or write; the command gets its Path."""
    kind = click.Path(dir_okay=False, path_type=Path)
    return click.option(*names, type=kind, metavar="FILE", help=help)


def output_option(*forms: str, help: str | None = None) -> Option:
    """`-o`; the first form is the default. The command gets it as `form`."""
    return click.option(
        "-o",
        "--output",
        "form",
        type=click.Choice(forms),
        default=forms[0],
        show_default=True,
        help=help,
    )


# Options that several commands have


def what_if_option(command: Command) -> Command:
    """The command gets the Path of the file, `what_if`, or None."""
    return file_option(
        "--what-if",
        "what_if",
        help="A file with changes to make first, as the page exports them (docs/page.md).",
    )(command)


def _keep_gates(context: click.Context, parameter: click.Parameter, text: str | None) -> None:
    """For `inputs.given_gates`."""
    try:
        context.meta[GATES] = parse_gates(text or "")
    except ConfigError as error:
        raise click.BadParameter("; ".join(error.problems)) from error


#: Read with the configuration by `inputs.read_config`, or with `inputs.given_gates`.
feature_gates_option = click.option(
    "--feature-gates",
    metavar="GATE=BOOL,…",
    expose_value=False,
    callback=_keep_gates,
    help="Switch feature gates of kube-scheduler on or off: GenericWorkload=true,GangScheduling=true. They"
    " count more than featureGates in the configuration.",
)


def config_option(command: Command) -> Command:
    """`--config` and `--feature-gates`."""
    return click.option(
        "--config",
        "config_path",
        metavar="FILE",
        help="A KubeSchedulerConfiguration file; by default kube-scheduler's default configuration."
        " Plugins that it names as module:Class can be in the same folder.",
    )(feature_gates_option(command))


def config_input(command: Command) -> Command:
    """`--config` and the options that change how it is used; the command gets a ConfigInput, `config`."""

    @wraps(command)
    def with_config(
        *arguments: Any,
        config_path: str | None,
        ignores_unknown: bool,
        scheduler_name: str | None,
        **others: Any,
    ) -> Any:
        config = ConfigInput(config_path, ignores_unknown, scheduler_name)
        return command(*arguments, config=config, **others)

    return config_option(ignore_unknown_option(scheduler_name_option(with_config)))


seed_option = click.option(
    "--seed", type=int, help="The random seed that chooses between nodes with equal scores."
)

until_option = duration_option(
    "--until",
    "until_s",
    help="Stop at this virtual time: 1h30m, 90s or 5400. By default, stop when nothing more can change.",
)

timeline_option = click.option(
    "--timeline", is_flag=True, help="Show every event with its virtual time."
)

rows_option = number_option(
    "--rows",
    default=DEFAULT_ROWS,
    least=0,
    help="The maximum number of rows in a table; 0 shows all.",
)


def budget_option(default: str, *, to: str) -> Option:
    return duration_option(
        "--budget",
        "budget_s",
        default=default,
        help=f"How long to search for changes that would {to}; 0 skips the search.",
    )


def log_options(command: Command) -> Command:
    """`-v` and `--logging-format`."""
    command = click.option(
        "--logging-format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help="text, or one JSON object per line.",
    )(command)
    return click.option(
        "-v",
        "--v",
        "verbosity",
        type=click.IntRange(min=0),
        default=2,
        show_default=True,
        help="The log level, as for kube-scheduler; 4 and above log every detail.",
    )(command)


# Where a cluster is read from


class _NodeGroupType(click.ParamType[NodeGroup]):
    name = "nodes"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> NodeGroup:
        try:
            return parse_node_group(value)
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


nodes_option = click.option(
    "--nodes",
    "node_groups",
    type=_NodeGroupType(),
    multiple=True,
    metavar="[COUNTx]TYPE[,OPTION…]",
    help="Add nodes: 3xm5.xlarge, or 10x8cpu,32Gi,zones=3; can be repeated. Options are zones, gpus, pods,"
    " disk, label, taint, arch and name (docs/nodes.md).",
)


class _DeviceGroupType(click.ParamType[DeviceGroup]):
    name = "devices"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> DeviceGroup:
        try:
            return parse_device_group(value)
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)


devices_option = click.option(
    "--devices",
    "device_groups",
    type=_DeviceGroupType(),
    multiple=True,
    metavar="[COUNTx]DRIVER[,OPTION…]",
    help="Give every node devices: 8xgpu.example.com,memory=80Gi,model=H100; can be repeated. Options are on,"
    " node, partitions, shared, share, taint, class, name, capacities and attributes (docs/nodes.md).",
)

namespace_option = click.option(
    "-n",
    "--namespace",
    metavar="NAMESPACE",
    help="The namespace of objects that name none, as in `kubectl apply -n`; by default 'default'.",
)


def kubeconfig_options(command: Command) -> Command:
    """`--kubeconfig` and `--context`, for commands that work on a real cluster."""
    return _kubeconfig(
        "The kubeconfig of the cluster; by default the service account of the pod that mooring runs in."
    )(command)


def read_only_options(command: Command) -> Command:
    """`--kubeconfig` and `--context`, for commands that answer questions about a real cluster."""
    return _kubeconfig(
        "Read the real cluster of this kubeconfig, and add the objects of the other files."
        " mooring writes nothing to that cluster."
    )(command)


def _kubeconfig(text: str) -> Option:
    def with_options(command: Command) -> Command:
        command = click.option(
            "--context",
            metavar="NAME",
            help="The kubeconfig context to use; by default the current context.",
        )(command)
        return click.option("--kubeconfig", metavar="FILE", help=text)(command)

    return with_options


def cluster_input(command: Command) -> Command:
    """`PATH…`, `-f`, `--nodes`, `--devices`, `-n`, `--kubeconfig`, `--context`: what a cluster is read from.

    The command gets all of them as one ClusterInput, `cluster`.
    """

    @wraps(command)
    def with_cluster(
        *arguments: Any,
        paths: tuple[str, ...],
        filenames: tuple[str, ...],
        node_groups: tuple[NodeGroup, ...],
        device_groups: tuple[DeviceGroup, ...],
        namespace: str | None,
        kubeconfig: str | None,
        context: str | None,
        exclude: tuple[str, ...],
        selector: str,
        workload_kinds: tuple[str, ...],
        strict: bool,
        **others: Any,
    ) -> Any:
        options = ReadOptions(exclude, selector, workload_kinds, strict)
        cluster = ClusterInput(
            (*paths, *filenames),
            kubeconfig,
            context,
            node_groups,
            namespace,
            options,
            device_groups,
        )
        return command(*arguments, cluster=cluster, **others)

    with_files = click.option(
        "-f",
        "--filename",
        "filenames",
        multiple=True,
        metavar="PATH",
        help="A file or folder to read, as in kubectl; can be repeated. - is standard input.",
    )(
        nodes_option(
            devices_option(namespace_option(read_only_options(_reading_options(with_cluster))))
        )
    )
    return click.argument("paths", nargs=-1, metavar="PATH…")(with_files)


def _reading_options(command: Command) -> Command:
    """What to read of the files, and how."""
    for option in reversed(
        (
            click.option(
                "--exclude",
                multiple=True,
                metavar="GLOB",
                help="Leave out files and folders whose name or path matches; can be repeated.",
            ),
            click.option(
                "-l",
                "--selector",
                default="",
                metavar="LABELS",
                help="Read only objects with these labels, as in kubectl: app=web,tier!=cache."
                " Nodes and other objects without a namespace are always read.",
            ),
            click.option(
                "--workload-kinds",
                multiple=True,
                metavar="PATH",
                help="A file or folder that describes more kinds that make pods; see docs/manifests.md.",
            ),
            click.option(
                "--strict",
                is_flag=True,
                help="Refuse fields that the API does not have, instead of a warning.",
            ),
        )
    ):
        command = option(command)
    return command
