"""A gang is one thing on the map, among the pending, and on the time line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.web.clusters import write_cluster
from tests.web.conftest import SHAPES, OpenPage, go
from tests.web.page_server import PageServer, page_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.web

GATES = "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true"
RACK = "example.com/rack"


def job(name: str, pods: int, cpu: str, **annotations: str) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "ml", "annotations": annotations},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


def training() -> Iterator[dict[str, Any]]:
    """Two racks. One gang has the large one, one fits beside it, and one waits for the room of the first."""
    for name in ("a-1", "a-2", "b-1"):
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {RACK: name[0]}},
            "status": {"allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110"}},
        }
    in_rack = {"mooring.dev/gang": "true", "mooring.dev/gang-topology-key": RACK}
    yield job("llm", 4, "4", **in_rack)
    yield job("vision", 4, "4", **in_rack)
    yield job("speech", 2, "3", **{"mooring.dev/gang": "true"})
    yield job("alone", 1, "1")


@pytest.fixture(scope="module")
def served(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    folder = write_cluster(tmp_path_factory.mktemp("gangs") / "training", training())
    with page_server(folder, "--feature-gates", GATES) as server:
        yield server


LIT = """() => {
  const { found, scene } = document.querySelector('.map').drawing.shown;
  return scene.cluster.nodeNames.filter((_, i) => found?.nodes[i]);
}"""


def test_a_click_on_a_gang_shows_where_all_of_it_is(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("map"))
    gangs = page.locator(".gangs button")
    expect(gangs).to_have_count(3)
    expect(page.get_by_role("button", name="ml/llm 4 of 4")).to_be_visible()
    expect(page.get_by_role("button", name="ml/vision 0 of 4 · waits")).to_be_visible()

    page.get_by_role("button", name="ml/llm").click()

    expect(page.get_by_role("button", name="ml/llm")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".found-count")).to_be_visible()
    assert page.evaluate(LIT) == ["a-1", "a-2"]


def test_pods_of_one_gang_have_one_colour(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("map"))
    page.get_by_label("Colour", exact=True).select_option("gang")
    expect(page.locator(".legend")).to_contain_text("in no gang")
    colours = page.evaluate(
        """() => {
          const { scene, paint } = document.querySelector('.map').drawing.shown;
          const of = {};
          for (let pod = 0; pod < scene.cluster.podCount; pod += 1)
            (of[scene.cluster.gangOf(pod)] ??= new Set()).add(paint.colourOf(pod));
          return Object.fromEntries(Object.entries(of).map(([gang, set]) => [gang, [...set]]));
        }"""
    )
    assert {len(each) for each in colours.values()} == {1}
    assert len({each[0] for each in colours.values()}) == 4


def test_a_gang_that_waits_is_one_entry_with_what_it_needs(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("pending"))
    expect(page.locator(".cause")).to_have_count(1)
    entry = page.locator(".cause").first
    expect(entry).to_contain_text("Gang ml/vision")
    expect(entry).to_contain_text(f"It needs 4 pods within one {RACK}: 0 of 4 have a node, 4 wait.")
    expect(entry).to_contain_text("Insufficient cpu")
    expect(entry).to_contain_text("mooring explain podgroup/ml/vision")

    entry.get_by_role("link", name="ml/vision", exact=True).first.click()

    expect(page.get_by_role("heading", name="ml/vision")).to_be_visible()
    expect(page.locator(".workload-view")).to_contain_text("Gang: 0 pods on 0 nodes")


def test_what_happens_to_a_gang_at_once_is_one_line_of_the_time_line(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("time?kind=bound"))
    rows = page.locator(".events tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.filter(has_text="ml/llm")).to_contain_text("× 4")
    expect(rows.filter(has_text="ml/llm")).to_contain_text("a-1, a-2")


@pytest.mark.parametrize(("shape", "size", "scheme"), SHAPES)
def test_pictures_of_gangs(
    served: PageServer,
    open_page: OpenPage,
    pictures: Path,
    shape: str,
    size: tuple[int, int],
    scheme: str,
) -> None:
    page = open_page(served.address, size=size, scheme=scheme)
    for view, complete in (
        ("map?colour=gang", "canvas[data-pictures]"),
        ("pending", ".cause"),
        ("time", ".plot canvas"),
        ("gang/ml/llm", ".workload-view table"),
    ):
        go(page, view)
        page.locator(complete).first.wait_for()
        name = view.partition("?")[0].replace("/", "-")
        page.screenshot(path=pictures / f"gangs-{name}-{shape}-{scheme}.png", full_page=True)
