"""axe-core finds nothing grave in any view, by day and by night."""

from __future__ import annotations

import pytest

from tests.web.accessibility import grave_findings
from tests.web.conftest import OpenPage, go
from tests.web.page_server import PageServer

pytestmark = pytest.mark.web

#: View → something that is there once it is complete.
VIEWS = {
    "map/berth-88": ".panel table",
    "pending": ".cause",
    "pending?tab=pods": ".pending-view table",
    "pod/batch/nightly-0": ".sentences",
    "pod/batch/nightly-0?sort=node": ".matrix tr.here",
    "pod/batch/gated-0": ".picture",
    "map?colour=workload&resource=nvidia.com/gpu": "canvas[data-pictures]",
    "time": ".plot canvas",
    "whatif": ".weights",
    "pod/data/archive-0": ".would li button",
    "pod/shop/checkout-0": ".margin",
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_view_has_a_grave_finding(served: PageServer, open_page: OpenPage, scheme: str) -> None:
    from playwright.sync_api import expect

    page = open_page(served.address, scheme=scheme)
    findings = {}
    for view, complete in VIEWS.items():
        go(page, view)
        expect(page.locator(complete).first).to_be_visible()
        findings[view] = grave_findings(page)
    assert findings == {view: [] for view in VIEWS}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_comparison_has_no_grave_finding(
    served: PageServer, open_page: OpenPage, scheme: str
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("whatif/without/berth-00"), scheme=scheme)
    page.get_by_role("button", name="Run and compare").click()
    expect(page.locator(".verdict")).to_be_visible()
    assert grave_findings(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_map_as_a_table_with_something_found_has_no_grave_finding(
    served: PageServer, open_page: OpenPage, scheme: str
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.address, scheme=scheme)
    page.get_by_role("button", name="Table", exact=True).click()
    page.get_by_role("combobox", name="Find and filter nodes and pods").fill("berth-1")
    expect(page.get_by_role("option", name="node berth-10")).to_be_visible()
    assert grave_findings(page) == []


def test_a_configuration_with_problems_has_no_grave_finding(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("whatif"))
    page.get_by_label("Scheduler configuration").fill("kind: Nonsense\n")
    expect(page.locator("#config-text-check")).to_contain_text("problem")
    assert grave_findings(page) == []
