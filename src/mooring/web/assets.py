"""The files of the page, and the HTML document that loads them: served, or written to one file.

Modules import each other by bare names (`mooring/map`, `preact`). An import map has the address of each
name: on the server, or in the document itself. The names follow from the file names.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

FOLDER = Path(__file__).parent / "static"
VENDOR = "vendor"
START = "mooring/main"

_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
}
_STYLES, _MODULES = "<!-- mooring:styles -->", "<!-- mooring:modules -->"
_DATA, _START = "<!-- mooring:data -->", "<!-- mooring:start -->"


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the page."""

    #: Relative to the folder, with slashes.
    path: str
    content: bytes

    @property
    def content_type(self) -> str:
        return _TYPES[PurePosixPath(self.path).suffix]

    @property
    def specifier(self) -> str:
        """The name under which other modules import this one."""
        stem = self.path.removesuffix(".js")
        in_vendor = stem.startswith(f"{VENDOR}/")
        return stem.removeprefix(f"{VENDOR}/") if in_vendor else f"mooring/{stem}"

    @property
    def tag(self) -> str:
        return hashlib.sha256(self.content).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Assets:
    """All files of the page, by path."""

    by_path: dict[str, Asset]

    @classmethod
    def read(cls, folder: Path = FOLDER) -> Assets:
        files = sorted(path for path in folder.rglob("*") if path.suffix in _TYPES)
        found = [Asset(path.relative_to(folder).as_posix(), path.read_bytes()) for path in files]
        # Vendor files come first, so that the page's own styles override them.
        found.sort(key=lambda asset: (not asset.path.startswith(VENDOR), asset.path))
        return cls({asset.path: asset for asset in found})

    def ending(self, suffix: str) -> list[Asset]:
        return [asset for asset in self.by_path.values() if asset.path.endswith(suffix)]

    @property
    def index(self) -> str:
        return self.by_path["index.html"].content.decode()


@dataclass(frozen=True, slots=True)
class Document:
    """The page, and its Content-Security-Policy."""

    text: str
    policy: str


def served_document(assets: Assets) -> Document:
    addresses = {asset.specifier: f"./static/{asset.path}" for asset in assets.ending(".js")}
    modules = _script_json({"imports": addresses})
    links = (
        f'<link rel="stylesheet" href="static/{asset.path}">' for asset in assets.ending(".css")
    )
    # Load all modules at once, instead of one import after another.
    preloads = (
        f'<link rel="modulepreload" href="static/{asset.path}">' for asset in assets.ending(".js")
    )
    text = _filled(
        assets.index,
        {
            _STYLES: "\n".join(links),
            _MODULES: "\n".join((f'<script type="importmap">{modules}</script>', *preloads)),
            _DATA: "",
            _START: '<script type="module" src="static/main.js"></script>',
        },
    )
    policy = _policy(
        script=f"'self' '{_hash(modules)}'", style="'self'", connect="'self'", image="'self' data:"
    )
    return Document(text, f"{policy}; frame-ancestors 'none'")


def report_document(assets: Assets, data: bytes) -> Document:
    """One file with everything in it, and the policy too; `data` is JSON."""
    addresses = {asset.specifier: _data_address(asset) for asset in assets.ending(".js")}
    modules = _script_json({"imports": addresses})
    start = f'import "{START}";'
    styles = "\n".join(asset.content.decode() for asset in assets.ending(".css"))
    policy = _policy(
        script=f"'{_hash(modules)}' '{_hash(start)}' data:",
        style=f"'{_hash(styles)}'",
        connect="'none'",
        image="data:",
    )
    text = _filled(
        assets.index,
        {
            _STYLES: f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
            f"<style>{styles}</style>",
            _MODULES: f'<script type="importmap">{modules}</script>',
            _DATA: f'<script type="application/json" id="mooring-data">{in_script(data)}</script>',
            _START: f'<script type="module">{start}</script>',
        },
    )
    return Document(text, policy)


def in_script(data: bytes) -> str:
    """JSON that is safe inside a script element: it cannot end the element or start a comment.

    `<`, `>` and `&` become escapes; JSON has them only in strings. So do the two line ends that older
    JavaScript does not allow in strings.
    """
    text = data.decode()
    return (
        text.replace("<", "\\u003c")
        .replace(">", "\\u003e")
        .replace("&", "\\u0026")
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )


def _script_json(data: object) -> str:
    return in_script(json.dumps(data, separators=(",", ":")).encode())


def _filled(text: str, parts: dict[str, str]) -> str:
    """Replace all marks in one pass: marks in inserted text are not replaced."""
    pieces = [text]
    for mark, part in parts.items():
        split: list[str] = []
        for i, piece in enumerate(pieces):
            # Every second piece was inserted.
            if i % 2:
                split.append(piece)
                continue
            before, found, after = piece.partition(mark)
            split += [before, part, after] if found else [before]
        pieces = split
    return "".join(pieces)


def _policy(*, script: str, style: str, connect: str, image: str) -> str:
    return (
        f"default-src 'none'; script-src {script}; style-src {style}; connect-src {connect};"
        f" img-src {image}; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _data_address(asset: Asset) -> str:
    return f"data:{asset.content_type};base64,{base64.b64encode(asset.content).decode()}"
