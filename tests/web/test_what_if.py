"""Changes tried on a copy: a weight, a node, more nodes; checked as they are typed."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.web.conftest import OpenPage
from tests.web.held_requests import HeldRequests
from tests.web.page_server import PageServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.web

WHERE_PODS_ARE = """async (run) => {
    const map = await (await fetch(`api/runs/${run}/map`)).json();
    const key = (i) => `${map.strings[map.pods.namespace[i]]}/${map.pods.name[i]}`;
    const where = map.pods.node.map((at, i) => [key(i), at < 0 ? "" : map.nodes.name[at]]);
    return [where, map.pending.pod.map(key)];
}"""


#: Kind of change, its field, and what is said of texts in it.
REFUSED = (
    (
        "lose a zone",
        "Zone",
        {"nowhere": "No such zone.", "=": "No node has =.", "pool=": "No node has pool=."},
    ),
    ("drain nodes", "Nodes", {"nobody": "No such node: nobody.", " , ": "Name a node."}),
    (
        "add nodes of a machine type",
        "Machines",
        {"<b>": "Write it as 3xm5.xlarge.", "0xm5.large": "Write it as 3xm5.xlarge."},
    ),
)


def add(page: Page, kind: str, field: str, value: str, replicas: int | None = None) -> None:
    page.get_by_role("combobox", name="Change").select_option(label=kind)
    page.get_by_label(field, exact=True).fill(value)
    if replicas is not None:
        page.get_by_label("Replicas").fill(str(replicas))
    page.get_by_role("button", name="Add", exact=True).click()


def run_command(page: Page, folder: Path) -> dict[str, Any]:
    """What the exported command says, with the exported file beside it."""
    changes = page.get_by_role("textbox", name="Changes").input_value()
    (folder / "changes.yaml").write_text(changes, encoding="utf-8")
    words = shlex.split(page.get_by_label("Command").input_value())
    assert words[:2] == ["mooring", "simulate"]
    done = subprocess.run(
        [sys.executable, "-m", *words, "-o", "json"], cwd=folder, capture_output=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_one_list_of_changes_is_undone_kept_run_and_exported_as_a_command(
    served: PageServer, open_page: OpenPage, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("whatif"))
    listed = page.locator(".drafted li")
    add(page, "drain nodes", "Nodes", "berth-00,berth-08")
    add(page, "lose a zone", "Zone", "quay-b")
    add(page, "scale a workload", "Workload", "Deployment shop/web", 90)
    add(page, "add nodes of a machine type", "Machines", "2xm5.xlarge")
    expect(listed).to_have_count(4)
    page.get_by_role("button", name="Drop drain berth-00,berth-08").click()
    expect(listed).to_have_count(3)
    page.get_by_role("button", name="Undo").click()
    expect(listed.first).to_contain_text("drain berth-00,berth-08")
    page.reload()
    expect(listed).to_have_count(4)
    page.get_by_role("button", name="Undo").click()
    expect(listed).to_have_count(3)

    page.get_by_role("button", name="Show as YAML and as a command").click()
    answer = run_command(page, tmp_path)

    page.get_by_role("button", name="Run and compare").click()
    expect(page.locator(".verdict")).to_be_visible()
    made = page.get_by_role("combobox", name="After", exact=True).input_value()
    where, pending_on_page = page.evaluate(WHERE_PODS_ARE, int(made))
    on_page = dict(where)
    gone = {each["pod"] for each in answer["finished"]}
    gone |= {victim["pod"] for each in answer["preemptions"] for victim in each["victims"]}
    placed = {each["pod"]: each["node"] for each in answer["placements"] if each["pod"] not in gone}
    assert len(placed) > 50
    assert {pod: on_page[pod] for pod in placed} == placed
    assert sorted(each["pod"] for each in answer["pending"]) == sorted(pending_on_page)
    assert {on_page[pod] for pod in pending_on_page} == {""}
    assert sum("shop/web-" in pod for pod in on_page) == 90
    page.go_back()
    expect(listed).to_have_count(3)


def test_a_run_is_changed_and_run_again(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("whatif"))
    add(page, "drain nodes", "Nodes", "berth-01")
    page.get_by_label("Name", exact=True).fill("one drained")
    page.get_by_role("button", name="Run and compare").click()
    expect(page.locator(".verdict")).to_be_visible()
    page.get_by_role("link", name="What if").click()
    page.get_by_role("link", name="Change one drained and run again").click()
    expect(page.locator(".drafted li")).to_contain_text(["drain berth-01"])
    add(page, "drain nodes", "Nodes", "berth-02")
    page.get_by_role("button", name="Run and compare").click()
    expect(page.locator(".changes").first).to_contain_text("drain berth-02")


def test_what_cannot_be_changed_is_told_before_it_is_run(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("whatif"))
    for kind, field, texts in REFUSED:
        page.get_by_role("combobox", name="Change").select_option(label=kind)
        for text, said in texts.items():
            page.get_by_label(field, exact=True).fill(text)
            expect(page.get_by_text(said)).to_be_visible()
            expect(page.get_by_role("button", name="Add", exact=True)).to_be_disabled()


def test_a_node_that_is_not_there_is_not_listed_as_a_change(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("whatif/without/nobody"))
    expect(page.get_by_role("alert")).to_contain_text("There is no node “nobody”")
    expect(page.locator(".drafted li")).to_have_count(0)


def test_a_refusal_is_told_once(
    served: PageServer, open_page: OpenPage, complaints: list[str]
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("whatif"))
    add(page, "add nodes of a machine type", "Machines", "3xnosuch")
    page.get_by_role("button", name="Run and compare").click()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("nosuch")
    assert alert.inner_text().count("nosuch") == 1
    assert "400" in complaints.pop()


def test_it_is_counted_how_many_more_pods_fit(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("whatif"))
    page.get_by_label("How many more pods like").fill("Deployment shop/web")
    page.get_by_role("button", name="Count").click()
    expect(page.get_by_text(re.compile(r"\d+ more pods like shop/web-.* fit"))).to_be_visible()


LAYOUTS = """() =>
    [...document.querySelectorAll(".side .map")]
        .map(({ drawing }) => [[...drawing.layout.xs], [...drawing.layout.ys]])"""


def test_a_changed_weight_is_run_and_compared(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("whatif"))
    page.get_by_label("NodeResourcesBalancedAllocation").fill("50")
    expect(page.locator("#config-text-check")).to_contain_text("A valid configuration.")
    text = page.get_by_label("Scheduler configuration").input_value()
    assert re.search(r"name: NodeResourcesBalancedAllocation\n\s+weight: 50\n", text)
    page.get_by_label("Name").fill("balance first")
    page.get_by_role("button", name="Run and compare").click()
    expect(page.locator(".verdict")).to_contain_text("moved")
    expect(page.get_by_role("heading", name="After balance first")).to_be_visible()
    numbers = page.get_by_role("region", name="Numbers before and after")
    expect(numbers.get_by_role("row", name=re.compile("cpu imbalance"))).to_be_visible()
    expect(page.get_by_role("heading", name="The first decisions that differ")).to_be_visible()
    page.get_by_role("button", name="Explain").click()
    expect(page.locator(".why-sides").first).to_contain_text("balance first")
    difference = page.get_by_role("region", name="Difference of the configurations")
    expect(difference.locator(".added")).to_contain_text(["weight: 50"])
    workloads = page.get_by_role("table", name="Workloads that changed")
    expect(workloads.get_by_role("columnheader")).to_contain_text(
        ["Workload", "Newly pending or evicted", "Newly placed", "Moved", "Other"]
    )
    expect(workloads.get_by_role("rowheader", name="Deployment shop/web")).to_be_visible()
    before, after = page.evaluate(LAYOUTS)
    assert before == after
    moved = page.get_by_role("table", name="Pods that changed")
    assert int(moved.get_attribute("aria-rowcount") or 0) > 2


def test_the_configuration_is_not_edited_before_it_is_there(
    served: PageServer, open_page: OpenPage
) -> None:
    """What was typed meanwhile stood behind the text that came later, as one configuration."""
    from playwright.sync_api import expect

    page = open_page(served.view("map"))
    held = HeldRequests(page, "**/api/runs/*/config")
    page.get_by_role("link", name="What if", exact=True).click()
    editor = page.get_by_label("Scheduler configuration")
    expect(editor).to_be_disabled()
    expect(page.locator("#config-text-check")).to_contain_text("Reading")
    held.first().continue_()
    expect(editor).to_have_value(re.compile("LeastAllocated"))
    expect(editor).to_be_enabled()
    editor.fill("nonsense: true\n")
    expect(editor).to_have_value("nonsense: true\n")


def test_problems_are_told_as_one_types_with_their_lines(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("whatif"))
    editor = page.get_by_label("Scheduler configuration")
    expect(editor).to_have_value(re.compile("LeastAllocated"))
    editor.fill(editor.input_value().replace("LeastAllocated", "LeastEverything"))
    said = page.locator("#config-text-check")
    expect(said).to_contain_text("1 problem")
    expect(said).to_contain_text("LeastEverything")
    expect(page.locator(".gutter .bad")).to_have_count(1)
    said.get_by_role("button", name=re.compile("line")).click()
    expect(editor).to_be_focused()
    page.get_by_role("button", name="Undo all edits").click()
    expect(said).to_contain_text("change it to try another")


def test_a_node_is_edited_and_others_added(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("map/berth-40"))
    page.get_by_role("link", name="Edit and try").click()
    editor = page.get_by_label("Manifests")
    expect(editor).to_have_value(re.compile("unschedulable: true"))
    editor.fill(editor.input_value().replace("unschedulable: true", "unschedulable: false"))
    expect(page.locator("#objects-text-check")).to_contain_text("replace node berth-40")
    page.get_by_label("like node").fill("berth-00")
    page.get_by_label("Add", exact=True).fill("3")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".drafted")).to_contain_text("3 nodes like berth-00")
    page.get_by_role("button", name="Run and compare").click()
    expect(page.locator(".verdict")).to_be_visible()
    expect(page.locator(".changes").first).to_contain_text("add 3 nodes like berth-00")
    page.get_by_role("link", name=re.compile("^Map")).click()
    expect(page.locator(".whole")).to_contain_text("105 nodes")


def test_a_node_is_done_without(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("map/berth-00"))
    page.get_by_role("link", name="Try without it").click()
    expect(page.locator(".drafted")).to_contain_text("without berth-00")
    page.get_by_role("button", name="Run and compare").click()
    expect(page.locator(".verdict")).to_contain_text("moved")


def test_what_cannot_be_run_is_refused_with_its_reason(
    served: PageServer, open_page: OpenPage, complaints: list[str]
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("whatif"))
    page.get_by_role("button", name="Pods and nodes").click()
    page.get_by_label("Manifests").fill("kind: Pod\nmetadata: {name: NO}\n")
    expect(page.locator("#objects-text-check")).to_contain_text("problem")
    page.get_by_role("button", name="Run and compare").click()
    expect(page.get_by_role("alert")).to_contain_text(
        "manifests: document 1: apiVersion: is missing"
    )
    assert page.url.endswith("#/whatif?tab=objects")
    assert "400" in complaints.pop()


def test_any_two_runs_can_be_compared(served: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("whatif/without/berth-08"))
    page.get_by_role("button", name="Run and compare").click()
    expect(page.locator(".verdict")).to_be_visible()
    made = page.get_by_role("combobox", name="After", exact=True).input_value()
    page.get_by_role("combobox", name="After", exact=True).select_option("1")
    expect(page.locator(".side").first).to_contain_text("remove node berth-08")
    expect(page.locator(".verdict")).to_be_visible()
    assert page.url.endswith(f"#/compare/{made}/1")
