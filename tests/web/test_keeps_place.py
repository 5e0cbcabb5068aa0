"""The page keeps its place: the map stays put, edits last, the address holds what is seen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.web.clusters import node, pod, write_cluster
from tests.web.conftest import NARROW, OpenPage
from tests.web.held_requests import HeldRequests
from tests.web.page_server import PageServer, page_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

pytestmark = pytest.mark.web

DRAWING = "document.querySelector('.map').drawing"
#: Where the pods of a node are on the screen.
POD_AT = """(node) => {
    const drawing = document.querySelector('.map').drawing;
    const canvas = document.querySelector('.map canvas').getBoundingClientRect();
    const { left, top, side } = drawing.boxOf(node);
    const [x, y, w, h] = drawing.podsIn(node);
    const key = drawing.shown.scene.cluster.podKey(drawing.shown.scene.podsOn(node)[0]);
    return { x: canvas.x + left + (x + w / 2) * side, y: canvas.y + top + (y + h / 2) * side, key };
}"""


def shown(page: Page) -> None:
    page.locator("canvas[data-pictures]").wait_for()


def test_a_double_click_on_a_pod_opens_its_page(served: PageServer, open_page: OpenPage) -> None:
    """The first click opened a panel that rearranged the map under the second."""
    from playwright.sync_api import expect

    page = open_page(served.address)
    for number in (0, 24, 8):
        page.goto(served.view("map"))
        shown(page)
        at = page.evaluate(POD_AT, number)
        page.mouse.dblclick(at["x"], at["y"])
        expect(page.get_by_role("heading", name=at["key"])).to_be_visible()


def test_choosing_a_node_moves_nothing_and_the_panel_does_not_cover_it(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.address)
    shown(page)
    for number in (0, 8):
        before = page.evaluate(f"() => [...{DRAWING}.layout.xs]")
        at = page.evaluate(POD_AT, number)
        page.mouse.click(at["x"], at["y"])
        expect(page.locator(".panel")).to_be_visible()
        assert page.evaluate(f"() => [...{DRAWING}.layout.xs]") == before
        box = page.locator(".panel").bounding_box()
        assert box is not None
        assert not box["x"] <= at["x"] <= box["x"] + box["width"]
        page.keyboard.press("Escape")
        expect(page.locator(".panel")).to_have_count(0)


def test_the_map_does_not_move_when_the_timeline_arrives(
    served: PageServer, open_page: OpenPage
) -> None:
    """The slider was higher than the line that stands in for it, so the map was laid out again."""
    from playwright.sync_api import expect

    page = open_page("about:blank")
    held = HeldRequests(page, "**/time")
    # On a busy machine, the page opens before the run is over and the timeline is asked for.
    with page.expect_request("**/time"):
        page.goto(served.address)
    shown(page)
    expect(page.locator(".so-far")).to_have_count(0)
    before = page.evaluate(f"() => [{DRAWING}.height, ...{DRAWING}.layout.xs]")
    held.let_go()
    page.get_by_role("slider", name="Moment").wait_for()
    assert page.evaluate(f"() => [{DRAWING}.height, ...{DRAWING}.layout.xs]") == before


@pytest.mark.parametrize(("many", "least"), [(100, 0.4), (7, 0.5), (2, 0.6)])
def test_a_small_group_does_not_make_the_others_small(
    browser: Browser, open_page: OpenPage, tmp_path: Path, many: int, least: float
) -> None:
    def manifests() -> Iterator[dict[str, object]]:
        for i in range(many):
            yield node(f"n{i}", cpu="8", memory="32Gi", zone="large", pool="p")
        yield node("alone", cpu="8", memory="32Gi", zone="small", pool="p")

    with page_server(write_cluster(tmp_path / "uneven", manifests())) as server:
        page = open_page(server.address)
        shown(page)
        part = page.evaluate(
            f"""() => {{
            const {{ layout, width, height }} = {DRAWING};
            return layout.ss.reduce((sum, side) => sum + side * side, 0) / (width * height);
        }}"""
        )
        page.close()
    assert part > least


def test_edits_survive_back_a_second_edit_and_a_reload(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("map/berth-40"))
    page.get_by_role("link", name="Edit and try").click()
    editor = page.get_by_label("Manifests")
    expect(editor).to_have_value(re.compile("name: berth-40"))
    editor.fill(editor.input_value().replace("unschedulable: true", "unschedulable: false"))
    page.go_back()
    expect(page.locator(".panel h2")).to_have_text("berth-40")
    page.goto(served.view("pod/data/archive-0"))
    page.get_by_role("link", name="Edit and try").click()
    expect(editor).to_have_value(re.compile("unschedulable: false(.|\n)*name: archive-0"))
    page.reload()
    expect(editor).to_have_value(re.compile("unschedulable: false(.|\n)*name: archive-0"))
    page.get_by_role("button", name="Run and compare").click()
    expect(page.locator(".verdict")).to_be_visible()
    page.go_back()
    expect(editor).to_have_value(re.compile("unschedulable: false"))


def test_the_address_holds_what_is_seen(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.address)
    shown(page)
    page.get_by_role("combobox", name="Resource").select_option("memory")
    page.get_by_role("combobox", name="Group by").select_option("pool")
    page.get_by_role("combobox", name="Colour").select_option("namespace")
    page.get_by_role("combobox", name="Find and filter nodes and pods").fill("ns:shop")
    page.get_by_role("slider", name="Moment").fill("300")
    page.wait_for_url(re.compile("q=ns:shop.*at=|at=.*q=ns:shop"))
    moment = page.locator(".moment").inner_text()
    other = open_page(page.url, also=True)
    expect(other.locator(".moment")).to_have_text(moment)
    expect(other.get_by_role("combobox", name="Resource")).to_have_value("memory")
    expect(other.get_by_role("combobox", name="Group by")).to_have_value("pool")
    expect(other.get_by_role("combobox", name="Colour")).to_have_value("namespace")
    expect(other.locator(".found-count")).to_contain_text("pods found")
    other.goto(served.view("pending?tab=pods"))
    other.get_by_role("button", name="Tried").click()
    other.wait_for_url(re.compile("sort=-attempts"))
    other.reload()
    expect(other.get_by_role("columnheader", name="Tried")).to_have_attribute(
        "aria-sort", "descending"
    )


def test_it_opens_at_a_moment_with_something_to_see(
    browser: Browser, open_page: OpenPage, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    def manifests() -> Iterator[dict[str, object]]:
        yield node("n", cpu="8", memory="32Gi", zone="a", pool="p")
        for i in range(4):
            yield pod(
                f"default/job-{i}",
                cpu="1",
                memory="1Gi",
                annotations={"mooring.dev/run-seconds": str(60 + i)},
            )

    with page_server(write_cluster(tmp_path / "jobs", manifests())) as server:
        page = open_page(server.address)
        expect(page.locator(".whole")).to_contain_text("4 pods on nodes")
        page.get_by_role("slider", name="Moment").press("End")
        expect(page.locator(".whole")).to_contain_text("0 pods on nodes")
        page.close()


def test_unknown_nodes_and_views_are_told(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("map/nobody"))
    expect(page.get_by_role("alert")).to_contain_text("There is no node “nobody”")
    for view in ("nowhere", "pod"):
        page.goto(served.view(view))
        expect(page.get_by_role("heading", name="No such view")).to_be_visible()


def test_a_word_of_the_address_that_means_nothing_leaves_the_controls_as_they_are(
    served: PageServer, open_page: OpenPage
) -> None:
    """Lists were empty, and the map showed something that no control named."""
    from playwright.sync_api import expect

    words = "resource=x&group=x&size=x&colour=x&show=x&by=x&at=x"
    page = open_page(served.view(f"map?{words}"))
    shown(page)
    for name, value in (
        ("Resource", "cpu"),
        ("Group by", "topology.kubernetes.io/zone"),
        ("Size", "capacity"),
        ("Colour", "utilisation"),
        ("Slide by", "time"),
    ):
        expect(page.get_by_role("combobox", name=name)).to_have_value(value)
    expect(page.get_by_role("button", name="Map", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    expect(page.locator(".moment")).to_contain_text("at the end")


@pytest.mark.parametrize("view", ["map?run=x", "map?run=1.5", "compare/1/99", "compare/x/y"])
def test_an_address_of_no_run_is_told_and_leads_back(
    served: PageServer, open_page: OpenPage, view: str
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view(view))
    expect(page.get_by_role("heading", name="No such run")).to_be_visible()
    page.get_by_role("link", name="Go to the first run").click()
    shown(page)


def test_labels_of_nodes_with_one_ending_are_told_apart(
    served: PageServer, open_page: OpenPage
) -> None:
    page = open_page(served.address)
    shown(page)
    names = page.get_by_role("combobox", name="Group by").locator("option").all_inner_texts()
    assert len(names) == len(set(names))


def test_escape_closes_the_panel_of_a_node(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("map/berth-40"))
    expect(page.locator(".panel h2")).to_have_text("berth-40")
    page.locator(".panel").get_by_role("button", name="Close").focus()
    page.keyboard.press("Escape")
    expect(page.locator(".panel")).to_have_count(0)
    expect(page.locator(".map-keys")).to_be_focused()
    # Also where the node was looked for.
    page.keyboard.press("/")
    page.keyboard.type("berth-41")
    page.keyboard.press("Enter")
    expect(page.locator(".panel h2")).to_have_text("berth-41")
    page.keyboard.press("Escape")
    expect(page.locator(".panel")).to_have_count(0)


def test_an_invalid_weight_is_told(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("whatif"))
    weight = page.get_by_label("ImageLocality")
    weight.fill("-3")
    expect(page.get_by_role("alert")).to_contain_text("a whole number from 0 to 100")
    weight.fill("3")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_wrong_token_and_a_restarted_server_are_told(
    browser: Browser, harbour_files: Path, open_page: OpenPage, complaints: list[str]
) -> None:
    from playwright.sync_api import expect

    with page_server(harbour_files) as server:
        page = open_page(f"{server.root}?token=wrong")
        expect(page.locator("body")).to_contain_text("The token in the address is wrong")
        page.goto(server.address)
        expect(page.locator(".whole")).to_be_visible()
        port = re.search(r":(\d+)/", server.root)
        assert port is not None
    with page_server(harbour_files, "--port", port[1]):
        expect(page.get_by_role("alert")).to_contain_text("was started again")
        page.close()
    complaints.clear()


def test_a_finger_scrolls_the_page_over_the_map_and_a_node_opens_in_sight(
    served: PageServer, browser: Browser
) -> None:
    from playwright.sync_api import expect

    viewport = {"width": NARROW[0], "height": NARROW[1]}
    context = browser.new_context(viewport=viewport, has_touch=True, is_mobile=True)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(served.address)
    shown(page)
    touch = "() => getComputedStyle(document.querySelector('.map canvas')).touchAction"
    assert page.evaluate(touch) == "pan-x pan-y"
    at = page.evaluate(POD_AT, 0)
    page.touchscreen.tap(at["x"], at["y"])
    expect(page.locator(".panel")).to_be_in_viewport()
    context.close()


#: Two pods that would end, of which one fits.
TRACE = {
    "openb_node_list_all_node.csv": "sn,cpu_milli,memory_mib,gpu,model\nn,8000,32768,0,\n",
    "openb_pod_list_default.csv": (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
        "first,6000,1024,0,0,,LS,Running,0,3600,0\nsecond,6000,1024,0,0,,BE,Running,60,7200,60\n"
    ),
}


@pytest.mark.parametrize(
    ("options", "pending", "end"),
    [((), 0, "2h 59m"), (("--endless",), 1, "1m"), (("--endless", "--until", "30s"), 0, "30s")],
    ids=["its times", "endless", "until"],
)
def test_a_trace_on_the_page_has_the_options_of_replay(
    browser: Browser,
    open_page: OpenPage,
    tmp_path: Path,
    options: tuple[str, ...],
    pending: int,
    end: str,
) -> None:
    from playwright.sync_api import expect

    for name, text in TRACE.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    more = ("--priority", "LS=100", *options)
    with page_server(None, "--trace", str(tmp_path), *more) as server:
        page = open_page(server.view("map?at=end"))
        expect(page.locator(".anchor strong")).to_have_text(str(pending))
        expect(page.locator(".moment strong")).to_have_text(end)
        page.goto(server.view("pod/default/first"))
        expect(page.locator(".facts > div", has_text="priority")).to_contain_text("100")
        page.close()


def ask_to_edit(page: Page) -> Route:
    """The request for the pod whose page is open, which waits."""
    held = HeldRequests(page, "**/object?*")
    page.get_by_role("link", name="Edit and try").click()
    return held.first()


def test_manifests_are_not_edited_before_what_was_asked_for_is_there(
    served: PageServer, open_page: OpenPage
) -> None:
    """What was typed meanwhile stood before the pod that came later, and the cursor behind it."""
    from playwright.sync_api import expect

    page = open_page(served.view("pod/shop/checkout-0"))
    asked = ask_to_edit(page)
    editor = page.get_by_label("Manifests")
    expect(editor).to_be_disabled()
    expect(page.locator("#objects-text-check")).to_contain_text("Reading")
    asked.continue_()
    expect(editor).to_be_enabled()
    expect(editor).to_have_value(re.compile("^# Pod shop/checkout-0"))


def test_what_was_asked_for_and_left_changes_no_later_edit(
    served: PageServer, open_page: OpenPage
) -> None:
    """The answer overwrote what was edited since, with the edits of the view that was left."""
    from playwright.sync_api import expect

    page = open_page(served.view("pod/shop/checkout-0"))
    asked = ask_to_edit(page)
    page.go_back()
    expect(page.get_by_role("heading", name="shop/checkout-0")).to_be_visible()
    page.get_by_role("link", name="What if", exact=True).click()
    page.get_by_role("button", name="Pods and nodes").click()
    editor = page.get_by_label("Manifests")
    editor.fill("# mine")
    page.wait_for_url(re.compile("tab=objects"))
    with page.expect_response("**/object?*"):
        asked.continue_()
    page.reload()
    expect(editor).to_have_value("# mine")


def test_an_address_adds_its_change_once(served: PageServer, open_page: OpenPage) -> None:
    """A reload added a change again that had been dropped, and took the edits of a run that is changed."""
    from playwright.sync_api import expect

    page = open_page(served.view("map/berth-40"))
    page.get_by_role("link", name="Try without it").click()
    drafted = page.locator(".drafted li")
    expect(drafted).to_have_count(1)
    page.get_by_role("button", name="Drop without berth-40").click()
    expect(drafted).to_have_count(0)
    page.reload()
    expect(page.get_by_role("heading", name="What if")).to_be_visible()
    expect(page.get_by_text("None yet.")).to_be_visible()
    # The link does it again.
    page.go_back()
    page.get_by_role("link", name="Try without it").click()
    expect(drafted).to_have_count(1)


def test_the_page_of_a_pod_stays_until_its_other_attempt_is_there(
    served: PageServer, open_page: OpenPage
) -> None:
    """It was empty meanwhile, so the page jumped, and what the rows were filtered by was forgotten."""
    from playwright.sync_api import expect

    page = open_page(served.view("pod/data/archive-0"))
    attempts = page.get_by_role("navigation", name="Attempts").get_by_role("link")
    earlier = attempts.first.inner_text()
    rows = page.get_by_placeholder("node, plugin or reason")
    rows.fill("berth-4")
    held = HeldRequests(page, re.compile("attempt="))
    attempts.first.click()
    expect(page.locator(".pod-view")).to_have_attribute("aria-busy", "true")
    expect(page.get_by_role("table", name="Node by plugin")).to_be_visible()
    held.first().continue_()
    expect(page.locator(".pod-view")).to_have_attribute("aria-busy", "false")
    expect(page.locator(".attempts [aria-current]")).to_have_text(earlier)
    expect(rows).to_have_value("berth-4")


def test_a_run_whose_base_is_deleted_is_changed_from_the_first(
    served: PageServer, open_page: OpenPage
) -> None:
    """Its links led to a run that does not exist."""
    from playwright.sync_api import expect

    page = open_page(served.address)
    shown(page)
    page.evaluate(TWO_RUNS)
    page.goto(served.view("whatif"))
    again = page.get_by_role("link", name="Change of the second and run again")
    expect(page.get_by_role("listitem").filter(has_text="of the second")).to_contain_text("compare")
    page.get_by_role("button", name="Delete of the first").click()
    expect(page.get_by_role("button", name="Delete of the first")).to_have_count(0)
    expect(page.get_by_role("listitem").filter(has_text="of the second")).not_to_contain_text(
        "compare"
    )
    again.click()
    expect(page.locator(".drafted li")).to_contain_text(["drain berth-01", "drain berth-02"])
    page.get_by_role("button", name="Delete of the second").click()


#: A run of a run.
TWO_RUNS = """async () => {
    const headers = {"Content-Type": "application/json"};
    const start = async (base, name, drain) => {
        const body = JSON.stringify({base, name, changes: [{drain}]});
        return (await (await fetch("api/runs", {method: "POST", headers, body})).json()).run;
    };
    const first = await start(1, "of the first", "berth-01");
    await start(first, "of the second", "berth-02");
}"""


def test_the_node_to_copy_can_be_written_from_nothing(
    served: PageServer, open_page: OpenPage
) -> None:
    """Whoever deleted the name got it back at once, and wrote behind it."""
    from playwright.sync_api import expect

    page = open_page(served.view("whatif"))
    like = page.get_by_label("like node", exact=True)
    expect(like).to_have_value(re.compile("."))
    like.fill("berth-4")
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    expect(like).to_have_value("")
    page.keyboard.type("berth-40")
    expect(like).to_have_value("berth-40")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".drafted li")).to_contain_text("1 node like berth-40")


def test_a_cluster_without_nodes_is_offered_machines(
    browser: Browser, open_page: OpenPage, tmp_path: Path
) -> None:
    """The form asked for a node to copy, of which there is none."""
    from playwright.sync_api import expect

    waits = [pod("default/waits", cpu="1", memory="1Gi")]
    with page_server(write_cluster(tmp_path / "no nodes", iter(waits))) as server:
        page = open_page(server.view("whatif"))
        page.get_by_label("Machines", exact=True).fill("m5.xlarge")
        page.get_by_role("button", name="Add", exact=True).click()
        page.get_by_role("button", name="Run and compare").click()
        expect(page.locator(".verdict")).to_contain_text("1 pod newly placed")
        page.close()
