"""Read the input of commands: a cluster from files, from a real cluster, and from `--nodes`."""

from __future__ import annotations

import importlib.util
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click

from mooring.cli.main import print_notes, print_warnings
from mooring.cli.progress import Progress
from mooring.config import DEFAULT_GATES, FeatureGates
from mooring.errors import InputError, MooringError
from mooring.objects.daemons import why_nowhere
from mooring.objects.device_groups import CannotAddDevices, DeviceGroup, device_objects
from mooring.objects.device_warnings import missing_classes
from mooring.objects.devices import DeviceClass, ResourceSlice
from mooring.objects.findings import SUSPENDED, listed
from mooring.objects.kinds import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    Kind,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from mooring.objects.manifests import DEFAULT_NAMESPACE, Manifests, ReadOptions, read_manifests
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.node_groups import NodeGroup, node_documents
from mooring.objects.skipped_kinds import MEANINGS, Effect
from mooring.objects.storage import CSINode
from mooring.objects.titles import title

STDIN = "-"

#: Where a command's context keeps its feature gates.
GATES = "mooring.gates"
#: What to do about a cluster without nodes.
ADD_NODES = "add nodes with --nodes 3xm5.xlarge, or the output of `kubectl get nodes -o yaml`"

SCALABLE = (Deployment, ReplicaSet, ReplicationController, StatefulSet)
WORKLOADS = (*SCALABLE, CronJob, DaemonSet, Job)

#: Nodes, and what they come with.
OF_NODES = (Node, CSINode, DeviceClass, ResourceSlice)

#: Extra of the package → what commands that need it import.
_NEEDED_BY = {"live": ("aiohttp", "kubernetes_asyncio", "prometheus_client"), "web": ("aiohttp",)}


class NotInstalled(MooringError):
    """A command needs the packages of an extra that is not installed."""


@dataclass(slots=True)
class ClusterInput:
    """Where to read a cluster from: files, a real cluster, and nodes to add."""

    paths: tuple[str, ...] = ()
    kubeconfig: str | None = None
    context: str | None = None
    node_groups: tuple[NodeGroup, ...] = ()
    #: Of objects that name none; None is `default`.
    namespace: str | None = None
    options: ReadOptions = field(default_factory=ReadOptions)
    #: Devices that nodes get.
    device_groups: tuple[DeviceGroup, ...] = ()
    #: What standard input held, for another process to read; None to read it here.
    stdin: bytes | None = None
    #: The objects of the real cluster; read once, even if several clusters include it.
    _live: list[KubeObject] | None = None

    def live(self, kinds: tuple[Kind, ...] = ()) -> list[KubeObject]:
        """The objects of the real cluster; none without a kubeconfig. Raises MooringError."""
        self._check_context()
        if self.kubeconfig is None:
            return []
        if self._live is None:
            self._live = read_live(self.kubeconfig, self.context, kinds)
        return self._live

    def with_stdin(self) -> ClusterInput:
        """The same for another process: with what standard input holds, if that is to be read."""
        return replace(self, stdin=sys.stdin.buffer.read()) if STDIN in self.paths else self

    def check(self, *more: str) -> None:
        """Whether there is something to read. Raises UsageError."""
        self._check_context()
        if not more and not self.paths and self.kubeconfig is None and not self.node_groups:
            raise click.UsageError(
                "nothing to read: give files or folders with Kubernetes YAML, - for standard input,"
                " --nodes for nodes, or --kubeconfig for a real cluster"
            )

    def _check_context(self) -> None:
        if self.kubeconfig is None and self.context is not None:
            raise click.UsageError("--context needs --kubeconfig FILE")

    def check_files(self) -> None:
        """Whether all files and folders are there. Raises InputError."""
        problems = []
        for path in self.paths:
            try:
                _ = path == STDIN or Path(path).stat()
            except OSError as error:
                problems.append(f"{path}: cannot be read: {error.strerror or error}")
        if problems:
            raise InputError(problems)


