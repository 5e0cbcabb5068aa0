"""Which features and faults a seed turns on: each world has some of them, so that none hides another."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

#: How likely each fault is whenever it could happen, if the seed has it at all.
FAULTS: dict[str, float] = {
    # The network
    "cut the request": 0.05,
    "cut the answer": 0.05,
    "short write": 0.1,
    "short read": 0.1,
    "silent connection": 0.005,
    "slow request": 0.03,
    "slow answer": 0.03,
    "slow connect": 0.05,
    "refuse to connect": 0.1,
    # The API server
    "slow server": 0.02,
    "slow watch": 0.1,
    "lost answer": 0.05,
    "carried out twice": 0.03,
    "late 504": 0.03,
    "late 500": 0.03,
    "429": 0.05,
    "503": 0.05,
    "500": 0.03,
    "stale list": 0.3,
    "lost watch event": 0.03,
    # These happen now and then, whatever is asked; the world chooses when.
    "compaction": 1.0,
    "server restart": 1.0,
    "kill": 1.0,
    "stop": 1.0,
    "reload": 1.0,
    "clock drift": 1.0,
    "second scheduler": 1.0,
}

#: Nonsense, only in worlds that are asked for it: what a scheduler believes is then not what is true.
HOSTILE: dict[str, float] = {"garbled answer": 0.05, "hostile object": 0.05}

#: What lives in the world beside nodes, pods and a scheduler.
FEATURES = (
    "recreate pods",
    "node churn",
    "node resize",
    "finishing pods",
    "priorities",
    "budgets",
    "constraints",
    "volumes",
    "devices",
    "gangs",
    "other scheduler",
    "descheduler",
    "gates",
    "permit",
)

#: Drawn apart from the others, so that worlds without them are what they were before these were added.
LATER_FAULTS: dict[str, float] = {"401": 0.05, "slow credentials": 0.05, "extender fails": 0.05}
LATER_FEATURES = (
    "extender",
    "extender that binds",
    "few connections",
    "lists in pages",
    "PostBind",
    "request limit",
    "watch as leader only",
)
#: Drawn after those.
LAST_FAULTS: dict[str, float] = {"lost request": 0.05, "close after answer": 0.05}
_LATER_SHARE = 0.15

#: What many awaits take before anybody waits at them: on in most worlds that aim at an await.
_AIMED = (
    "second scheduler",
    "lost answer",
    "late 500",
    "503",
    "slow server",
    "slow answer",
    "stop",
    "reload",
    "recreate pods",
    "priorities",
    "volumes",
    "devices",
    "gangs",
    "late 504",
    "cut the request",
    "cut the answer",
    "compaction",
    "few connections",
    "lists in pages",
    "lost request",
    "close after answer",
)

#: How long a request, an answer or a change takes as a rule, and at most if the fault happens.
_USUAL_S = 0.01
_LONG_S = {
    "slow request": 20.0,
    "slow answer": 20.0,
    "slow connect": 12.0,
    "slow server": 80.0,
    "slow watch": 30.0,
    "slow credentials": 5.0,
}


ALL_FAULTS = FAULTS | LATER_FAULTS | LAST_FAULTS
ALL_FEATURES = (*FEATURES, *LATER_FEATURES)
_LIKELY = ALL_FAULTS | HOSTILE


class Swarm:
    """The choices of one seed. Everything random in a world comes from here."""

    def __init__(
        self,
        seed: int,
        *,
        without: Iterable[str] = (),
        hostile: bool = False,
        aimed: bool = False,
    ) -> None:
        self.seed = seed
        choose = random.Random(f"swarm {seed}")
        density = choose.choice([0.0, 0.15, 0.3, 0.6])
        if aimed:
            # Where much is broken, little is bound.
            density = min(density, 0.15)
        chosen = {name for name in FAULTS if choose.random() < density}
        chosen |= {name for name in FEATURES if choose.random() < 0.4}
        if hostile:
            chosen |= set(HOSTILE)
        later = random.Random(f"later {seed}")
        share = 0.3 if aimed else _LATER_SHARE
        apart = (*LATER_FAULTS, *LATER_FEATURES, *LAST_FAULTS)
        chosen |= {name for name in apart if later.random() < share}
        if aimed:
            chosen |= {name for name in _AIMED if choose.random() < 0.7}
        #: What this world has.
        self.on = frozenset(chosen) - frozenset(without)
        #: One for each part of the world, so that to leave one out changes the others little.
        self.rng = random.Random(f"faults {seed}")
        self._seeds = seed
        #: False when the faults have stopped.
        self.breaks = True
        #: How often each fault happened.
        self.counts: Counter[str] = Counter()

    def stream(self, name: str) -> random.Random:
        return random.Random(f"{name} {self.seed}")

    def has(self, name: str) -> bool:
        return name in self.on

    def happens(self, fault: str) -> bool:
        if not self.breaks or fault not in self.on or self.rng.random() >= _LIKELY[fault]:
            return False
        self.counts[fault] += 1
        return True

    def delay_s(self, fault: str) -> float:
        if self.happens(fault):
            return self.rng.random() ** 2 * _LONG_S[fault]
        return self.rng.random() * _USUAL_S
