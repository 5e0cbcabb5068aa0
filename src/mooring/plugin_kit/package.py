"""`mooring plugin new`: a small package with a plugin, from the files in `template/`."""

from __future__ import annotations

import keyword
import re
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from mooring.errors import InputError, PluginError
from mooring.plugins.registry import BUILT_IN
from mooring.runtime.registry import Registry

_NAME = re.compile(r"[A-Z][A-Za-z0-9]*")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[a-z0-9]+")

#: The file in `template/` → where it goes in the package. `@module@` is the name of the module.
_FILES = {
    "pyproject.toml.txt": "pyproject.toml",
    "README.md.txt": "README.md",
    "plugin.py.txt": "src/@module@/__init__.py",
    "test_plugin.py.txt": "tests/test_@module@.py",
    "scheduler.yaml.txt": "scheduler.yaml",
    "cluster.yaml.txt": "cluster.yaml",
}


@dataclass(frozen=True, slots=True)
class Package:
    """A package that was written."""

    #: The name of the plugin, and of its module.
    name: str
    module: str
    folder: Path

    @property
    def target(self) -> str:
        return f"{self.module}:{self.name}"

    @property
    def module_file(self) -> str:
        return f"src/{self.module}/__init__.py"


def write_package(name: str, where: Path) -> Package:
    """Write the package of a plugin. Raises InputError and PluginError; then nothing was written."""
    module = _module_of(name)
    folder = where / module.replace("_", "-")
    if folder.exists():
        raise InputError([f"{folder}: exists already; choose another name or another --folder"])
    texts = {
        target.replace("@module@", module): _filled(template, name, module)
        for template, target in _FILES.items()
    }
    try:
        for target, text in texts.items():
            path = folder / target
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError([f"{folder}: cannot be written: {error.strerror or error}"]) from error
    return Package(name, module, folder)


def _module_of(name: str) -> str:
    """The name of the module for a plugin: quiet_nodes for QuietNodes."""
    if not _NAME.fullmatch(name):
        words = re.findall(r"[A-Za-z][a-z0-9]*", name)
        alike = "".join(word.capitalize() for word in words) or "QuietNodes"
        raise InputError([f"{name!r} is no name for a plugin; write it as a class: {alike}"])
    if name in Registry(BUILT_IN).names():
        raise PluginError(f"a plugin named {name} already exists; choose another name")
    module = "_".join(word.lower() for word in _WORDS.findall(name))
    if keyword.iskeyword(module) or module in sys.stdlib_module_names or module == "mooring":
        raise InputError([f"{name!r}: a module {module} exists in Python; choose another name"])
    return module


def _filled(template: str, name: str, module: str) -> str:
    text = (resources.files("mooring.plugin_kit") / "template" / template).read_text("utf-8")
    return (
        text.replace("@Name@", name)
        .replace("@module@", module)
        .replace("@package@", module.replace("_", "-"))
    )
