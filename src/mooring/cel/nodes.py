"""The parts of a plan: constants, things to select from, and everything else."""

from __future__ import annotations

from typing import Any

from mooring.cel.attributes import Eval, Qualifier, presence, selection
from mooring.cel.errors import NO_OVERLOAD, CelError


class Node:
    """Part of the plan. `evaluate` costs what it costs to have it as an operand."""

    __slots__ = ("evaluate",)

    def __init__(self, evaluate: Eval) -> None:
        self.evaluate = evaluate


class Constant(Node):
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        super().__init__(lambda frame: value)
        self.value = value


class Attribute:
    """Something to select from: a variable or the value of a node, with qualifiers so far."""

    def __init__(self, root: Eval) -> None:
        self.root = root
        self.qualifiers: list[Qualifier] = []

    def add(self, qualifier: Qualifier) -> None:
        self.qualifiers.append(qualifier)

    def resolve(self) -> Eval:
        """The value without the cost of the attribute itself."""
        return selection(self.root, self.qualifiers, cost=0)

    def evaluate(self) -> Eval:
        return selection(self.root, self.qualifiers, cost=1)

    def test(self) -> Eval:
        return presence(self.root, self.qualifiers)


class Conditional(Attribute):
    """`a ? b : c`: selecting from it selects from both branches. It has no cost of its own."""

    def __init__(self, condition: Eval, yes: Attribute, no: Attribute) -> None:
        super().__init__(condition)
        self.yes = yes
        self.no = no

    def add(self, qualifier: Qualifier) -> None:
        self.yes.add(qualifier)
        self.no.add(qualifier)

    def resolve(self) -> Eval:
        return _choice(self.root, self.yes.resolve(), self.no.resolve())

    def evaluate(self) -> Eval:
        return self.resolve()

    def test(self) -> Eval:
        choice = _choice(self.root, self.yes.test(), self.no.test())

        def evaluate(frame: list[Any]) -> Any:
            # The reference takes off the cost of an attribute, which a conditional has not.
            frame[0] -= 1
            return choice(frame)

        return evaluate


def _choice(condition: Eval, yes: Eval, no: Eval) -> Eval:
    def evaluate(frame: list[Any]) -> Any:
        decision = condition(frame)
        if decision is True:
            return yes(frame)
        if decision is False:
            return no(frame)
        raise CelError(NO_OVERLOAD)

    return evaluate


Planned = Node | Attribute


def evaluation_of(planned: Planned) -> Eval:
    return planned.evaluate() if isinstance(planned, Attribute) else planned.evaluate


def attribute_of(planned: Planned) -> Attribute:
    return planned if isinstance(planned, Attribute) else Attribute(planned.evaluate)
