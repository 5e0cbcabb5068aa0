"""What plugins look at in a pod: their parts of its signature.

Most plugins say which fields of a pod their part follows from (`signature_fields`). A pod of another kind
mostly differs from the one before in what it requests and in its labels, so these plugins need not be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter
from typing import NamedTuple, cast

from mooring.faults import PLUGIN_FAULTS
from mooring.framework.interface import Depends
from mooring.framework.status import Status
from mooring.objects.pod import Pod
from mooring.runtime.plugin_calls import Calls

#: How many parts of a plugin are remembered.
_MOST_PARTS = 16_384


class Part:
    """What a plugin looks at in a pod, with what else its answers depend on.

    Equal parts are one object, so that signatures are compared and hashed without looking into them.
    """

    __slots__ = ("depends", "fragment")

    def __init__(self, depends: Depends, fragment: Hashable) -> None:
        self.depends = depends
        self.fragment = fragment


class Signature(NamedTuple):
    """The parts of the plugins whose answers are kept."""

    #: By place among the plugins: the parts of those that look at nodes alone, else None.
    on_nodes: tuple[Part | None, ...]
    #: The other parts, and whose they are.
    by_usage: tuple[tuple[Calls, Part], ...]


class Signatures:
    """Signs pods for some plugins."""

    def __init__(self, calls: Sequence[Calls]) -> None:
        signers = [(place, _Signer(call)) for place, call in enumerate(calls)]
        #: By place among the plugins: those that say which fields they read, and the others.
        self._of_fields = [s for s in signers if calls[s[0]].signature_fields is not None]
        self._others = [s for s in signers if calls[s[0]].signature_fields is None]
        fields = dict.fromkeys(
            name for place, _ in self._of_fields for name in calls[place].signature_fields or ()
        )
        self._read: Callable[[Pod], object] = attrgetter(*fields) if fields else _nothing
        self._calls = calls
        #: The fields of the pod that was signed last; None if there is none. Then its parts.
        self._fields: object = None
        self._parts: list[Part | None] = [None] * len(calls)
        #: The parts of the plugins that look at nodes alone, and the places of the others.
        self._on_nodes: tuple[Part | None, ...] = ()
        self._usage: list[int] = []

    def forget(self) -> None:
        """Plugins may sign the same pod in another way from now on."""
        self._fields = None

    def of(self, pod: Pod) -> Signature:
        parts, fields = self._parts, self._read(pod)
        # Kinds of pods mostly differ in parts of plugins that look at the pods of a node.
        same_on_nodes = True
        if self._fields is None or fields != self._fields:
            same_on_nodes = False
            for place, signer in self._of_fields:
                parts[place] = signer.part(pod)
            self._fields = fields
        for place, signer in self._others:
            part, before = signer.part(pod), parts[place]
            if part is not before:
                parts[place] = part
                if not (_is_by_usage(part) and _is_by_usage(before)):
                    same_on_nodes = False
        if not same_on_nodes:
            self._on_nodes = tuple([None if _is_by_usage(part) else part for part in parts])
            self._usage = [place for place, part in enumerate(parts) if _is_by_usage(part)]
        by_usage = [(self._calls[place], cast(Part, parts[place])) for place in self._usage]
        return Signature(self._on_nodes, tuple(by_usage))


def _is_by_usage(part: Part | None) -> bool:
    return part is not None and part.depends is Depends.USAGE


def _nothing(_: Pod) -> object:
    return ()


class _Signer:
    """Asks one plugin what it looks at in a pod. Most pods have the part of the pod before them."""

    __slots__ = ("_call", "_items", "_part", "_parts", "_sign")

    def __init__(self, call: Calls) -> None:
        self._call = call
        self._sign = call.sign_here if call.sign_here and call.sign_version else call.sign
        #: The latest part, and what it was made from.
        self._items: tuple[tuple[str, object], ...] = ()
        self._part: Part | None = None
        self._parts: dict[tuple[Depends, Hashable], Part] = {}

    def part(self, pod: Pod) -> Part | None:
        call = self._call
        depends = call.depends(pod)
        if depends == Depends.CLUSTER or self._sign is None:
            return None
        try:
            fragment = self._sign(pod)
            if isinstance(fragment, Status):
                return None
            items, part = tuple(fragment.items()), self._part
            if part is not None and depends is part.depends and items == self._items:
                return part
            part = self._interned(depends, items)
        except PLUGIN_FAULTS as error:
            call.warn(f"say what it looks at in pod {pod.key}, so its answers are not kept", error)
            return None
        self._items, self._part = items, part
        return part

    def _interned(self, depends: Depends, items: Hashable) -> Part:
        part = self._parts.get((depends, items))
        if part is None:
            if len(self._parts) >= _MOST_PARTS:
                self._parts.clear()
            part = self._parts[depends, items] = Part(depends, items)
        return part
