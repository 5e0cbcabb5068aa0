from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import msgspec
import pytest

from mooring.web.assets import Assets, in_script, report_document, served_document
from tests.web_unit.clusters import HOSTILE


class Elements(HTMLParser):
    """Scripts and what else begins in a document, as a browser would see them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.tags: list[str] = []
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._inside = tag == "script"
        if self._inside:
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag):
        self._inside = False

    def handle_data(self, data):
        if self._inside:
            attributes, text = self.scripts[-1]
            self.scripts[-1] = attributes, text + data

    def script(self, kind):
        return next(text for attributes, text in self.scripts if attributes.get("type") == kind)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "vendor").mkdir()
    (tmp_path / "views").mkdir()
    (tmp_path / "index.html").write_text(
        "<head><!-- mooring:styles --><!-- mooring:modules --></head>"
        "<body><!-- mooring:data --><!-- mooring:start --></body>"
    )
    (tmp_path / "main.js").write_text('import "mooring/views/pod";')
    (tmp_path / "views" / "pod.js").write_text('import "preact";')
    (tmp_path / "vendor" / "preact.js").write_text("export {};")
    (tmp_path / "vendor" / "plot.css").write_text("a { color: red }")
    (tmp_path / "style.css").write_text("b { color: blue }")
    (tmp_path / "notes.md").write_text("not for browsers")
    return tmp_path


def test_modules_are_named_after_their_files(folder):
    document = Elements(served_document(Assets.read(folder)).text)

    assert json.loads(document.script("importmap")) == {
        "imports": {
            "preact": "./static/vendor/preact.js",
            "mooring/main": "./static/main.js",
            "mooring/views/pod": "./static/views/pod.js",
        }
    }


def test_only_files_for_browsers_are_served(folder):
    assert "notes.md" not in Assets.read(folder).by_path


def test_borrowed_styles_come_before_our_own(folder):
    text = served_document(Assets.read(folder)).text

    styles = re.findall(r'rel="stylesheet" href="([^"]+)"', text)
    assert styles == ["static/vendor/plot.css", "static/style.css"]


def test_modules_are_asked_for_at_once_after_the_import_map(folder):
    text = served_document(Assets.read(folder)).text

    preloaded = re.findall(r'rel="modulepreload" href="([^"]+)"', text)
    assert sorted(preloaded) == ["static/main.js", "static/vendor/preact.js", "static/views/pod.js"]
    assert text.index("importmap") < text.index("modulepreload")


def test_the_policy_lets_no_other_inline_script_run_than_the_import_map(folder):
    document = served_document(Assets.read(folder))

    modules = Elements(document.text).script("importmap")
    digest = base64.b64encode(hashlib.sha256(modules.encode()).digest()).decode()
    assert f"script-src 'self' 'sha256-{digest}';" in document.policy
    assert "unsafe" not in document.policy
    assert "frame-ancestors 'none'" in document.policy


def test_a_report_holds_its_modules_itself(folder):
    elements = Elements(report_document(Assets.read(folder), b"{}").text)

    imports = json.loads(elements.script("importmap"))["imports"]
    assert all(address.startswith("data:text/javascript;base64,") for address in imports.values())
    code = base64.b64decode(imports["mooring/main"].partition(",")[2])
    assert code == b'import "mooring/views/pod";'
    assert elements.script("module") == 'import "mooring/main";'
    assert "link" not in elements.tags


@pytest.mark.parametrize(
    "text",
    [
        HOSTILE,
        "<!-- mooring:start -->",
        "<!--<script>",
        "]]>",
        "\\u003c/script>",
        "\u2028\u2029",
        "é\u0000",
    ],
)
def test_no_text_in_the_data_becomes_markup(folder, text):
    data = {text: [text, {"x": text}]}

    elements = Elements(report_document(Assets.read(folder), msgspec.json.encode(data)).text)

    assert json.loads(elements.script("application/json")) == data
    kinds = [attributes.get("type") for attributes, _ in elements.scripts]
    assert kinds == ["importmap", "application/json", "module"]
    assert "img" not in elements.tags


def test_data_in_a_script_has_no_character_that_could_end_it():
    assert not set(in_script(msgspec.json.encode(HOSTILE))) & set("<>&\u2028\u2029")


def test_the_page_that_comes_with_mooring_has_a_place_for_everything():
    assets = Assets.read()

    for mark in ("styles", "modules", "data", "start"):
        assert assets.index.count(f"<!-- mooring:{mark} -->") == 1
    assert "main.js" in assets.by_path
