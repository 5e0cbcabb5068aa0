"""The pinned requirement files install as they stand, also after newer versions are published."""

import re
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "requirements").glob("*.txt"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_pin_names_the_extras_that_other_packages_ask_for(file: Path) -> None:
    """Pip 23 looks for `coverage[toml]` without minding the pin of `coverage`: the day that a newer
    version was published, a fresh environment could not be made any more.
    """
    pins = _pins(file)

    asked = {
        (_normal(name), extra)
        for distribution in pins
        for name, extra in _extras_asked_by(distribution)
        if _normal(name) in pins
    }

    assert (
        sorted(asked - {(name, extra) for name, extras in pins.items() for extra in extras}) == []
    )


def _pins(file: Path) -> dict[str, set[str]]:
    """Each pinned distribution, with the extras that its line names."""
    found = re.findall(r"^([\w.-]+)(?:\[([\w,.-]+)\])?==", file.read_text(), re.MULTILINE)
    return {_normal(name): set(extras.split(",")) - {""} for name, extras in found}


def _extras_asked_by(distribution: str) -> list[tuple[str, str]]:
    try:
        requires = metadata.requires(distribution) or []
    except metadata.PackageNotFoundError:  # of another platform, or of another file
        return []
    unconditional = [line for line in requires if "extra ==" not in line]
    matches = [re.match(r"([\w.-]+)\[([\w,.-]+)\]", line) for line in unconditional]
    return [(match[1], extra) for match in matches if match for extra in match[2].split(",")]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
