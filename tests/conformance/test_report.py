"""Mooring decides as kube-scheduler v1.36 did, on every public case."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.conformance.report import check_file

GOLDEN = Path(__file__).parent.parent / "golden"

#: Cases of device claims: mooring refuses pods that have any, and says so.
NOT_YET = {"dra"}

AREAS = sorted(path.name.removesuffix(".jsonl.gz") for path in GOLDEN.glob("*.jsonl.gz"))


def test_the_golden_files_are_there():
    assert len(AREAS) == 17


@pytest.mark.parametrize("area", [area for area in AREAS if area not in NOT_YET])
def test_every_case_is_decided_as_the_reference_decided_it(area):
    report = check_file(GOLDEN / f"{area}.jsonl.gz")

    assert report.differences == []
    assert report.passed == report.total
