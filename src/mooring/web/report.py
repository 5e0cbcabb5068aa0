"""The page of one cluster as a single file: the same views over the same answers, without a server.

The file holds every answer that the page may ask for, under the address by which it would ask. What would
have to be run (another configuration, a comparison) is not in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import msgspec

import mooring
from mooring.errors import MooringError
from mooring.explain.past_decision import decide_again
from mooring.web.assets import Assets, report_document
from mooring.web.cluster_map import map_data
from mooring.web.origin import Origin
from mooring.web.pod_page import pod_data
from mooring.web.premise import Premise
from mooring.web.run import Run
from mooring.web.timeline import timeline_data
from mooring.web.what_if import config_text

#: Pages of pods: of all that are pending up to this many, and of some that were placed.
_MOST_PENDING, _SOME_PLACED = 200, 20
#: A run that took longer is not run again for each pod that it placed.
_QUICK_S = 1.0
_NAME = "as it is"

#: Told what is done, and how many of how many.
OnProgress = Callable[[str, int, int | None], None]


def write_report(
    origin: Origin, premise: Premise, *, budget_s: float, on_progress: OnProgress
) -> str:
    """Raises InputError, ConfigError and what else a simulation can fail with."""
    run = Run.of(premise, lambda attempts: on_progress("placing pods", attempts, None))
    try:
        answers = {
            "api/session": _session(origin, run),
            "api/runs/1/map": {"run": 1, **map_data(run)},
            "api/runs/1/time": timeline_data(run),
            "api/runs/1/config": {"text": config_text(premise)},
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
    pending = [each.pod for each in run.report.pending[:_MOST_PENDING]]
    placed = [each.pod for each in run.report.placements[:_SOME_PLACED]]
    keys = [*pending, *(placed if run.took_s <= _QUICK_S else ())]
    # All pods share the time, so that a report of many does not take for ever.
    each_s = budget_s / max(len(pending), 1)
    for number, key in enumerate(keys):
        on_progress("explaining pods", number, len(keys))
        address = quote(key, safe="!'()*")
        try:
            past = run.placed_by(key)
            seen = None if past is None else decide_again(run.premise, past)
            page = pod_data(run, key, seen)
            yield f"api/runs/1/pod?key={address}", page
            if page["counterfactuals"] and budget_s > 0:
                found = run.counterfactuals(key, budget_s=each_s, timer=time.perf_counter)
                data = {"run": 1, **found.to_data()}
                yield f"api/runs/1/counterfactuals?pod={address}", data
        except MooringError:
            # A pod that cannot be explained, for example since a plugin fails, has no page.
            continue
