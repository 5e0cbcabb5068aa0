"""Pending pods, a pod's page, and what is done about it."""

from __future__ import annotations

import re

import pytest

from tests.web.conftest import OpenPage
from tests.web.page_server import PageServer

pytestmark = pytest.mark.web


def test_pending_pods_are_listed_with_a_reason_and_filtered_by_plugin(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("pending?tab=pods"))
    table = page.get_by_role("table", name="Pending pods")
    expect(table).to_have_attribute("aria-rowcount", "7")
    expect(table.get_by_role("row", name="data/archive-0")).to_contain_text("Insufficient memory")
    page.get_by_role("button", name=re.compile("SchedulingGates")).click()
    expect(table).to_have_attribute("aria-rowcount", "2")
    expect(table).to_contain_text("batch/gated-0")


def test_a_pending_pod_is_lit_up_to_the_point_that_stopped_it(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("pending"))
    page.get_by_role("link", name="data/archive-0").click()
    expect(page.get_by_role("heading", name="data/archive-0")).to_be_visible()
    points = page.locator(".picture .point")
    expect(points).to_have_count(12)
    outcomes = {
        point: page.locator(".picture .point", has_text=re.compile(point)).first.get_attribute(
            "class"
        )
        for point in ("PreFilter", "Score", "Bind")
    }
    assert "passed" in str(outcomes["PreFilter"])
    assert "dark" in str(outcomes["Score"])
    assert "dark" in str(outcomes["Bind"])
    expect(page.locator(".point.rejected").first).to_contain_text("Filter")
    expect(page.locator(".reason")).to_contain_text("nodes are available")
    matrix = page.get_by_role("table", name="Node by plugin")
    expect(matrix).to_have_attribute("aria-rowcount", "103")
    expect(matrix.get_by_role("row").nth(1)).to_contain_text("rejects: ")
    expect(page.locator(".happenings")).to_contain_text("queued")


def test_a_placed_pod_shows_the_winners_margin_and_sorts_by_a_plugins_score(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("pod/shop/checkout-0"))
    expect(page.locator(".margin")).to_contain_text("leads")
    matrix = page.get_by_role("table", name="Node by plugin")
    winner = matrix.locator("tr.winner th a").inner_text()
    expect(page.locator(".title").first).to_contain_text(winner)
    head = page.get_by_role("columnheader", name=re.compile("Balanced"))
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    expect(page.locator(".point.passed").last).to_contain_text("Bind")
    expect(page.locator(".happenings")).to_contain_text("bound")


def test_a_counterfactual_is_applied_and_the_difference_shown_in_every_tab(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("pod/data/archive-0"))
    other = open_page(served.view("whatif"), also=True)
    runs = other.get_by_role("region", name="Runs so far").get_by_role("listitem")
    expect(runs).to_have_count(1)
    page.get_by_role("button", name="Apply and run again").first.click()
    expect(page.locator(".verdict")).to_contain_text("1 fewer pending (6 before, 5 after)")
    moved = page.get_by_role("table", name="Pods that changed")
    expect(moved.get_by_role("row", name="data/archive-0")).to_contain_text("pending")
    expect(page.locator(".side canvas[data-pictures]")).to_have_count(2)

    expect(runs).to_have_count(2)
    expect(runs.last).to_contain_text("5 pods pending")
    page.reload()
    expect(page.locator(".verdict")).to_contain_text("1 fewer pending")


def test_a_pod_leads_to_its_workload_with_its_pods_and_what_keeps_them_back(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("pending"))
    page.get_by_role("link", name=re.compile("^data.quorum-")).first.click()
    page.get_by_role("link", name="Deployment data/quorum").click()
    view = page.locator(".workload-view")
    expect(view).to_contain_text("Deployment: 3 pods on 3 nodes, 1 pod pending.")
    expect(view.locator(".reason")).to_contain_text(
        "76 node(s) didn't match pod anti-affinity rules"
    )
    expect(view.get_by_role("table").locator("tbody tr")).to_have_count(4)
    view.get_by_role("link", name="Show on the map").click()
    expect(page.locator("#find")).to_have_value("workload:data/quorum")
    expect(page.locator(".found-count")).to_contain_text("3 nodes, 4 pods found")
