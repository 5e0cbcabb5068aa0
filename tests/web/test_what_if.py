"""Changes tried on a copy: a weight, a node, more nodes; checked as they are typed."""

from __future__ import annotations

import re

import pytest

from tests.web.conftest import OpenPage
from tests.web.page_server import PageServer

pytestmark = pytest.mark.web


def test_a_changed_weight_is_run_and_compared(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("whatif"))
    page.get_by_label("NodeResourcesBalancedAllocation").fill("50")
    expect(page.locator("#config-text-check")).to_contain_text("A valid configuration.")
    text = page.get_by_label("Scheduler configuration").input_value()
    assert re.search(r"name: NodeResourcesBalancedAllocation\n\s+weight: 50\n", text)
    page.get_by_label("Name").fill("balance first")
    page.get_by_role("button", name="Run and compare").click()
    expect(page.locator(".verdict")).to_contain_text("moved")
    expect(page.get_by_role("heading", name="After balance first")).to_be_visible()
    numbers = page.get_by_role("region", name="Numbers before and after")
    expect(numbers.get_by_role("row", name=re.compile("cpu imbalance"))).to_be_visible()
    expect(page.get_by_role("heading", name="The first decisions that differ")).to_be_visible()
    page.get_by_role("button", name="Explain").click()
    expect(page.locator(".why-sides").first).to_contain_text("balance first")
    moved = page.get_by_role("table", name="Pods that changed")
    assert int(moved.get_attribute("aria-rowcount") or 0) > 2


def test_problems_are_told_as_one_types_with_their_lines(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("whatif"))
    editor = page.get_by_label("Scheduler configuration")
    expect(editor).to_have_value(re.compile("LeastAllocated"))
    editor.fill(editor.input_value().replace("LeastAllocated", "LeastEverything"))
    said = page.locator("#config-text-check")
    expect(said).to_contain_text("1 problem")
    expect(said).to_contain_text("LeastEverything")
    expect(page.locator(".gutter .bad")).to_have_count(1)
    said.get_by_role("button", name=re.compile("line")).click()
    expect(editor).to_be_focused()
    page.get_by_role("button", name="Undo all edits").click()
    expect(said).to_contain_text("change it to try another")


def test_a_node_is_edited_and_others_added(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("map/berth-40"))
    page.get_by_role("link", name="Edit and try").click()
    editor = page.get_by_label("Manifests")
    expect(editor).to_have_value(re.compile("unschedulable: true"))
    editor.fill(editor.input_value().replace("unschedulable: true", "unschedulable: false"))
    expect(page.locator("#objects-text-check")).to_contain_text("replace node berth-40")
    page.get_by_label("like node").fill("berth-00")
    page.get_by_label("Add", exact=True).fill("3")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".drafted")).to_contain_text("3 nodes like berth-00")
    page.get_by_role("button", name="Run and compare").click()
    expect(page.locator(".verdict")).to_be_visible()
    expect(page.locator(".changes").first).to_contain_text("add 3 nodes like berth-00")
    page.get_by_role("link", name=re.compile("^Map")).click()
    expect(page.locator(".whole")).to_contain_text("105 nodes")


def test_a_node_is_done_without(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("map/berth-00"))
    page.get_by_role("link", name="Try without it").click()
    expect(page.locator(".drafted")).to_contain_text("without berth-00")
    page.get_by_role("button", name="Run and compare").click()
    expect(page.locator(".verdict")).to_contain_text("moved")


def test_what_cannot_be_run_is_refused_with_its_reason(
    served: PageServer, open_page: OpenPage, complaints: list[str]
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("whatif"))
    page.get_by_role("button", name="Pods and nodes").click()
    page.get_by_label("Manifests").fill("kind: Pod\nmetadata: {name: NO}\n")
    expect(page.locator("#objects-text-check")).to_contain_text("problem")
    page.get_by_role("button", name="Run and compare").click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert page.url.endswith("#/whatif?tab=objects")
    assert "400" in complaints.pop()


def test_any_two_runs_can_be_compared(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("whatif/without/berth-08"))
    page.get_by_role("button", name="Run and compare").click()
    expect(page.locator(".verdict")).to_be_visible()
    made = page.get_by_role("combobox", name="After", exact=True).input_value()
    page.get_by_role("combobox", name="After", exact=True).select_option("1")
    expect(page.locator(".side").first).to_contain_text("remove node berth-08")
    expect(page.locator(".verdict")).to_be_visible()
    assert page.url.endswith(f"#/compare/{made}/1")
