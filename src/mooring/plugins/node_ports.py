"""NodePorts: a pod's host ports must be free on its node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.plugin import (
    SKIP,
    SUCCESS,
    Action,
    Columns,
    CycleState,
    Depends,
    EventWithHint,
    Hint,
    NodeInfo,
    PluginError,
    Refusals,
    Rows,
    RowVerdicts,
    Snapshot,
    Status,
    Suggestion,
    by_mask,
    on_change,
    on_delete,
    unschedulable,
)
from mooring.plugin.changes import DropHostPort
from mooring.plugin.nodes import HostPort

#: Preemption may help.
TAKEN = unschedulable("node(s) didn't have free ports for the requested pod ports")

#: The address that stands for all addresses of a node; `::` does not.
EVERY_ADDRESS = "0.0.0.0"

_PRE_FILTER = "PreFilterNodePorts"


class NodePorts:
    name = "NodePorts"
    #: See `framework.interface.DependsPlugin`.
    signature_fields = ("host_ports",)
    #: See `runtime.usage_columns`.
    reads_usage_columns = True

    def pre_filter(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> Status:
        if not pod.host_ports:
            return SKIP
        state.write(_PRE_FILTER, pod.host_ports)
        return SUCCESS

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS if _all_free(_wanted(state), node.used_ports) else TAKEN

    def filter_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> RowVerdicts:
        wanted = _wanted(state)
        return by_mask(columns.port_sets.judge(lambda used: _all_free(wanted, used), rows), TAKEN)

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            on_delete(Pod, _after_pod_is_gone),
            on_change(Node, Action.ADD),
        )

    def suggest(self, pod: Pod, refusals: Refusals) -> Iterator[Suggestion]:
        for _, protocol, port in dict.fromkeys(pod.host_ports):
            yield Suggestion.fixed(DropHostPort(port, protocol))

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.USAGE

    def sign(self, pod: Pod) -> Mapping[str, object]:
        """Address, protocol and port of every host port.

        The reference signs only port numbers, which do not decide the verdict: its batching runs
        Filter again. Kept answers are not filtered again.
        """
        return {"v1.Pod.Spec.HostPorts()": frozenset(pod.host_ports)}


def _wanted(state: CycleState) -> tuple[HostPort, ...]:
    wanted = state.read(_PRE_FILTER, tuple)
    if wanted is None:
        raise PluginError(f'reading "{_PRE_FILTER}" from cycleState: not found')
    return wanted


def _all_free(wanted: Iterable[HostPort], used: AbstractSet[HostPort]) -> bool:
    """Ports of the same pod do not conflict."""
    return not any(_taken(port, used) for port in wanted)


def _taken(wanted: HostPort, used: AbstractSet[HostPort]) -> bool:
    address, protocol, port = wanted
    if address == EVERY_ADDRESS:
        return any((protocol, port) == other[1:] for other in used)
    return wanted in used or (EVERY_ADDRESS, protocol, port) in used


def _after_pod_is_gone(pod: Pod, old: Pod, new: Pod | None) -> Hint:
    """Queue the pod if the other pod had a node, or a nominated node, and a conflicting port."""
    if not old.node_name and not old.nominated_node_name:
        return Hint.SKIP
    return Hint.SKIP if _all_free(pod.host_ports, frozenset(old.host_ports)) else Hint.QUEUE
