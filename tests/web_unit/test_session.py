"""Sessions over time: several tabs, work that is broken off, workers that come and go."""

from __future__ import annotations

import asyncio
import signal
from contextlib import closing
from dataclasses import replace

import pytest

from mooring.explain.past_decision import PastDecision
from mooring.web.session import _MOST_WARM
from tests.makers import make_pod
from tests.web_unit.asking import asking
from tests.web_unit.clusters import BIG, WEB, run_of, run_spec, trace_run_spec

pytestmark = pytest.mark.long


def endless():
    """A simulation that does not end while anyone waits: its pod is tried every few minutes for ages."""
    return replace(run_spec(), until_s=1e12)


async def test_a_second_tab_sees_what_the_first_one_does():
    async with asking(run_spec()) as asker:
        await asker.over(1)
        second_tab = asker.events()
        assert len((await anext(second_tab))["runs"]) == 1

        made = await asker.post("/api/runs", {"base": 1, "addNodes": [{"like": "n1"}]})

        async for session in second_tab:
            if session["runs"][-1]["state"] == "ready":
                break
        assert session["runs"][-1]["id"] == made["run"]
        assert session["runs"][-1]["changes"] == ["add a node like n1"]
        await second_tab.aclose()


async def test_runs_of_one_name_can_be_told_apart():
    async with asking(run_spec()) as asker:
        for _ in range(2):
            await asker.post("/api/runs", {"base": 1, "name": "more", "changes": [{"drain": "n1"}]})
        await asker.post("/api/runs", {"base": 1, "name": "as it is", "changes": [{"drain": "n1"}]})

        runs = (await asker.get("/api/session"))["runs"]

    assert [run["name"] for run in runs] == ["as it is", "more", "more (2)", "as it is (2)"]


async def test_a_run_that_is_cancelled_stops_and_stays_in_the_list():
    async with asking(endless()) as asker:
        await asker.get("/api/runs/1/map", 409)

        await asker.send("DELETE", "/api/jobs/1", status=204)

        assert (await asker.over(1))["state"] == "cancelled"
        assert (await asker.run(1))["state"] == "cancelled"
        await asker.get("/api/runs/1/map", 409)
        await asker.send("DELETE", "/api/jobs/1", status=204)


async def test_the_server_answers_while_a_run_is_under_way():
    async with asking(endless()) as asker:
        events = asker.events()
        async for session in events:
            if session["jobs"][0]["done"]:
                break
        await events.aclose()

        await asker.get("/api/session")
        await asker.get("/api/runs/1/config")
        check = await asker.post("/api/check", {"run": 1, "config": "kind: x"}, 200)

        assert not check["ok"]
        assert (await asker.run(1))["state"] == "running"
        await asker.send("DELETE", "/api/jobs/1", status=204)


async def test_the_cluster_can_be_looked_at_while_a_run_is_under_way():
    async with asking(endless()) as asker:
        # The first progress is told at the first decision, before that pod is bound.
        events = asker.events()
        async for _ in events:
            so_far = await asker.get("/api/runs/1/moves?after=0")
            if so_far["next"]:
                break
        await events.aclose()

        start = await asker.get("/api/runs/1/start")
        none = await asker.get(f"/api/runs/1/moves?after={so_far['next']}")

        web = start["pods"]["name"].index("web-1")
        moved = dict(zip(so_far["moves"][::2], so_far["moves"][1::2], strict=True))
        assert start["start"][web] == -1
        assert start["nodes"]["name"][moved[web]] in ("n1", "n2")
        assert none["moves"] == []
        await asker.get("/api/runs/1/moves?after=x", 400)
        await asker.get("/api/runs/7/start", 404)
        await asker.send("DELETE", "/api/jobs/1", status=204)


async def test_runs_are_compared_without_their_workers():
    """Neither is run again, however many runs there are."""
    async with asking(run_spec()) as asker:
        await asker.over(1)
        made = await asker.post("/api/runs", {"base": 1, "addNodes": [{"like": "n1"}]})
        await asker.over(made["job"])
        for number in (1, made["run"]):
            run = asker.session._runs[number]
            worker, run.worker = run.worker, None
            await worker.end()

        job = (await asker.post("/api/compare", {"runs": [1, made["run"]]}))["job"]

        assert (await asker.over(job))["state"] == "done"
        assert all(asker.session._runs[each].worker is None for each in (1, made["run"]))


async def test_counterfactuals_can_be_cancelled_and_leave_the_run_as_it_was():
    async with asking(run_spec()) as asker:
        await asker.over(1)
        before = await asker.get(f"/api/runs/1/pod?key={BIG}")
        job = (await asker.post("/api/runs/1/counterfactuals", {"pod": BIG}))["job"]

        await asker.send("DELETE", f"/api/jobs/{job}", status=204)

        assert (await asker.over(job))["state"] in ("cancelled", "done")
        asker.session._runs[1].pages.clear()
        assert await asker.get(f"/api/runs/1/pod?key={BIG}") == before


