"""How many more copies of a pod of a run fit, as `mooring capacity --pod` counts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mooring.explain.explanation import CannotAnswer
from mooring.explain.room import Template, how_many_more, own_claims
from mooring.explain.settled import settle
from mooring.web.run_spec import RunSpec

#: More than this is "a lot" to everybody.
_MOST = 100_000
_TELL_EVERY = 200


def room_data(run_spec: RunSpec, key: str, on_progress: Callable[[int], None]) -> dict[str, Any]:
    """Raises CannotAnswer, InputError and ConfigError."""
    pod = next((pod for pod in run_spec.pods if pod.key == key), None)
    if pod is None:
        raise CannotAnswer(f"there is no Pod {key!r} in this run")
    if pod.group_key:
        raise CannotAnswer(
            f"{key} is of a gang; ask `mooring capacity --pod FILE`, which adds whole gangs"
        )

    def tell(rounds: int) -> None:
        if rounds % _TELL_EVERY == 0:
            on_progress(rounds)

    template = Template(pod, claims=tuple(own_claims(pod, run_spec.objects)))
    settled = settle(run_spec.objects, run_spec.options())
    room = how_many_more(settled, [template], limit=_MOST, on_progress=tell)
    return {
        "pod": key,
        "more": room.rounds,
        "limited": room.limited,
        "stoppedBy": room.stopped_by,
        "nodes": len(room.nodes),
    }
