"""What the page says is so: filters, states, verdicts, numbers and links. Each test was once a mistake."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.web.clusters import deployment, node, pod, write_cluster
from tests.web.conftest import NARROW, OpenPage, go
from tests.web.page_server import PageServer, page_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.web

GANG = Path(__file__).parents[2] / "examples" / "03-gang"


@pytest.fixture(scope="module")
def teams(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    """Names that begin alike, and many pods that wait for the same reason."""

    def manifests() -> Iterator[dict[str, object]]:
        for i in range(4):
            yield node(f"n{i}", cpu="8", memory="32Gi", zone="a", pool=f"pool-{i}")
        for i in range(12):
            yield pod(f"team-1/a-{i}", cpu="100m", memory="1Gi", labels={"app": "svc-1"})
            yield pod(f"team-10/b-{i}", cpu="100m", memory="1Gi", labels={"app": "svc-10"})
        yield deployment("team-1/warehouse", 30, cpu="60", memory="1Gi")
        yield pod("team-1/most", cpu="1", memory="1Gi", priority=1000)

    folder = write_cluster(tmp_path_factory.mktemp("clusters") / "teams", manifests())
    with page_server(folder) as server:
        yield server


def search(page: Page, text: str) -> None:
    page.get_by_role("combobox", name="Find and filter nodes and pods").fill(text)


#: What is typed, and the pods that it finds.
FILTERS = {
    "ns:team-1": "43 pods",
    "ns:team-1*": "55 pods",
    "label:app=svc-1": "12 pods",
    "label:app=svc-1*": "24 pods",
    "ns:team-1 -label:app=svc-1": "31 pods",
    "workload:warehouse": "30 pods",
    "workload:team-1/warehouse": "30 pods",
    "priority:>=1000": "1 pod ",
    "a-1": "3 pods",
    "is:pending": "30 pods",
    'ns:"team-1"': "43 pods",
    'workload:"deployment team-1/warehouse"': "30 pods",
    "-label:app=svc-1": "43 pods",
    "-label:pool=pool-1": "3 nodes",
    "-most": "54 pods",
    "state:pending": "30 pods",
    "state:run*": "25 pods",
}


def test_fields_match_whole_words_and_a_star_matches_more(
    teams: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(teams.address)
    for text, found in FILTERS.items():
        search(page, text)
        expect(page.locator(".found-count")).to_contain_text(found)


def test_an_unknown_field_is_refused_and_help_stands_under_the_box(
    teams: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(teams.address)
    expect(page.locator(".whole")).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_role("combobox", name="Find and filter nodes and pods")).to_be_focused()
    expect(page.locator(".find-help")).to_contain_text("workload:web")
    search(page, "namespace:shop")
    expect(page.get_by_role("alert")).to_contain_text("There is no field “namespace:”")
    search(page, "priority:high")
    expect(page.get_by_role("alert")).to_contain_text("not a priority")
    search(page, "state:runing")
    expect(page.get_by_role("alert")).to_contain_text("There is no state “runing”")
    page.get_by_role("button", name="Clear the filter").click()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_an_offer_that_is_taken_leaves_no_filter(teams: PageServer, open_page: OpenPage) -> None:
    from playwright.sync_api import expect

    page = open_page(teams.address)
    search(page, "most")
    page.get_by_role("option", name="pod team-1/most").click()
    expect(page.get_by_role("heading", name="team-1/most")).to_be_visible()
    expect(page.get_by_role("combobox", name="Find and filter nodes and pods")).to_have_value("")
    assert "q=" not in page.url


def test_a_pod_that_waits_on_permit_waits_and_is_offered_nothing(
    browser: Browser, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    from playwright.sync_api import expect

    monkeypatch.setenv("PYTHONPATH", f"{GANG}:{os.environ.get('PYTHONPATH', '')}")
    config = str(GANG / "scheduler.yaml")
    with page_server(GANG / "cluster.yaml", "--config", config, "--until", "45s") as server:
        page = open_page(server.view("pending?tab=pods"))
        row = page.get_by_role("row", name=re.compile("waiting for Permit of Gang"))
        row.get_by_role("link").click()
        expect(page.locator(".title .state")).to_contain_text("waiting")
        expect(page.locator(".sentences")).to_contain_text("waiting for Permit of Gang")
        expect(page.locator(".point.waiting")).to_contain_text("Permit")
        expect(page.locator(".point.passed").filter(has_text="Reserve")).to_have_count(1)
        expect(page.locator("header.title")).to_contain_text("holds a place on node-2")
        expect(page.locator(".would")).to_have_count(0)
        attempts = page.get_by_role("navigation", name="Attempts").get_by_role("link")
        attempts.first.click()
        expect(page.locator(".point.rejected").first).to_contain_text("Filter")
        expect(page.locator(".reason")).to_contain_text("Insufficient cpu")
        page.close()


def test_a_node_that_a_nominated_pod_holds_is_rejected_in_the_cell_of_its_plugin(
    browser: Browser, open_page: OpenPage, tmp_path: Path
) -> None:
    """The row said "Insufficient cpu" while every plugin had a ✓."""
    from playwright.sync_api import expect

    def manifests() -> Iterator[dict[str, object]]:
        yield node("n0", cpu="8", memory="32Gi", zone="a", pool="a")
        # Terminating when the simulation stops, so that the preemptor still waits for its room.
        yield pod("default/victim", cpu="4", memory="1Gi", priority=0, nodeName="n0")
        yield pod("default/stays", cpu="2", memory="1Gi", priority=100, nodeName="n0")
        yield pod("default/preemptor", cpu="5", memory="1Gi", priority=10)
        # 2 of 8 are free, but not beside the 5 of the preemptor.
        yield pod("default/second", cpu="2", memory="1Gi", priority=0)

    folder = write_cluster(tmp_path / "nominated", manifests())
    with page_server(folder, "--until", "10s") as server:
        page = open_page(server.view("pod/default/second"))
        row = page.get_by_role("table", name="Node by plugin").get_by_role("row", name="n0")
        expect(row).to_contain_text("Insufficient cpu (with the pods nominated to it)")
        expect(row.locator(".v.bad")).to_have_count(1)
        expect(row.locator(".v.bad")).to_have_attribute(
            "title", "NodeResourcesFit: Insufficient cpu"
        )
        page.close()


#: Pod → the changes that are proposed for it.
PROPOSED = {
    "default/wide": ["lower the cpu request from 60 to 9.35"],
    "default/narrow": ["lower the cpu request from 12.5 to 9.35"],
    "default/deep": ["lower the memory request from 300Gi to 32Gi"],
    # Nobody labels a machine as what it is not.
    "default/arm": ["drop kubernetes.io/arch=arm64 from the nodeSelector"],
    "default/pool": ["label node n0 pool=fast", "drop pool=fast from the nodeSelector"],
}


def test_proposed_changes_are_what_people_would_do_in_their_words(
    browser: Browser, open_page: OpenPage, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    def manifests() -> Iterator[dict[str, object]]:
        for i in range(2):
            yield node(f"n{i}", cpu="9350m", memory="32Gi", zone="a", pool="slow")
        yield pod("default/wide", cpu="60", memory="1Gi")
        yield pod("default/narrow", cpu="12500m", memory="1Gi")
        yield pod("default/deep", cpu="1", memory="300Gi")
        selector = {"kubernetes.io/arch": "arm64"}
        yield pod("default/arm", cpu="1", memory="1Gi", nodeSelector=selector)
        yield pod("default/pool", cpu="1", memory="1Gi", nodeSelector={"pool": "fast"})

    with page_server(write_cluster(tmp_path / "proposed", manifests())) as server:
        page = open_page(server.address)
        for key, proposed in PROPOSED.items():
            page.goto(server.view(f"pod/{key}"))
            expect(page.locator(".title h1")).to_have_text(key)
            expect(page.locator(".would li")).to_contain_text(proposed)
        page.close()


def test_skipped_points_are_not_points_that_were_not_reached(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("pod/shop/checkout-0"))
    expect(page.locator(".point.skipped", has_text="PostFilter")).to_be_visible()
    expect(page.locator(".point.dark")).to_have_count(0)


def test_what_a_gated_pod_would_meet_is_only_what_would_be(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("pod/batch/gated-0"))
    expect(page.locator(".point.rejected", has_text="PreEnqueue")).to_be_visible()
    expect(page.locator(".point.would-be", has_text="PreFilter")).to_be_visible()
    expect(page.locator(".point.would-be", has_text="PreEnqueue")).to_have_count(0)
    expect(page.locator(".picture")).to_contain_text("what would happen")
    # It said that a node was chosen.
    expect(page.locator(".sentences")).to_contain_text(re.compile("^would be chosen: berth-"))
    matrix = page.get_by_role("table", name="Node by plugin")
    expect(matrix.locator("tr.winner .chip")).to_have_text("would be chosen")


def test_a_pod_that_came_with_its_node_is_marked_there_and_the_story_is_told(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("pod/batch/nightly-5"))
    expect(page.locator(".sentences")).to_contain_text("from the start; no decision")
    there = page.locator(".title").first.get_by_role("link").last.inner_text()
    matrix = page.get_by_role("table", name="Node by plugin")
    page.get_by_placeholder("node, plugin or reason").fill(there)
    expect(matrix.get_by_role("row", name=re.compile(f"^{there}"))).to_contain_text("it is here")
    page.get_by_placeholder("node, plugin or reason").fill("")
    # No decision was made, so no node was chosen.
    expect(matrix.locator(".chip", has_text=re.compile("^chosen$"))).to_have_count(0)
    expect(matrix.locator(".chip", has_text="would be chosen")).to_have_count(1)


def test_finished_and_preempted_pods_have_pages_that_name_both_sides(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("pod/batch/report-0"))
    expect(page.locator(".title .state")).to_contain_text("finished")
    page.goto(served.view("time?kind=preempted"))
    victim = page.get_by_role("table", name="Events").get_by_role("link").first
    name = victim.inner_text()
    victim.click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    expect(page.locator(".title .state")).to_contain_text("preempted")
    preemptor = page.get_by_role("region", name="Preemption").get_by_role("link").last
    by = preemptor.inner_text()
    preemptor.click()
    expect(page.locator(".title h1")).to_have_text(by)
    expect(page.get_by_role("region", name="Preemption")).to_contain_text(name)
    expect(page.locator(".point.helped")).to_contain_text("PostFilter")


def test_plugins_are_ranked_by_the_nodes_they_reject_and_pods_folded_by_cause(
    teams: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(teams.view("pending"))
    first = page.get_by_role("region", name="Rejected by").get_by_role("button").first
    expect(first).to_contain_text("NodeResourcesFit")
    expect(first).to_contain_text("30 pods · 100% of nodes")
    causes = page.get_by_role("list", name="Pending pods by cause").locator(".cause")
    expect(causes).to_have_count(1)
    expect(causes.first).to_contain_text("team-1/warehouse × 30")
    expect(causes.first).to_contain_text("4 of 4")
    causes.first.get_by_role("button", name="What would help?").click()
    expect(causes.first.locator(".suggestion")).to_contain_text("It would fit if you")


def test_a_gap_is_a_gap_and_the_last_value_is_not_hidden(
    served: PageServer, open_page: OpenPage
) -> None:
    page = open_page(served.view("time"))
    page.locator(".plot canvas").first.wait_for()
    plot = "document.querySelector('.plot > div').plot"
    assert page.evaluate(f"() => {plot}.series.slice(1).every((each) => each.spanGaps === false)")
    assert page.evaluate(f"() => {plot}.scales.x.max > {plot}.data[0].at(-1)")


def test_the_chip_of_a_moment_leads_to_the_pods_of_that_moment(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("map?at=100"))
    chip = page.locator(".anchor")
    expect(chip).not_to_contain_text("6 pods")
    number = str(chip.locator("strong").inner_text())
    expect(page.locator(".whole")).to_contain_text("pods on nodes")
    chip.click()
    expect(page.locator(".title").first).to_contain_text(f"{number} pods without a node at")


def test_a_comparison_links_no_word_as_a_node_and_has_no_speed(
    served: PageServer, open_page: OpenPage
) -> None:
    from playwright.sync_api import expect

    page = open_page(served.view("whatif/without/berth-00"))
    page.get_by_role("button", name="Run and compare").click()
    expect(page.locator(".verdict")).to_be_visible()
    expect(page.get_by_role("link", name="preempted", exact=True)).to_have_count(0)
    expect(page.get_by_role("table", name="Pods that changed")).to_contain_text("preempted")
    numbers = page.get_by_role("region", name="Numbers before and after")
    expect(numbers).not_to_contain_text("decisions per second")


def test_a_misspelt_plugin_is_marked_where_it_stands(
    served: PageServer, open_page: OpenPage, harbour_files: Path, tmp_path: Path
) -> None:
    """On the page and by the command."""
    from playwright.sync_api import expect

    page = open_page(served.view("whatif"))
    editor = page.get_by_label("Scheduler configuration")
    text = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        "- plugins:\n    multiPoint:\n      enabled:\n      - name: NodeName\n      - name: NodeAffinitty\n"
    )
    editor.fill(text)
    said = page.locator("#config-text-check")
    expect(said).to_contain_text("line 8")
    expect(said).to_contain_text("enabled[1].name")

    path = tmp_path / "scheduler.yaml"
    path.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "mooring", "simulate", "-f", str(harbour_files)]
    told = subprocess.run([*command, "--config", str(path)], capture_output=True, check=False)
    assert told.returncode == 2
    assert b"enabled[1].name" in told.stderr


WIDE = "(element) => element.getBoundingClientRect().width"


def test_what_prefilter_rejects_is_rejected_on_all_nodes(
    browser: Browser, open_page: OpenPage, tmp_path: Path
) -> None:
    """It said "0 of 2" nodes and no plugin, while the page of the pod named the plugin and both nodes."""
    from playwright.sync_api import expect

    lost = [{"name": "v", "persistentVolumeClaim": {"claimName": "lost"}}]
    objects = [
        *(node(f"n{i}", cpu="4", memory="8Gi", zone="a", pool="p") for i in range(2)),
        pod("default/volume", cpu="1", memory="1Gi", volumes=lost),
    ]
    with page_server(write_cluster(tmp_path / "lost", iter(objects))) as server:
        page = open_page(server.view("pending?at=end"))
        cause = page.locator(".cause-reasons li")
        expect(cause).to_have_count(1)
        expect(cause).to_contain_text("2 of 2")
        expect(cause).to_contain_text('"lost" not found VolumeRestrictions')
        rejected = page.get_by_role("region", name="Rejected by")
        expect(rejected.get_by_role("button")).to_contain_text("1 pod · 100% of nodes")
        whole, part = rejected.locator(".bar, .bar > span").all()
        assert whole.evaluate(WIDE) == part.evaluate(WIDE)
        page.close()


def test_a_pod_that_got_its_node_late_leads_from_each_attempt_to_its_node(
    browser: Browser, open_page: OpenPage, tmp_path: Path
) -> None:
    """From an attempt that failed, the link to the decision said "at the end", where the pod was over."""
    from playwright.sync_api import expect

    runs = {"mooring.dev/run-seconds": "60"}
    objects = [
        node("n", cpu="4", memory="8Gi", zone="a", pool="p"),
        pod("default/first", cpu="4", memory="1Gi", annotations=runs, priorityClassName="high"),
        pod("default/second", cpu="4", memory="1Gi", annotations=runs),
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 10,
        },
    ]
    with page_server(write_cluster(tmp_path / "late", iter(objects))) as server:
        page = open_page(server.view("pod/default/second?attempt=1"))
        attempts = page.locator(".attempts a")
        expect(attempts).to_have_count(3)
        expect(attempts.last).to_have_text("as placed")
        expect(page.locator(".attempts [aria-current]")).to_contain_text("1 0s · no node")
        expect(page.locator(".matrix")).to_contain_text("at attempt 1. 0 nodes of 1 fit.")
        attempts.last.click()
        expect(page.locator(".sentences")).to_contain_text("is the only node that fits")
        page.close()


SHARES = """async () => {
    const { share } = await import("mooring/words");
    return [0, 0.0002, 0.5, 0.9998, 1].map(share);
}"""


def test_all_but_one_is_not_all(served: PageServer, open_page: OpenPage) -> None:
    page = open_page(served.address)
    assert page.evaluate(SHARES) == ["0%", "<1%", "50%", ">99%", "100%"]


def test_the_numbers_of_one_pod_are_not_those_of_all_that_are_folded_with_it(
    browser: Browser, open_page: OpenPage, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    objects = [
        node("small", cpu="2", memory="8Gi", zone="a", pool="p"),
        node("large", cpu="4", memory="8Gi", zone="a", pool="p"),
        pod("default/first", cpu="3", memory="1Gi", nodeName="large"),
        pod("default/like-0", cpu="3", memory="10Gi"),
        pod("default/like-1", cpu="2", memory="10Gi"),
        pod("other/same-0", cpu="9", memory="1Gi"),
        pod("other/same-1", cpu="9", memory="1Gi"),
    ]
    with page_server(write_cluster(tmp_path / "folded", iter(objects))) as server:
        page = open_page(server.view("pending?at=end"))
        differ = page.locator(".cause").filter(has_text="those of the others differ")
        expect(page.locator(".cause")).to_have_count(2)
        expect(differ).to_have_count(1)
        expect(differ).to_contain_text("default/like-* × 2")
        page.close()


#: View → something that is there once it is complete.
SPOKEN = {
    "map": ".whole",
    "map/berth-88": ".panel table",
    "map?show=table": ".map-view .rows table",
    "pending": ".cause",
    "pending?tab=pods": ".pending-view table",
    "time": ".plot canvas",
    "whatif": ".weights",
    "pod/data/archive-0": ".would li button",
    "pod/shop/checkout-0": ".margin",
    "pod/batch/nightly-0": ".matrix",
    "pod/batch/gated-0": ".would li button",
    "workload/data/quorum": ".workload-view table",
}
WRONG_SINGULAR = re.compile(
    r"\b1\s+(pods|nodes|plugins|attempts|changes|events|warnings|groups|problems|devices)\b"
)


def test_every_view_speaks_plainly_and_counts_rightly(
    served: PageServer, open_page: OpenPage
) -> None:
    page = open_page(served.view("map"))
    for view, complete in SPOKEN.items():
        go(page, view)
        page.locator(complete).first.wait_for()
        text = page.locator("body").inner_text()
        assert "refus" not in text.lower(), view
        assert WRONG_SINGULAR.findall(text) == [], view


def test_bars_of_plugins_are_as_long_as_the_number_beside_them(
    served: PageServer, open_page: OpenPage
) -> None:
    """They told how often a plugin rejects, beside the part of the nodes: a full bar stood before 68 %."""
    page = open_page(served.view("pending?at=end"))
    holders = page.locator(".holder")
    holders.first.wait_for()
    for holder in holders.all():
        said = re.search(r"(\d+)% of nodes", holder.inner_text())
        if said is None:
            continue
        whole, part = (holder.locator(each).evaluate(WIDE) for each in (".bar", ".bar > span"))
        assert abs(100 * part / whole - int(said[1])) < 2


def test_numbered_pods_are_folded_with_or_without_a_dash(
    browser: Browser, open_page: OpenPage, tmp_path: Path
) -> None:
    """500 pods p0, p1, p2 … that wait for one reason were 500 entries."""
    from playwright.sync_api import expect

    objects = [
        node("n", cpu="1", memory="8Gi", zone="a", pool="p"),
        *(pod(f"default/p{i}", cpu="8", memory="1Gi") for i in range(20)),
        *(pod(f"default/q-{i}", cpu="8", memory="1Gi") for i in range(10)),
    ]
    with page_server(write_cluster(tmp_path / "numbered", iter(objects))) as server:
        page = open_page(server.view("pending"))
        causes = page.locator(".cause h2")
        expect(causes).to_have_count(2)
        expect(causes).to_contain_text(["default/p* × 20", "default/q-* × 10"])
        page.get_by_role("link", name="all 20").click()
        expect(page.locator(".title p")).to_contain_text("20 pods of 30")
        page.close()


def test_a_long_story_shows_its_beginning_and_its_end(
    browser: Browser, open_page: OpenPage, tmp_path: Path
) -> None:
    """A pod that was tried a hundred times for changing reasons had a page of twelve screens on a phone."""
    from playwright.sync_api import expect

    example = Path(__file__).parents[2] / "examples" / "03-gang"
    config = str(example / "scheduler.yaml")
    with page_server(example / "cluster.yaml", "--config", config) as server:
        page = open_page(server.view("pending"))
        page.locator(".cause h2 a").first.click()
        rows = page.locator(".happenings li")
        expect(rows).to_have_count(25)
        expect(rows.first).to_contain_text("queued")
        page.get_by_role("button", name=re.compile("more in between")).click()
        expect(rows.nth(60)).to_be_visible()
        page.close()


def test_long_names_hide_nothing_that_is_said_of_them(
    browser: Browser, open_page: OpenPage, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    domain = ".with-a-long-domain.that-goes-on.and-on.and-on.eu-central-1.compute.internal"
    names = [f"ip-{'x' * 40}-{i}{domain}" for i in range(2)]
    objects = [
        *(node(each, cpu="4", memory="8Gi", zone="a", pool="p") for each in names),
        pod("default/placed", cpu="1", memory="1Gi"),
        pod("default/gated", cpu="1", memory="1Gi", schedulingGates=[{"name": "wait"}]),
    ]
    for each in objects[:2]:
        each["metadata"]["labels"].pop("kubernetes.io/hostname", None)
    with page_server(write_cluster(tmp_path / "long", iter(objects))) as server:
        page = open_page(server.view("pod/default/gated"), size=NARROW)
        chip = page.locator(".matrix tr.winner .chip")
        expect(chip).to_have_text("would be chosen")
        # It ends inside its cell.
        assert chip.evaluate("(it) => it.scrollWidth - it.clientWidth") <= 0
        assert (
            chip.evaluate(
                "(it) => it.closest('th').getBoundingClientRect().right - it.getBoundingClientRect().right"
            )
            >= 0
        )
        page.goto(server.view(f"whatif/without/{names[0]}"))
        page.get_by_role("button", name="Run and compare").click()
        page.get_by_role("button", name="Explain").click()
        page.locator(".why-sides").wait_for()
        sides = page.locator(".why-sides > div")
        for side in sides.all():
            assert side.evaluate("(it) => it.getBoundingClientRect().right - innerWidth") <= 0
            said = side.locator("p").first
            assert said.evaluate("(it) => it.scrollWidth - it.clientWidth") <= 0
        page.close()
