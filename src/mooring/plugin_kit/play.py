"""One case, played with a plugin alone: every promise is checked after every event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from mooring.errors import InvariantError, MooringError
from mooring.framework.interface import Depends
from mooring.framework.status import Status
from mooring.objects.pod import Pod
from mooring.plugin_kit import reserving
from mooring.plugin_kit.case import Case, decoded_pod
from mooring.plugin_kit.footprints import Footprints
from mooring.plugin_kit.forms import Said, ask, shown
from mooring.plugin_kit.rules import (
    BLOCKS,
    DEPENDS,
    HINTS,
    INPUTS,
    RAISES,
    REPEATS,
    ROWS,
    RULES,
    SCORES,
    SIGN,
    UNRESERVE,
    Broken,
    Rule,
)
from mooring.plugin_kit.subject import Subject
from mooring.plugin_kit.waiting import Waiting
from mooring.plugin_kit.watch import Watch, watched
from mooring.plugin_kit.world import Answer, World
from mooring.runtime.plugin_calls import describe


@dataclass
class Tally:
    """How much was compared, so that a rule that was never tried is not called kept."""

    checked: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    passed: int = 0
    scored: set[int] = field(default_factory=set)

    def note(self, said: Said) -> None:
        for verdict in said.verdicts.values():
            if verdict == ("Success",):
                self.passed += 1
            else:
                self.refused += 1
        if said.pre_filter and said.pre_filter[0] not in ("Success", "Skip"):
            self.refused += 1
        self.scored.update(said.scores.values())
        self.checked[ROWS.name] += said.compared
        self.checked[SCORES.name] += len(said.scores)


def play(case: Case, subject: Subject, rules: Collection[Rule], tally: Tally) -> None:
    """Raises Broken with the first rule that is broken, of those that are looked at."""
    watch = Watch()
    player = _Player(case, subject, watched(subject.plugin, watch), watch, rules, tally)
    try:
        player.play()
    except SystemExit as error:
        raise Broken(RAISES, "it ends the process (SystemExit)") from error
    finally:
        player.close()


class _Player:
    def __init__(
        self,
        case: Case,
        subject: Subject,
        plugin: type,
        watch: Watch,
        rules: Collection[Rule],
        tally: Tally,
    ) -> None:
        self.case = case
        self.subject = subject
        self.plugin = plugin
        self.watch = watch
        self.rules = rules
        self.tally = tally
        self.pods = [decoded_pod(pod) for pod in case.pods]
        #: Answers are not kept; two of them, as both must answer alike.
        self.first = World(subject, plugin, keeps=False)
        self.second = World(subject, plugin, keeps=False)
        self.kept = World(subject, plugin, keeps=True)
        self.footprints = Footprints()
        self.waiting = Waiting(subject, plugin) if HINTS in rules else None

    def close(self) -> None:
        for world in (self.first, self.second, self.kept):
            world.close()
        if self.waiting is not None:
            self.waiting.close()

    def play(self) -> None:
        for number, event in enumerate(self.case.events):
            woken = self.waiting.after(event, self.pods) if self.waiting is not None else None
            for world in (self.first, self.second, self.kept):
                world.apply(event)
                # Not for pods that wait: a fed value wakes no pod.
                world.feed(f"{self.case.seed} {number}")
            found = [*self._asked(event.title), *([woken.problem] if woken else [])]
            self.tally.checked[HINTS.name] += woken.asked if woken else 0
            self._raise_first(found)
        if UNRESERVE in self.rules and reserving.applies(self.plugin):
            world = World(self.subject, self.plugin, keeps=False)
            try:
                count, problem = reserving.check(world, self.case.events, self.pods)
            finally:
                world.close()
            self.tally.checked[UNRESERVE.name] += count
            self._raise_first([problem])

    def _raise_first(self, found: Sequence[Broken | None]) -> None:
        blocked = self.watch.problem()
        self.tally.checked[BLOCKS.name] += sum(spent.calls for spent in self.watch.spent.values())
        self.watch.spent.clear()
        problems = [each for each in found if each is not None]
        if blocked is not None:
            problems.append(Broken(BLOCKS, blocked))
        if self.watch.hint_raised is not None:
            problem = f"a hint raises {describe(self.watch.hint_raised)}"
            problems.append(Broken(RAISES, problem))
        broken = [each for each in problems if each.rule in self.rules]
        if broken:
            raise min(broken, key=lambda each: RULES.index(each.rule))

    def _asked(self, after: str) -> list[Broken]:
        """What is wrong with the answers about the pods, now."""
        if not len(self.first.engine.cluster.snapshot()):
            return []
        before = _contents(self.first, self.pods)
        found: list[Broken] = []
        said: list[tuple[Pod, Said]] = []
        for pod in self.pods:
            answers = [_whole_answer(w, pod, found) for w in (self.first, self.second, self.kept)]
            found += self._compared(pod, answers, after)
            if answers[0][0] is not None:
                said.append((pod, answers[0][0]))
                self.tally.note(answers[0][0])
                found += self._dependence(pod, answers[0][0], after)
        found += self._signatures(said)
        found += self._unchanged(before, after)
        return found

    def _compared(
        self, pod: Pod, answers: Sequence[tuple[Said | None, Answer]], after: str
    ) -> list[Broken]:
        (said, decision), (said_again, again), (_, kept) = answers
        found = []
        self.tally.checked[REPEATS.name] += 1
        difference = said.difference(said_again) if said and said_again else None
        difference = difference or decision_difference(decision, again)
        if difference is not None:
            problem = f"for pod {pod.name} after {after}, in two runs: {difference}"
            return [Broken(REPEATS, problem)]
        self.tally.checked[RAISES.name] += 1
        if "fails" in decision:
            found.append(Broken(RAISES, f"for pod {pod.name}: {decision['fails']}"))
        declares = self.first.call.depends_on is not None
        self.tally.checked[DEPENDS.name] += declares
        difference = decision_difference(decision, kept)
        if difference is not None:
            depends = _depends(self.first, pod)
            found.append(
                Broken(
                    DEPENDS,
                    f"for pod {pod.name} after {after}, asked again and kept: {difference};"
                    f" depends_on says {depends}",
                )
            )
        return found

    def _dependence(self, pod: Pod, said: Said, after: str) -> list[Broken]:
        try:
            broken = self.footprints.check(self.first, pod, said, after)
        except Exception as error:
            broken = Broken(SIGN, f"sign of pod {pod.name} raises {describe(error)}")
        return [] if broken is None else [broken]

    def _signatures(self, said: Sequence[tuple[Pod, Said]]) -> list[Broken]:
        sign = self.first.call.sign
        if sign is None:
            return []
        by_signature: dict[object, tuple[Pod, Said]] = {}
        for pod, answer in said:
            try:
                signature = sign(pod)
                if isinstance(signature, Status):
                    continue
                key = self.first.call.depends(pod), tuple(signature.items())
                hash(key)
            except Exception as error:
                return [Broken(SIGN, f"sign of pod {pod.name} cannot be compared: {error}")]
            known = by_signature.setdefault(key, (pod, answer))
            if known[0] is pod:
                continue
            self.tally.checked[SIGN.name] += 1
            difference = known[1].difference(answer)
            if difference is not None:
                problem = (
                    f"pods {known[0].name} and {pod.name} have one signature, but {difference}"
                )
                return [Broken(SIGN, problem)]
        return []

    def _unchanged(self, before: dict[str, bytes], after: str) -> list[Broken]:
        self.tally.checked[INPUTS.name] += 1
        now = _contents(self.first, self.pods)
        for what, content in before.items():
            if now.get(what) != content:
                return [Broken(INPUTS, f"{what} is another one than before, after {after}")]
        try:
            self.first.engine.cluster.validate()
        except InvariantError as error:
            return [Broken(INPUTS, f"the columns or nodes are not as they were: {error}")]
        return []


def _whole_answer(world: World, pod: Pod, found: list[Broken]) -> tuple[Said | None, Answer]:
    """Asked directly, and in a decision; all worlds are asked alike."""
    said = None
    try:
        said = ask(world.call, pod, world.engine.cluster.snapshot())
    except Broken as broken:
        found.append(broken)
    try:
        return said, world.decide(pod)
    except MooringError as error:
        found.append(Broken(INPUTS, f"the engine's books do not add up: {error}"))
        return said, {}


def decision_difference(one: Answer, other: Answer) -> str | None:
    """The first difference of two decisions on a pod, in words."""
    if one.get("fails") != other.get("fails"):
        return f"it says {one.get('fails', 'no error')} and {other.get('fails', 'no error')}"
    ours, theirs = one.get("nodes", {}), other.get("nodes", {})
    for node in sorted(ours.keys() | theirs.keys()):
        cell, others = ours.get(node, {}), theirs.get(node, {})
        for what in ("verdict", "raw", "score"):
            if cell.get(what) != others.get(what):
                return f"{what} on {node} is {shown(cell.get(what))} and {shown(others.get(what))}"
    return None


def _depends(world: World, pod: Pod) -> str:
    depends: Any = world.call.depends(pod)
    return depends.name if isinstance(depends, Depends) else repr(depends)


def _contents(world: World, pods: Sequence[Pod]) -> dict[str, bytes]:
    """Every object that the plugin may read, as text."""
    objects = (*world.objects(), *pods)
    return {
        f"{type(obj).__name__} {obj.key}": msgspec.msgpack.encode(obj, enc_hook=repr)
        for obj in objects
    }
