"""Read expectations from fields: for programs, and for expectations that do not fit into a line."""

from __future__ import annotations

from typing import Any

from mooring.sim.scenarios.expectation_text import parse_expectation
from mooring.sim.scenarios.expectations import (
    KEYS,
    Check,
    Expectation,
    HowMany,
    PodsMeet,
    Preempted,
    Spread,
    Utilisation,
)
from mooring.sim.scenarios.fields import (
    FieldError,
    Fields,
    Path,
    Source,
    described,
    seconds,
    text,
    true_or_false,
    whole_number,
)
from mooring.sim.scenarios.pod_conditions import (
    HasFinished,
    OnNodes,
    PendingFor,
    Placed,
    PodCondition,
    parse_taint,
)
from mooring.sim.scenarios.references import parse_reference, pod_key
from mooring.sim.scenarios.selector_text import parse_selector
from mooring.sim.scenarios.view import Subject

_SUBJECT = frozenset(("pods", "pod", "owner", "namespace"))


def read_checks(fields: Fields, name: str = "expect") -> tuple[Check, ...]:
    """One expectation or a list of them, each a line or a mapping."""
    return tuple(
        Check(path, expectation)
        for path, value in fields.items(name)
        for expectation in _read(fields.source, path, value)
    )


def _read(source: Source, path: Path, value: Any) -> list[Expectation]:
    """A mapping can hold several expectations; each is checked on its own."""
    if isinstance(value, str):
        try:
            return [parse_expectation(value)]
        except FieldError as error:
            source.wrong(path, str(error))
            return []
    if not isinstance(value, dict):
        source.wrong(path, f"must be a line of text or a mapping, not {described(value)}")
        return []
    fields = Fields(source, path, value)
    found = [_utilisation(fields)] if "utilisation" in fields.given else list(_about_pods(fields))
    fields.finish()
    return found


# Pods


def _about_pods(fields: Fields) -> list[Expectation]:
    subject, who = _subject(fields)
    how_many = fields.read("count", _how_many, HowMany())
    # `pod shop/web-0` is one pod, `pods of app=web` are some.
    some = who if subject.pod else f"{how_many} {who}"
    found: list[Expectation] = []
    conditions = _conditions(fields)
    if conditions or ("count" in fields.given and not _stand_alone(fields)):
        says = " and ".join(map(str, conditions)) or "exist"
        found.append(PodsMeet(f"{some} {says}", subject, how_many, tuple(conditions)))
    if "preempted" in fields.given:
        by = fields.read("preempted", _preemptor, "")
        says = f"preempted by {by}" if by else "preempted"
        found.append(Preempted(f"{some} {says}", subject, how_many, by))
    found += _spreads(fields, subject, who)
    if _SUBJECT.issuperset(fields.given):
        fields.wrong(
            "expects nothing of the pods; add placed, pending, onNodes, spread or another field"
        )
    return found


def _stand_alone(fields: Fields) -> bool:
    return bool({"spread", "distinct", "preempted"}.intersection(fields.given))


def _subject(fields: Fields) -> tuple[Subject, str]:
    """The selected pods, and their text form."""
    selector = fields.read("pods", text, "") if "pods" in fields.given else ""
    fields.knows("pods")
    namespace = fields.read("namespace", text, "")
    subject = Subject(
        selector=fields.read("pods", parse_selector, None) if selector else None,
        namespace=namespace,
        owner=fields.read("owner", parse_reference, None),
        pod=fields.read("pod", pod_key, ""),
    )
    if subject.pod:
        return subject, f"pod {subject.pod}"
    of = selector or (str(subject.owner) if subject.owner is not None else "")
    words = ["pods", *(["of", of] if of else []), *(["in", namespace] if namespace else [])]
    return subject, " ".join(words)


def _how_many(value: object) -> HowMany:
    if value == "all":
        return HowMany()
    if not isinstance(value, dict):
        number = whole_number(value)
        return HowMany(number, number)
    unknown = value.keys() - {"atLeast", "atMost"}
    if unknown or not value:
        raise FieldError("must be a number, all, or a mapping with atLeast and atMost")
    return HowMany(*(whole_number(value[k]) if k in value else None for k in ("atLeast", "atMost")))


