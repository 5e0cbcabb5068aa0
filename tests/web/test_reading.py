"""The page is there before the cluster is read, and tells what is wrong with it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.web.clusters import harbour, write_cluster
from tests.web.conftest import OpenPage
from tests.web.page_server import page_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.web


@pytest.fixture
def slow_file(browser: Browser, tmp_path: Path) -> Path:
    """A file whose reader waits until somebody writes it."""
    os.mkfifo(tmp_path / "slow.json")
    return tmp_path / "slow.json"


def test_the_page_opens_before_the_cluster_is_read(
    slow_file: Path, tmp_path: Path, open_page: OpenPage, pictures: Path
) -> None:
    from playwright.sync_api import expect

    written = write_cluster(tmp_path / "harbour", harbour()) / "cluster.json"
    with page_server(slow_file) as server:
        page = open_page(server.view("pending"))
        expect(page.get_by_role("heading", name="Reading the cluster")).to_be_visible()
        expect(page.get_by_role("progressbar")).to_have_count(1)
        page.screenshot(path=pictures / "reading-wide-light.png")
        slow_file.write_bytes(written.read_bytes())
        expect(page.get_by_role("heading", name="Pending pods")).to_be_visible()
        expect(page.locator(".cause").first).to_be_visible()
        page.close()


def test_a_page_that_is_open_tells_what_is_wrong_with_the_files(
    slow_file: Path, open_page: OpenPage, pictures: Path, complaints: list[str]
) -> None:
    from playwright.sync_api import expect

    with page_server(slow_file) as server:
        page = open_page(server.address)
        expect(page.get_by_role("heading", name="Reading the cluster")).to_be_visible()
        slow_file.write_text('{"kind": "Pod", "apiVersion": "v1", "spec": 3}')
        expect(page.get_by_role("heading", name="cannot be read")).to_be_visible()
        expect(page.get_by_role("main")).to_contain_text("slow.json")
        expect(page.get_by_text("has ended. Correct what is wrong")).to_be_visible()
        page.screenshot(path=pictures / "input-wrong-wide-light.png")
        page.close()
    # The browser complains that the server is gone, and so it is.
    assert complaints
    complaints.clear()
