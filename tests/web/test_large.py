"""5,000 nodes and 50,000 pods: how soon the page is usable, and how it answers while a simulation runs.

The page must be usable after 1.5 s, also while the simulation runs, and answer in 100 ms; two runs must be
compared in a second. What is measured is written to `.screenshots/measures.json`; the assertions hold for the
processor time of the page, and leave room in time for a machine that is busy with other things.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import Request, urlopen

import pytest

from tests.web.clusters import Manifest, large, node, pod, write_cluster
from tests.web.conftest import OpenPage, go
from tests.web.page_server import PageServer, page_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

pytestmark = pytest.mark.web

USABLE_MS, USABLE_ON_ANY_MACHINE_MS = 1_500, 15_000
ANSWERS_MS, ANSWERS_ON_ANY_MACHINE_MS = 100, 500

COMPARED_MS, COMPARED_ON_ANY_MACHINE_MS = 1_000, 10_000

START_A_RUN = """async () => {
    const body = JSON.stringify({base: 1, name: "one more", addNodes: [{like: "node-0002", count: 1}]});
    const headers = {"Content-Type": "application/json"};
    return (await (await fetch("api/runs", {method: "POST", headers, body})).json()).job;
}"""

COMPARE = """async (runs) => {
    const from = performance.now();
    const headers = {"Content-Type": "application/json"};
    const body = JSON.stringify({runs});
    const {job} = await (await fetch("api/compare", {method: "POST", headers, body})).json();
    const jobs = async () => (await (await fetch("api/session")).json()).jobs;
    while ((await jobs()).find((each) => each.id === job).state === "running");
    const {runs: compared} = await (await fetch(`api/jobs/${job}/result`)).json();
    return [Math.round(performance.now() - from), compared];
}"""

#: What the bar of the view shows, whenever it shows something else: text, value, largest value.
WATCH_PROGRESS = """(() => {
    window.progress = [];
    const look = () => {
        const bar = document.querySelector("main progress");
        if (bar) {
            const number = (name) => (bar.hasAttribute(name) ? Number(bar.getAttribute(name)) : null);
            const now = [bar.getAttribute("aria-label"), number("value"), number("max")];
            if (JSON.stringify(now) !== JSON.stringify(window.progress.at(-1))) window.progress.push(now);
        }
        requestAnimationFrame(look);
    };
    look();
})();"""

RUN_STATE = """async (id) =>
    (await (await fetch("api/session")).json()).runs.find((run) => run.id === id).state"""

UNTIL_READY = """async (id) => {
    for (;;) {
        const {runs} = await (await fetch("api/session")).json();
        if (runs.find((run) => run.id === id).state === "ready") return;
        await new Promise((done) => setTimeout(done, 200));
    }
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

GROUP_BY = """async (key) => {
    const choice = document.querySelector("select[aria-label='Group by']");
    const from = performance.now();
    choice.value = key;
    choice.dispatchEvent(new Event("change", {bubbles: true}));
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    return Math.round(performance.now() - from);
}"""

#: The part of the map that nodes take.
AREA_USED = """() => {
    const {ss, width, height} = document.querySelector(".map").drawing.layout;
    return ss.reduce((sum, side) => sum + side * side, 0) / (width * height);
}"""

#: The browser's own times (Event Timing): from an input to the paint after it, in steps of 8 ms, from 16 ms.
WATCH_EVENTS = """() => {
    window.took = [];
    new PerformanceObserver((list) => {
        for (const each of list.getEntries()) if (each.interactionId) window.took.push(each.duration);
    }).observe({type: "event", durationThreshold: 16});
}"""
#: Two frames later, all of them are there.
LONGEST = """async () => {
    const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50)));
    await frame();
    await frame();
    return Math.max(0, ...window.took.splice(0));
}"""
ROUNDS = 8


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
    ready(open_page(large_served.address))  # So that the run is over, and the browser awake.
    page = open_page(large_served.address)
    ready(page)
    usable = round(page.evaluate("() => performance.now()"))
    page.locator(".map-keys").press("Home")
    page.locator(".panel h2").wait_for()
    note(pictures, usable_ms={"asked": USABLE_MS, "measured": usable})
    page.screenshot(path=pictures / "large-wide-light.png")
    assert usable < USABLE_ON_ANY_MACHINE_MS


def test_it_is_usable_while_the_first_simulation_runs(
    tmp_path: Path, open_page: OpenPage, pictures: Path
) -> None:
    """Nodes are chosen and pods found before the run is over, and pods appear as they are placed."""
    from playwright.sync_api import expect

    folder = write_cluster(tmp_path / "filling", large(waiting=30_000))
    open_page("about:blank")
    with page_server(folder) as server:
        # As soon as it is read; until then the page tells how far that is.
        until_started(server)
        page = open_page("about:blank")
        spent = processor_time(page)
        page.goto(server.address)
        expect(page.locator(".map canvas[data-pictures]")).to_be_visible()
        usable, used = round(page.evaluate("() => performance.now()")), spent()
        assert page.evaluate(RUN_STATE, 1) == "running"
        expect(page.get_by_role("heading", name="Simulating")).to_be_visible()
        expect(page.get_by_role("progressbar")).to_be_visible()
        first = on_nodes(page)
        page.locator(".map-keys").press("Home")
        expect(page.locator(".panel h2")).to_be_visible()
        page.locator("#find").fill("ns:team-3")
        expect(page.locator(".found-count")).to_contain_text("2,500 pods")
        page.locator("#find").fill("")
        page.wait_for_function(
            "(first) => document.querySelectorAll('.whole strong')[1].textContent.replace(/,/g, '') > first",
            arg=first,
        )
        page.screenshot(path=pictures / "large-under-way.png")
        assert page.evaluate(RUN_STATE, 1) == "running"
        go(page, "pending")
        expect(page.get_by_text("without a node so far")).to_be_visible()
        go(page, "pod/team-0/svc-0-0")
        expect(page.get_by_text("when the simulation is done")).to_be_visible()
        note(
            pictures,
            usable_while_simulating_ms={"asked": USABLE_MS, "measured": usable, "processor": used},
        )
        page.close()
        assert used < USABLE_MS
        assert usable < USABLE_ON_ANY_MACHINE_MS


def until_started(server: PageServer) -> None:
    """Until the cluster is read and its simulation begins, as the stream of events tells it."""
    request = Request(
        f"{server.root}api/events", headers={"Authorization": f"Bearer {server.token}"}
    )
    with urlopen(request) as events:
        for line in events:
            if b'"started":true' in line:
                return


def corner(element: Locator) -> tuple[float, float]:
    box = element.bounding_box()
    assert box is not None
    return box["x"], box["y"]


def on_nodes(page: Page) -> int:
    return int(page.locator(".whole strong").nth(1).inner_text().replace(",", ""))


def processor_time(page: Page) -> Callable[[], int]:
    """Milliseconds of processor time of the page's main thread, from now on."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def task_ms() -> int:
        found = session.send("Performance.getMetrics")["metrics"]
        return round(1000 * next(each["value"] for each in found if each["name"] == "TaskDuration"))

    before = task_ms()
    return lambda: max(task_ms() - before, 0)


def test_two_finished_runs_are_compared_in_a_second(
    large_served: PageServer, open_page: OpenPage, pictures: Path
) -> None:
    page = open_page(large_served.address)
    ready(page)
    job = page.evaluate(START_A_RUN)
    run = page.evaluate(RUN_OF, job)
    page.evaluate(UNTIL_READY, run)
    took, runs = page.evaluate(COMPARE, [1, run])
    assert runs == [1, run]
    note(pictures, compared_ms={"asked": COMPARED_MS, "measured": took})
    assert took < COMPARED_ON_ANY_MACHINE_MS


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
    spent = processor_time(page)
    took = page.evaluate(INTERACT)
    used = spent() / len(took)
    still = page.evaluate(JOB_STATE, job)
    slowest = max(took.values())
    note(
        pictures,
        answers_ms={"asked": ANSWERS_MS, "slowest": slowest, "job at the end": still, **took},
        processor_ms_an_interaction=used,
    )
    assert used < ANSWERS_MS
    assert slowest < ANSWERS_ON_ANY_MACHINE_MS


def test_what_people_do_is_answered_by_the_next_paint(
    large_served: PageServer, open_page: OpenPage, pictures: Path
) -> None:
    """With real keys and clicks, many times over; what is noted is what 95 of 100 stay within."""
    page = open_page(large_served.address)
    ready(page)
    page.evaluate(WATCH_EVENTS)
    took: dict[str, list[int]] = {}
    used: dict[str, list[int]] = {}
    spent = processor_time(page)

    def act(name: str, what: Callable[[], object]) -> None:
        page.evaluate(LONGEST)
        before = spent()
        what()
        took.setdefault(name, []).append(page.evaluate(LONGEST))
        used.setdefault(name, []).append(spent() - before)

    tabs = page.get_by_role("navigation").first
    slider = page.get_by_role("slider", name="Moment")
    for turn in range(ROUNDS):
        page.locator("#find").focus()
        for letter in f"ns:team-{turn}":
            act("type into the filter", partial(page.keyboard.press, letter))
        page.locator("#find").press("Escape")
        act("clear the filter", partial(page.keyboard.press, "Escape"))
        left, top = corner(page.locator(".map canvas"))
        act("click on a node", partial(page.mouse.click, left + 90 + 40 * turn, top + 200))
        act("close its panel", partial(page.keyboard.press, "Escape"))
        left, top = corner(slider)
        for place in (200, 500, 800):
            act("click on the slider", partial(page.mouse.click, left + place, top + 8))
        slider.press("End")
        for view in ("Pending", "Time", "What if", "Map"):
            link = tabs.get_by_role("link", name=re.compile(f"^{view}"))
            act(f"go to {view}", link.click)
        for choice in ("Resource", "Group by", "Colour"):
            page.get_by_label(choice, exact=True).focus()
            for key in ("ArrowDown", "ArrowUp"):
                act(f"choose {choice}", partial(page.keyboard.press, key))
        page.get_by_role("button", name="Table", exact=True).click()
        act("sort the nodes", page.get_by_role("button", name="memory").click)
        page.get_by_role("button", name="Map", exact=True).click()
    within = {name: sorted(each)[int(0.95 * len(each))] for name, each in took.items()}
    note(
        pictures,
        answers_by_the_next_paint_ms={"asked": ANSWERS_MS, "rounds": ROUNDS, **within},
        the_first_time_ms={name: each[0] for name, each in took.items()},
        the_longest_ms={name: max(each) for name, each in took.items()},
        # Of the page's main thread, what is done after the paint included. Two runs on one idle machine
        # differ by half, so these are noted and not asserted.
        most_processor_ms={name: max(each) for name, each in used.items()},
        processor_ms_the_first_time={name: each[0] for name, each in used.items()},
    )
    assert max(within.values()) < ANSWERS_ON_ANY_MACHINE_MS


def test_a_group_for_each_node_does_not_stop_the_page(
    large_served: PageServer, open_page: OpenPage, pictures: Path
) -> None:
    """Grouping 5,000 nodes by their hostname took six seconds, and drew none of them."""
    page = open_page(large_served.address)
    ready(page)
    spent = processor_time(page)
    took = page.evaluate(GROUP_BY, "kubernetes.io/hostname")
    used = spent()
    note(pictures, a_group_for_each_node_ms={"asked": ANSWERS_MS, "took": took, "processor": used})
    page.screenshot(path=pictures / "large-by-hostname.png")
    assert page.evaluate(AREA_USED) > 0.2
    assert used < ANSWERS_ON_ANY_MACHINE_MS


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
    # Runs of one name are numbered.
    cancelled = re.compile(r"^one more( \(\d+\))?: cancelled$")
    expect(page.get_by_role("heading", name=cancelled)).to_be_visible()
    assert page.evaluate(JOB_STATE, job) == "cancelled"


def test_progress_moves_and_then_tells_of_retries(
    tmp_path: Path, browser: Browser, open_page: OpenPage
) -> None:
    """It stood at 100 % for most of a run, and at all but 100 % if a pod was gated."""
    from playwright.sync_api import expect

    folder = write_cluster(tmp_path / "moving", _that_are_tried_again())
    page = open_page("about:blank")
    page.add_init_script(WATCH_PROGRESS)
    with page_server(folder) as server:
        page.goto(server.address)
        expect(page.get_by_role("slider", name="Moment")).to_be_visible()
        seen = page.evaluate("() => window.progress")
        page.close()
    placing = [(value, most) for text, value, most in seen if "placing pods" in text]
    retrying = [value for text, value, _ in seen if "retrying" in text]
    # A fast machine has placed all of them after a second.
    assert len(placing) > 1, seen
    assert placing == sorted(placing)
    assert {most for _, most in placing} == {4100.0}
    assert all(value < most for value, most in placing)
    assert len(retrying) > 3, seen
    assert set(retrying) == {None}
    in_order = ["retrying" in text for text, _, _ in seen]
    assert in_order == sorted(in_order)


def _that_are_tried_again() -> Iterator[Manifest]:
    """Whenever a pod is over, those that fit nowhere are tried again; one is gated."""
    for i in range(400):
        yield node(f"n{i}", cpu="8", memory="32Gi", zone="a", pool="a")
    for i in range(4000):
        seconds = {"mooring.dev/run-seconds": str(10 + i % 300)}
        yield pod(f"jobs/job-{i}", cpu="500m", memory="1Gi", annotations=seconds)
    for i in range(100):
        yield pod(f"jobs/wide-{i}", cpu=f"{20 + i}", memory="1Gi")
    yield pod("jobs/gated", cpu="1", memory="1Gi", schedulingGates=[{"name": "wait"}])


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


def test_large_numbers_of_nodes_do_not_run_into_the_reasons(
    large_served: PageServer, open_page: OpenPage
) -> None:
    page = open_page(large_served.view("pending?at=end"))
    numbers = page.locator(".cause-reasons .numbers, .holder .numbers")
    numbers.first.wait_for()
    wide = "(all) => all.map((each) => [each.textContent, each.scrollWidth - each.clientWidth])"
    assert [text for text, over in numbers.evaluate_all(wide) if over > 0] == []
