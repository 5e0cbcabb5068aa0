"""Pictures for people to look at: every view, by day and night, wide and narrow; one is the README's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.web.clusters import write_cluster
from tests.web.conftest import NARROW, WIDE, OpenPage, go
from tests.web.page_server import PageServer, page_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.web

#: View → something that is there once it is complete.
VIEWS = {
    "map": "canvas[data-pictures]",
    "map/berth-88": ".panel table",
    "pending": ".cause",
    "pending?tab=pods": ".pending-view table",
    "time": ".plot canvas",
    "whatif": ".weights",
    "pod/data/archive-0": ".would li button",
    "pod/shop/checkout-0": ".margin",
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [WIDE, NARROW], ids=["wide", "narrow"])
def test_pictures_of_every_view(
    served: PageServer, open_page: OpenPage, pictures: Path, width: tuple[int, int], scheme: str
) -> None:
    page = open_page(served.address, size=width, scheme=scheme)
    shape = "wide" if width is WIDE else "narrow"
    for view, complete in VIEWS.items():
        go(page, view)
        page.locator(complete).first.wait_for()
        name = f"{re.sub('[^a-z0-9-]+', '-', view)}-{shape}-{scheme}.png"
        page.screenshot(path=pictures / name, animations="disabled")
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width[0]


def test_a_picture_of_a_comparison(served: PageServer, open_page: OpenPage, pictures: Path) -> None:
    page = open_page(served.view("whatif"))
    page.get_by_label("NodeResourcesFit").fill("50")
    page.get_by_role("button", name="Run and compare").click()
    page.locator(".verdict").wait_for()
    page.locator(".side canvas[data-pictures]").last.wait_for()
    page.screenshot(path=pictures / "compare-wide-light.png")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_empty_cluster_says_so(
    browser: Browser, open_page: OpenPage, pictures: Path, tmp_path: Path, scheme: str
) -> None:
    with page_server(write_cluster(tmp_path / "empty", iter(()))) as server:
        page = open_page(server.address, scheme=scheme)
        page.get_by_role("heading", name="No nodes").wait_for()
        page.screenshot(path=pictures / f"empty-wide-{scheme}.png")
        for view in ("pending", "time", "whatif"):
            go(page, view)
            page.locator("main h1").wait_for()
        page.close()
