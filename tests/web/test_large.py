"""5,000 nodes and 50,000 pods: how soon the page is usable, and how it answers while a simulation runs.

The issue asks for 3 s and 100 ms. What is measured is written to `.screenshots/measures.json`; the assertions
leave room for a machine that is busy with other things.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.web.clusters import large, write_cluster
from tests.web.conftest import OpenPage, go
from tests.web.page_server import PageServer, page_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.web

USABLE_MS, USABLE_ON_ANY_MACHINE_MS = 3_000, 15_000
ANSWERS_MS, ANSWERS_ON_ANY_MACHINE_MS = 100, 500

START_A_RUN = """async () => {
    const body = JSON.stringify({base: 1, name: "one more", addNodes: [{like: "node-0002", count: 1}]});
    const headers = {"Content-Type": "application/json"};
    return (await (await fetch("api/runs", {method: "POST", headers, body})).json()).job;
}"""

JOB_STATE = """async (id) =>
    (await (await fetch("api/session")).json()).jobs.find((job) => job.id === id).state"""

RUN_OF = """async (id) =>
    (await (await fetch("api/session")).json()).jobs.find((job) => job.id === id).run"""

#: Each interaction is timed from the event to the frame after which its result is on the screen.
INTERACT = """async () => {
    const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    const find = document.querySelector("#find");
    const slider = document.querySelector("input[type=range]");
    const keys = document.querySelector(".map-keys");
    const canvas = document.querySelector(".map canvas");
    const type = (element, value) => {
        element.value = value;
        element.dispatchEvent(new Event("input", {bubbles: true}));
    };
    const key = (name) => keys.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true}));
    const wheel = (deltaY) => canvas.dispatchEvent(
        new WheelEvent("wheel", {deltaY, clientX: 700, clientY: 500, cancelable: true}));
    const interactions = [
        ["choose the first node", () => key("Home")],
        ["next node", () => key("ArrowDown")],
        ["search", () => type(find, "svc-12")],
        ["search on", () => type(find, "svc-123")],
        ["search by label", () => type(find, "ns:team-3 label:app=svc-7")],
        ["clear the search", () => type(find, "")],
        ["zoom in", () => wheel(-500)],
        ["zoom in further", () => wheel(-500)],
        ["zoom out", () => wheel(2000)],
        ["slide back", () => type(slider, "200")],
        ["slide on", () => type(slider, "900")],
        ["slide to the end", () => type(slider, "1000")],
    ];
    const took = {};
    await frame();
    for (const [name, act] of interactions) {
        const from = performance.now();
        act();
        await frame();
        took[name] = Math.round(performance.now() - from);
        await frame();
    }
    return took;
}"""


@pytest.fixture(scope="module")
def large_served(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PageServer]:
    folder = write_cluster(tmp_path_factory.mktemp("clusters") / "large", large())
    with page_server(folder) as server:
        yield server


def note(pictures: Path, **measures: object) -> None:
    path = pictures / "measures.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps({**known, **measures}, indent=2) + "\n", encoding="utf-8")


def ready(page: Page) -> None:
    from playwright.sync_api import expect

    expect(page.locator(".map canvas[data-pictures]")).to_be_visible()
    expect(page.get_by_role("slider", name="Moment")).to_be_visible()


def test_it_is_usable_soon_after_the_address_is_opened(
    large_served: PageServer, open_page: OpenPage, pictures: Path
) -> None:
    open_page("about:blank")  # So that the browser is awake.
    page = open_page(large_served.address)
    ready(page)
    usable = round(page.evaluate("() => performance.now()"))
    page.locator(".map-keys").press("Home")
    page.locator(".panel h2").wait_for()
    note(pictures, usable_ms={"asked": USABLE_MS, "measured": usable})
    page.screenshot(path=pictures / "large-wide-light.png")
    assert usable < USABLE_ON_ANY_MACHINE_MS


def test_it_answers_while_a_simulation_runs(
    large_served: PageServer, open_page: OpenPage, pictures: Path
) -> None:
    from playwright.sync_api import expect

    page = open_page(large_served.address)
    ready(page)
    job = page.evaluate(START_A_RUN)
    tray = page.get_by_role("region", name="Running jobs")
    expect(tray).to_contain_text("one more")
    assert page.evaluate(JOB_STATE, job) == "running"
    took = page.evaluate(INTERACT)
    still = page.evaluate(JOB_STATE, job)
    slowest = max(took.values())
    note(
        pictures,
        answers_ms={"asked": ANSWERS_MS, "slowest": slowest, "job at the end": still, **took},
    )
    assert slowest < ANSWERS_ON_ANY_MACHINE_MS


def test_a_run_under_way_tells_how_far_it_is_and_can_be_cancelled(
    large_served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(large_served.address)
    ready(page)
    job = page.evaluate(START_A_RUN)
    tray = page.get_by_role("region", name="Running jobs")
    expect(tray.get_by_role("progressbar").last).to_be_visible()
    run = page.evaluate(RUN_OF, job)
    go(page, f"map?run={run}")
    expect(page.get_by_role("heading", name="Simulating")).to_be_visible()
    page.get_by_role("main").get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("heading", name="one more: cancelled")).to_be_visible()
    assert page.evaluate(JOB_STATE, job) == "cancelled"


def test_the_matrix_of_5000_nodes_is_only_as_many_rows_as_are_in_sight(
    large_served: PageServer, open_page: OpenPage, pictures: Path
) -> None:
    from playwright.sync_api import expect

    page = open_page(large_served.view("pod/team-0/late-0"))
    matrix = page.get_by_role("table", name="Node by plugin")
    expect(matrix).to_have_attribute("aria-rowcount", "5001")
    assert matrix.locator("tbody tr").count() < 100
    region = page.get_by_role("region", name="Node by plugin")
    region.evaluate("(element) => { element.scrollTop = element.scrollHeight; }")
    expect(matrix.locator("tbody tr[aria-rowindex='5001']")).to_be_attached()
    page.screenshot(path=pictures / "large-pod.png")
