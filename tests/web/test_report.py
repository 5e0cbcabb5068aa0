"""`mooring report`: the same views from a file, without a server."""

from __future__ import annotations

import re
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mooring
from tests.web.accessibility import grave_findings
from tests.web.clusters import Manifest, large, pod, write_cluster
from tests.web.conftest import NARROW, OpenPage, go

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.web


@pytest.fixture(scope="module")
def report(browser: Browser, harbour_files: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Its address."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    command = [sys.executable, "-m", "mooring", "report", "-f", str(harbour_files), "-o", str(path)]
    subprocess.run([*command, "--budget", "5s"], check=True, capture_output=True)
    return path.as_uri()


def test_a_report_shows_the_map_and_finds_a_node(report: str, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(report)
    expect(page.locator("canvas[data-pictures]")).to_be_visible()
    expect(page.locator(".whole")).to_contain_text("102 nodes")
    expect(page.locator(".tag")).to_have_text("report")
    page.get_by_role("combobox", name="Find and filter nodes and pods").fill("berth-88")
    page.get_by_role("option", name="node berth-88").click()
    expect(page.locator(".panel h2")).to_have_text("berth-88")


def test_a_report_fits_on_a_phone(report: str, open_page: OpenPage, pictures: Path) -> None:
    """When it was written pushed the switch of the colours over the edge."""
    page = open_page(report, size=NARROW)
    page.locator("canvas[data-pictures]").wait_for()
    page.screenshot(path=pictures / "report-narrow-light.png")
    switch = page.get_by_role("button", name="Use dark colours").bounding_box()
    assert switch is not None
    assert switch["x"] + switch["width"] <= NARROW[0]
    assert page.locator(".source").is_visible()
    source = page.locator(".source").bounding_box()
    assert source is not None
    assert source["width"] > 20


def test_a_report_explains_a_pending_pod_but_applies_nothing(
    report: str, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(f"{report}#/pending")
    page.get_by_role("link", name="data/archive-0").click()
    expect(page.locator(".point.rejected").first).to_contain_text("Filter")
    expect(page.locator(".would")).to_contain_text("lower the memory request")
    expect(page.get_by_role("button", name="Apply and run again").first).to_be_disabled()
    expect(page.locator(".would")).to_contain_text("A report cannot run the scheduler")


def test_a_report_can_be_slid_over_time(report: str, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(f"{report}#/time")
    expect(page.locator(".plot canvas")).to_have_count(4)
    page.get_by_role("slider", name="Moment").fill("200")
    expect(page.locator(".moment")).to_contain_text(re.compile("after .* changes of"))


def test_a_report_says_why_it_cannot_try_changes(report: str, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(f"{report}#/whatif")
    expect(page.locator("main")).to_contain_text("mooring ui")
    editor = page.get_by_label("Scheduler configuration")
    expect(editor).to_be_disabled()
    box = editor.bounding_box()
    assert box is not None
    assert box["width"] > 1000


def test_a_report_asks_nothing_of_any_server(report: str, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page("about:blank")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report)
    expect(page.locator("canvas[data-pictures]")).to_be_visible()
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_no_view_of_a_report_has_a_grave_finding(report: str, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(report)
    views = ("map", "pending", "time", "whatif", "pod/data/archive-0")
    findings = {}
    for view in views:
        go(page, view)
        expect(page.locator(f"main.view-{view.partition('/')[0]} h1")).to_be_attached()
        expect(page.locator(".loading")).to_have_count(0)
        findings[view] = grave_findings(page)
    assert findings == {view: [] for view in views}


def test_a_report_of_5000_nodes_is_small_and_has_a_page_for_each_cause(
    browser: Browser, tmp_path: Path, open_page: OpenPage
) -> None:
    """It had 53 MB, 200 pages of pods that were alike, and none of the others."""
    from playwright.sync_api import expect

    folder, path = write_cluster(tmp_path / "large", _of_several_causes()), tmp_path / "large.html"
    command = [sys.executable, "-m", "mooring", "report", "-f", str(folder), "-o", str(path)]
    subprocess.run([*command, "--budget", "2s"], check=True, capture_output=True)
    assert path.stat().st_size < 5_000_000

    page = open_page(f"{path.as_uri()}#/pending")
    causes = page.get_by_role("list", name="Pending pods by cause").locator(".cause")
    expect(causes).to_have_count(30)
    for i in range(30):
        causes.nth(i).get_by_role("link").first.click()
        expect(page.locator(".title .state")).to_contain_text("unschedulable")
        expect(page.get_by_role("table", name="Node by plugin")).to_be_visible()
        page.go_back()
        expect(causes).to_have_count(30)
    page.locator("details.made summary").click()
    made = page.locator("details.made")
    expect(made).to_contain_text(re.compile(r"20\d\d-\d\d-\d\d"))
    expect(made).to_contain_text(mooring.__version__)
    expect(made).to_contain_text("mooring report -f")


def _of_several_causes() -> Iterator[Manifest]:
    """The large cluster, in which five groups of pods wait, and 25 pods that wait for something else."""
    yield from large()
    yield pod("odd/deep", cpu="1", memory="9000Gi")
    for name in string.ascii_lowercase[:24]:
        yield pod(f"odd/{name}", cpu="1", memory="1Gi", nodeSelector={"pool": name})