def check_installed(extra: str) -> None:
    """Raises NotInstalled."""
    for module in _NEEDED_BY[extra]:
        # Not imported: some take most of a second, and may not be needed.
        if importlib.util.find_spec(module) is None:
            raise NotInstalled(
                f"this command needs packages that are not installed ({module}); install them with"
                f" pip install 'mooring[{extra}]'"
            )


def read_live(
    kubeconfig: str | None, context: str | None, kinds: tuple[Kind, ...] = ()
) -> list[KubeObject]:
    """The objects that `mooring snapshot` writes. Raises NotInstalled, CredentialsError and ApiError."""
    check_installed("live")
    import asyncio

    from mooring.live.session import connector
    from mooring.live.snapshot import read_from

    connect = connector(Path(kubeconfig) if kubeconfig else None, context)
    objects, left_out = asyncio.run(read_from(connect, kinds))
    print_warnings(left_out)
    return objects


def read_cluster(
    cluster: ClusterInput,
    *more: str,
    warns_without_nodes: bool = True,
    kinds: tuple[Kind, ...] = (),
    on_progress: Callable[[int, int], None] | None = None,
) -> Manifests:
    """Read all files and the real cluster, and warn about kinds that mooring skips. Raises InputError.

    An object in a file replaces the same object of the real cluster. A warning says what to do about a
    cluster without nodes, unless the command answers that itself. `kinds` are those that the plugins of the
    configuration declare.
    """
    cluster.check(*more)
    live = cluster.live(kinds)
    taken = [obj.name for obj in live if isinstance(obj, Node)]
    with Progress("reading files") as bar:

        def progress(done: int, total: int) -> None:
            bar.update(done, total)
            if on_progress is not None:
                on_progress(done, total)

        manifests = read_manifests(
            [*more, *cluster.paths],
            options=replace(cluster.options, kinds=kinds),
            stdin=sys.stdin.buffer if cluster.stdin is None else io.BytesIO(cluster.stdin),
            progress=progress,
            documents=node_documents(cluster.node_groups, taken),
            among=live,
            namespace=cluster.namespace or DEFAULT_NAMESPACE,
        )
    if live:
        written = {(type(obj), obj.key) for obj in manifests.objects}
        kept = [obj for obj in live if (type(obj), obj.key) not in written]
        manifests = replace(manifests, objects=[*kept, *manifests.objects])
    if cluster.device_groups:
        manifests = replace(
            manifests, objects=with_devices(manifests.objects, cluster.device_groups)
        )
    if not manifests.objects and not manifests.refused:
        print_warnings(["the input contains no objects"])
    elif manifests.pods and not manifests.nodes and warns_without_nodes:
        print_warnings([f"the cluster has no nodes, so no pod can be placed; {ADD_NODES}"])
    print_notes((*manifests.notes, *_without_pods(manifests)))
    warnings = [*manifests.warnings, *missing_classes(manifests.objects)]
    manifests = replace(manifests, warnings=warnings)
    print_warnings((*warnings, *manifests.refusals))
    for line in skipped_lines(manifests):
        click.echo(line, err=True)
    return manifests


def _without_pods(manifests: Manifests) -> Iterator[str]:
    """Workloads that make no pods, and why. In a dump, the controllers have said it already."""
    objects = manifests.objects
    suspended = [title(o) for o in objects if isinstance(o, Job | CronJob) and o.spec.suspend]
    if suspended:
        yield f"{SUSPENDED}: {listed(suspended)}"
    if manifests.is_dump:
        return
    paused = [title(o) for o in objects if isinstance(o, Deployment) and o.spec.paused]
    if paused:
        yield f"paused, so no pods (set paused: false to place them): {listed(paused)}"
    empty = [
        title(obj)
        for obj in objects
        if isinstance(obj, SCALABLE)
        and obj.spec.replicas == 0
        and not obj.metadata.owner_references
    ]
    if empty:
        yield f"0 replicas, so no pods: {listed(empty)}"
    nodes = manifests.nodes
    for daemon_set in objects if nodes else ():
        if isinstance(daemon_set, DaemonSet) and daemon_set.spec.template is not None:
            reasons = why_nowhere(daemon_set.spec.template.spec, nodes)
            if reasons:
                yield f"{title(daemon_set)} wants no node, so no pods: {', '.join(reasons)}"


