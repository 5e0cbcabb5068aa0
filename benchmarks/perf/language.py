"""The language of scheduler_perf: test cases, their operations with parameters, and object templates.

The files are upstream's own (`performance-config.yaml`, and the templates that they name). They are read from
the Go module that the control plane is built from; nothing of them is in this repository.
"""

from __future__ import annotations

import operator
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

_MODULE = Path(__file__).parents[2] / "tools" / "control-plane"
_FOLDER = "test/integration/scheduler_perf"
_CONFIG = "performance-config.yaml"

Params = Mapping[str, Any]


class NotFound(Exception):
    """Upstream's files are not on this machine."""


class Unsupported(Exception):
    """A workload uses something that cannot be done here."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A test case with values for its parameters."""

    name: str
    params: Params
    labels: tuple[str, ...]
    gates: Mapping[str, bool]
    #: Pods per second that upstream demands of itself; 0 if it demands nothing.
    threshold: float


@dataclass(frozen=True, slots=True)
class TestCase:
    """A script of operations."""

    #: The folder below scheduler_perf: `affinity`, `dra/extendedresource` …
    area: str
    name: str
    folder: Path
    operations: tuple[Mapping[str, Any], ...]
    workloads: tuple[Workload, ...]
    #: The template of pods whose operation names none.
    pod_template: str | None = None
    #: A KubeSchedulerConfiguration; None is the default one.
    config: Path | None = None

    def operations_of(self, workload: Workload) -> Iterator[Operation]:
        for given in self.operations:
            yield Operation(resolved(given, workload.params), self.folder)


@dataclass(frozen=True, slots=True)
class Operation:
    """One step, with its parameters filled in."""

    fields: Mapping[str, Any]
    #: What paths are relative to.
    folder: Path = field(default_factory=Path)

    @property
    def code(self) -> str:
        return str(self.fields["opcode"])

    def get(self, name: str, default: Any = None) -> Any:
        value = self.fields.get(name)
        return default if value is None else value

    def template(self, name: str) -> Template | None:
        path = self.get(name)
        return None if path is None else read_template(self.folder / path)


def find_folder() -> Path:
    """Where upstream's files are. Raises NotFound."""
    command = ["go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes"]
    try:
        done = subprocess.run(command, cwd=_MODULE, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise NotFound("Go is needed to find upstream's files: run `make control-plane`") from None
    folder = Path(done.stdout.strip() or "/nowhere") / _FOLDER
    if not folder.is_dir():
        raise NotFound("upstream's files are not here: run `make control-plane`")
    return folder


def read_test_cases(folder: Path) -> list[TestCase]:
    return [
        _test_case(raw, path.parent, str(path.parent.relative_to(folder)))
        for path in sorted(folder.rglob(_CONFIG))
        for raw in yaml.safe_load(path.read_text()) or ()
    ]


def _test_case(raw: Mapping[str, Any], folder: Path, area: str) -> TestCase:
    config = raw.get("schedulerConfigPath")
    return TestCase(
        area=area,
        name=raw["name"],
        folder=folder,
        operations=tuple(raw["workloadTemplate"]),
        workloads=tuple(_workload(each, raw) for each in raw["workloads"]),
        pod_template=raw.get("defaultPodTemplatePath"),
        config=folder / config if config else None,
    )


def _workload(raw: Mapping[str, Any], case: Mapping[str, Any]) -> Workload:
    threshold = raw.get("threshold") or 0
    if isinstance(threshold, Mapping):
        # By topic: the name of the folder's own tests.
        threshold = max(threshold.values(), default=0)
    return Workload(
        name=raw["name"],
        params=raw.get("params") or {},
        labels=(*(case.get("labels") or ()), *(raw.get("labels") or ())),
        gates={**(case.get("featureGates") or {}), **(raw.get("featureGates") or {})},
        threshold=float(threshold),
    )


def resolved(fields: Mapping[str, Any], params: Params) -> dict[str, Any]:
    """`countParam: $measurePods` becomes `count: 1000`."""
    found: dict[str, Any] = {}
    for name, value in fields.items():
        if name.endswith("Param") and isinstance(value, str):
            if value.removeprefix("$") not in params:
                raise Unsupported(f"the workload has no parameter {value}")
            found[name.removesuffix("Param")] = params[value.removeprefix("$")]
        elif isinstance(value, Mapping) and "opcode" in value:
            found[name] = resolved(value, params)
        else:
            found[name] = value
    return found


# Templates

_ACTION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}")

_FUNCTIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "AddInt": operator.add,
    "AddFloat": operator.add,
    "SubtractInt": operator.sub,
    "SubtractFloat": operator.sub,
    "MultiplyInt": operator.mul,
    "MultiplyFloat": operator.mul,
    "DivideInt": lambda a, b: int(a / b),
    "DivideFloat": operator.truediv,
    "Mod": lambda a, b: int(a) % int(b),
}


@dataclass(frozen=True, slots=True)
class Template:
    """A manifest with the part of Go's template language that upstream's files use."""

    path: Path
    text: str

    @property
    def is_constant(self) -> bool:
        return "{{" not in self.text

    def manifest(self, index: int = 0, count: int = 1) -> dict[str, Any]:
        """Raises Unsupported."""
        given = {".Index": index, ".Count": count}
        text = _ACTION.sub(lambda found: str(self._value(found[1], given)), self.text)
        loaded = yaml.safe_load(text)
        if not isinstance(loaded, dict):
            raise Unsupported(f"{self.path.name} is not a manifest")
        return loaded

    def _value(self, expression: str, given: Mapping[str, int]) -> Any:
        words = expression.split()
        if len(words) == 1:
            return self._operand(words[0], given)
        function = _FUNCTIONS.get(words[0])
        if function is None or len(words) != 3:
            raise Unsupported(f"{self.path.name}: {{{{{expression}}}}}")
        return function(*(self._operand(word, given) for word in words[1:]))

    def _operand(self, word: str, given: Mapping[str, int]) -> Any:
        if word in given:
            return given[word]
        try:
            return int(word)
        except ValueError:
            raise Unsupported(f"{self.path.name}: {word} in a template") from None


@cache
def read_template(path: Path) -> Template:
    return Template(path, path.read_text())
