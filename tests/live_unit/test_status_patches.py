"""Status patches: one under way and one that waits for each pod, and none that no longer matters."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring import errors
from mooring.framework.api import PodStatusPatch
from mooring.live.bind_traffic import BindTraffic
from mooring.live.line import Priority
from mooring.live.status_patches import (
    DISRUPTION_TARGET,
    FIRST_AFTER_S,
    REPEAT_AFTER_S,
    StatusPatches,
)
from mooring.live.write_metrics import WriteMetrics
from mooring.objects.meta import ObjectMeta
from mooring.objects.pod import Pod, PodCondition
from tests.clock import FakeClock


def pod(name: str = "p") -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="ns", uid=f"uid-{name}"))


def condition(message: str, *, reason: str = "Unschedulable") -> PodCondition:
    return PodCondition(type="PodScheduled", status="False", reason=reason, message=message)


class Api:
    """What StatusPatches asks of a client: turns are given and answers come when the test says."""

    def __init__(self, *, turns: int = 1000) -> None:
        self.turns = turns
        self.given_back = 0
        self.waiting: list[tuple[Priority, asyncio.Future[None]]] = []
        #: (name of the pod, document, to be answered).
        self.under_way: list[tuple[str, dict[str, Any], asyncio.Future[bytes]]] = []
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.news: list[Callable[[], object]] = []

    async def turn(self, priority: Priority) -> None:
        if self.turns:
            self.turns -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self.waiting.append((priority, turn))
        await turn

    def give_turn_back(self) -> None:
        self.given_back += 1

    def hear(self) -> None:
        """What watches have to tell, if the test has something."""
        for tell in self.news:
            tell()

    async def send(self, request: Any, may_send: Any) -> bytes:
        name = request.path.split("/")[-2]
        document = msgspec.json.decode(request.body)["status"]
        self.sent.append((name, document))
        answer = asyncio.get_running_loop().create_future()
        self.under_way.append((name, document, answer))
        return await answer

    def answer(self, index: int = 0, error: errors.ApiError | None = None) -> tuple[str, Any]:
        name, document, answer = self.under_way.pop(index)
        if error is None:
            answer.set_result(b"{}")
        else:
            answer.set_exception(error)
        return name, document

    def answer_all(self) -> None:
        while self.under_way:
            self.answer()

    def messages(self) -> list[str]:
        return [document["conditions"][0]["message"] for _, document in self.sent]


class Counts(WriteMetrics):
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def write_waits(self, kind: str, change: int) -> None:
        self.counts[f"{kind} waiting"] += change

    def write_superseded(self, kind: str) -> None:
        self.counts[f"{kind} superseded"] += 1

    def write_dropped(self, kind: str, count: int = 1) -> None:
        self.counts[f"{kind} dropped"] += count


class Desk:
    def __init__(self, api: Api | None = None, *, first_after_s: float = 0.0) -> None:
        self.api = api or Api()
        self.clock = FakeClock(1000.0)
        self.metrics = Counts()
        self.traffic = BindTraffic(self.clock)
        self.patches = StatusPatches(
            self.api,  # type: ignore[arg-type]
            clock=self.clock,
            rng=random.Random(1),
            metrics=self.metrics,
            first_after_s=first_after_s,
            traffic=self.traffic,
        )

    def patch(self, patch: PodStatusPatch, of: Pod | None = None) -> asyncio.Future[None]:
        return asyncio.ensure_future(self.patches.patch(of or pod(), patch))

    def say(self, message: str, of: Pod | None = None, **more: Any) -> asyncio.Future[None]:
        return self.patch(PodStatusPatch(condition(message, **more)), of)

    async def turns(self) -> None:
        for _ in range(10):
            await asyncio.sleep(0)


async def test_a_pod_that_gets_a_place_at_once_is_never_told_that_it_has_none():
    desk = Desk(first_after_s=FIRST_AFTER_S)
    refused = desk.say("full")
    await desk.turns()
    desk.clock.advance(FIRST_AFTER_S / 2)
    await desk.turns()
    assert not desk.api.sent

    await desk.patches.settle(pod().uid)
    await refused
    desk.clock.advance(FIRST_AFTER_S)
    await desk.turns()

    assert not desk.api.sent
    assert desk.metrics.counts["condition superseded"] == 1


async def test_in_a_storm_of_binds_only_a_few_conditions_are_sent_and_the_rest_when_it_is_over():
    desk = Desk(first_after_s=FIRST_AFTER_S)
    pods = [pod(f"p{number}") for number in range(100)]
    for each in pods:
        desk.say("full", each)
    await desk.turns()
    for _ in range(8):
        desk.clock.advance(FIRST_AFTER_S / 4)
        with desk.traffic:
            pass
        await desk.turns()
        desk.api.answer_all()
    sent = len(desk.api.sent)
    assert 0 < sent < 20

    # Half of the others find a place meanwhile, or are deleted.
    for each in pods[50:]:
        desk.patches.forget(each.uid)
    for _ in range(20):
        desk.clock.advance(FIRST_AFTER_S / 4)
        await desk.turns()
        desk.api.answer_all()
    names = [name for name, _ in desk.api.sent]

    assert len(set(names)) == len(names) == len(set(names[:sent]) | {p.name for p in pods[:50]})


async def test_a_pod_that_waits_on_is_told_why_with_the_newest_words():
    desk = Desk(first_after_s=FIRST_AFTER_S)
    desk.say("full")
    await desk.turns()
    desk.clock.advance(FIRST_AFTER_S / 2)
    newest = desk.say("still full")
    await desk.turns()
    assert not desk.api.sent

    # Newer words do not put it off further.
    desk.clock.advance(FIRST_AFTER_S / 2)
    await desk.turns()
    desk.api.answer()
    await newest

    assert desk.api.messages() == ["still full"]


async def test_a_newer_patch_takes_the_place_of_the_one_that_waits():
    desk = Desk()
    first = desk.say("first")
    await desk.turns()
    second = desk.say("second", reason="SchedulerError")
    third = desk.patch(PodStatusPatch(nominated_node_name="n"))
    await desk.turns()
    # Whoever asked for the second need not wait for the third.
    assert second.done()
    assert not third.done()

    desk.api.answer()
    await desk.turns()
    desk.api.answer()
    await asyncio.gather(first, third)

    assert len(desk.api.sent) == 2
    _, last = desk.api.sent[-1]
    assert (last["conditions"][0]["message"], last["nominatedNodeName"]) == ("second", "n")
    assert desk.metrics.counts["condition superseded"] == 1


async def test_a_bind_drops_what_waits_and_waits_for_what_is_under_way():
    desk = Desk()
    first = desk.say("first")
    await desk.turns()
    second = desk.say("second", reason="SchedulerError")
    await desk.turns()
    bind = asyncio.ensure_future(desk.patches.settle(pod().uid))
    await desk.turns()
    assert second.done()
    assert not bind.done()

    desk.api.answer()
    await asyncio.gather(bind, first)

    assert desk.api.messages() == ["first"]
    assert len(desk.patches) == 0


async def test_a_pod_that_is_gone_takes_its_patches_with_it():
    desk = Desk(Api(turns=0))
    waits = desk.say("why")
    await desk.turns()

    desk.patches.forget(pod().uid)
    await waits
    desk.api.waiting.pop()[1].set_result(None)
    await desk.turns()

    assert desk.api.sent == []
    assert desk.api.given_back == 1
    assert desk.metrics.counts["condition waiting"] == 0


async def test_before_a_condition_is_sent_the_watch_is_heard():
    """In a refill, six of 552 conditions went to pods whose end the watch had, and had not been read."""
    desk = Desk(Api(turns=0))
    lost, kept = desk.say("full", pod("lost")), desk.say("full", pod("kept"))
    await desk.turns()
    desk.api.news.append(lambda: desk.patches.forget(pod("lost").uid))
    for _, turn in desk.api.waiting:
        turn.set_result(None)
    await desk.turns()
    desk.api.answer_all()
    await asyncio.gather(lost, kept)

    assert [name for name, _ in desk.api.sent] == ["kept"]
    assert desk.api.given_back == 1


async def test_a_turn_is_used_for_what_is_to_be_said_when_it_comes():
    desk = Desk(Api(turns=0))
    desk.say("old")
    await desk.turns()
    desk.say("new")
    await desk.turns()
    assert len(desk.api.waiting) == 1

    desk.api.waiting.pop()[1].set_result(None)
    await desk.turns()

    assert desk.api.messages() == ["new"]


async def test_a_patch_does_not_wait_for_the_answer_to_another_pods():
    desk = Desk()
    for name in ("a", "b", "c"):
        desk.say("why", of=pod(name))
        await desk.turns()

    assert [name for name, _, _ in desk.api.under_way] == ["a", "b", "c"]


async def test_nominations_and_evictions_ask_for_their_turn_before_conditions():
    desk = Desk(Api(turns=0))
    target = PodCondition(type=DISRUPTION_TARGET, status="True", reason="PreemptionByScheduler")
    desk.say("why", of=pod("a"))
    desk.patch(PodStatusPatch(nominated_node_name="n"), of=pod("b"))
    desk.patch(PodStatusPatch(target), of=pod("c"))
    await desk.turns()

    assert {priority for priority, _ in desk.api.waiting} == {
        Priority.CONDITION,
        Priority.NOMINATION,
        Priority.EVICTION,
    }


async def test_other_words_for_the_same_are_written_after_a_while():
    desk = Desk()
    desk.say("0/6 nodes are available")
    await desk.turns()
    desk.api.answer()
    await desk.turns()
    for number in range(20):
        desk.say(f"0/{number} nodes are available")
        await desk.turns()
    assert len(desk.api.sent) == 1

    desk.clock.advance(REPEAT_AFTER_S)
    await desk.turns()

    assert desk.api.messages() == ["0/6 nodes are available", "0/19 nodes are available"]


async def test_a_first_condition_does_not_wait_for_other_words_of_another_pod():
    desk = Desk(first_after_s=FIRST_AFTER_S)
    desk.say("full")
    await desk.turns()
    desk.clock.advance(FIRST_AFTER_S)
    await desk.turns()
    desk.api.answer_all()
    await desk.turns()
    desk.say("fuller")
    await desk.turns()

    desk.say("no room", pod("q"))
    await desk.turns()
    desk.clock.advance(FIRST_AFTER_S)
    await desk.turns()

    assert desk.api.messages() == ["full", "no room"]


async def test_another_reason_is_written_at_once():
    desk = Desk()
    desk.say("0/6 nodes are available")
    await desk.turns()
    desk.api.answer()
    await desk.turns()
    desk.say("0/5 nodes are available")
    await desk.turns()
    desk.say("the plugin failed", reason="SchedulerError")
    await desk.turns()

    assert desk.api.messages() == ["0/6 nodes are available", "the plugin failed"]


async def test_a_server_that_asks_for_patience_gets_it():
    desk = Desk()
    written = desk.say("why")
    await desk.turns()
    busy = errors.TooManyRequests("busy", status=429)
    busy.retry_after_s = 1.0
    desk.api.answer(error=busy)
    await desk.turns()
    assert len(desk.api.sent) == 1
    # Between two tries the patch waits, and a newer one takes its place.
    newer = desk.say("why not")
    await desk.turns()
    assert written.done()

    desk.clock.advance(1.0)
    await desk.turns()
    desk.api.answer()
    await newer

    assert desk.api.messages() == ["why", "why not"]


@pytest.mark.parametrize(
    ("error", "times"),
    [
        pytest.param(
            errors.Conflict("Precondition failed: UID in precondition: a", status=409), 4, id="409"
        ),
        pytest.param(
            errors.ApiError('metadata.uid: Invalid value: "a": field is immutable', status=422),
            1,
            id="422, as kube-apiserver answers",
        ),
    ],
)
async def test_a_pod_that_another_one_followed_is_gone(error, times):
    desk = Desk()
    written = desk.say("why")
    for _ in range(times):
        await desk.turns()
        desk.api.answer(error=error)
        await desk.turns()
        desk.clock.advance(1.0)

    with pytest.raises(errors.NotFound):
        await written


async def test_what_is_left_at_the_end_is_dropped_and_counted():
    desk = Desk(Api(turns=0))
    waiting = [desk.say("why", of=pod(f"p{i}")) for i in range(3)]
    await desk.turns()

    assert await desk.patches.close() == 3
    await asyncio.gather(*waiting)
    assert desk.metrics.counts["condition dropped"] == 3


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(
            (
                "condition",
                "condition",
                "nominate",
                "clear",
                "bind",
                "gone",
                "answer",
                "fail",
                "time",
            )
        ),
        st.integers(0, 1),
        st.integers(0, 5),
    ),
    max_size=40,
)


@given(OPERATIONS)
def test_the_status_ends_as_if_every_patch_had_been_made(operations):
    asyncio.run(_live(operations))


async def _live(operations: list[tuple[str, int, int]]) -> None:
    desk = Desk()
    pods = [pod("a"), pod("b")]
    wanted: list[dict[str, Any]] = [{}, {}]
    stored: dict[str, dict[str, Any]] = {"a": {}, "b": {}}
    closed = [False, False]
    tasks: list[asyncio.Future[None]] = []

    def check() -> None:
        names = [name for name, _, _ in desk.api.under_way]
        assert len(set(names)) == len(names), "two patches of one pod are under way"
        assert len(desk.patches) <= 2 * len(pods)

    def answer(index: int, *, fail: bool) -> None:
        if not desk.api.under_way:
            return
        index %= len(desk.api.under_way)
        error = errors.ServerUnavailable("busy", status=503) if fail else None
        name, document = desk.api.answer(index, error)
        if not fail:
            if "conditions" in document:
                stored[name]["message"] = document["conditions"][0]["message"]
            if "nominatedNodeName" in document:
                stored[name]["node"] = document["nominatedNodeName"]

    for number, (what, which, value) in enumerate(operations):
        if closed[which] and what not in ("answer", "fail", "time"):
            continue
        match what:
            case "condition":
                wanted[which]["message"] = f"message {number}"
                tasks.append(desk.say(f"message {number}", of=pods[which], reason=f"r{value}"))
            case "nominate" | "clear":
                node = f"n{value}" if what == "nominate" else ""
                wanted[which]["node"] = node or None
                patch = PodStatusPatch(nominated_node_name=node)
                tasks.append(desk.patch(patch, of=pods[which]))
            case "bind":
                closed[which] = True
                tasks.append(asyncio.ensure_future(desk.patches.settle(pods[which].uid)))
            case "gone":
                closed[which] = True
                desk.patches.forget(pods[which].uid)
            case "answer" | "fail":
                answer(value, fail=what == "fail" and value < 2)
            case "time":
                desk.clock.advance(value)
        await desk.turns()
        check()
    sent_when_closed = {p.name for p, is_closed in zip(pods, closed, strict=True) if is_closed}
    started = [name for name, _, _ in desk.api.under_way]
    before = len(desk.api.sent)
    for _ in range(200):
        while desk.api.under_way:
            answer(0, fail=False)
            await desk.turns()
            check()
        desk.clock.advance(REPEAT_AFTER_S)
        await desk.turns()
        if not len(desk.patches):
            break
    assert len(desk.patches) == 0
    results = await asyncio.gather(*tasks, return_exceptions=True)
    if any(isinstance(result, Exception) for result in results):
        return  # A patch failed too often and was given up.
    for index, name in enumerate("ab"):
        if not closed[index]:
            assert stored[name] == wanted[index]
    late = [name for name, _ in desk.api.sent[before:]]
    assert not sent_when_closed & set(late), f"sent to {late} with {started} under way"
