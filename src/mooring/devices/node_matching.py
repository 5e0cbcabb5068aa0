"""Which nodes a slice, or a device of it, can be used from."""

from __future__ import annotations

from mooring.errors import MooringError
from mooring.objects.node import Node
from mooring.objects.selectors import NodeSelector, NodeTerm, compile_node_term


class NodeSelectorError(MooringError):
    """A node selector that the API would refuse. It ends the allocation on every node."""


class Reach:
    """The nodes that `nodeName`, `allNodes` and `nodeSelector` tell; the first that is set counts."""

    __slots__ = ("_selector", "_terms", "all_nodes", "node_name")

    def __init__(
        self, node_name: str | None, all_nodes: bool | None, selector: NodeSelector | None
    ) -> None:
        self.node_name = node_name or ""
        self.all_nodes = bool(all_nodes)
        self._selector = selector
        #: The terms of the selector; compiled when a node is first compared with them.
        self._terms: tuple[NodeTerm, ...] | None = None

    @property
    def stated(self) -> bool:
        return bool(self.node_name) or self.all_nodes or self._selector is not None

    @property
    def by_name(self) -> bool:
        """Whether at most one node matches, and its name says so."""
        return bool(self.node_name) or not (self.all_nodes or self._selector is not None)

    def includes(self, node: Node) -> bool:
        """Raises NodeSelectorError if the selector is malformed."""
        if self.node_name:
            return node.name == self.node_name
        if self.all_nodes:
            return True
        if self._selector is None:
            return False
        if self._terms is None:
            self._terms = _compiled(self._selector)
        return any(term.matches(node.labels, node.name) for term in self._terms)


def _compiled(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    """The terms that can match. One malformed term spoils the selector; an empty one never matches."""
    try:
        terms = [compile_node_term(term) for term in selector.node_selector_terms]
    except ValueError as error:
        raise NodeSelectorError(f"failed to parse node selector: {error}") from error
    return tuple(term for term in terms if term is not None)
