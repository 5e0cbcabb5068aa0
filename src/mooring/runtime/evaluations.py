"""The evaluations of one profile, found by what its plugins look at in a pod."""

from __future__ import annotations

from mooring.cluster.cache import Cluster
from mooring.cluster.snapshot import Snapshot
from mooring.faults import PLUGIN_FAULTS
from mooring.objects.pod import Pod, SelectorKey
from mooring.objects.pod_class import Requests, first_requests
from mooring.runtime.answers import Answers
from mooring.runtime.evaluation import Evaluation
from mooring.runtime.framework import Framework
from mooring.runtime.kept_scores import TieKeys
from mooring.runtime.plugin_calls import Calls
from mooring.runtime.shared_evaluation import SharedEvaluation
from mooring.runtime.signatures import Part, Signature, Signatures

#: How many evaluations a profile keeps; the one used longest ago is forgotten first.
MOST_EVALUATIONS = 256
#: For how many kinds of pods the signature is remembered: that costs little memory, and signing costs time.
_MOST_PODS = 16 * MOST_EVALUATIONS
_MOST_MET = 64 * MOST_EVALUATIONS
_MOST_ANSWERS = 4 * MOST_EVALUATIONS
_MOST_SHARED = MOST_EVALUATIONS // 4


#: Namespace and labels, owner; then requests, if these do not tell one kind from the other.
_PodKey = tuple[SelectorKey, str] | tuple[SelectorKey, str, Requests]


class _Kept:
    """An evaluation, and when it was last used."""

    __slots__ = ("evaluation", "used")

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation
        self.used = 0


class _Met:
    """A pod that was met, its signature, and its evaluation if that is kept."""

    __slots__ = ("kept", "pod", "signature")

    def __init__(self, pod: Pod, signature: Signature) -> None:
        self.pod = pod
        self.signature = signature
        self.kept: _Kept | None = None


