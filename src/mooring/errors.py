"""What mooring raises on purpose.

MooringError
├── InputError         a manifest that cannot be used: file, document, field, what is wrong
├── ConfigError        a configuration that cannot be used: every problem, each with its field path
├── ApiError           the API server answered with a failure, or not at all
│   ├── Unauthorized   401: it does not know who asks
│   ├── Forbidden      403: who asks may not do that
│   │   └── NamespaceTerminating 403: the namespace is being deleted
│   ├── NotFound       404: the object is gone
│   ├── Conflict       409: someone wrote first; read again and decide again
│   ├── Expired        410: the resource version is too old; list again
│   ├── TooManyRequests 429: ask again later
│   ├── NotLeading     a write that was not made, as another process may be making it
│   └── ServerUnavailable 5xx: it failed, or is overloaded
│       └── Unanswered no answer came: refused, broken off, or not in time
├── CredentialsError   a kubeconfig or service account that gives no way to reach an API server
├── PluginError        a plugin that cannot be loaded or built, or that broke the framework's contract
├── ExtenderError      an extender that cannot be reached, or answered with a failure or with nonsense
└── InvariantError     mooring's internal state is inconsistent: a bug, never the user's fault
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


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

    def __init__(self, message: str = "", *, status: int = 0, reason: str = "") -> None:
        super().__init__(message)
        #: The HTTP status; 0 if there was no answer.
        self.status = status
        #: What the API server calls it in one word, such as AlreadyExists; empty if it did not say.
        self.reason = reason
        #: How long the API server asks to wait before the next try; None if it does not ask.
        self.retry_after_s: float | None = None


class Unauthorized(ApiError):
    """401: the API server does not know who asks."""


class Forbidden(ApiError):
    """403: who asks may not do that."""


class NamespaceTerminating(Forbidden):
    """403: the namespace is being deleted, and takes nothing that is new."""


class NotFound(ApiError):
    """404: the object is gone."""


class Conflict(ApiError):
    """409: someone wrote first; read again and decide again."""


class Expired(ApiError):
    """410: the resource version is too old; list again."""


class TooManyRequests(ApiError):
    """429: ask again later."""


class NotLeading(ApiError):
    """A write that was not made, as another process may be making it."""


class ServerUnavailable(ApiError):
    """5xx, or no answer at all: it may well work later."""


class Unanswered(ServerUnavailable):
    """No answer came: the connection was refused, broke off, or nothing was heard in time."""

    def __init__(self, message: str, *, maybe_done: bool) -> None:
        super().__init__(message)
        #: Whether the request may have reached the API server, and so may have been carried out.
        self.maybe_done = maybe_done


class CredentialsError(MooringError):
    """A kubeconfig or a service account that gives no way to reach an API server."""


class PluginError(MooringError):
    """A plugin that cannot be loaded, built, or placed at an extension point."""


class ExtenderError(MooringError):
    """An extender that cannot be reached, or answered with a failure or with nonsense."""


class InvariantError(MooringError):
    """Mooring's internal state is inconsistent."""


def check_kept(what: str, kept: object, rebuilt: object) -> None:
    """Raise InvariantError unless what is kept equals what a rebuild gives.

    The error names the first difference. Of mappings, that is the first key whose values differ.
    """
    if kept == rebuilt:
        return
    if isinstance(kept, Mapping) and isinstance(rebuilt, Mapping):
        for key in (*rebuilt, *kept):
            check_kept(f"{what}, {key}", kept.get(key, _NOTHING), rebuilt.get(key, _NOTHING))
    raise InvariantError(f"{what}: {kept} is kept, and a rebuild gives {rebuilt}")


#: Stands for a key that a mapping lacks.
_NOTHING = "nothing"
