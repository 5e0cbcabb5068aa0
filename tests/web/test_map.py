"""The cluster as a whole: found, chosen and read by pointer, keyboard and table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.web.clusters import Manifest, node, pod, write_cluster
from tests.web.conftest import NARROW, WIDE, OpenPage, go
from tests.web.page_server import PageServer, page_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.web


def test_the_page_opens_with_the_whole_cluster_and_the_token_gone_from_the_address(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.address)
    expect(page.locator(".map canvas[data-pictures]")).to_be_visible()
    expect(page.locator(".whole")).to_contain_text("102 nodes")
    expect(page.locator(".anchor")).to_contain_text("6 pods pending")
    assert served.token not in page.url
    assert re.match("Map · harbour · Mooring", page.title())


def test_what_is_searched_for_is_offered_and_gone_to(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.address)
    box = page.get_by_role("combobox", name="Find and filter nodes and pods")
    box.fill("berth-88")
    expect(page.get_by_role("option", name="node berth-88")).to_be_visible()
    box.press("Enter")
    panel = page.get_by_role("complementary", name="Node berth-88")
    expect(panel).to_contain_text("pods")
    assert page.url.endswith("#/map/berth-88")


#: What is typed, and what is found.
SEARCHES = {
    "crane": "6 nodes",
    "is:cordoned": "2 nodes",
    "taint:gpu": "6 nodes",
    "label:pool=gpu": "6 nodes",
    "ns:data label:app=postgres": "9 nodes, 9 pods",
    "node:berth-00": "1 node",
    "plugin:NodeAffinity": "0 nodes, 1 pod",
}


def test_a_search_filters_by_name_mark_taint_label_namespace_node_and_plugin(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.address)
    for text, found in SEARCHES.items():
        page.get_by_role("combobox", name="Find and filter nodes and pods").fill(text)
        expect(page.locator(".found-count")).to_contain_text(found)


def test_a_node_is_chosen_by_arrow_keys_and_its_sentence_is_there_to_be_heard(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.address)
    keys = page.get_by_role("listbox", name=re.compile("Nodes on the map"))
    keys.press("Home")
    first = page.locator(".map-keys [role=option]").inner_text()
    keys.press("ArrowDown")
    expect(page.locator(".map-keys [role=option]")).not_to_have_text(first)
    expect(page.locator(".map-keys [role=option]")).to_contain_text(
        re.compile("cpu .*, memory .*pod")
    )
    chosen = page.locator(".panel h2").inner_text()
    assert page.url.endswith(f"#/map/{chosen}")
    keys.press("Enter")
    expect(page.locator("#node-panel")).to_be_focused()


def test_a_click_chooses_the_node_under_the_pointer_and_a_wheel_zooms(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.address)
    expect(page.locator("canvas[data-pictures]")).to_be_visible()
    box = page.evaluate("() => document.querySelector('.map').drawing.boxOf(0)")
    place = page.locator(".map canvas").bounding_box()
    assert place is not None
    x, y = place["x"] + box["left"] + box["side"] / 2, place["y"] + box["top"] + box["side"] / 2
    page.mouse.move(x, y)
    expect(page.locator(".bubble")).to_contain_text("berth-00")
    page.mouse.click(x, y)
    expect(page.locator(".panel h2")).to_have_text("berth-00")
    before = page.evaluate("() => document.querySelector('.map').drawing.view.k")
    page.mouse.wheel(0, -400)
    assert page.evaluate("() => document.querySelector('.map').drawing.view.k") > before


def test_the_map_can_be_read_as_a_table(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.address)
    page.get_by_role("button", name="Table", exact=True).click()
    table = page.get_by_role("table", name="Nodes")
    expect(table).to_have_attribute("aria-rowcount", "103")
    expect(table.get_by_role("row").nth(1)).to_contain_text("berth-00")
    page.get_by_role("button", name="cpu").click()
    expect(page.get_by_role("columnheader", name="cpu")).to_have_attribute(
        "aria-sort", "descending"
    )
    expect(table.get_by_role("row").nth(1)).to_contain_text("100%")
    page.get_by_role("combobox", name="Find and filter nodes and pods").fill("is:cordoned")
    expect(table).to_have_attribute("aria-rowcount", "3")
    expect(table.get_by_role("row").nth(1)).to_contain_text("cordoned")


def test_groups_resources_and_sizes_are_chosen(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.address)
    names = "() => document.querySelector('.map').drawing.layout.blocks.map((each) => each.name)"
    expect(page.locator("canvas[data-pictures]")).to_be_visible()
    assert sorted(page.evaluate(names)) == ["quay-a", "quay-b", "quay-c"]
    page.get_by_label("Group by").select_option("pool")
    assert sorted(page.evaluate(names)) == ["general", "gpu"]
    page.get_by_label("Resource").select_option("nvidia.com/gpu")
    expect(page.locator(".legend")).to_contain_text("nvidia.com/gpu requested")


def test_it_opens_with_what_pods_request_and_one_group_if_nodes_are_alike(
    browser: Browser, open_page: OpenPage, tmp_path: Path
) -> None:
    """A map of cpu is empty where pods request GPUs alone; every node has the same architecture."""
    from playwright.sync_api import expect

    cluster = tmp_path / "gpus"
    write_cluster(cluster, iter(_gpus_alone()))
    with page_server(cluster) as server:
        page = open_page(server.address)
        expect(page.get_by_label("Resource")).to_have_value("nvidia.com/gpu")
        expect(page.get_by_label("Group by")).to_have_value("")
        page.get_by_label("Resource").select_option("cpu")
        page.wait_for_function("() => location.hash.includes('resource=cpu')")
        page.close()


def _gpus_alone() -> Iterator[Manifest]:
    for name in ("a", "b"):
        made = node(name, cpu="8", memory="8Gi", zone="", pool="", gpu=4)
        made["metadata"]["labels"] = {"kubernetes.io/arch": "amd64"}
        yield made
    yield pod("ml/train", cpu="0", memory="0", gpu=2)


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_no_control_lies_over_the_map(
    served: PageServer, open_page: OpenPage, size: tuple[int, int]
) -> None:
    page = open_page(served.address, size=size)
    page.locator("canvas[data-pictures]").wait_for()
    canvas = page.locator(".map canvas").bounding_box()
    zoom = page.get_by_role("group", name="Zoom").bounding_box()
    assert canvas is not None
    assert zoom is not None
    assert zoom["y"] >= canvas["y"] + canvas["height"]
    page.get_by_role("button", name="Zoom in").click()


def test_colours_follow_the_system_until_the_reader_switches_and_stay_switched(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.address, scheme="dark")
    root = page.locator("html")
    expect(root).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="Use light colours").click()
    expect(root).to_have_attribute("data-theme", "light")
    page.reload()
    expect(page.locator(".whole")).to_be_visible()
    expect(root).to_have_attribute("data-theme", "light")


def test_a_reload_shows_the_same_view_again(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("map/berth-88"))
    expect(page.locator(".panel h2")).to_have_text("berth-88")
    page.reload()
    expect(page.locator(".panel h2")).to_have_text("berth-88")


def test_keyboard_users_skip_to_the_content_first(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.address)
    expect(page.locator(".whole")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()


@pytest.mark.parametrize("width", [360, NARROW[0]])
def test_nothing_is_wider_than_a_phone(served: PageServer, open_page: OpenPage, width: int) -> None:
    from playwright.sync_api import expect

    page = open_page(served.address, size=(width, 740))
    for view in ("map/berth-88", "pending", "time", "whatif", "pod/data/archive-0"):
        go(page, view)
        expect(page.locator(f"main.view-{view.partition('/')[0]} h1")).to_be_attached()
        expect(page.locator(".loading")).to_have_count(0)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width


def test_the_page_says_when_its_server_is_gone(
    browser: Browser, harbour_files: Path, open_page: OpenPage, complaints: list[str]
) -> None:
    from playwright.sync_api import expect

    with page_server(harbour_files) as server:
        page = open_page(server.address)
        # Until the timeline is there, that it cannot be read would be told, too.
        expect(page.get_by_role("slider", name="Moment")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer")
    page.close()
    assert all("ERR_" in each for each in complaints)
    complaints.clear()


def test_of_very_many_namespaces_some_are_listed_and_the_others_are_written(
    browser: Browser, open_page: OpenPage, tmp_path: Path
) -> None:
    """A list of 10,000 namespaces made every view of the map slow."""
    from playwright.sync_api import expect

    objects = [node("n", cpu="64", memory="64Gi", zone="a", pool="p")]
    objects += [pod(f"space-{i:03d}/only", cpu="10m", memory="1Mi") for i in range(400)]
    with page_server(write_cluster(tmp_path / "spaces", iter(objects))) as server:
        page = open_page(server.address)
        choice = page.get_by_label("Namespace", exact=True)
        expect(choice.locator("option")).to_have_count(302)
        choice.select_option(label="100 more: write ns:NAME")
        expect(page.locator("#find")).to_be_focused()
        page.keyboard.type("space-399")
        expect(page.locator(".found-count")).to_contain_text("1 pod ")
        expect(choice).to_have_value("space-399")
        page.close()


#: The colour in the middle of a node, and at a third of its height from the top.
COLOURS_OF = """(name) => {
    const map = document.querySelector(".map");
    const { drawing } = map;
    const { left, top, side } = drawing.boxOf(drawing.shown.scene.cluster.indexOfNode(name));
    const at = (part) => [...drawing.context.getImageData(
        (left + side / 2) * drawing.ratio, (top + side * part) * drawing.ratio, 1, 1).data].join();
    return [at(0.5), at(0.95)];
}"""
DRAWN = "(before) => document.querySelector('.map canvas').dataset.pictures !== before"
PICTURES = "() => document.querySelector('.map canvas').dataset.pictures"


def test_a_node_that_has_none_is_not_one_that_is_empty_and_what_does_not_match_is_dimmed(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("map?resource=nvidia.com/gpu"))
    expect(page.locator("canvas[data-pictures]")).to_be_visible()
    expect(page.locator(".legend")).to_contain_text("has no nvidia.com/gpu")
    assert page.evaluate(COLOURS_OF, "crane-0") != page.evaluate(COLOURS_OF, "berth-88")

    page.get_by_label("Resource").select_option("cpu")
    plain = page.evaluate(COLOURS_OF, "berth-88")
    before = page.evaluate(PICTURES)
    page.locator("#find").fill("node:berth-00")
    page.wait_for_function(DRAWN, arg=before)
    assert page.evaluate(COLOURS_OF, "berth-88") != plain


def test_pods_have_the_colours_of_what_they_are(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("map"))
    for colour, named in (("namespace", "shop"), ("workload", "shop/web"), ("priority", "1000")):
        page.get_by_label("Colour", exact=True).select_option(colour)
        expect(page.locator(".legend")).to_contain_text(named)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_names_on_the_map_can_be_read_on_every_colour(
    served: PageServer, open_page: OpenPage, theme: str
) -> None:
    page = open_page(served.address, scheme=theme)
    found = page.evaluate(
        """async (theme) => {
            const { inkOn, paletteOf } = await import("mooring/colour");
            const palette = paletteOf(theme);
            const behind = [...palette.ramp, ...palette.kinds];
            return [[palette.ink, palette.empty], ...behind.map((each) => [inkOn(each), each])];
        }""",
        theme,
    )
    assert {
        tuple(pair): round(_contrast(*pair), 1) for pair in found if _contrast(*pair) < 4.5
    } == {}


def _contrast(one: str, two: str) -> float:
    """As WCAG counts it."""
    low, high = sorted(_luminance(each) for each in (one, two))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    if colour.startswith("#"):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    else:
        parts = [int(each) / 255 for each in re.findall(r"\d+", colour)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


NAMES_ON_THE_MAP = "() => document.querySelector('.map').drawing.shown.scene.cluster.shortNames()"


def test_names_on_the_map_leave_out_a_domain_unless_it_tells_nodes_apart(
    browser: Browser, open_page: OpenPage, tmp_path: Path
) -> None:
    """All nodes of a cloud were called "….compute.internal", as names were cut at the front."""
    cases = {
        "cloud": (
            ["ip-10-0-0-1.ec2.internal", "ip-10-0-0-2.ec2.internal"],
            ["ip-10-0-0-1", "ip-10-0-0-2"],
        ),
        "sites": (["db.paris", "db.rome"], ["db.paris", "db.rome"]),
        "addresses": (["10.0.0.1"], ["10.0.0.1"]),
    }
    for name, (names, short) in cases.items():
        nodes = (node(each, cpu="4", memory="8Gi", zone="a", pool="p") for each in names)
        with page_server(write_cluster(tmp_path / name, nodes)) as server:
            page = open_page(server.address)
            page.locator("canvas[data-pictures]").wait_for()
            assert page.evaluate(NAMES_ON_THE_MAP) == short
            page.close()


def test_pods_that_request_nothing_are_seen_by_their_number(
    browser: Browser, open_page: OpenPage, tmp_path: Path
) -> None:
    """The map showed cpu, so five pods lay on nodes that looked empty."""
    from playwright.sync_api import expect

    manifests = [node("n", cpu="4", memory="8Gi", zone="a", pool="p")]
    for i in range(5):
        each = pod(f"default/p{i}", cpu="1", memory="1Gi")
        each["spec"]["containers"][0].pop("resources")
        manifests.append(each)
    with page_server(write_cluster(tmp_path / "nothing", iter(manifests))) as server:
        page = open_page(server.address)
        page.locator("canvas[data-pictures]").wait_for()
        expect(page.get_by_label("Resource", exact=True)).to_have_value("pods")
        page.close()
