"""A real browser, and pages in it that must not complain.

Without Chromium or what drives it, these tests are skipped, unless MOORING_WEB=required says that
they must run.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.web.clusters import harbour, write_cluster
from tests.web.page_server import PageServer, page_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

REQUIRED = os.environ.get("MOORING_WEB") == "required"
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDE, NARROW = (1440, 900), (390, 844)
#: What people look at pages on, and in which colours.
SHAPES = [
    pytest.param(shape, size, scheme, id=f"{shape}-{scheme}")
    for shape, size in (("wide", (1920, 1080)), ("desktop", WIDE), ("phone", NARROW))
    for scheme in ("light", "dark")
]
#: How long a page may take on a busy machine before it counts as stuck.
PATIENCE_MS = 60_000
#: Kept out of git; looked at by people.
PICTURES = Path(__file__).parents[2] / ".screenshots"

OpenPage = Callable[..., "Page"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    missing = [
        name
        for name, found in (
            ("chromium", chromium),
            ("playwright", importlib.util.find_spec("playwright")),
            ("axe-playwright-python", importlib.util.find_spec("axe_playwright_python")),
        )
        if not found
    ]
    if missing:
        (pytest.fail if REQUIRED else pytest.skip)(f"not installed: {', '.join(missing)}")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, headless=True, args=list(FLAGS)
        )
        yield browser
        browser.close()


@pytest.fixture
def complaints() -> list[str]:
    """The errors that pages have logged; a test that provokes one takes it out."""
    return []


@pytest.fixture
def open_page(browser: Browser, complaints: list[str]) -> Iterator[OpenPage]:
    """Opens an address in a window of its own. At the end no page may have logged an error."""
    contexts = []

    def open_at(
        address: str, *, size: tuple[int, int] = WIDE, scheme: str = "light", also: bool = False
    ) -> Page:
        """`also` opens another tab of the last window."""
        if not also:
            viewport = {"width": size[0], "height": size[1]}
            contexts.append(browser.new_context(viewport=viewport, color_scheme=scheme))  # type: ignore[arg-type]
        context = contexts[-1]
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on(
            "console",
            lambda message: complaints.append(message.text) if message.type == "error" else None,
        )
        page.goto(address)
        return page

    yield open_at
    for context in contexts:
        context.close()
    assert complaints == []


def go(page: Page, view: str) -> None:
    """To another view of the page that is open, without loading it again."""
    page.evaluate("(hash) => { location.hash = hash; }", f"#/{view}")


@pytest.fixture(scope="session")
def harbour_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_cluster(tmp_path_factory.mktemp("clusters") / "harbour", harbour())


@pytest.fixture(scope="module")
def served(browser: Browser, harbour_files: Path) -> Iterator[PageServer]:
    """The harbour, for the tests of one file. Asks for the browser first, so that it skips early."""
    with page_server(harbour_files) as server:
        yield server


@pytest.fixture(scope="session")
def pictures() -> Path:
    PICTURES.mkdir(exist_ok=True)
    return PICTURES
