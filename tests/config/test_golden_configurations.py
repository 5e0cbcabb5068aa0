from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mooring.config import expand_profiles, load_config, write_config
from tests.config.test_expansion import BUILT_IN

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("*.jsonl.gz"))

pytestmark = pytest.mark.skipif(not GOLDEN, reason="tests/golden has no cases")


def configurations(path: Path) -> Iterator[Any]:
    with gzip.open(path, "rt") as lines:
        for line in lines:
            case = json.loads(line)
            if "config" in case:
                yield case["config"]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name.partition(".")[0])
def test_every_golden_configuration_loads_expands_and_survives_being_written(path):
    for given in configurations(path):
        config = load_config(given)

        assert set(expand_profiles(config.profiles, BUILT_IN)) == {
            profile.scheduler_name for profile in config.profiles
        }
        assert load_config(write_config(config)) == config
