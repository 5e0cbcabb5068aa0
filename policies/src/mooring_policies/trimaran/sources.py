"""Where the load of nodes comes from: a file, load-watcher, Prometheus, the metrics server, or the pods.

The load is asked for again after 30 seconds, as upstream does. A source that does not answer leaves the
last known load; without any, all nodes score 0.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from mooring.objects.kinds import Kind
from mooring.objects.meta import ResourceList
from mooring.objects.quantity import ZERO, parse_quantity
from mooring.objects.requests import CPU as CPU_NAME
from mooring.objects.requests import MEMORY as MEMORY_NAME
from mooring.plugin import Handle, NodeInfo
from mooring_policies.arguments import PluginArgs
from mooring_policies.trimaran.load import (
    AVERAGE,
    CPU,
    DEVIATION,
    LATEST,
    MEMORY,
    Data,
    HostMetrics,
    Load,
    Metric,
    Window,
)
from mooring_policies.trimaran.objects import NODE_METRICS, UPDATE_S, NodeMetrics

_LOG = logging.getLogger(__name__)

#: Pods younger than this may not be part of a measured load yet.
REPORTING_S = 60
_TIMEOUT_S = 10.0
_WINDOW_S = 900

METRICS_SERVER = "KubernetesMetricsServer"
PROMETHEUS = "Prometheus"
SIGNAL_FX = "SignalFx"

#: What a pod really uses, if it is not what it requests: `mooring.dev/usage-cpu: 300m`.
USAGE = "mooring.dev/usage-"

#: The recording rules of node-exporter's mixin, over the window that load-watcher uses.
_QUERIES = (
    (CPU, AVERAGE, "avg_over_time(instance:node_cpu:ratio[15m])"),
    (CPU, DEVIATION, "stddev_over_time(instance:node_cpu:ratio[15m])"),
    (MEMORY, AVERAGE, "avg_over_time(instance:node_memory_utilisation:ratio[15m])"),
    (MEMORY, DEVIATION, "stddev_over_time(instance:node_memory_utilisation:ratio[15m])"),
)


class MetricProvider(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    type: str = ""
    address: str = ""
    token: str = ""
    insecure_skip_verify: bool | None = None


class TrimaranArgs(PluginArgs, frozen=True):
    """The arguments that all these plugins have: where the load comes from."""

    metric_provider: MetricProvider = MetricProvider()
    #: The URL of load-watcher, or `file:` and the path of a file with what it would answer.
    watcher_address: str = ""

    def check_source(self) -> None:
        kind = self.metric_provider.type or METRICS_SERVER
        if not self.watcher_address and kind not in (METRICS_SERVER, PROMETHEUS, SIGNAL_FX):
            raise ValueError(f"invalid MetricProvider.Type, got {kind}")


class NodeLoads(Protocol):
    """The load of nodes at one time."""

    @property
    def window(self) -> Window: ...
    def of(self, node_name: str) -> Sequence[Metric] | None:
        """None if nothing is known of the node."""
        ...


class LoadSource(Protocol):
    def current(self) -> NodeLoads | None:
        """The latest load that is known."""
        ...


def source_of(args: TrimaranArgs, handle: Handle) -> LoadSource:
    """The source that the arguments name."""
    address = args.watcher_address
    if address.startswith("file:"):
        path = Path(urllib.parse.unquote(address.removeprefix("file:").removeprefix("//")))
        return Repeated(handle, lambda: read_load(path.read_bytes()))
    if address:
        url = f"{address.rstrip('/')}/watcher"
        return Fetched(handle, lambda: read_load(_get(url)))
    provider = args.metric_provider
    if provider.type == PROMETHEUS and provider.address:
        return Fetched(handle, lambda: _from_prometheus(provider))
    return MetricsServer(handle)


def kinds_of(source: LoadSource) -> tuple[Kind, ...]:
    """What the source reads from the API server."""
    return (NODE_METRICS,) if isinstance(source, MetricsServer) else ()


class Repeated:
    """A source that answers at once."""

    def __init__(self, handle: Handle, read: Callable[[], Load]) -> None:
        self._clock = handle.clock
        self._read = read
        self._known: Load | None = None
        self._read_at = float("-inf")

    def current(self) -> Load | None:
        now = self._clock.now()
        if now - self._read_at >= UPDATE_S:
            self._read_at = now
            try:
                self._known = self._read()
            except (OSError, ValueError) as error:
                _LOG.warning("the load of nodes cannot be read: %s", error)
        return self._known


class Fetched:
    """A source behind a network: it is asked in a thread, and the last answer counts meanwhile."""

    def __init__(self, handle: Handle, fetch: Callable[[], Load]) -> None:
        self._handle = handle
        self._fetch = fetch
        self._known: Load | None = None
        self._asked_at = float("-inf")
        # As upstream, wait for the first answer: there is nothing to score by without it.
        self._take()
        self._asked_at = handle.clock.now()

    def current(self) -> Load | None:
        now = self._handle.clock.now()
        if now - self._asked_at >= UPDATE_S:
            self._asked_at = now
            self._handle.spawn(self._refresh())
        return self._known

    async def _refresh(self) -> None:
        await asyncio.to_thread(self._take)

    def _take(self) -> None:
        try:
            self._known = self._fetch()
        except (OSError, ValueError) as error:
            _LOG.warning("the load of nodes cannot be fetched: %s", error)


def read_load(text: bytes) -> Load:
    """What load-watcher answers. Raises ValueError."""
    try:
        return msgspec.json.decode(text, type=Load)
    except msgspec.MsgspecError as error:
        raise ValueError(f"not an answer of load-watcher: {error}") from error


class Unmeasured:
    """A cluster that nobody measures, such as a simulation: the load follows from its pods.

    A pod uses what its annotations `mooring.dev/usage-cpu` and `-memory` say, or else what it requests.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def current(self) -> NodeLoads:
        return self

    @property
    def window(self) -> Window:
        """No pod is missing from this load, so the window ends after the youngest one."""
        now = int(self._handle.clock.now())
        return Window(now, now + REPORTING_S)

    def of(self, node_name: str) -> Sequence[Metric] | None:
        info = self._handle.cluster.infos.get(node_name)
        return None if info is None or info.node is None else _load_of(info)


