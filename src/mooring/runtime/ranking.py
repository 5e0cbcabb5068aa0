"""Rankings: work done for one pod is not done again for its twin.

Pods with one signature get the same verdict and the same score from every plugin that looks at nothing
but the pod and a node. Such answers are kept, row by row, and brought up to date only for the rows that
changed since; the other plugins (those that look at the rest of the cluster) are asked each time. After a
placement one row has changed, so the next twin costs one row and an argmax.

A ranking only ever answers "this node is the best". A pod that fits nowhere, or a plugin that fails, is
handed back (None) to the full evaluation, which also says why.

    kept:   ok[row]   every kept Filter passes
            raw[k][row], normalized[k][row]   of each kept Score
            total[row]   the weighted sum of the normalised ones
            key[row]     total and tie-break in one number: the largest is the node to take; -1 where not ok
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from mooring.cluster.cache import Cluster
from mooring.cluster.columns import Ints, Mask, Rows
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.snapshot import RANKS, Snapshot
from mooring.config.extension_points import ExtensionPoint as Point
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import Depends, PreFilterResult
from mooring.framework.status import SUCCESS, Code, Status
from mooring.objects.kinds import DeviceClass
from mooring.objects.meta import encode_hook
from mooring.objects.pod import Pod, PodSpec
from mooring.runtime import filtering, scoring
from mooring.runtime.framework import Framework
from mooring.runtime.plugin_calls import Calls, PluginFailure

_LOG = logging.getLogger(__name__)

#: How many signatures are remembered for a profile; the one met longest ago is forgotten first.
MOST_RANKINGS = 256
_MOST_MET = 64 * MOST_RANKINGS

_JSON = msgspec.json.Encoder(enc_hook=encode_hook)

#: Up to this many changed rows are redone one by one, without NumPy: a call on one row costs as much as
#: on a hundred, and the plain rule of a node costs less than either.
_FEW_ROWS = 6

#: Bits for the place in the order of ties in `key`.
_RANK_BITS = (RANKS - 1).bit_length()

#: The order of ties: int64[row], the same array for the same snapshot.
TieKeys = Callable[[Snapshot], Ints]


@dataclass(frozen=True, slots=True)
class Choice:
    """The best node for a pod, as a ranking sees it."""

    row: int
    #: How many nodes are feasible.
    feasible: int
    state: CycleState


class Rankings:
    """The rankings of one profile."""

    def __init__(self, framework: Framework, cluster: Cluster, tie_keys: TieKeys) -> None:
        self._framework = framework
        self._cluster = cluster
        self._tie_keys_of = tie_keys
        self._rankings: OrderedDict[Hashable, _Ranking] = OrderedDict()
        self._signatures = _Signatures(framework)
        # Which pods devices serve, and so what plugins depend on, is up to these.
        cluster.listers.follow(DeviceClass, lambda _: self.forget())

    def forget(self) -> None:
        """Start afresh."""
        self._rankings.clear()
        self._signatures = _Signatures(self._framework)

    def choose(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> Choice | None:
        """None if the pod must be evaluated in full."""
        signature = self._signatures.of(pod)
        if signature is None:
            return None
        ranking = self._rankings.get(signature)
        if ranking is None:
            if len(self._rankings) >= MOST_RANKINGS:
                self._rankings.popitem(last=False)
            ranking = self._rankings[signature] = _Ranking(
                self._framework, self._cluster, pod, self._tie_keys_of
            )
        self._rankings.move_to_end(signature)
        try:
            return ranking.choose(state, pod, snapshot)
        except PluginFailure:
            del self._rankings[signature]
            return None

    def scores(self, pod: Pod) -> scoring.ScoreMatrix | None:
        """What is kept for pods like this one; for tests and explanations."""
        signature = self._signatures.known(pod)
        ranking = self._rankings.get(signature) if signature is not None else None
        return ranking.kept_scores() if ranking is not None else None


_NO_INTS: Ints = np.zeros(0, np.int64)
_PodKey = tuple[str, str, frozenset[tuple[str, str]]]


class _Signatures:
    """The signature of a pod: equal for pods that all kept plugins treat alike."""

    def __init__(self, framework: Framework) -> None:
        self._calls = [call for call in framework.plugins.values() if call.depends_on is not None]
        #: The pod met last with this namespace, owner and labels, with its signature.
        self._last: dict[_PodKey, tuple[Pod, Hashable | None]] = {}
        #: Hashes of the specs that were met.
        self._met: set[int] = set()

    def of(self, pod: Pod) -> Hashable | None:
        """None for a pod that nothing can be kept for, and for the first of its kind."""
        key = _key(pod)
        last = self._last.get(key)
        # Specs are compared, not trusted to be equal: an owner's pods may differ.
        if last is not None and last[0].spec == pod.spec:
            pod.take_derived_from(last[0])
            return last[1]
        if not self._was_met(pod.spec):
            return None
        if len(self._last) > 4 * MOST_RANKINGS:
            self._last.clear()
        try:
            signature = self._sign(pod)
        except Exception:
            _LOG.exception("pod %s cannot be signed, and so nothing is kept for it", pod.key)
            signature = None
        self._last[key] = (pod, signature)
        return signature

    def known(self, pod: Pod) -> Hashable | None:
        """The signature that a pod like this one was given last; None if it was given none."""
        last = self._last.get(_key(pod))
        return last[1] if last is not None and last[0].spec == pod.spec else None

    def _was_met(self, spec: PodSpec) -> bool:
        """Whether there was a pod with this spec before: one without a twin is cheaper to evaluate than
        to sign and to rank. Volumes are left out, since claims have names of their own.
        """
        spelled = hash(_JSON.encode(replace(spec, volumes=[]) if spec.volumes else spec))
        if spelled in self._met:
            return True
        if len(self._met) >= _MOST_MET:
            self._met.clear()
        self._met.add(spelled)
        return False

    def _sign(self, pod: Pod) -> Hashable | None:
        parts: list[Hashable] = []
        for call in self._calls:
            assert call.depends_on is not None
            depends = call.depends_on(pod)
            parts.append(depends)
            if depends == Depends.CLUSTER:
                continue
            if call.sign is None:
                return None
            fragment = call.sign(pod)
            if isinstance(fragment, Status):
                return None
            parts.append(tuple(fragment.items()))
        signature = tuple(parts)
        hash(signature)
        return signature


def _key(pod: Pod) -> _PodKey:
    owner = pod.metadata.controller
    return pod.namespace, owner.uid if owner is not None else "", pod.label_items


class _Kept:
    """One kept Score plugin."""

    __slots__ = ("call", "depends", "highest", "lowest", "normalized", "raw", "weight")

    def __init__(self, call: Calls, depends: Depends, weight: int, capacity: int) -> None:
        self.call = call
        self.depends = depends
        self.weight = weight
        #: int64[row]; one array if the plugin does not normalise.
        self.raw: Ints = np.zeros(capacity, np.int64)
        self.normalized: Ints = self.raw
        if call.normalize_scores is not None:
            self.normalized = np.zeros(capacity, np.int64)
        #: The extremes of `raw` over the rows that are ok: what normalising depends on.
        self.lowest = 0
        self.highest = 0


class _Ranking:
    """All that is kept for one signature."""

    def __init__(self, framework: Framework, cluster: Cluster, pod: Pod, tie_keys: TieKeys) -> None:
        self._framework = framework
        self._cluster = cluster
        self._tie_keys_of = tie_keys
        self._depends = {
            call.name: call.depends_on(pod) if call.depends_on is not None else Depends.CLUSTER
            for call in framework.plugins.values()
        }
        self._live_pre_filters = self._live(Point.PRE_FILTER)
        self._live_filters = self._live(Point.FILTER)
        self._live_pre_scores = self._live(Point.PRE_SCORE)
        self._live_scores = self._live(Point.SCORE)
        self._built = False
        #: Whether any row was ok when it was built: else there was nothing to score.
        self._scored = False
        self._state = CycleState()
        self._size = 0
        self._ok_count = 0
        self._node_position = 0
        self._usage_position = 0
        self._depends_on_all_nodes = any(d == Depends.NODES for d in self._depends.values())
        self._kept_filters: list[Calls] = []
        self._usage_filters: list[Calls] = []
        self._kept: list[_Kept] = []
        #: Whether a change of one row's pods may change the scores of the others.
        self._normalizes_usage = False
        self._tie_keys: Ints = _NO_INTS
        self._rows: NDArray[np.intp] | None = None
        self._ok: Mask = np.zeros(0, np.bool_)
        #: bool[row]: what of `ok` does not depend on the node's pods.
        self._node_ok: Mask = np.zeros(0, np.bool_)
        self._total: Ints = _NO_INTS
        self._key: Ints = _NO_INTS

    def choose(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> Choice | None:
        if not self._bring_up_to_date(pod, snapshot):
            return None
        state.adopt(self._state)
        if not self._run_live_pre_filters(state, pod, snapshot):
            return None
        live_ok = self._run_live_filters(state, pod, snapshot)
        if live_ok is None:
            feasible = self._ok_rows()
        else:
            feasible = np.flatnonzero(live_ok)
            if not len(feasible):
                return None
        scorers = self._run_live_pre_scores(state, pod, snapshot, feasible)
        if live_ok is None and not scorers:
            row = int(self._key[: self._size].argmax())
            return self._chosen(row, self._ok_count, state)
        keys = self._total_over(state, pod, feasible)
        for call in scorers:
            scores = scoring.score_plugin(call, state, pod, snapshot, feasible).normalized
            weight = self._framework.weights[call.name]
            keys += scores if weight == 1 else scores * weight
        keys <<= _RANK_BITS
        keys += self._tie_keys.take(feasible)
        return self._chosen(int(feasible[keys.argmax()]), len(feasible), state)

    def kept_scores(self) -> scoring.ScoreMatrix:
        rows = np.flatnonzero(self._ok[: self._size])
        kept = [k for k in self._kept if k.call.name not in self._state.skip_score]
        return scoring.ScoreMatrix(
            rows,
            [k.call.name for k in kept],
            [k.weight for k in kept],
            [k.raw[rows] for k in kept],
            [k.normalized[rows] for k in kept],
            self._total[rows],
        )

    def _chosen(self, row: int, feasible: int, state: CycleState) -> Choice | None:
        return Choice(row, feasible, state) if self._key[row] >= 0 else None

    # Plugins that are asked each time

    def _live(self, point: Point) -> list[Calls]:
        return [
            call
            for call in self._framework.points[point]
            if self._depends[call.name] == Depends.CLUSTER
        ]

    def _run_live_pre_filters(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> bool:
        """Whether all of them succeed without narrowing; otherwise there is more to say."""
        skipped = []
        for call in self._live_pre_filters:
            result = self._framework.pre_filter(call, state, pod, snapshot)
            if isinstance(result, PreFilterResult):
                return False
            if result.code == Code.SKIP:
                skipped.append(call.name)
            elif not result.ok:
                return False
        if skipped:
            state.skip_filter = state.skip_filter.union(skipped)
        return True

    def _run_live_filters(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> Mask | None:
        """bool[row], or None if nobody has anything to say."""
        calls = [c for c in self._live_filters if c.name not in state.skip_filter]
        nominated = self._framework.nominator.has_any
        if not calls and not nominated:
            return None
        ok = self._ok[: self._size].copy()
        rows = snapshot.columns.all_rows
        for call in calls:
            ok &= filtering.passes(call, state, pod, snapshot, rows, ok)
        if nominated:
            for row in self._framework.rows_refused_for_nominated(state, pod, snapshot, ok):
                ok[row] = False
        return ok

    def _run_live_pre_scores(
        self,
        state: CycleState,
        pod: Pod,
        snapshot: Snapshot,
        feasible: NDArray[np.intp],
    ) -> list[Calls]:
        """The plugins that have something to score."""
        if not self._live_scores:
            return []
        skipped = self._framework.pre_scores(self._live_pre_scores, state, pod, snapshot, feasible)
        state.skip_score = self._state.skip_score | skipped
        return [call for call in self._live_scores if call.name not in skipped]

    def _ok_rows(self) -> NDArray[np.intp]:
        """intp[...]: the rows that are ok; found once for as long as they stay the same."""
        if self._rows is None:
            self._rows = np.flatnonzero(self._ok[: self._size])
        return self._rows

    def _total_over(self, state: CycleState, pod: Pod, feasible: NDArray[np.intp]) -> Ints:
        """The kept totals of these rows, normalised over them and not over all that are ok."""
        total: Ints = self._total.take(feasible)
        if len(feasible) == self._ok_count:
            return total
        for kept in self._kept:
            if kept.normalized is kept.raw or kept.lowest == kept.highest:
                continue
            raw = kept.raw.take(feasible)
            if (int(raw.min()), int(raw.max())) != (kept.lowest, kept.highest):
                again = scoring.normalize(kept.call, state, pod, raw)
                total += (again - kept.normalized.take(feasible)) * kept.weight
        return total

    # Keeping

    def _bring_up_to_date(self, pod: Pod, snapshot: Snapshot) -> bool:
        """Whether there is anything to choose from."""
        columns, cluster = snapshot.columns, self._cluster
        if not self._built or columns.capacity != len(self._ok):
            return self._build(pod, snapshot)
        nodes = cluster.node_changes.since(self._node_position)
        usage = cluster.usage_changes.since(self._usage_position)
        if nodes is None or usage is None or len(nodes) > _FEW_ROWS:
            return self._build(pod, snapshot)
        if columns.size != self._size:
            return self._build(pod, snapshot)
        if nodes and (
            self._depends_on_all_nodes or self._tie_keys is not self._tie_keys_of(snapshot)
        ):
            return self._build(pod, snapshot)
        self._node_position = cluster.node_changes.position
        self._usage_position = cluster.usage_changes.position
        if not self._scored:
            return self._look_again(pod, snapshot, nodes, usage)
        if nodes:
            self._redo(pod, snapshot, np.array(nodes, np.intp), Depends.NODE)
            usage = [row for row in usage if row not in nodes]
        if len(usage) > _FEW_ROWS:
            self._redo_usage(pod, snapshot, np.array(usage, np.intp))
        else:
            for row in usage:
                self._redo_one(pod, snapshot, row)
        return self._ok_count > 0

    def _build(self, pod: Pod, snapshot: Snapshot) -> bool:
        """Everything afresh, for all rows."""
        self._built = False
        framework, columns = self._framework, snapshot.columns
        if len(snapshot) > RANKS:
            return False
        state = self._state = CycleState()
        skipped: set[str] = set()
        for call in framework.points[Point.PRE_FILTER]:
            if self._depends[call.name] != Depends.CLUSTER:
                result = framework.pre_filter(call, state, pod, snapshot)
                if isinstance(result, PreFilterResult) or result.code not in _GOING_ON:
                    return False
                if result.code == Code.SKIP:
                    skipped.add(call.name)
        state.skip_filter = frozenset(skipped)
        self._kept_filters = [
            call
            for call in framework.points[Point.FILTER]
            if self._depends[call.name] != Depends.CLUSTER and call.name not in skipped
        ]
        self._usage_filters = [
            call for call in self._kept_filters if self._depends[call.name] == Depends.USAGE
        ]
        self._size = columns.size
        self._tie_keys = self._tie_keys_of(snapshot)
        self._ok = np.zeros(columns.capacity, np.bool_)
        self._node_ok = np.zeros(columns.capacity, np.bool_)
        self._total = np.zeros(columns.capacity, np.int64)
        self._key = np.full(columns.capacity, -1, np.int64)
        self._kept = []
        rows = columns.all_rows
        self._judge(pod, snapshot, rows, Depends.NODE)
        self._ok_count = int(np.count_nonzero(self._ok))
        self._node_position = self._cluster.node_changes.position
        self._usage_position = self._cluster.usage_changes.position
        self._built = True
        self._scored = self._ok_count > 0
        if not self._scored:
            return False
        feasible = np.flatnonzero(self._ok)
        kept_pre_scores = [
            call
            for call in framework.points[Point.PRE_SCORE]
            if self._depends[call.name] != Depends.CLUSTER
        ]
        state.skip_score = framework.pre_scores(kept_pre_scores, state, pod, snapshot, feasible)
        self._kept = [
            _Kept(call, self._depends[call.name], framework.weights[call.name], columns.capacity)
            for call in framework.points[Point.SCORE]
            if self._depends[call.name] != Depends.CLUSTER and call.name not in state.skip_score
        ]
        self._normalizes_usage = any(
            kept.depends == Depends.USAGE and kept.normalized is not kept.raw for kept in self._kept
        )
        self._score(pod, snapshot, rows, Depends.NODE)
        self._normalize_all(pod)
        return True

    def _look_again(
        self, pod: Pod, snapshot: Snapshot, nodes: Sequence[int], usage: Sequence[int]
    ) -> bool:
        """No row was ok so far, and nothing was scored; whether one is now."""
        for rows, changed in ((nodes, Depends.NODE), (usage, Depends.USAGE)):
            if rows and self._judge(pod, snapshot, np.array(rows, np.intp), changed).any():
                return self._build(pod, snapshot)
        return False

    def _redo(self, pod: Pod, snapshot: Snapshot, rows: NDArray[np.intp], changed: Depends) -> None:
        """Some rows at once, then whatever depends on all of them."""
        self._judge(pod, snapshot, rows, changed)
        self._score(pod, snapshot, rows, changed)
        self._ok_count = int(np.count_nonzero(self._ok))
        self._normalize_all(pod)

    def _redo_usage(self, pod: Pod, snapshot: Snapshot, rows: NDArray[np.intp]) -> None:
        """Some rows whose pods changed; the other rows keep what they have, as far as they can."""
        was_ok = self._ok[rows]
        ok = self._judge(pod, snapshot, rows, Depends.USAGE)
        if self._normalizes_usage or np.count_nonzero(ok & ~was_ok):
            self._redo(pod, snapshot, rows, Depends.NODE)
            return
        lost = int(np.count_nonzero(was_ok)) - int(np.count_nonzero(ok))
        all_ok = np.count_nonzero(ok) == len(ok)
        total = self._total[rows]
        for kept in self._kept:
            if kept.depends == Depends.USAGE:
                raw = scoring.raw_scores(kept.call, self._state, pod, snapshot, rows)
                feasible = raw if all_ok else raw[ok]
                if feasible.size:
                    scoring.check_range(kept.call.name, feasible)
                change = raw - kept.raw[rows]
                total += change if kept.weight == 1 else change * kept.weight
                kept.raw[rows] = raw
        self._total[rows] = total
        key = (total << _RANK_BITS) + self._tie_keys[rows]
        self._key[rows] = key if all_ok else np.where(ok, key, -1)
        if lost:
            self._ok_count -= lost
            self._after_loss(pod)

    def _judge(self, pod: Pod, snapshot: Snapshot, rows: Rows, changed: Depends) -> Mask:
        """bool[row asked for]: which of these rows are ok now."""
        columns = snapshot.columns
        if changed == Depends.NODE:
            ok = columns.alive[rows].copy()
            for call in self._kept_filters:
                if call not in self._usage_filters:
                    ok &= filtering.passes(call, self._state, pod, snapshot, rows, ok)
            self._node_ok[rows] = ok
        ok = self._node_ok[rows].copy()
        for call in self._usage_filters:
            ok &= filtering.passes(call, self._state, pod, snapshot, rows, ok)
        self._ok[rows] = ok
        self._rows = None
        return ok

    def _score(self, pod: Pod, snapshot: Snapshot, rows: Rows, changed: Depends) -> None:
        for kept in self._kept:
            if changed == Depends.NODE or kept.depends == Depends.USAGE:
                kept.raw[rows] = scoring.raw_scores(kept.call, self._state, pod, snapshot, rows)

    def _normalize_all(self, pod: Pod) -> None:
        ok = self._ok
        if not self._ok_count:
            self._key[:] = -1
            return
        self._total[:] = 0
        for kept in self._kept:
            raw = kept.raw[ok]
            kept.lowest, kept.highest = int(raw.min()), int(raw.max())
            if kept.normalized is not kept.raw:
                normalized = scoring.normalize(kept.call, self._state, pod, raw)
                kept.normalized[ok] = normalized
                scoring.check_range(kept.call.name, normalized)
            else:
                scoring.check_range(kept.call.name, raw)
            self._total += kept.normalized * kept.weight
        size = self._size
        key = (self._total[:size] << _RANK_BITS) + self._tie_keys
        self._key[:size] = np.where(ok[:size], key, -1)

    def _redo_one(self, pod: Pod, snapshot: Snapshot, row: int) -> None:
        """One row whose pods changed, by the plain rules of its node."""
        was_ok = bool(self._ok[row])
        ok = bool(self._node_ok[row])
        node = snapshot.at(row) if ok else None
        if node is not None:
            ok = self._passes_usage(pod, node, snapshot)
        if not ok:
            if was_ok:
                self._ok[row] = False
                self._ok_count -= 1
                self._rows = None
                self._key[row] = -1
                self._after_loss(pod)
            return
        assert node is not None
        if was_ok:
            self._score_one(pod, node, row, snapshot)
        else:
            # Nothing was kept for the row while it was not ok.
            self._redo(pod, snapshot, np.array([row], np.intp), Depends.NODE)

    def _passes_usage(self, pod: Pod, node: NodeInfo, snapshot: Snapshot) -> bool:
        for call in self._usage_filters:
            if call.filter is None:
                status = filtering.filter_node((call,), self._state, pod, node, snapshot)
            else:
                try:
                    status = call.filter(self._state, pod, node) or SUCCESS
                except Exception as error:
                    raise call.failed(filtering.DOING, error) from error
            if not status.ok:
                return False
        return True

    def _score_one(self, pod: Pod, node: NodeInfo, row: int, snapshot: Snapshot) -> None:
        total = int(self._total[row])
        moves_others = False
        for kept in self._kept:
            if kept.depends != Depends.USAGE:
                continue
            score = self._score_of(kept.call, pod, node, row, snapshot)
            before = int(kept.normalized[row])
            kept.raw[row] = score
            if kept.normalized is not kept.raw:
                # One new score of a plugin that normalises may move all the others.
                moves_others = True
                continue
            scoring.check_score(kept.call.name, score)
            total += (score - before) * kept.weight
        if moves_others:
            self._normalize_all(pod)
            return
        self._total[row] = total
        self._key[row] = (total << _RANK_BITS) + int(self._tie_keys[row])

    def _score_of(self, call: Calls, pod: Pod, node: NodeInfo, row: int, snapshot: Snapshot) -> int:
        if call.score is None:
            only = np.array([row], np.intp)
            return int(scoring.raw_scores(call, self._state, pod, snapshot, only)[0])
        try:
            score: int = call.score(self._state, pod, node)
        except Exception as error:
            raise call.failed(scoring.SCORING, error) from error
        return score

    def _after_loss(self, pod: Pod) -> None:
        """Normalise again if the row that went was an extreme."""
        if not self._ok_count:
            return
        for kept in self._kept:
            if kept.normalized is not kept.raw:
                raw = kept.raw[self._ok]
                if (int(raw.min()), int(raw.max())) != (kept.lowest, kept.highest):
                    self._normalize_all(pod)
                    return


_GOING_ON = (Code.SUCCESS, Code.SKIP)
