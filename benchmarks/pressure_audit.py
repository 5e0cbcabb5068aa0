"""What an API server's audit log says about a run: which pod was created, bound and removed when, and what
the scheduler asked for.

All stamps are the API server's own, in seconds since 1970 with microseconds, at the moment of the answer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

_EVENT_GROUPS = ("", "events.k8s.io")

#: The requests that remove a pod.
_DELETIONS = (("delete", "pods"), ("create", "pods/eviction"))


def policy(*, names_generated_pods: bool) -> dict[str, Any]:
    """An audit policy for every request that `Requests` and `Pods` count.

    At the level Metadata, the log has no name for a pod that a controller creates: the API server makes the
    name up. With `names_generated_pods` the log has the answers to these requests, too.
    """
    create_level = "RequestResponse" if names_generated_pods else "Metadata"
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "omitManagedFields": True,
        "rules": [
            _rule(create_level, ["create"], "pods"),
            _rule("Metadata", ["create"], "pods/binding", "pods/eviction"),
            _rule("Metadata", ["delete"], "pods"),
            _rule("Metadata", ["patch", "update"], "pods/status"),
            *(
                _rule("Metadata", ["create", "patch", "update"], "events", group=group)
                for group in _EVENT_GROUPS
            ),
            {"level": "None"},
        ],
    }


def _rule(level: str, verbs: list[str], *resources: str, group: str = "") -> dict[str, Any]:
    return {
        "level": level,
        "verbs": verbs,
        "resources": [{"group": group, "resources": list(resources)}],
    }


@dataclass(frozen=True, slots=True)
class Answer:
    """The API server's answer to one request."""

    at_s: float
    user: str
    verb: str
    #: As in an RBAC rule: "pods", "pods/binding".
    resource: str
    name: str
    code: int

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Answer:
        """From a line of the audit log."""
        subject = document["objectRef"]
        made = document.get("responseObject", {}).get("metadata", {})
        part = subject.get("subresource")
        return cls(
            at_s=datetime.fromisoformat(document["stageTimestamp"]).timestamp(),
            user=document["user"]["username"],
            verb=document["verb"],
            resource=f"{subject['resource']}/{part}" if part else subject["resource"],
            name=subject.get("name") or made.get("name", ""),
            code=document.get("responseStatus", {}).get("code", 0),
        )

    @property
    def is_good(self) -> bool:
        return 200 <= self.code < 300


@dataclass
class Pods:
    """The life of each pod, by name; `note` every answer in order.

    Pods have no grace period, so a pod is gone once its deletion or eviction is answered.
    """

    created_at_s: dict[str, float] = field(default_factory=dict)
    bound_at_s: dict[str, float] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    _gone_at_s: dict[str, float] = field(default_factory=dict)

    def note(self, answer: Answer) -> None:
        if not answer.is_good:
            return
        match answer.verb, answer.resource:
            case "create", "pods":
                self._forget_namesake(answer.name)
                self.created_at_s[answer.name] = answer.at_s
            case "create", "pods/binding":
                self.bound_at_s[answer.name] = answer.at_s
            case kind if kind in _DELETIONS:
                self.gone.add(answer.name)
                self._gone_at_s[answer.name] = answer.at_s

    def _forget_namesake(self, name: str) -> None:
        """Generated names are short: in one run of five a pod gets the name of one that is gone."""
        if name in self.gone:
            self.gone.remove(name)
            if self.bound_at_s.get(name, math.inf) < self._gone_at_s[name]:
                del self.bound_at_s[name]

    def bound_since(self, since_s: float, *, prefix: str = "") -> list[str]:
        """The pods that were created since a moment and bound, whether they are still there or not."""
        return [
            name
            for name in self.bound_at_s.copy()
            if name.startswith(prefix) and self.created_at_s.get(name, 0.0) >= since_s
        ]

    def placed_since(self, since_s: float, *, prefix: str = "") -> list[str]:
        """As `bound_since`, without the pods that are gone."""
        return [name for name in self.bound_since(since_s, prefix=prefix) if name not in self.gone]

    def latencies_s(self, names: Iterable[str]) -> list[float]:
        """From the answer to the creation to the answer to the bind, for pods that were bound.

        A scheduler may see and bind a pod before its creation is answered: that is 0, not less.
        """
        return [max(0.0, self.bound_at_s[name] - self.created_at_s[name]) for name in names]


@dataclass(frozen=True, slots=True)
class Requests:
    """How many requests of each kind a scheduler sent."""

    binds: int
    binds_refused: int
    #: Deletions of pods, as preemption sends them.
    deletions: int
    #: Of these, how many were of pods that did not exist.
    deletions_gone: int
    status_patches: int
    #: Status patches to pods that did not exist, and that somebody else had changed before.
    status_gone: int
    status_conflicts: int
    #: The largest number of status patches to one pod.
    most_status_patches: int
    events_created: int
    events_patched: int

    @classmethod
    def count(cls, answers: Iterable[Answer], *, user: str, since_s: float) -> Requests:
        asked = [answer for answer in answers if answer.user == user and answer.at_s >= since_s]
        kinds = Counter((answer.verb, answer.resource) for answer in asked)
        binds = [a for a in asked if a.resource == "pods/binding"]
        deletions = [a for a in asked if (a.verb, a.resource) in _DELETIONS]
        patches = [a for a in asked if a.resource == "pods/status"]
        codes = Counter(patch.code for patch in patches)
        return cls(
            binds=len(binds),
            binds_refused=sum(not bind.is_good for bind in binds),
            deletions=len(deletions),
            deletions_gone=sum(deletion.code == 404 for deletion in deletions),
            status_patches=len(patches),
            status_gone=codes[404],
            status_conflicts=codes[409],
            most_status_patches=max(Counter(a.name for a in patches).values(), default=0),
            events_created=kinds["create", "events"],
            events_patched=kinds["patch", "events"] + kinds["update", "events"],
        )


def percentile(values: Sequence[float], share: float) -> float | None:
    """The smallest value that at least this share of the values does not exceed; None if there is none."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
