"""What docs/scenarios.md shows is a scenario."""

from __future__ import annotations

import re
from pathlib import Path

from mooring.sim.scenarios.scenario import read_scenarios

PAGE = Path(__file__).parents[3] / "docs" / "scenarios.md"


def test_the_scenarios_of_the_page_can_be_read(tmp_path):
    shown = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)

    assert shown
    for text in shown:
        (tmp_path / "shown.scenario.yaml").write_text(text)
        assert read_scenarios(tmp_path / "shown.scenario.yaml")
