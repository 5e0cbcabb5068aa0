"""Every pod as the API server last showed it, with or without a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import TypeVar, overload

from mooring.objects.pod import Pod

T = TypeVar("T")

#: Called with a pod before and after a change; None if there is none.
PodFollower = Callable[[Pod | None, Pod | None], None]


class ObservedPods(Mapping[str, Pod]):
    """Pods by `namespace/name`, to be read. Plugins may follow the changes, to keep sums or an index."""

    def __init__(self) -> None:
        self._pods: dict[str, Pod] = {}
        self._followers: list[PodFollower] = []

    def follow(self, changed: PodFollower) -> None:
        """Call `changed` for each pod that is there, and for each change from now on."""
        for pod in self._pods.values():
            changed(None, pod)
        self._followers.append(changed)

    def __getitem__(self, key: str) -> Pod:
        return self._pods[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._pods)

    def __len__(self) -> int:
        return len(self._pods)

    @overload
    def get(self, key: str, /) -> Pod | None: ...
    @overload
    def get(self, key: str, /, default: Pod | T) -> Pod | T: ...
    def get(self, key: str, /, default: Pod | T | None = None) -> Pod | T | None:
        # The mixin's own form is several times slower, and each binding asks.
        return self._pods.get(key, default)


class ObservedPodsBook(ObservedPods, MutableMapping[str, Pod]):
    """The same, for the engine, which writes down what it sees."""

    def __setitem__(self, key: str, pod: Pod) -> None:
        old = self._pods.get(key)
        self._pods[key] = pod
        for changed in self._followers:
            changed(old, pod)

    def __delitem__(self, key: str) -> None:
        old = self._pods.pop(key)
        for changed in self._followers:
            changed(old, None)
