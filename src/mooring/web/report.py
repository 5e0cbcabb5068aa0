"""The page of a cluster as one HTML file: the same views and answers, without a server.

The file holds every answer that the page can request, under the address of the request. It does not hold
answers that need another run, such as another configuration or a comparison.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import msgspec

import mooring
from mooring.errors import MooringError
from mooring.explain.past_decision import decide_again
from mooring.explain.reasons import reasons_in
from mooring.web.assets import Assets, report_document
from mooring.web.cluster_map import map_data
from mooring.web.messages import packed
from mooring.web.origin import Origin
from mooring.web.pod_page import pod_data
from mooring.web.run import Run
from mooring.web.run_spec import RunSpec
from mooring.web.timeline import timeline_data
from mooring.web.what_if import config_text
from mooring.web.workloads import folded_name, workload_name

#: The most pages of pending pods, one for each cause, and of placed pods.
_MOST_CAUSES, _SOME_PLACED = 100, 20
#: Pages have a row for each node; no more are written once they have this many characters together.
#: Beside them, a report of 5,000 nodes and 50,000 pods has 3.5 MB.
_MOST_CHARACTERS = 1_200_000
#: If the run took longer than this, placed pods have no pages: each would repeat the run.
_QUICK_S = 1.0
_NAME = "as it is"

#: Called with the phase, the number done and the total.
OnProgress = Callable[[str, int, int | None], None]


def write_report(
    origin: Origin,
    run_spec: RunSpec,
    *,
    budget_s: float,
    on_progress: OnProgress,
    made: dict[str, str] | None = None,
) -> str:
    """`made` says when and by which command it was written.

    Raises InputError, ConfigError and other errors of a simulation.
    """
    run = Run.of(run_spec, lambda progress: on_progress("placing pods", progress.attempts, None))
    try:
        answers = {
            "api/session": {**_session(origin, run), "made": made},
            "api/runs/1/map": {"run": 1, **map_data(run)},
            "api/runs/1/time": timeline_data(run),
            "api/runs/1/config": {"text": config_text(run_spec)},
            **dict(_pods(run, budget_s, on_progress)),
        }
    finally:
        run.close()
    return report_document(Assets.read(), msgspec.json.encode(answers)).text


def _session(origin: Origin, run: Run) -> dict[str, Any]:
    return {
        "version": 1,
        "mooring": mooring.__version__,
        **origin.to_data(),
        "report": True,
        "runs": [
            {
                "id": 1,
                "name": _NAME,
                "base": None,
                "changes": [],
                "state": "ready",
                "job": 0,
                "problems": [],
                "summary": run.summary(),
            }
        ],
        "jobs": [],
    }


def _pods(run: Run, budget_s: float, on_progress: OnProgress) -> Iterator[tuple[str, Any]]:
    pending = representatives(run)[:_MOST_CAUSES]
    placed = [each.pod for each in run.report.placements[:_SOME_PLACED]]
    keys = [*pending, *(placed if run.took_s <= _QUICK_S else ())]
    # All pods share the budget.
    each_s = budget_s / max(len(pending), 1)
    written = 0
    for number, key in enumerate(keys):
        if written > _MOST_CHARACTERS:
            return
        on_progress("explaining pods", number, len(keys))
        address = quote(key, safe="!'()*")
        try:
            past = run.past_decision(key)
            seen = None if past is None else decide_again(run.run_spec, past)
            page = pod_data(run, key, seen)
            compressed = base64.b64encode(packed(page)).decode()
            written += len(compressed)
            yield f"api/runs/1/pod?key={address}", {"gzip": compressed}
            if page["counterfactuals"] and budget_s > 0:
                found = run.counterfactuals(key, budget_s=each_s, timer=time.perf_counter)
                data = {"run": 1, **found.to_data()}
                yield f"api/runs/1/counterfactuals?pod={address}", data
        except MooringError:
            # A pod has no page if mooring cannot explain it, for example because a plugin fails.
            continue


def representatives(run: Run) -> list[str]:
    """One pending pod for each workload and cause; those with the most pods first."""
    groups: dict[tuple[object, ...], list[str]] = {}
    for each in run.report.pending:
        pod = run.pod(each.pod)
        of = folded_name(each.pod, workload_name(pod))
        reasons = tuple(sorted(reason.text for reason in reasons_in(each.message)))
        groups.setdefault((of, each.state, reasons), []).append(each.pod)
    return [pods[0] for pods in sorted(groups.values(), key=lambda pods: -len(pods))]
