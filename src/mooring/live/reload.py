"""The configuration file, read again when it changes: a bad one is refused and the good one stays.

A file is taken to have changed if its content has: a ConfigMap that is mounted is swapped by a symbolic link,
and an editor may write the same text again. Plugins that the configuration names as `module:Class` are read
again from their files as well; packages that are installed are not, as they may be in use by others.
"""

from __future__ import annotations

import hashlib
import importlib
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from mooring.config import (
    DEFAULT_GATES,
    FeatureGates,
    KubeSchedulerConfiguration,
    default_config,
    load_config,
)
from mooring.errors import ConfigError
from mooring.runtime.plugin_folder import find_plugins_beside

_LOG = logging.getLogger(__name__)

#: How often the files are looked at.
LOOK_EVERY_S = 5.0

#: Parts of the configuration that are read at the start only.
_FIXED = ("leader_election", "client_connection", "delay_cache_until_active")


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """Where the configuration comes from: a file, and the flags that override it."""

    path: Path | None = None
    #: Those of the command line.
    gates: FeatureGates = DEFAULT_GATES
    override: Callable[[KubeSchedulerConfiguration], KubeSchedulerConfiguration] = lambda config: (
        config
    )

    def load(self) -> KubeSchedulerConfiguration:
        """Raises ConfigError, each line with the file that it is about."""
        if self.path is None:
            return self.override(default_config(self.gates))
        find_plugins_beside(self.path)
        try:
            text = self.path.read_bytes()
        except OSError as error:
            problem = f"{self.path}: cannot be read: {error.strerror or error}"
            raise ConfigError([problem]) from error
        try:
            return self.override(load_config(text, gates=self.gates))
        except ConfigError as error:
            raise ConfigError([f"{self.path}: {line}" for line in error.problems]) from error


class Reloader:
    """Notices that a file changed, and hands the new configuration over if it can be used."""

    def __init__(
        self,
        source: ConfigSource,
        current: KubeSchedulerConfiguration,
        apply: Callable[[KubeSchedulerConfiguration], None],
    ) -> None:
        """`apply` raises ConfigError to refuse."""
        self._source = source
        self._current = current
        self._apply = apply
        self._seen = self._fingerprint()

    def changed(self) -> bool:
        """Whether a file is not as it was when last asked."""
        seen, self._seen = self._seen, self._fingerprint()
        return seen != self._seen

    def reload(self) -> bool:
        """Whether the configuration as it stands in the file is now in use."""
        self._seen = self._fingerprint()
        try:
            config = self._source.load()
            with fresh_modules(plugin_modules(config) | plugin_modules(self._current)):
                self._apply(config)
        except ConfigError as error:
            for problem in error.problems:
                _LOG.error("invalid configuration; keeping the current one: %s", problem)
            return False
        for part in _FIXED:
            if getattr(config, part) != getattr(self._current, part):
                _LOG.warning("the change of %s takes effect after a restart", part)
        self._current = config
        self._seen = self._fingerprint()
        _LOG.info("configuration reloaded: %s", self._source.path or "the default configuration")
        return True

    def _fingerprint(self) -> dict[str, bytes]:
        paths = [] if self._source.path is None else [self._source.path]
        paths += _files(plugin_modules(self._current))
        return {str(path): _digest(path) for path in paths}


def plugin_modules(config: KubeSchedulerConfiguration) -> frozenset[str]:
    """The modules that the configuration names itself, as `module:Class`."""
    return frozenset(
        name.partition(":")[0]
        for profile in config.profiles
        for name in profile.plugins.enabled_names
        if ":" in name
    )


@contextmanager
def fresh_modules(names: Iterable[str]) -> Iterator[None]:
    """Have these modules read from their files again; if that fails, all is as before."""
    known: dict[str, ModuleType] = {}
    for name in names:
        module = sys.modules.pop(name, None)
        if module is not None:
            known[name] = module
    importlib.invalidate_caches()
    try:
        yield
    except BaseException:
        sys.modules.update(known)
        raise


def _files(modules: Iterable[str]) -> list[Path]:
    files = (getattr(sys.modules.get(name), "__file__", None) for name in sorted(modules))
    return [Path(file) for file in files if file]


def _digest(path: Path) -> bytes:
    """Empty for a file that cannot be read, which is noticed as a change like any other."""
    try:
        return hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        return b""
