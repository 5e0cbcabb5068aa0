"""The same cases in another process, with another hash seed: sets are in another order there.

    python -m mooring.plugin_kit.processes TARGET ARGS SEED COUNT

prints a line for each seed: the seed, and a digest of all answers.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from mooring.errors import MooringError
from mooring.plugin_kit.case import Case, decoded_pod
from mooring.plugin_kit.draw import draw_case
from mooring.plugin_kit.forms import ask
from mooring.plugin_kit.rules import Broken
from mooring.plugin_kit.subject import Subject, load_subject
from mooring.plugin_kit.world import World, silence

_SEEDS = 4
_HASH_SEED = "4711"
_TIMEOUT_S = 300


@dataclass(frozen=True, slots=True)
class Difference:
    """A case that ends otherwise in another process."""

    seed: int
    problem: str


def repeats_in_another_process(subject: Subject, target: str, seed: int) -> Difference | None:
    """None if all answers are the same there, or if no process can be started."""
    environment = {
        **os.environ,
        "PYTHONHASHSEED": _HASH_SEED,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    command = [sys.executable, "-m", __name__, target, json.dumps(subject.args), str(seed)]
    done = subprocess.run(
        [*command, str(_SEEDS)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise MooringError(f"the plugin cannot be checked in a process of its own: {lines[-1]}")
    for ours, theirs in zip(digests(subject, seed, _SEEDS), done.stdout.splitlines(), strict=False):
        if ours != theirs:
            return Difference(
                int(ours.split()[0]),
                "in another process, with another PYTHONHASHSEED, the answers are other ones",
            )
    return None


def digests(subject: Subject, seed: int, count: int) -> list[str]:
    """A line for each seed: the seed, and a digest of all answers."""
    vocabulary = subject.vocabulary
    cases = (draw_case(each, vocabulary) for each in range(seed, seed + count))
    return [f"{case.seed} {_digest(subject, case)}" for case in cases]


def _digest(subject: Subject, case: Case) -> str:
    world = World(subject, subject.plugin, keeps=False)
    digest = hashlib.sha256()
    try:
        for event in case.events:
            world.apply(event)
            for pod in map(decoded_pod, case.pods):
                try:
                    said: object = ask(world.call, pod, world.engine.cluster.snapshot())
                except Broken as broken:
                    said = broken.problem
                digest.update(repr((said, world.decide(pod))).encode())
    finally:
        world.close()
    return digest.hexdigest()


def main(arguments: Sequence[str]) -> None:
    target, args, seed, count = arguments
    with silence():
        lines = digests(load_subject(target, json.loads(args)), int(seed), int(count))
    sys.stdout.write("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    main(sys.argv[1:])