def with_devices(objects: Sequence[KubeObject], groups: Sequence[DeviceGroup]) -> list[KubeObject]:
    """The objects, with devices for their nodes. Raises InputError if that cannot be."""
    nodes = [obj for obj in objects if isinstance(obj, Node)]
    try:
        return [*device_objects(groups, nodes, objects), *objects]
    except CannotAddDevices as error:
        raise InputError([str(error)]) from error


def given_gates() -> FeatureGates:
    """The feature gates of `--feature-gates`; the defaults if the command has no such option."""
    context = click.get_current_context(silent=True)
    gates = context.meta.get(GATES) if context is not None else None
    return gates if isinstance(gates, FeatureGates) else DEFAULT_GATES


def skipped_lines(manifests: Manifests) -> Iterator[str]:
    """What was skipped, a line for each meaning."""
    for effect, meaning in MEANINGS.items():
        kinds = ", ".join(
            f"{number:,} {kind}"
            for kind, number in sorted(manifests.skipped.items())
            if manifests.effects.get(kind, Effect.NONE) is effect
        )
        if kinds:
            yield f"skipped, {meaning}: {kinds}"


def skipped_data(manifests: Manifests) -> list[dict[str, Any]]:
    """For JSON."""
    return [
        {"kind": kind, "objects": number, "effect": manifests.effects.get(kind, Effect.NONE).value}
        for kind, number in sorted(manifests.skipped.items())
    ]


def check_something_to_place(manifests: Manifests, selector: str) -> None:
    """Raises InputError if the input has things to apply, and none of them makes pods.

    Nodes alone are a cluster that is empty, and so is a dump without pods.
    """
    if manifests.pods or manifests.refused:
        return
    if any(isinstance(obj, WORKLOADS) for obj in manifests.objects):
        return
    others = {obj.kind for obj in manifests.objects if not isinstance(obj, OF_NODES)}
    if not manifests.skipped and not manifests.left_out and not manifests.unselected:
        if manifests.is_dump or not (others or manifests.empty_paths or manifests.idle):
            return
    makers = [k for k, effect in manifests.effects.items() if effect is Effect.MAKES_PODS]
    if makers:
        advice = (
            f"mooring cannot make the pods of {listed(makers)}; give the objects that their "
            "controllers create (kubectl get pods -A -o yaml), or describe the kind with "
            "--workload-kinds"
        )
    else:
        advice = "add Pods, Deployments or other workloads"
    if manifests.unselected:
        found = f"no pod or workload has the labels {selector}"
        advice = "choose others with --selector"
    elif manifests.skipped:
        found = f"only kinds that mooring skips ({listed(sorted(manifests.skipped))})"
    elif manifests.idle:
        found = f"none are made of {listed(manifests.idle)}"
        advice = "complete their spec, or add the objects that they refer to"
    elif others:
        found = f"only kinds that make none ({listed(sorted(others))})"
    elif manifests.left_out:
        found = "only files without Kubernetes objects"
    else:
        found = f"no Kubernetes objects in {listed([*map(shown, manifests.empty_paths)])}"
    raise InputError([f"there are no pods to place, {found}; {advice}"])


def read_bytes(path: str) -> bytes:
    """Raises InputError if the file cannot be read."""
    if path == STDIN:
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError([f"{path}: cannot be read: {error.strerror or error}"]) from error


def shown(path: str) -> str:
    return "standard input" if path == STDIN else path
