"""Objects and answers that make no sense: no traceback, no hang, nothing wrong is done with what does.

A few seeds on every run of the tests; `make fuzz ARGS='--hostile --mode safety'` for many.
"""

from __future__ import annotations

import random

import msgspec
import pytest

from mooring.live.decoding import decode_object
from mooring.objects.kinds import KINDS
from tests.engine import Engine
from tests.makers import make_node, make_pod
from tools.fuzz import hostile
from tools.fuzz.world import run_seed

pytestmark = pytest.mark.long


@pytest.mark.parametrize("first", range(0, 12, 4))
def test_nonsense_stops_nobody(first):
    for seed in range(first, first + 4):
        result = run_seed(seed, "safety", hostile=True)

        assert result.violation == "", f"hostile safety seed {seed}"
        assert result.faults["hostile object"] + result.faults["garbled answer"] > 0


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_nonsense_in_any_field_is_refused_or_stops_nobody(kind):
    rng = random.Random(kind.name)
    fields = set()
    believed = []
    for field, _, document in hostile.each_spoiled(kind, rng, values=1):
        fields.add(field)
        try:
            obj = decode_object(msgspec.json.encode(document), kind)
        except msgspec.DecodeError:
            continue
        if obj.metadata.name and obj.metadata.uid:
            believed.append(obj)
    assert {".metadata.name", ".metadata.labels.x"} <= fields

    for obj in rng.sample(believed, min(len(believed), 3)):
        engine = Engine(make_node("n", cpu=2), make_pod("p", cpu=1)).scheduler
        engine.added(obj)
        while engine.schedule_one():
            engine.validate()
        engine.updated(obj, obj)
        engine.deleted(obj)
        engine.validate()
