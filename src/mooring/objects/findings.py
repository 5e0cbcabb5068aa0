"""What reading finds besides objects: problems, and what was left out, rendered or looks like a template."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

CHART = "Chart.yaml"
#: Without it, helm assumes the version that it was built with, and charts may refuse that.
_KUBE_VERSION = "1.36.4"

SUSPENDED = "suspended, so no pods (set suspend: false to place them)"

#: How many names a line lists before it says how many more there are.
_MOST_NAMES = 5


@dataclass(slots=True)
class Findings:
    """Lines for the user, collected while files are read."""

    #: What makes the input unusable.
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    #: What mooring did for the user, such as rendering a folder.
    notes: list[str] = field(default_factory=list)
    #: Files in folders that hold no Kubernetes objects.
    foreign: list[str] = field(default_factory=list)
    #: Links in folders that lead to no file.
    broken_links: list[str] = field(default_factory=list)
    #: Pipes, sockets and devices in folders: to read one could wait for ever.
    special_files: list[str] = field(default_factory=list)
    #: Documents that cannot be read, and need not be: the kind of each, and its problem.
    broken_without_effect: list[tuple[str, str]] = field(default_factory=list)
    #: Keys that a mapping has twice, with their place. The last one counts, as in kubectl.
    given_twice: list[str] = field(default_factory=list)
    #: Chart, or else folder → its files that are templates, each with an example of what to fill in.
    _templates: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))

    def add_template(self, file: str, mark: str) -> None:
        """`mark` is the first thing to fill in, such as `{{ .Values.name }}`."""
        self._templates[chart_of(file) or str(Path(file).parent)].setdefault(file, mark)

    def all_problems(self) -> list[str]:
        return [*self.problems, *self._template_problems()]

    def all_warnings(self) -> list[str]:
        twice = (f"{line}; the last one counts" for line in self.given_twice)
        return [*self._left_out(), *self.warnings, *twice]

    def _left_out(self) -> Iterator[str]:
        for found, one, many in (
            (self.foreign, "without Kubernetes objects", "without Kubernetes objects"),
            (self.broken_links, "that is a link to nothing", "that are links to nothing"),
            (
                self.special_files,
                "that is a pipe, a socket or a device",
                "that are pipes, sockets or devices",
            ),
        ):
            if found:
                files = list(dict.fromkeys(found))
                number = f"{len(files):,} files {many}" if len(files) > 1 else f"1 file {one}"
                yield f"left out {number}: {listed(files)}"
        if self.broken_without_effect:
            kinds = sorted({kind for kind, _ in self.broken_without_effect})
            (_, problem), *others = self.broken_without_effect
            more = f" (and {len(others):,} more)" if others else ""
            yield f"left out, without effect on scheduling ({listed(kinds)}): {problem}{more}"

    def _template_problems(self) -> Iterator[str]:
        for place, marks in self._templates.items():
            file, mark = next(iter(marks.items()))
            others = len(marks) - 1
            more = f" and {others:,} more {'files' if others > 1 else 'file'}" if others else ""
            verb = "are templates" if others else "is a template"
            yield f"{file}{more}: {verb}, as {mark!r} shows; {_advice(place, file, mark)}"


def _advice(place: str, file: str, mark: str) -> str:
    if is_file(Path(place) / CHART):
        return f"render the chart: {helm_command(place)} | mooring simulate -"
    if mark.startswith("$"):
        return f"fill it in first: {_filled_in(file)} | mooring simulate -"
    if mark.startswith("<"):
        return "replace it by a value"
    return "render it first, and give mooring the result"


def _filled_in(file: str) -> str:
    """The command; what was rendered is a folder."""
    if is_file(Path(file) / CHART):
        return f"{helm_command(file)} | envsubst"
    if Path(file).is_dir():
        return f"kubectl kustomize {file} | envsubst"
    return f"envsubst < {file}"


def chart_of(file: str) -> str:
    """The folder of the Helm chart whose template this file is; empty if it is none."""
    for folder in Path(file).parents:
        if folder.name == "templates" and is_file(folder.parent / CHART):
            return str(folder.parent)
    return ""


def helm_arguments(chart: str) -> list[str]:
    """What `helm install` would create on a cluster of the version whose scheduler mooring is."""
    return ["template", release_name(chart), chart, "--skip-tests", "--kube-version", _KUBE_VERSION]


def helm_command(chart: str) -> str:
    return " ".join(("helm", *helm_arguments(chart)))


def release_name(chart: str) -> str:
    name = "".join(c if c.isalnum() else "-" for c in Path(chart).resolve().name.lower())
    return name.strip("-")[:40] or "release"


def listed(names: list[str]) -> str:
    """`a, b, c, d, e and 7 more`."""
    more = len(names) - _MOST_NAMES
    text = ", ".join(names[:_MOST_NAMES])
    return f"{text} and {more:,} more" if more > 0 else text


def is_file(path: Path) -> bool:
    """As `Path.is_file`, but False if the folder may not be entered."""
    try:
        return path.is_file()
    except OSError:
        return False