def _load_of(info: NodeInfo) -> list[Metric]:
    metrics: list[Metric] = []
    for kind, name in ((CPU, CPU_NAME), (MEMORY, MEMORY_NAME)):
        capacity = info.allocatable.get(name, 0)
        used = sum(_usage(pod.metadata.annotations, name, pod.held) for pod in info.pods.values())
        percent = 100.0 * used / capacity if capacity else 0.0
        metrics += [Metric(kind, AVERAGE, percent), Metric(kind, DEVIATION, 0.0)]
    return metrics


def _usage(annotations: dict[str, str], name: str, held: dict[str, int]) -> int:
    text = annotations.get(f"{USAGE}{name}")
    if text is None:
        return held.get(name, 0)
    try:
        quantity = parse_quantity(text)
    except ValueError:
        return held.get(name, 0)
    return quantity.milli_value if name == CPU_NAME else quantity.value


class MetricsServer(Unmeasured):
    """What `kubectl top nodes` shows: the latest use of nodes. Without any, the load follows from pods."""

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle)
        self._listers = handle.cluster.listers
        #: Node → its latest use.
        self._measured: dict[str, NodeMetrics] = {}
        #: When the last of them was measured.
        self._end = 0
        for each in self._listers.all(NodeMetrics):
            self._changed(each.key)
        self._listers.follow(NodeMetrics, self._changed)

    @property
    def window(self) -> Window:
        return Window(self._end - _WINDOW_S, self._end) if self._measured else super().window

    def of(self, node_name: str) -> Sequence[Metric] | None:
        if not self._measured:
            return super().of(node_name)
        info = self._handle.cluster.infos.get(node_name)
        usage = self._measured.get(node_name)
        if usage is None or info is None or info.node is None:
            return None
        return _measured_load(usage.usage, info.node.status.capacity)

    def _changed(self, key: str) -> None:
        usage = self._listers.get(NodeMetrics, key)
        if usage is None:
            self._measured.pop(key, None)
            return
        self._measured[key] = usage
        if usage.timestamp is not None:
            self._end = max(self._end, int(usage.timestamp.timestamp()))


def _measured_load(usage: ResourceList, capacity: ResourceList) -> list[Metric]:
    cpu, cpus = (each.get(CPU_NAME, ZERO).milli_value for each in (usage, capacity))
    memory, memories = (each.get(MEMORY_NAME, ZERO).value for each in (usage, capacity))
    return [
        Metric(kind, LATEST, 100 * used / of if of else 0.0)
        for kind, used, of in ((CPU, cpu, cpus), (MEMORY, memory, memories))
    ]


def _from_prometheus(provider: MetricProvider) -> Load:
    metrics: dict[str, list[Metric]] = {}
    end = 0
    for kind, operator, query in _QUERIES:
        asked = urllib.parse.urlencode({"query": query})
        url = f"{provider.address.rstrip('/')}/api/v1/query?{asked}"
        for host, at, value in _results(_get(url, provider)):
            metrics.setdefault(host, []).append(Metric(kind, operator, value * 100))
            end = max(end, int(at))
    by_node = {host: HostMetrics(tuple(found)) for host, found in metrics.items()}
    return Load(timestamp=end, window=Window(end - _WINDOW_S, end), data=Data(by_node))


def _results(text: bytes) -> list[tuple[str, float, float]]:
    """(node, time, value) of an answer of Prometheus. Raises ValueError."""
    answer: Any = json.loads(text)
    try:
        found = answer["data"]["result"]
        return [
            (each["metric"]["instance"], float(each["value"][0]), float(each["value"][1]))
            for each in found
        ]
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"not an answer of Prometheus: {error!r}") from error


def _get(url: str, provider: MetricProvider | None = None) -> bytes:
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url}: expected an address with http:// or https://")
    request = urllib.request.Request(url)
    if provider is not None and provider.token:
        request.add_header("Authorization", f"Bearer {provider.token}")
    context = None
    if provider is not None and provider.insecure_skip_verify and url.startswith("https://"):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S, context=context) as answer:
        return bytes(answer.read())
