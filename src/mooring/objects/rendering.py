"""Render kustomizations and Helm charts with the programs that users have for them.

mooring never reads such a folder raw: patches, name prefixes and values would be missing, and the
answer would be wrong. Without the program, the user is told the command to run.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mooring.objects.findings import CHART, Findings, helm_arguments, helm_command, is_file, listed
from mooring.objects.yaml_text import YamlError, parse_yaml

KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")

_TIMEOUT_S = 120
#: What kustomize says if it may not do something, and the flag that allows it. mooring does not set them: one
#: lets a kustomization download charts, the other lets it read files anywhere.
_FLAGS = {
    "must specify --enable-helm": "--enable-helm",
    "security; file": "--load-restrictor LoadRestrictionsNone",
}
#: How much of what a failed program says is shown.
_LONGEST = 300

_HOOK = "helm.sh/hook"
#: `helm install` runs these hooks, and no others.
_INSTALL_HOOKS = frozenset(("pre-install", "post-install"))
_SEPARATOR = re.compile(rb"^(?=---(?:\s|$))", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Rendered:
    folder: str
    text: bytes


def kustomization_in(folder: str | Path) -> Path | None:
    return next((Path(folder) / n for n in KUSTOMIZATIONS if is_file(Path(folder) / n)), None)


def read_quietly(path: Path) -> dict[str, object]:
    """The first document of a file; empty if it cannot be read."""
    try:
        value = next(parse_yaml(path.read_bytes()), None)
    except (OSError, YamlError):
        return {}
    return value if isinstance(value, dict) else {}


def outermost(folders: Sequence[str]) -> tuple[list[str], set[str]]:
    """The kustomizations that no other one of these includes; and every path that one includes.

    A Component only changes the kustomization that includes it, so it is never rendered alone.
    """
    included: set[str] = set()
    components: set[str] = set()
    for folder in folders:
        path = kustomization_in(folder)
        assert path is not None
        body = read_quietly(path)
        if body.get("kind") == "Component":
            components.add(folder)
        for field in ("resources", "bases", "components"):
            entries = body.get(field)
            for entry in entries if isinstance(entries, list) else ():
                if isinstance(entry, str) and "://" not in entry:
                    included.add(str((Path(folder) / entry).resolve()))
    roots = [
        folder
        for folder in folders
        if folder not in components and str(Path(folder).resolve()) not in included
    ]
    return roots, included


def render_kustomizations(folders: Sequence[str], findings: Findings) -> list[Rendered]:
    if not folders:
        return []
    if kubectl := shutil.which("kubectl"):
        command, shown = [kubectl, "kustomize"], "kubectl kustomize"
    elif kustomize := shutil.which("kustomize"):
        command, shown = [kustomize, "build"], "kustomize build"
    else:
        pipe = f"kubectl kustomize {folders[0]} | mooring simulate -"
        if len(folders) == 1:
            what = f"{folders[0]}: has a kustomization"
        else:
            what = f"{len(folders):,} folders have a kustomization ({listed(list(folders))})"
        findings.problems.append(
            f"{what}, and neither kubectl nor kustomize is on the PATH; render it first: {pipe}, "
            "or leave it out with --exclude"
        )
        return []
    return _all_run([([*command, f], f"{shown} {f}", f) for f in folders], findings)


def render_charts(folders: Sequence[str], findings: Findings) -> list[Rendered]:
    charts = [f for f in folders if read_quietly(Path(f) / CHART).get("type") != "library"]
    if not charts:
        return []
    helm = shutil.which("helm")
    if helm is None:
        pipe = f"{helm_command(charts[0])} | mooring simulate -"
        if len(charts) == 1:
            what = f"{charts[0]}: is a Helm chart"
        else:
            what = f"{len(charts):,} folders are Helm charts ({listed(charts)})"
        findings.problems.append(
            f"{what}, and helm is not on the PATH; render it first: {pipe}, "
            "or leave it out with --exclude"
        )
        return []
    rendered = _all_run(
        [([helm, *helm_arguments(c)], helm_command(c), c) for c in charts], findings
    )
    return [_installed(each, findings) for each in rendered]


def _installed(chart: Rendered, findings: Findings) -> Rendered:
    """Without the hooks of upgrades, rollbacks and deletions; all other lines keep their numbers."""
    chunks = _SEPARATOR.split(chart.text)
    others = [number for number, chunk in enumerate(chunks) if _is_hook_of_another_command(chunk)]
    if not others:
        return chart
    for number in others:
        chunks[number] = b"\n" * chunks[number].count(b"\n")
    what = "1 hook" if len(others) == 1 else f"{len(others):,} hooks"
    findings.notes.append(f"{chart.folder}: {what} of upgrades or deletions left out")
    return Rendered(chart.folder, b"".join(chunks))


def _is_hook_of_another_command(chunk: bytes) -> bool:
    if _HOOK.encode() not in chunk:
        return False
    try:
        body = next(parse_yaml(chunk), None)
    except YamlError:
        return False
    metadata = body.get("metadata") if isinstance(body, dict) else None
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    hooks = annotations.get(_HOOK) if isinstance(annotations, dict) else None
    if not isinstance(hooks, str):
        return False
    return not _INSTALL_HOOKS.intersection(hook.strip() for hook in hooks.split(","))


def _all_run(commands: Sequence[tuple[list[str], str, str]], findings: Findings) -> list[Rendered]:
    rendered = (_run(command, shown, folder, findings) for command, shown, folder in commands)
    return [each for each in rendered if each is not None]


def _run(command: list[str], shown: str, folder: str, findings: Findings) -> Rendered | None:
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        findings.problems.append(f"{folder}: `{shown}` cannot be run: {error}")
        return None
    if done.returncode != 0:
        # The cause is at the end.
        said = " ".join(done.stderr.decode(errors="replace").split())
        why = f"…{said[-_LONGEST:]}" if len(said) > _LONGEST else said
        why = why or f"it exited {done.returncode}"
        flag = next((flag for cause, flag in _FLAGS.items() if cause in said), "")
        advice = f"render it first: {shown} {flag} | mooring simulate -" if flag else "correct it"
        findings.problems.append(
            f"{folder}: `{shown}` failed: {why}; {advice}, or leave it out with --exclude"
        )
        return None
    findings.notes.append(f"{folder}: rendered with `{shown}`")
    return Rendered(folder, done.stdout)
