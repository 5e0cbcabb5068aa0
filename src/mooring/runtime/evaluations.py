"""The evaluations of one profile, found by what its plugins look at in a pod."""

from __future__ import annotations

import logging
from collections.abc import Hashable

from mooring.cluster.cache import Cluster
from mooring.cluster.snapshot import Snapshot
from mooring.framework.interface import Depends
from mooring.framework.status import Status
from mooring.objects.pod import Pod, SelectorKey
from mooring.runtime.answers import Answers
from mooring.runtime.evaluation import Evaluation
from mooring.runtime.framework import Framework
from mooring.runtime.kept_scores import TieKeys
from mooring.runtime.plugin_calls import Calls

_LOG = logging.getLogger(__name__)

#: How many evaluations a profile keeps; the one used longest ago is forgotten first.
MOST_EVALUATIONS = 256
_MOST_PODS = 4 * MOST_EVALUATIONS
_MOST_MET = 64 * MOST_EVALUATIONS
_MOST_ANSWERS = 4 * MOST_EVALUATIONS

#: What a plugin looks at in a pod, with what else its answers depend on; None if they are not kept.
_Part = tuple[Depends, Hashable] | None
_Signature = tuple[_Part, ...]
_PodKey = tuple[SelectorKey, str]


class _Kept:
    """An evaluation, and when it was last used."""

    __slots__ = ("evaluation", "used")

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation
        self.used = 0


class Evaluations:
    """Pods that all plugins treat alike share an evaluation; those that one plugin does, its answers."""

    def __init__(self, framework: Framework, cluster: Cluster, tie_keys: TieKeys) -> None:
        self._framework = framework
        self._cluster = cluster
        self._tie_keys = tie_keys
        self._calls = list(framework.plugins.values())
        #: By signature: what each plugin looks at in the pod.
        self._evaluations: dict[_Signature, _Kept] = {}
        self._uses = 0
        #: Signatures that were met. What is found out for the first pod is not kept: it may be the only one.
        self._met: set[int] = set()
        #: Plugin and part → its answers.
        self._answers: dict[tuple[str, _Part], Answers] = {}
        #: The pod met last with this namespace, owner and labels, with its evaluation.
        self._last: dict[_PodKey, tuple[Pod, _Kept]] = {}
        for kind in {kind for call in self._calls for kind in call.depends_on_kinds}:
            cluster.listers.follow(kind, lambda _: self.forget())

    def forget(self) -> None:
        self._evaluations.clear()
        self._answers.clear()
        self._last.clear()

    def of(self, pod: Pod) -> Evaluation:
        owner = pod.metadata.controller
        key = pod.selector_key, owner.uid if owner is not None else ""
        last = self._last.get(key)
        # Specs are compared, not trusted to be equal: an owner's pods may differ.
        if last is not None and last[0].spec == pod.spec:
            pod.take_derived_from(last[0])
            kept = last[1]
        else:
            signature = tuple([_part(call, pod) for call in self._calls])
            found = self._evaluations.get(signature)
            if found is None and self._is_first(signature):
                return self._make(signature, keeps_usage=False)
            kept = found or self._keep(signature)
            if len(self._last) >= _MOST_PODS:
                self._last.clear()
            self._last[key] = pod, kept
        self._uses = kept.used = self._uses + 1
        return kept.evaluation

    def validate(self, snapshot: Snapshot) -> None:
        """Raise InvariantError unless what is kept is what the plugins would answer now."""
        for pod, kept in list(self._last.values()):
            kept.evaluation.validate(pod, snapshot)

    def _is_first(self, signature: _Signature) -> bool:
        hashed = hash(signature)
        if hashed in self._met:
            return False
        if len(self._met) >= _MOST_MET:
            self._met.clear()
        self._met.add(hashed)
        return True

    def _keep(self, signature: _Signature) -> _Kept:
        if len(self._evaluations) >= MOST_EVALUATIONS:
            self._drop_some()
        kept = self._evaluations[signature] = _Kept(self._make(signature, keeps_usage=True))
        return kept

    def _drop_some(self) -> None:
        """The quarter that was not used for longest, and all answers that nobody uses then."""
        by_use = sorted(self._evaluations, key=lambda signature: self._evaluations[signature].used)
        for signature in by_use[: MOST_EVALUATIONS // 4]:
            del self._evaluations[signature]
        kept = set(map(id, self._evaluations.values()))
        self._last = {key: last for key, last in self._last.items() if id(last[1]) in kept}
        self._drop_answers()

    def _drop_answers(self) -> None:
        used = {
            (call.name, part)
            for signature in self._evaluations
            for call, part in zip(self._calls, signature, strict=True)
        }
        self._answers = {key: a for key, a in self._answers.items() if key in used}

    def _make(self, signature: _Signature, *, keeps_usage: bool) -> Evaluation:
        """Answers that depend on the node alone are kept in any case: many kinds of pods share them."""
        if len(self._answers) >= _MOST_ANSWERS:
            self._drop_answers()
        kept: dict[str, Answers] = {}
        for call, part in zip(self._calls, signature, strict=True):
            if part is None:
                continue
            answers = self._answers.get((call.name, part))
            if answers is None:
                answers = Answers(call, part[0], self._cluster)
                if keeps_usage or part[0] != Depends.USAGE:
                    self._answers[call.name, part] = answers
            kept[call.name] = answers
        return Evaluation(self._framework, self._tie_keys, self._cluster, kept)


def _part(call: Calls, pod: Pod) -> _Part:
    depends = call.depends(pod)
    if depends == Depends.CLUSTER or call.sign is None:
        return None
    try:
        fragment = call.sign(pod)
        if isinstance(fragment, Status):
            return None
        part = depends, tuple(fragment.items())
        hash(part)
    except Exception:
        _LOG.exception(
            "plugin %s cannot say what it looks at in pod %s, so its answers are not kept",
            call.name,
            pod.key,
        )
        return None
    return part
