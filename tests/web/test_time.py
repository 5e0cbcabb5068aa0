"""Virtual time: slid over, played, jumped into; the map and the plots go along."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.web.clusters import Manifest, node, pod, write_cluster
from tests.web.conftest import OpenPage
from tests.web.page_server import PageServer, page_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.web

SCENE = "document.querySelector('.map').drawing.shown.scene"
PODS_PLACED = f"() => {SCENE}.pods.length"
PODS_WAITING = f"() => {SCENE}.waiting()"
CPU_PERCENT = f"() => Math.round({SCENE}.whole(0).share * 100)"


def test_the_slider_brings_back_the_cluster_of_that_moment(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("time"))
    expect(page.locator(".plot canvas")).to_have_count(4)
    expect(page.locator("canvas[data-pictures]")).to_be_visible()
    at_end = page.evaluate(PODS_PLACED)
    slider = page.get_by_role("slider", name="Moment")
    slider.fill("200")
    expect(page.locator(".moment")).to_contain_text(re.compile("after .* changes of"))
    assert page.evaluate(PODS_PLACED) > at_end  # Jobs were still running.
    slider.press("End")
    expect(page.locator(".moment")).to_contain_text("at the end")
    assert page.evaluate(PODS_PLACED) == at_end


def test_one_change_back_is_one_pod_less_or_more(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("time"))
    page.get_by_label("Slide by").select_option("change")
    page.get_by_role("slider", name="Moment").fill("0")
    expect(page.locator(".moment")).to_contain_text("after 0 changes")
    bound_before = page.evaluate(PODS_PLACED)
    page.get_by_role("button", name="One change forward").click()
    expect(page.locator(".moment")).to_contain_text("after 1 change of")
    assert abs(page.evaluate(PODS_PLACED) - bound_before) == 1


def test_the_slider_stays_as_wide_as_it_is_while_it_is_moved(
    served: PageServer, open_page: OpenPage
) -> None:
    """The text beside it grew and shrank, and the slider with it, under the hand that moved it."""
    page = open_page(served.view("map"))
    slider = page.get_by_role("slider", name="Moment")
    widths = set()
    for value in ("0", "3", "500", "999", "1000"):
        slider.fill(value)
        widths.add(slider.evaluate("(it) => it.getBoundingClientRect().width"))
    assert len(widths) == 1


def test_it_plays_to_the_end_and_can_be_paused(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("time"))
    page.get_by_role("button", name="Play").click()
    expect(page.locator(".moment")).not_to_contain_text("at the end")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    expect(page.locator(".moment")).to_contain_text("changes of")


def test_an_event_is_jumped_to(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("time"))
    page.get_by_label("Kind").select_option("finished")
    events = page.get_by_role("table", name="Events")
    expect(events.get_by_role("row").nth(1)).to_contain_text("finished")
    button = events.get_by_role("button", name=re.compile("Go to")).first
    when = button.inner_text()
    button.click()
    expect(page.locator(".moment strong")).to_have_text(when)


def test_plots_and_the_map_say_the_same_of_every_moment(
    browser: Browser, open_page: OpenPage, tmp_path: Path
) -> None:
    """A pod that arrives and gets its node in one second was drawn as one that waits for days."""
    from playwright.sync_api import expect

    with page_server(write_cluster(tmp_path / "arrivals", _that_finish())) as server:
        page = open_page(server.view("time"))
        expect(page.locator(".plot canvas")).to_have_count(4)
        slider = page.get_by_role("slider", name="Moment")
        for at in (0, 130, 400, 555, 1000):
            slider.fill(str(at))
            utilisation, pending = (page.locator(".plot .now").nth(i) for i in (0, 1))
            waiting = page.evaluate(PODS_WAITING)
            expect(pending).to_have_text(str(waiting))
            expect(utilisation).to_contain_text(f"cpu {page.evaluate(CPU_PERCENT)}%")
        plot = "document.querySelectorAll('.plot > div')[1].plot"
        times, counts = page.evaluate(f"() => {plot}.data.map((each) => [...each])")
        page.close()
    # One of the two places gets free each 100 s, and the next pod gets it in the same second.
    assert times == [0, 100, 200, 300, 400, 600]
    assert counts == [4, 3, 2, 1, 0, 0]


def _that_finish() -> Iterator[Manifest]:
    """Two places for six pods; the first runs for 100 s and the others for 200 s."""
    yield node("n", cpu="2", memory="8Gi", zone="a", pool="p")
    for i in range(6):
        yield pod(
            f"default/job-{i}",
            cpu="1",
            memory="1Gi",
            annotations={"mooring.dev/run-seconds": "200" if i else "100"},
        )


def test_the_moment_stays_when_the_view_changes(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("time"))
    page.get_by_role("slider", name="Moment").fill("300")
    moment = page.locator(".moment").inner_text()
    page.get_by_role("link", name="Map", exact=True).click()
    expect(page.locator(".moment")).to_have_text(moment)


#: The part of time that each plot shows.
SHOWN = """() => [...document.querySelectorAll(".plot > div")]
    .map(({ plot }) => [plot.scales.x.min, plot.scales.x.max])"""
TICKS = "() => document.querySelector('.plot > div').plot.axes[0]._values"


def test_a_crosshair_tells_the_values_of_all_plots(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("time"))
    plots = page.locator(".plot .u-over")
    expect(plots).to_have_count(4)
    plots.nth(1).hover(position={"x": 150, "y": 40})
    said = page.locator(".plot .now")
    times = set()
    for i in range(4):
        expect(said.nth(i)).to_have_text(re.compile(r"^at (\d+m )?\d+s: |^at \d+m: "))
        times.add(said.nth(i).inner_text().split(":")[0])
    # Each told of its own next value, before or after the crosshair.
    assert len(times) == 1


#: Where a time is on a plot, from its left edge.
PLACE_OF = "([plot, x]) => document.querySelectorAll('.plot > div')[plot].plot.valToPos(x, 'x')"
#: The largest value that a plot has room for.
ROOM = "() => document.querySelectorAll('.plot > div')[1].plot.scales.y.max"


def test_a_value_holds_until_the_next_one(queue: PageServer, open_page: OpenPage) -> None:
    """Shortly before a pod got its node, the plot told how many were pending after it, at a later time.

    When this was zoomed to, the line was above the plot, as only later values made room.
    """
    from playwright.sync_api import expect

    page = open_page(queue.view("time?at=end"))
    plot = page.locator(".plot .u-over").nth(1)
    plot.wait_for()
    said = page.locator(".plot .now").nth(1)
    for time, pending in ((90, 3), (110, 2)):
        plot.hover(position={"x": page.evaluate(PLACE_OF, [1, time]), "y": 40})
        expect(said).to_have_text(re.compile(rf"^at \S.*: {pending}$"))
    box = plot.bounding_box()
    assert box is not None
    left, right = (box["x"] + page.evaluate(PLACE_OF, [1, each]) for each in (60, 110))
    page.mouse.move(left, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(right, box["y"] + 30, steps=5)
    page.mouse.up()
    assert page.evaluate(ROOM) >= 3


def test_a_drag_zooms_all_plots_and_a_double_click_shows_all(
    served: PageServer, open_page: OpenPage
) -> None:
    page = open_page(served.view("time"))
    plot = page.locator(".plot .u-over").first
    plot.wait_for()
    whole = page.evaluate(SHOWN)
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 60, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 30, steps=5)
    page.mouse.up()
    shown = page.evaluate(SHOWN)
    assert len({tuple(each) for each in shown}) == 1
    assert shown[0][0] > whole[0][0]
    assert shown[0][1] < whole[0][1]
    plot.dblclick()
    page.wait_for_function(f"(whole) => JSON.stringify(({SHOWN})()) === whole", arg=_written(whole))


def _written(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def test_times_are_those_that_people_count_in(served: PageServer, open_page: OpenPage) -> None:
    page = open_page(served.view("time"))
    page.locator(".plot canvas").first.wait_for()
    assert page.evaluate(TICKS)[:4] == ["0s", "2m", "4m", "6m"]


def test_preemptions_and_failed_attempts_are_marked_on_the_slider(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("map"))
    expect(page.locator(".marks .preempted")).to_have_count(1)
    assert page.locator(".marks .failed").count() > 10


@pytest.fixture(scope="module")
def queue(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    """Of two pods that need a whole node, one waits for the other; two more fit on none."""

    def manifests() -> Iterator[Manifest]:
        yield node("n.example.com", cpu="4", memory="8Gi", zone="a", pool="p")
        runs = {"mooring.dev/run-seconds": "100"}
        yield pod("default/first", cpu="4", memory="1Gi", annotations=runs, priority=10)
        yield pod("default/second", cpu="4", memory="1Gi", annotations=runs)
        yield pod("default/wide", cpu="64", memory="1Gi")
        yield pod("default/picky", cpu="1", memory="1Gi", nodeSelector={"pool": "none"})

    folder = write_cluster(tmp_path_factory.mktemp("clusters") / "queue", manifests())
    with page_server(folder) as server:
        yield server


def test_the_number_beside_pending_is_that_of_the_list(
    queue: PageServer, open_page: OpenPage
) -> None:
    """The tab had the number at the end, beside the number of the moment and a list of that length."""
    from playwright.sync_api import expect

    for at, pods in (("1", 3), ("end", 2)):
        page = open_page(queue.view(f"map?at={at}"))
        expect(page.locator(".anchor strong")).to_have_text(str(pods))
        expect(page.locator("nav .badge")).to_have_text(f"{pods} pods")
        page.get_by_role("link", name=re.compile("^Pending")).click()
        expect(page.locator(".title p")).to_contain_text(f"{pods} pods without a node")


def test_a_plugin_filters_by_what_it_rejects_at_the_moment(
    queue: PageServer, open_page: OpenPage
) -> None:
    """It knew the end only: a pod that got its node later was not among those that were rejected."""
    from playwright.sync_api import expect

    page = open_page(queue.view("pending?at=1"))
    rejected = page.get_by_role("region", name="Rejected by")
    rejected.get_by_role("button", name=re.compile("NodeResourcesFit")).click()
    expect(page.locator(".title p")).to_contain_text("2 pods of 3 without a node")
    expect(page.locator(".cause")).to_contain_text(["default/second", "default/wide"])
    page.get_by_role("slider", name="Moment").press("End")
    expect(page.locator(".title p")).to_contain_text("1 pod of 2 without a node at the end")


def test_a_gate_filters_at_any_moment(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    for at in ("1", "end"):
        page = open_page(served.view(f"pending?at={at}&q=plugin:SchedulingGates"))
        expect(page.locator(".cause h2")).to_have_text("batch/gated-0")


def test_what_would_help_is_asked_at_any_moment_of_pods_that_wait_to_the_end(
    queue: PageServer, open_page: OpenPage
) -> None:
    """The page opens at a full moment, where nothing told what would help."""
    from playwright.sync_api import expect

    page = open_page(queue.view("pending?at=1"))
    cause = page.locator(".cause")
    expect(cause.filter(has_text="default/second").get_by_role("button")).to_have_count(0)
    wide = cause.filter(has_text="default/wide")
    wide.get_by_role("button", name="What would help at the end?").click()
    expect(wide.locator(".suggestion")).to_contain_text("At the end, it would fit if you")


def test_events_are_filtered_by_the_moment_that_is_shown(
    queue: PageServer, open_page: OpenPage
) -> None:
    """After the slider was moved, they were those of the moment at which the filter was typed."""
    from playwright.sync_api import expect

    page = open_page(queue.view("time?at=1&q=is:pending"))
    events = page.get_by_role("table", name="Events")
    expect(events.get_by_role("link", name="default/second").first).to_be_visible()
    page.get_by_role("slider", name="Moment").press("End")
    expect(events.get_by_role("link", name="default/second")).to_have_count(0)
    expect(events.get_by_role("link", name="default/wide").first).to_be_visible()


TOP_OF_SHARES = "() => document.querySelector('.plot > div').plot.scales.y.max"
#: Whether something is drawn in the colour of the line between its last value and the edge of the plot.
DRAWN_AFTER_THE_LAST = """() => {
    const u = document.querySelectorAll('.plot > div')[1].plot;
    const last = u.valToPos(u.data[0].at(-1), "x", true);
    const y = Math.round(u.valToPos(u.data[1].at(-1), "y", true));
    const right = u.bbox.left + u.bbox.width;
    const { data } = u.ctx.getImageData(Math.round((last + right) / 2) + 1, y - 2, 1, 4);
    return [0, 4, 8, 12].some((i) => data[i + 3] > 200 && data[i] > 140 && data[i + 2] < 60);
}"""


def test_a_little_use_is_no_flat_line(
    browser: Browser, open_page: OpenPage, tmp_path: Path
) -> None:
    """Every plot of shares ended at 100 %, so a cluster of which 1 % is used showed nothing."""
    little = [
        *(node(f"n{i}", cpu="64", memory="256Gi", zone="a", pool="p") for i in range(10)),
        *(pod(f"default/p{i}", cpu="500m", memory="100Mi") for i in range(10)),
    ]
    much = [*little, *(pod(f"default/q{i}", cpu="40", memory="1Gi") for i in range(10))]
    for name, manifests, top in (("little", little, 0.01), ("much", much, 1)):
        with page_server(write_cluster(tmp_path / name, iter(manifests))) as server:
            page = open_page(server.view("time"))
            page.locator(".plot canvas").first.wait_for()
            assert page.evaluate(TOP_OF_SHARES) == top
            page.close()


def test_the_last_value_is_seen_beside_the_line_of_the_moment(
    queue: PageServer, open_page: OpenPage
) -> None:
    page = open_page(queue.view("time?at=end&by=change"))
    page.locator(".plot canvas").first.wait_for()
    page.wait_for_function(DRAWN_AFTER_THE_LAST)


def test_where_nothing_happens_there_is_nothing_to_plot(
    browser: Browser, open_page: OpenPage, tmp_path: Path
) -> None:
    """Four empty plots went from 0 to 100 of nothing; without nodes, a legend told of a map."""
    from playwright.sync_api import expect

    waits = [pod("default/waits", cpu="1", memory="1Gi")]
    with page_server(write_cluster(tmp_path / "no nodes", iter(waits))) as server:
        page = open_page(server.view("time"))
        expect(page.get_by_role("table", name="Events")).to_contain_text("default/waits")
        expect(page.locator(".plot, .legend, .map")).to_have_count(0)
        page.close()