def _conditions(fields: Fields) -> list[PodCondition]:
    found: list[PodCondition] = []
    within_s = fields.read("within", seconds, None)
    if fields.read("placed", true_or_false, False) or within_s is not None:
        found.append(Placed(within_s))
    if "pending" in fields.given:
        found.append(fields.read("pending", _pending, PendingFor()))
    if fields.read("finished", true_or_false, False):
        found.append(HasFinished())
    for name, negated in (("onNodes", False), ("notOnNodes", True)):
        if name in fields.given:
            found.append(_on_nodes(fields, name, negated=negated))
    fields.knows("placed", "within", "pending", "finished", "onNodes", "notOnNodes")
    return found


def _pending(value: object) -> PendingFor:
    if value is True:
        return PendingFor()
    if not isinstance(value, dict) or not value or value.keys() - {"because", "plugin"}:
        raise FieldError(
            "must be true, or a mapping with because (a part of the message) and plugin"
        )
    return PendingFor(*(text(value[key]) if key in value else "" for key in ("because", "plugin")))


def _preemptor(value: object) -> str:
    if value is True:
        return ""
    if not isinstance(value, dict) or value.keys() != {"by"}:
        raise FieldError("must be true, or a mapping with by: the pod that preempted them")
    return pod_key(value["by"])


def _on_nodes(fields: Fields, name: str, *, negated: bool) -> OnNodes:
    if not fields.is_mapping(name):
        return OnNodes(names=fields.read(name, _names, ()), negated=negated)
    inner = fields.inner(name)
    labels = inner.read("labels", text, "")
    taint = inner.read("taint", text, "")
    found = OnNodes(
        names=inner.read("nodes", _names, ()),
        labels=labels,
        selector=inner.read("labels", parse_selector, None),
        taint=parse_taint(taint) if taint else None,
        negated=negated,
    )
    inner.finish()
    if not (found.names or found.labels or found.taint):
        inner.wrong("must name nodes, labels or a taint")
    return found


def _names(value: object) -> tuple[str, ...]:
    """One name, or a list of them."""
    if value == []:
        raise FieldError("must name at least one node")
    return tuple(text(each) for each in (value if isinstance(value, list) else [value]))


# Spread


def _spreads(fields: Fields, subject: Subject, who: str) -> list[Expectation]:
    found: list[Expectation] = []
    fields.knows("spread", "distinct")
    for path, value in fields.items("spread"):
        inner = Fields(fields.source, path, value)
        over = inner.read("over", text, "zones")
        how_many = inner.read("domains", _how_many, None)
        skew = inner.read("maxSkew", whole_number, None)
        inner.finish()
        number = f"{how_many} " if how_many is not None else ""
        says = f"all {who} spread over {number}{over}" + (
            f" with skew at most {skew}" if skew is not None else ""
        )
        found.append(Spread(says, subject, KEYS.get(over, over), how_many, skew))
    if "distinct" in fields.given:
        key = fields.read("distinct", text, "nodes")
        says = f"all {who} on distinct {key}"
        found.append(Spread(says, subject, KEYS.get(key, key), distinct=True))
    return found


# Utilisation


def _utilisation(fields: Fields) -> Expectation:
    inner = fields.inner("utilisation")
    resource = inner.read("resource", text, "")
    labels = inner.read("nodes", text, "")
    node = inner.read("node", text, "")
    each_node = inner.read("eachNode", true_or_false, False)
    least = inner.read("atLeast", _percent, None)
    most = inner.read("atMost", _percent, None)
    selector = inner.read("nodes", parse_selector, None)
    inner.finish()
    if not resource:
        inner.wrong("is missing; give a resource such as cpu", "resource")
    if least is None and most is None:
        inner.wrong("needs a limit: add atLeast or atMost")
    of = f"node {node}" if node else f"nodes with {labels}" if labels else "the cluster"
    if each_node:
        of = f"every node with {labels}" if labels else "every node"
    bounds = " and ".join(
        f"{word} {percent:g}%"
        for word, percent in (("at least", least), ("at most", most))
        if percent is not None
    )
    said = f"{resource} of {of} {bounds}"
    return Utilisation(said, resource, least, most, selector, node, each_node)


def _percent(value: object) -> float:
    words = str(value).removesuffix("%")
    try:
        if not isinstance(value, bool) and float(words) >= 0:
            return float(words)
    except ValueError:
        pass
    raise FieldError(f"must be a percentage such as 80%, not {described(value)}")
