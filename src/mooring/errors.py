"""What mooring raises on purpose.

MooringError
├── InputError         a manifest that cannot be used: file, document, field, what is wrong
├── ConfigError        a configuration that cannot be used: every problem, each with its field path
├── ApiError           the API server answered with a failure
│   ├── NotFound       404: the object is gone
│   └── Conflict       409: someone wrote first; read again and decide again
├── PluginError        a plugin that cannot be loaded or built, or that broke the framework's contract
├── ExtenderError      an extender that cannot be reached, or answered with a failure or with nonsense
└── InvariantError     mooring's own books do not add up: a bug, never the user's fault
"""

from __future__ import annotations

from collections.abc import Sequence


class MooringError(Exception):
    """The root of everything mooring raises on purpose."""


class InputError(MooringError):
    """Manifests that cannot be used; `problems` has one line for each thing found."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class ConfigError(MooringError):
    """A scheduler configuration that cannot be used; `problems` has one line for each thing found."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class ApiError(MooringError):
    """The API server answered with a failure, or did not answer."""


class NotFound(ApiError):
    """404: the object is gone."""


class Conflict(ApiError):
    """409: someone wrote first; read again and decide again."""


class PluginError(MooringError):
    """A plugin that cannot be loaded, built, or placed at an extension point."""


class ExtenderError(MooringError):
    """An extender that cannot be reached, or answered with a failure or with nonsense."""


class InvariantError(MooringError):
    """Mooring's own books do not add up."""
