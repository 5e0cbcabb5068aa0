"""TargetLoadPacking: fill nodes up to a target of CPU use, and avoid those above it."""

from __future__ import annotations

from mooring.objects.kinds import Kind
from mooring.objects.pod import Container, Pod
from mooring.objects.quantity import ZERO, parse_quantity
from mooring.objects.requests import CPU as CPU_NAME
from mooring.plugin import MIN_SCORE, CycleState, Handle, NodeInfo
from mooring_policies.arguments import read_args
from mooring_policies.trimaran.load import AVERAGE, CPU, LATEST, Window
from mooring_policies.trimaran.objects import NODE_METRICS
from mooring_policies.trimaran.resources import rounded
from mooring_policies.trimaran.sources import (
    REPORTING_S,
    LoadSource,
    TrimaranArgs,
    kinds_of,
    source_of,
)

_DEFAULT_TARGET = 40


class TargetLoadPackingArgs(TrimaranArgs, frozen=True):
    #: What a container without requests and limits is assumed to use.
    default_requests: dict[str, str | int | float] = {}
    #: What a container without a limit is assumed to use, as a multiple of its request.
    default_requests_multiplier: str = "1.5"
    #: The target, in percent.
    target_utilization: int = _DEFAULT_TARGET

    def __post_init__(self) -> None:
        self.check_source()
        parse_quantity(str(self.default_requests.get(CPU_NAME, "1")))
        try:
            float(self.default_requests_multiplier)
        except ValueError as error:
            raise ValueError(f"unable to parse DefaultRequestsMultiplier: {error}") from error

    @property
    def target(self) -> float:
        return float(self.target_utilization if self.target_utilization > 0 else _DEFAULT_TARGET)

    @property
    def default_cpu_milli(self) -> int:
        given = self.default_requests or {CPU_NAME: "1000m"}
        return parse_quantity(str(given.get(CPU_NAME, 0))).milli_value


class TargetLoadPacking:
    name = "TargetLoadPacking"
    kinds: tuple[Kind, ...] = (NODE_METRICS,)
    Args = TargetLoadPackingArgs

    def __init__(self, args: object, handle: Handle, source: LoadSource | None = None) -> None:
        self._args = read_args(args, TargetLoadPackingArgs)
        self._multiplier = float(self._args.default_requests_multiplier)
        self._source = source or source_of(self._args, handle)
        self.kinds = kinds_of(self._source)
        self._clock = handle.clock
        #: Node → UID → (when the pod was seen there, what it is assumed to use).
        self._seen: dict[str, dict[str, tuple[float, int]]] = {}
        handle.observed_pods.follow(self._pod_changed)

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        load = self._source.current()
        metrics = load.of(node.name) if load is not None else None
        if load is None or metrics is None or node.node is None:
            return MIN_SCORE
        known = [
            metric.value
            for metric in metrics
            if metric.type == CPU and metric.operator in (AVERAGE, LATEST)
        ]
        if not known:
            return MIN_SCORE
        capacity = float(node.node.status.capacity.get(CPU_NAME, ZERO).milli_value)
        used = (known[-1] / 100) * capacity
        missing = self._not_measured(node.name, load.window)
        predicted = 0.0
        if capacity:
            predicted = 100 * (used + float(self.usage_of(pod)) + float(missing)) / capacity
        return packing_score(predicted, self._args.target)

    def usage_of(self, pod: Pod) -> int:
        """What the pod is assumed to use, in thousandths of a core."""
        overhead = pod.spec.overhead.get(CPU_NAME, ZERO).milli_value
        return overhead + sum(self._usage_of_container(each) for each in pod.spec.containers)

    def _usage_of_container(self, container: Container) -> int:
        resources = container.resources
        if CPU_NAME in resources.limits:
            return resources.limits[CPU_NAME].milli_value
        if CPU_NAME in resources.requests:
            return rounded(float(resources.requests[CPU_NAME].milli_value) * self._multiplier)
        return self._args.default_cpu_milli

    def _not_measured(self, node_name: str, window: Window) -> int:
        return sum(
            usage
            for at, usage in self._seen.get(node_name, {}).values()
            if int(at) > window.end - REPORTING_S
        )

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and new.node_name:
            if old is None or old.node_name != new.node_name:
                seen = self._seen.setdefault(new.node_name, {})
                seen[new.uid] = (self._clock.now(), self.usage_of(new))
        elif new is None and old is not None and old.node_name:
            self._seen.get(old.node_name, {}).pop(old.uid, None)


def packing_score(predicted: float, target: float) -> int:
    """Rises up to the target, falls above it; in percent."""
    if predicted > 100:
        return MIN_SCORE
    if predicted > target:
        return rounded(target * (100 - predicted) / (100 - target))
    return rounded((100 - target) * predicted / target + target)
