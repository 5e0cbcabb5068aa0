"""What the page is made of, read without a browser."""

from __future__ import annotations

import hashlib
import re
from importlib.resources import files
from pathlib import Path

import pytest

STATIC = Path(str(files("mooring.web").joinpath("static")))
OWN = sorted(path for path in STATIC.rglob("*.js") if "vendor" not in path.parts)
BORROWED = sorted(path for path in (STATIC / "vendor").iterdir() if path.suffix in (".js", ".css"))

_IMPORT = re.compile(r'(?:import|export)\s[^"\';]*?from\s+"([^"]+)"|import\s+"([^"]+)"')


def name_of(path: Path) -> str:
    relative = path.relative_to(STATIC).with_suffix("")
    return relative.name if "vendor" in relative.parts else f"mooring/{relative.as_posix()}"


@pytest.mark.parametrize("path", BORROWED, ids=lambda path: path.name)
def test_what_is_borrowed_is_what_was_published(path: Path) -> None:
    told = (STATIC / "vendor" / "README.md").read_text(encoding="utf-8")
    assert hashlib.sha256(path.read_bytes()).hexdigest() in told
    assert (path.parent / f"{path.stem.partition('-')[0]}.LICENSE").exists()


@pytest.mark.parametrize("path", OWN, ids=name_of)
def test_a_module_imports_others_by_bare_names_that_exist(path: Path) -> None:
    """So that the same files work from a server and from within a report."""
    names = {name_of(each) for each in [*OWN, *BORROWED]}
    text = path.read_text(encoding="utf-8")
    imported = {first or second for first, second in _IMPORT.findall(text)}
    assert imported <= names
    assert "import.meta" not in text
    assert not re.search(r"\bimport\(", text)


@pytest.mark.parametrize("path", OWN, ids=name_of)
def test_no_module_makes_markup_or_code_from_text(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    dangerous = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|srcdoc"
    assert not re.search(dangerous, text)


def test_the_page_itself_has_no_script_style_or_handler_of_its_own() -> None:
    text = (STATIC / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<script|<style|\sstyle=|\son\w+=", text)
