"""Label selectors and node selectors: the API's shapes, and matchers compiled from them.

A matcher is a tuple of requirements that must all hold. Equal selectors compile to equal, hashable
matchers, so that pods with equal selectors share counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from mooring.objects.cached_property import cached_property
from mooring.objects.meta import Part
from mooring.objects.quantity import MAX_INT64, MIN_INT64

NAME_FIELD = "metadata.name"

_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_DNS_SUBDOMAIN = re.compile(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII
)
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_LONGEST_INTEGER = len(str(MAX_INT64))
_LONGEST_NAME = 63
_LONGEST_PREFIX = 253


class SelectorRequirement(Part, frozen=True):
    """One line of `matchExpressions` or `matchFields`."""

    key: str = ""
    operator: str = ""
    values: list[str] = []


class LabelSelector(Part, frozen=True):
    match_labels: dict[str, str] = {}
    match_expressions: list[SelectorRequirement] = []


class NodeSelectorTerm(Part, frozen=True):
    match_expressions: list[SelectorRequirement] = []
    match_fields: list[SelectorRequirement] = []


class NodeSelector(Part, frozen=True):
    node_selector_terms: list[NodeSelectorTerm] = []


@dataclass(frozen=True, slots=True)
class Requirement:
    """One test of one label."""

    key: str
    #: In, NotIn, Exists, DoesNotExist, Gt or Lt.
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return self.accepts(labels.get(self.key))

    def accepts(self, value: str | None) -> bool:
        """Whether a label with this value passes; None stands for a missing label."""
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        number = None if value is None else parse_int64(value)
        if number is None:
            return False
        (bound,) = (int(text) for text in self.values)
        return number > bound if self.operator == "Gt" else number < bound


@dataclass(frozen=True)
class Selector:
    """All requirements must hold. Without requirements, everything matches."""

    requirements: tuple[Requirement, ...] = ()
    #: A missing selector matches nothing, whatever its requirements.
    nothing: bool = False

    @property
    def everything(self) -> bool:
        return not self.nothing and not self.requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        return not self.nothing and all(r.matches(labels) for r in self.requirements)

    @cached_property
    def _hash(self) -> int:
        return hash((self.requirements, self.nothing))

    def __hash__(self) -> int:
        """Selectors are parts of dictionary keys in hot paths, and slow to hash: hash once."""
        return self._hash

    def plus(self, more: Iterable[Requirement]) -> Selector:
        return Selector((*self.requirements, *more), self.nothing)


NOTHING = Selector(nothing=True)
EVERYTHING = Selector()


def compile_selector(selector: LabelSelector | None) -> Selector:
    """A missing selector matches nothing, an empty one everything. Raises ValueError if malformed."""
    if selector is None:
        return NOTHING
    if not selector.match_labels and not selector.match_expressions:
        return EVERYTHING
    return Selector(
        (
            *(
                compile_requirement(key, "In", (value,))
                for key, value in sorted(selector.match_labels.items())
            ),
            *(
                compile_requirement(line.key, line.operator, tuple(line.values), LABEL_OPERATORS)
                for line in selector.match_expressions
            ),
        )
    )


def selector_from_map(labels: Mapping[str, str]) -> Selector:
    """A selector that requires every pair. The map is not validated."""
    return Selector(
        tuple(Requirement(key, "In", frozenset((value,))) for key, value in sorted(labels.items()))
    )


LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
NODE_OPERATORS = (*LABEL_OPERATORS, "Gt", "Lt")


@lru_cache(maxsize=16_384)
def compile_requirement(
    key: str,
    operator: str,
    values: tuple[str, ...],
    operators: tuple[str, ...] = NODE_OPERATORS,
) -> Requirement:
    """Raises ValueError if the API refuses the requirement."""
    if operator not in operators:
        raise ValueError(f'"{operator}" is not a valid label selector operator')
    if problem := label_key_problem(key):
        raise ValueError(f"invalid label key {key!r}: {problem}")
    match operator:
        case "In" | "NotIn" if not values:
            raise ValueError(f"for {operator!r} operators, values set can't be empty")
        case "Exists" | "DoesNotExist" if values:
            raise ValueError(f"values set must be empty for {operator!r} operators")
        case "Gt" | "Lt":
            if len(values) != 1:
                raise ValueError("for 'Gt', 'Lt' operators, exactly one value is required")
            if parse_int64(values[0]) is None:
                raise ValueError("for 'Gt', 'Lt' operators, the value must be an integer")
    for value in values:
        if problem := label_value_problem(value):
            raise ValueError(f"invalid label value {value!r}: {problem}")
    return Requirement(key, operator, frozenset(values))


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One term of a node selector: labels and name must both match."""

    requirements: tuple[Requirement, ...]
    #: Requirements on fields; the only field is the node's name.
    fields: tuple[Requirement, ...]

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        return all(r.matches(labels) for r in self.requirements) and (
            # Without a name, the fields are skipped: a volume's affinity is tested that way.
            not name or all(r.accepts(name if r.key == NAME_FIELD else "") for r in self.fields)
        )


def compile_node_term(term: NodeSelectorTerm) -> NodeTerm | None:
    """None for an empty term, which matches nothing. Raises ValueError if malformed."""
    if not term.match_expressions and not term.match_fields:
        return None
    return NodeTerm(
        tuple(
            compile_requirement(line.key, line.operator, tuple(line.values))
            for line in term.match_expressions
        ),
        tuple(_compile_field(line) for line in term.match_fields),
    )


def compile_node_terms(terms: Iterable[NodeSelectorTerm]) -> tuple[NodeTerm, ...]:
    """The terms without empty and malformed ones, which never match."""
    compiled = []
    for term in terms:
        try:
            usable = compile_node_term(term)
        except ValueError:
            continue
        if usable is not None:
            compiled.append(usable)
    return tuple(compiled)


def _compile_field(line: SelectorRequirement) -> Requirement:
    if line.operator not in ("In", "NotIn"):
        raise ValueError(f"{line.operator!r} is not a valid node field selector operator")
    if len(line.values) != 1:
        raise ValueError(f"field {line.key!r} needs exactly one value, got {len(line.values)}")
    return Requirement(line.key, line.operator, frozenset(line.values))


def parse_int64(text: str) -> int | None:
    """Parse an optional sign and ASCII digits within int64; None for anything else."""
    if not _INTEGER.fullmatch(text) or len(text.lstrip("+-0")) > _LONGEST_INTEGER:
        return None
    number = int(text)
    return number if MIN_INT64 <= number <= MAX_INT64 else None


@lru_cache(maxsize=16_384)
def label_key_problem(key: str) -> str | None:
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > _LONGEST_PREFIX or not _DNS_SUBDOMAIN.fullmatch(prefix)):
        return "the prefix must be a lower-case DNS subdomain"
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        return "the name must be 1-63 letters, digits, '-', '_' or '.', with alphanumeric ends"
    return None


@lru_cache(maxsize=16_384)
def label_value_problem(value: str) -> str | None:
    if value and (len(value) > _LONGEST_NAME or not _NAME.fullmatch(value)):
        return "it must be at most 63 letters, digits, '-', '_' or '.', with alphanumeric ends"
    return None