async def test_a_comparison_can_be_cancelled():
    async with asking(run_spec()) as asker:
        await asker.over(1)
        made = await asker.post("/api/runs", {"base": 1, "addNodes": [{"like": "n1"}]})
        await asker.over(made["job"])
        # A comparison is over in no time, unless the process that makes it waits.
        comparing = asker.session._desk._process
        comparing.send_signal(signal.SIGSTOP)
        job = (await asker.post("/api/compare", {"runs": [1, made["run"]]}))["job"]

        deleting = asyncio.create_task(asker.send("DELETE", f"/api/jobs/{job}", status=204))
        told = await asker.over(job)
        comparing.send_signal(signal.SIGCONT)
        await deleting

        assert told["state"] == "cancelled"
        await asker.get(f"/api/jobs/{job}/result", 409)


async def test_a_worker_that_dies_fails_its_job_and_nothing_else():
    async with asking(endless()) as asker:
        events = asker.events()
        async for session in events:
            if session["jobs"][0]["done"]:
                break
        await events.aclose()
        worker = asker.session._runs[1].worker
        assert worker is not None

        worker._process.kill()

        job = await asker.over(1)
        assert job["state"] == "failed"
        assert (
            job["problems"][0]["text"] == "the worker process ended before it answered; try again"
        )
        await asker.get("/api/runs/1/config")


async def test_texts_can_be_checked_after_one_that_was_too_much():
    async with asking(run_spec()) as asker:
        await asker.over(1)
        asker.session._desk._process.kill()
        await asker.session._desk._process.wait()
        await asker.session._desk._reading

        check = await asker.post("/api/check", {"run": 1, "config": "kind: x"}, 200)

        assert not check["ok"]


async def test_a_pod_can_be_asked_about_after_the_worker_died():
    async with asking(run_spec()) as asker:
        await asker.over(1)
        worker = asker.session._runs[1].worker
        assert worker is not None
        worker._process.kill()

        assert (await asker.get(f"/api/runs/1/pod?key={BIG}"))["pod"] == BIG


async def test_a_run_that_was_let_go_is_run_again_when_it_is_asked_about():
    async with asking(run_spec()) as asker:
        await asker.over(1)
        before = await asker.get(f"/api/runs/1/pod?key={WEB}")
        for _ in range(_MOST_WARM):
            made = await asker.post("/api/runs", {"base": 1, "addNodes": [{"like": "n1"}]})
            await asker.over(made["job"])
        runs = asker.session._runs
        assert sum(run.worker is not None for run in runs.values()) <= _MOST_WARM
        (let_go,) = (run for run in runs.values() if run.worker is None)

        page = await asker.get(f"/api/runs/{let_go.id}/pod?key={WEB}")

        assert page["state"] == before["state"] == "placed"
        assert let_go.worker is not None


def past_decision(key: str) -> PastDecision:
    with closing(run_of(run_spec())) as run:
        past = run.past_decision(key)
    assert past is not None
    return past


async def test_a_moment_that_takes_long_to_reach_is_decided_again_in_another_process():
    async with asking(run_spec()) as asker:
        await asker.over(1)
        before = await asker.get(f"/api/runs/1/pod?key={WEB}")
        run = asker.session._runs[1]
        # Runs repeat exactly, so another process knows the decision as well.
        past = await asyncio.to_thread(past_decision, WEB)

        seen = await asker.session._decided_again(run, past)
        page = await asker.session._asked(run, "pod", key=WEB, number=None, seen=seen)

        assert page == run.pages[f"{WEB} "]
        assert before["state"] == "placed"


async def test_runs_of_a_trace_can_be_changed_and_compared():
    async with asking(trace_run_spec()) as asker:
        await asker.over(1)
        made = await asker.post("/api/runs", {"base": 1, "addNodes": [{"like": "n1"}]})
        await asker.over(made["job"])
        job = (await asker.post("/api/compare", {"runs": [1, made["run"]]}))["job"]
        assert (await asker.over(job))["state"] == "done"

        data = await asker.get(f"/api/jobs/{job}/result")

        assert [each["values"]["elapsedSeconds"] for each in data["variants"]] == [100.0, 100.0]
        time = await asker.get(f"/api/runs/{made['run']}/time")
        assert (10.0, 1, 1) in zip(*time["changes"].values(), strict=True)


async def test_a_cluster_that_cannot_be_simulated_fails_with_its_problem():
    bad = make_pod("bad", annotations={"mooring.dev/run-seconds": "soon"})
    async with asking(run_spec(bad)) as asker:
        job = await asker.over(1)

        assert job["state"] == "failed"
        assert "default/bad" in job["problems"][0]["text"]
        assert (await asker.run(1))["problems"] == job["problems"]


async def test_no_process_is_left_behind_when_a_session_is_closed():
    async with asking(run_spec()) as asker:
        await asker.over(1)
        worker = asker.session._runs[1].worker
        assert worker is not None

    assert not worker.alive
    assert worker._process.returncode is not None


@pytest.mark.parametrize("_", range(2))
async def test_cancelling_before_a_worker_has_started_is_cancelling_too(_):
    async with asking(run_spec()) as asker:
        made = await asker.session.what_if(1, _one_more(), name="", counterfactual=None)
        await asyncio.gather(asker.session.cancel(made.job), asker.session.cancel(1))

        assert asker.session.job(made.job).state == "cancelled"


def _one_more():
    from mooring.web.requested_changes import NodesLike, RequestedChanges

    return [RequestedChanges(add_nodes=[NodesLike("n1")])]
