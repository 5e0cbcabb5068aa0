"""Markup in a cluster's texts is shown as text, wherever the page shows it."""

from __future__ import annotations

import base64
import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import pytest

from tests.web.clusters import SCRIPT, harbour, hostile, write_cluster
from tests.web.conftest import OpenPage
from tests.web.page_server import page_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.web

VIEWS = ("map", "pending", "time", "whatif")
_DATA = re.compile(r'(<script[^>]*id="mooring-data"[^>]*>)(.*?)(</script>)', re.DOTALL)


def assert_nothing_became_markup(page: Page) -> None:
    assert page.evaluate("() => window.hostile ?? null") is None
    assert page.locator("img").count() == 0
    assert page.locator("#page script").count() == 0


def test_manifests_with_markup_are_shown_as_they_are(
    browser: Browser, open_page: OpenPage, tmp_path: Path
) -> None:
    from playwright.sync_api import expect

    folder = tmp_path / "<img src=x onerror=window.hostile=1>"
    with page_server(write_cluster(folder, hostile())) as server:
        page = open_page(server.view("pending?tab=pods"))
        expect(page.locator(".source")).to_contain_text("onerror")
        expect(page.get_by_role("table", name="Pending pods")).to_contain_text("<script>")
        assert_nothing_became_markup(page)
        for pod in ("default/other", "default/claims", "default/waits"):
            page.goto(server.view(f"pod/{pod}"))
            expect(page.locator(".reason")).to_be_visible()
            assert_nothing_became_markup(page)
        page.goto(server.view("whatif/Pod/default/fits"))
        expect(page.get_by_label("Manifests")).to_have_value(re.compile("onerror"))
        page.get_by_label("Manifests").fill(f"kind: {SCRIPT}\nmetadata: {{name: '{SCRIPT}'}}\n")
        expect(page.locator("#objects-text-check")).to_contain_text("problem")
        page.get_by_label("Name").fill(SCRIPT)
        page.get_by_role("button", name="Configuration").click()
        page.get_by_label("ImageLocality").fill("7")
        assert_nothing_became_markup(page)
        page.close()


def test_even_answers_full_of_markup_are_shown_as_text(
    browser: Browser, open_page: OpenPage, tmp_path: Path
) -> None:
    """Stricter than any cluster could be: every text of every answer is made hostile."""
    from playwright.sync_api import expect

    cluster = write_cluster(tmp_path / "cluster", harbour())
    report = tmp_path / "report.html"
    command = [sys.executable, "-m", "mooring", "report", "-f", str(cluster), "-o", str(report)]
    subprocess.run([*command, "--budget", "1s"], check=True, capture_output=True)
    html = report.read_text(encoding="utf-8")
    found = _DATA.search(html)
    assert found is not None
    answers = _made_hostile(json.loads(found[2]))
    report.write_text(
        html[: found.start(2)] + json.dumps(answers).replace("<", "\\u003c") + html[found.end(2) :],
        encoding="utf-8",
    )
    page = open_page(f"{report.as_uri()}#/map")
    for view in VIEWS:
        page.goto(f"{report.as_uri()}#/{view}")
        expect(page.locator("main h1")).to_be_attached()
        expect(page.locator(".loading")).to_have_count(0)
        assert_nothing_became_markup(page)
    page.goto(f"{report.as_uri()}#/pending?tab=pods")
    page.get_by_role("table", name="Pending pods").get_by_role("link").first.click()
    expect(page.locator(".reason")).to_contain_text("<script>")
    expect(page.locator(".matrix")).to_contain_text("<script>")
    assert_nothing_became_markup(page)
    page.goto(f"{report.as_uri()}#/map")
    page.get_by_role("button", name="Table", exact=True).click()
    page.get_by_role("table", name="Nodes").get_by_role("link").first.click()
    expect(page.locator(".panel h2")).to_contain_text("<script>")
    assert_nothing_became_markup(page)


def _made_hostile(answers: dict[str, Any]) -> dict[str, Any]:
    """Words that steer the page stay. The addresses of pods follow their names."""
    return {_address(address): _hostile(_plain(answer)) for address, answer in answers.items()}


def _plain(answer: dict[str, Any]) -> Any:
    """The page reads plain answers as well as compressed ones."""
    if "gzip" not in answer:
        return answer
    return json.loads(gzip.decompress(base64.b64decode(answer["gzip"])))


def _address(address: str) -> str:
    asked, pod, key = re.fullmatch(r"(.*?)((?:\?key=|\?pod=)(.*))?", address).groups()  # type: ignore[union-attr]
    if pod is None:
        return address
    namespace, name = unquote(key).split("/")
    hostile = quote(f"{namespace}{SCRIPT}/{name}{SCRIPT}", safe=SAFE)
    return f"{asked}{pod[:5]}{hostile}"


#: What encodeURIComponent leaves alone.
SAFE = "-_.!~*'()"
STEERING = frozenset(
    (
        "state",
        "states",
        "source",
        "kinds",
        "outcome",
        "point",
        "what",
        "unit",
        "code",
        "resources",
        "text",
    )
)


def _hostile(value: Any, key: str = "") -> Any:
    match value:
        case dict():
            return {each: _hostile(inner, each) for each, inner in value.items()}
        case list():
            return [_hostile(inner, key) for inner in value]
        case str() if value and key not in STEERING:
            return f"{value}{SCRIPT}"
    return value
