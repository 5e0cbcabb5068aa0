"""axe-core's findings about what a page shows at the moment."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page


def grave_findings(page: Page) -> list[str]:
    """What axe-core calls serious or critical, each with the elements it is about."""
    axe = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    page.evaluate(f"() => {{ {axe} }}")
    # A colour that is still changing is not the one that people read.
    page.evaluate("() => Promise.all(document.getAnimations().map((each) => each.finished))")
    answer: dict[str, Any] = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']} ({each['impact']}): {each['help']}: "
        + "; ".join(str(found["target"]) for found in each["nodes"][:5])
        for each in answer["violations"]
        if each["impact"] in ("serious", "critical")
    ]
