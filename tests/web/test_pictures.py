"""Pictures for people to look at: every view in both themes, on a wide screen, a desktop and a phone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.web.clusters import node, pod, write_cluster
from tests.web.conftest import NARROW, SHAPES, WIDE, OpenPage, go
from tests.web.page_server import PageServer, page_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

pytestmark = pytest.mark.web

#: View → something that is there once it is complete.
VIEWS = {
    "map": ".map canvas[data-pictures]",
    "map?colour=workload": ".map canvas[data-pictures]",
    "map/berth-88": ".panel table",
    "map?q=ns:shop": ".found-count",
    "map?show=table": ".map-view .rows table",
    "map/nowhere": ".problems",
    "pending": ".cause",
    "pending?tab=pods": ".pending-view table",
    "time": ".plot canvas",
    "whatif": ".weights",
    "pod/data/archive-0": ".would li button",
    "pod/shop/checkout-0": ".margin",
    "pod/batch/gated-0": ".point.would-be",
    "pod/batch/nightly-0": ".matrix, .sentences",
    "pod/batch/report-0": ".matrix, .sentences",
    "workload/shop/web": ".workload-view table",
    "nonsense": ".empty",
}

CHANGES = (
    ("add nodes", "like node", "berth-12"),
    ("drain nodes", "Nodes", "berth-00,berth-08,berth-16"),
    ("lose a zone", "Zone", "quay-b"),
    ("scale a workload", "Workload", "Deployment observability/metrics"),
    ("add nodes of a machine type", "Machines", "3xm5.xlarge,zones=3"),
)

#: What stands past the right edge of the page and is not in something that scrolls.
PAST_THE_EDGE = """() => {
    const edge = document.documentElement.clientWidth + 1;
    const scrolls = (element) => {
        for (let at = element.parentElement; at; at = at.parentElement)
            if (at !== document.body && getComputedStyle(at).overflowX !== "visible") return true;
        return false;
    };
    return [...document.querySelectorAll("body *")]
        .filter((each) => each.getBoundingClientRect().width && each.getBoundingClientRect().right > edge)
        .filter((each) => !scrolls(each))
        .map((each) => each.outerHTML.slice(0, 200));
}"""


@pytest.mark.parametrize(("shape", "size", "scheme"), SHAPES)
def test_pictures_of_every_view(
    served: PageServer,
    open_page: OpenPage,
    pictures: Path,
    shape: str,
    size: tuple[int, int],
    scheme: str,
) -> None:
    page = open_page(served.address, size=size, scheme=scheme)
    page.get_by_role("slider", name="Moment").wait_for()
    for view, complete in VIEWS.items():
        go(page, view)
        page.locator(complete).first.wait_for()
        name = f"{re.sub('[^a-z0-9-]+', '-', view)}-{shape}-{scheme}.png"
        page.screenshot(path=pictures / name, animations="disabled", full_page=True)
        assert page.evaluate(PAST_THE_EDGE) == []


CUT = """(all) => all.filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.textContent)"""
BELOW_ITS_LIST = """(link) =>
    link.getBoundingClientRect().bottom - link.closest("nav").getBoundingClientRect().bottom"""
CUT_OFF = "(region) => region.scrollWidth - region.clientWidth"
LINES = """(cell) => {
    const all = document.createRange();
    all.selectNodeContents(cell);
    return all.getClientRects().length;
}"""


@pytest.mark.parametrize("size", [(1920, 1080), WIDE, NARROW], ids=["wide", "desktop", "phone"])
def test_names_of_plugins_are_whole_and_bars_of_one_list_are_of_one_length(
    served: PageServer, open_page: OpenPage, size: tuple[int, int]
) -> None:
    page = open_page(served.view("pending"), size=size)
    names = page.locator(".holder .name")
    names.first.wait_for()
    assert names.evaluate_all(CUT) == []
    go(page, "map/berth-88")
    assert len({round(width) for _, width in _spans(page.locator(".usage .meter"))}) == 1
    go(page, "map?show=table")
    cpus = page.locator(".map-view .rows tbody td:nth-child(3) .meter")
    assert len({round(left) for left, _ in _spans(cpus)}) == 1


def _spans(elements: Locator) -> list[tuple[float, float]]:
    elements.first.wait_for()
    boxes = [each.bounding_box() for each in elements.all()]
    return [(box["x"], box["width"]) for box in boxes if box]


def test_a_phone_shows_the_view_by_more_than_a_colour_and_breaks_no_word(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("pending"), size=NARROW)
    page.locator(".cause").first.wait_for()
    assert page.locator(".top nav a[aria-current]").evaluate(BELOW_ITS_LIST) <= 0
    go(page, "whatif")
    page.get_by_label("NodeResourcesFit").fill("7")
    page.get_by_role("button", name="Run and compare").click()
    measure = page.get_by_role("rowheader", name="cpu fragmentation")
    expect(measure).to_be_visible()
    assert measure.evaluate(LINES) <= 2
    assert page.get_by_role("region", name="Numbers before and after").evaluate(CUT_OFF) <= 0
    # The switch of the colours is beside the choice of the run.
    choice, switch = (page.locator(each).bounding_box() for each in (".where select", ".theme"))
    assert choice is not None
    assert switch is not None
    assert abs(choice["y"] - switch["y"]) < 20
    page.locator(".warnings summary").click()
    warnings = page.locator(".warnings ul").bounding_box()
    assert warnings is not None
    assert warnings["x"] >= 0
    assert warnings["x"] + warnings["width"] <= NARROW[0]


@pytest.mark.parametrize(("shape", "size", "scheme"), SHAPES)
def test_pictures_of_what_if_and_a_comparison(
    served: PageServer,
    open_page: OpenPage,
    pictures: Path,
    shape: str,
    size: tuple[int, int],
    scheme: str,
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("whatif"), size=size, scheme=scheme)
    page.get_by_label("NodeResourcesFit").fill("50")
    for kind, field, value in CHANGES:
        page.get_by_role("combobox", name="Change").select_option(label=kind)
        page.get_by_label(field, exact=True).fill(value)
        expect(page.get_by_label(field, exact=True)).to_have_value(value)
        assert page.evaluate(PAST_THE_EDGE) == []
        page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("button", name="Show as YAML and as a command").click()
    page.get_by_label("Command").wait_for()
    assert page.evaluate(PAST_THE_EDGE) == []
    page.screenshot(path=pictures / f"whatif-list-{shape}-{scheme}.png", full_page=True)
    page.get_by_role("button", name="Run and compare").click()
    page.locator(".verdict").wait_for()
    page.locator(".side canvas[data-pictures]").last.wait_for()
    assert page.evaluate(PAST_THE_EDGE) == []
    page.screenshot(path=pictures / f"compare-{shape}-{scheme}.png", full_page=True)


def test_the_longest_names_stay_on_the_page(
    browser: Browser, open_page: OpenPage, tmp_path: Path
) -> None:
    longest = ".".join(letter * 62 for letter in "abcd")
    objects = [
        node(longest, cpu="4", memory="8Gi", zone="a" * 63, pool="p"),
        pod(f"{'n' * 63}/{longest}", cpu="1", memory="1Gi"),
        pod("default/waits", cpu="8", memory="1Gi"),
        pod("default/waited", cpu="4", memory="1Gi"),
        pod("default/first", cpu="4", memory="1Gi", annotations={"mooring.dev/run-seconds": "60"}),
    ]
    del objects[0]["metadata"]["labels"]["kubernetes.io/hostname"]
    with page_server(write_cluster(tmp_path / "longest", iter(objects))) as server:
        for width in (WIDE, NARROW):
            page = open_page(server.address, size=width)
            page.get_by_role("slider", name="Moment").wait_for()
            for view, complete in (
                ("map", ".map canvas[data-pictures]"),
                (f"map/{longest}", ".panel table"),
                ("pending", ".cause"),
                ("time", ".plot canvas"),
                (f"pod/{'n' * 63}/{longest}", ".margin, .matrix"),
                ("pod/default/waited", ".attempts a"),
                ("pod/default/waits", ".would li button"),
            ):
                go(page, view)
                page.locator(complete).first.wait_for()
                assert page.evaluate(PAST_THE_EDGE) == [], view
            page.close()


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