class Evaluations:
    """Pods that all plugins treat alike share an evaluation; those that one plugin does, its answers."""

    def __init__(self, framework: Framework, cluster: Cluster, tie_keys: TieKeys) -> None:
        self._framework = framework
        self._cluster = cluster
        self._tie_keys = tie_keys
        #: The plugins whose answers may be kept.
        self._calls = [
            call
            for call in framework.plugins.values()
            if call.sign is not None and call.depends_on is not None
        ]
        self._signatures = Signatures(self._calls)
        #: What says that signatures may have changed, and what it said last; None if one failed.
        self._versions = [(call, call.sign_version) for call in self._calls if call.sign_version]
        self._signed_at: list[int] | None = []
        #: By signature: what each plugin looks at in the pod.
        self._evaluations: dict[Signature, _Kept] = {}
        self._uses = 0
        #: Signatures that were met, and when. What is found out for the first pod is not kept: it may be the
        #: only one, or so many kinds take turns that its evaluation would not be there any more.
        self._met: dict[int, int] = {}
        #: By the parts of the plugins that look at nodes alone: what they share, and a pod with these parts.
        self._shared: dict[tuple[Part | None, ...], tuple[Evaluation, Pod]] = {}
        #: Plugin and part → its answers.
        self._answers: dict[tuple[str, Part], Answers] = {}
        #: The pod met last with this namespace, owner and labels.
        self._last: dict[_PodKey, _Met] = {}
        for kind in {kind for call in self._calls for kind in call.depends_on_kinds}:
            cluster.listers.follow(kind, lambda _: self.forget())

    def forget(self) -> None:
        self._evaluations.clear()
        self._shared.clear()
        self._answers.clear()
        self._last.clear()
        self._signatures.forget()

    def of(self, pod: Pod, *, keep: bool = False) -> Evaluation:
        """With `keep`, what is found out is kept though this may be the only pod of its kind."""
        self._uses += 1
        self._forget_if_signatures_changed()
        owner = pod.metadata.controller
        key: _PodKey = pod.selector_key, owner.uid if owner is not None else ""
        last = self._last.get(key)
        # Specs are compared, not trusted to be equal: an owner's pods may differ.
        if last is not None and last.pod.spec is not pod.spec and last.pod.spec != pod.spec:
            key = *key[:2], first_requests(pod)
            last = self._last.get(key)
            if last is not None and last.pod.spec != pod.spec:
                last = None
        if last is not None:
            pod.take_derived_from(last.pod)
        else:
            if len(self._last) >= _MOST_PODS:
                self._last.clear()
            last = self._last[key] = _Met(pod, self._signatures.of(pod))
        kept = last.kept
        if kept is None:
            kept = self._evaluations.get(last.signature)
            if kept is None:
                if not self._returns(last.signature) and not keep:
                    return self._first(last.signature, pod)
                kept = self._keep(last.signature, pod)
            last.kept = kept
        kept.used = self._uses
        return kept.evaluation

    def validate(self, snapshot: Snapshot) -> None:
        """Raise InvariantError unless what is kept is what the plugins would answer now."""
        self._forget_if_signatures_changed()
        # What evaluations share is checked with any one of them, and alone if it was with none.
        checked: set[SharedEvaluation] = set()
        for last in list(self._last.values()):
            if last.kept is not None:
                evaluation = last.kept.evaluation
                if evaluation.validate(last.pod, snapshot):
                    checked.add(evaluation.shared)
        for evaluation, pod in list(self._shared.values()):
            if evaluation.shared not in checked:
                evaluation.validate(pod, snapshot)

    def _forget_if_signatures_changed(self) -> None:
        versions: list[int] = []
        for call, version in self._versions:
            try:
                versions.append(version())
            except PLUGIN_FAULTS as error:
                if self._signed_at is not None:
                    call.warn("say whether signatures have changed", error)
                self._signed_at = None
                self.forget()
                return
        if versions != self._signed_at:
            self._signed_at = versions
            self.forget()

    def _returns(self, signature: Signature) -> bool:
        """Whether a pod with this signature was met not long ago."""
        hashed = hash(signature)
        met = self._met.get(hashed)
        if met is None and len(self._met) >= _MOST_MET:
            self._met.clear()
        self._met[hashed] = self._uses
        return met is not None and self._uses - met <= MOST_EVALUATIONS

    def _keep(self, signature: Signature, pod: Pod) -> _Kept:
        if len(self._evaluations) >= MOST_EVALUATIONS:
            self._drop_some()
        kept = self._evaluations[signature] = _Kept(self._make(signature, pod))
        return kept

    def _drop_some(self) -> None:
        """Forget the least recently used quarter, and all answers that are then unused."""
        by_use = sorted(self._evaluations, key=lambda signature: self._evaluations[signature].used)
        for signature in by_use[: MOST_EVALUATIONS // 4]:
            del self._evaluations[signature]
        kept = set(map(id, self._evaluations.values()))
        for last in self._last.values():
            if id(last.kept) not in kept:
                last.kept = None
        self._drop_answers()

    def _drop_answers(self) -> None:
        used = {
            (call.name, part)
            for parts in (*[kept.on_nodes for kept in self._evaluations], *self._shared)
            for call, part in zip(self._calls, parts, strict=True)
            if part is not None
        }
        used |= {(call.name, part) for kept in self._evaluations for call, part in kept.by_usage}
        self._answers = {key: a for key, a in self._answers.items() if key in used}

    def _make(self, signature: Signature, pod: Pod) -> Evaluation:
        by_usage = {call.name: self._answers_of(call, part) for call, part in signature.by_usage}
        return Evaluation(self._on_nodes(signature.on_nodes, pod).shared, by_usage)

    def _first(self, signature: Signature, pod: Pod) -> Evaluation:
        """For a pod of a kind that has not been met: with what is known of its parts."""
        on_nodes, answers = self._on_nodes(signature.on_nodes, pod), self._answers
        known = {
            call.name: answers[call.name, part]
            for call, part in signature.by_usage
            if (call.name, part) in answers
        }
        return Evaluation(on_nodes.shared, known) if known else on_nodes

    def _on_nodes(self, parts: tuple[Part | None, ...], pod: Pod) -> Evaluation:
        """Keeps the answers of the plugins that look at nodes alone, and asks the others each time."""
        known = self._shared.get(parts)
        if known is not None:
            return known[0]
        kept = {
            call.name: self._answers_of(call, part)
            for call, part in zip(self._calls, parts, strict=True)
            if part is not None
        }
        if len(self._shared) >= _MOST_SHARED:
            del self._shared[next(iter(self._shared))]
        shared = SharedEvaluation(self._framework, self._tie_keys, self._cluster, kept)
        evaluation = Evaluation(shared, {})
        self._shared[parts] = evaluation, pod
        return evaluation

    def _answers_of(self, call: Calls, part: Part) -> Answers:
        answers = self._answers.get((call.name, part))
        if answers is None:
            if len(self._answers) >= _MOST_ANSWERS:
                self._drop_answers()
            answers = self._answers[call.name, part] = Answers(call, part.depends, self._cluster)
        return answers
