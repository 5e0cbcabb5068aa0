"""Which pods a user means: `web-0`, `shop/web-0`, `deployment/web`, or the beginning of a name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mooring.explain.explanation import CannotAnswer, check_nodes, unknown
from mooring.objects.admission import Refused
from mooring.objects.controllers import TEMPLATE_HASH
from mooring.objects.kinds import KINDS
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod

#: Kind in lower case, plural or short name → kind in lower case.
_ALIASES = {
    alias: kind.name.lower()
    for kind in KINDS
    for alias in (kind.name.lower(), kind.plural, kind.short)
    if alias
}
_MOST_NAMES = 10

#: Kind in lower case, namespace and name of an object.
_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Target:
    """One pod, or the pods of a workload."""

    #: `namespace/name` of each pod that has not finished.
    pods: tuple[str, ...]
    #: `Deployment shop/web`; "" for a single pod.
    workload: str = ""


def find_target(
    objects: Sequence[KubeObject],
    text: str,
    *,
    namespace: str | None = None,
    refused: Iterable[Refused] = (),
) -> Target:
    """Raises CannotAnswer with similar names, or with why the pods of a workload are not created.

    With a namespace, names without one are looked up there only.
    """
    check_nodes(objects)
    pods = {obj.key: obj for obj in objects if isinstance(obj, Pod)}
    if text in pods:
        return _one(pods[text])
    *before, last = text.split("/")
    owners = _Owners(objects, refused)
    if len(before) == 2 and owners.kind(before[0]):
        # As in scenarios: deployment/shop/web.
        before.reverse()
    kind = owners.kind(before[-1]) if before else ""
    if len(before) == 1 and any(pod.namespace == before[0] for pod in pods.values()):
        # The namespace has the name of a kind.
        kind = ""
    if kind and kind != "pod":
        within = before[0] if len(before) == 2 else namespace
        return owners.target(kind, last, within, text)
    name = last if kind else text
    if kind and len(before) == 2:
        name = f"{before[0]}/{last}"
    elif namespace is not None and "/" not in name:
        name = f"{namespace}/{name}"
    return _pod(pods, name, owners)


def _pod(pods: dict[str, Pod], name: str, owners: _Owners) -> Target:
    """By its full name, or by a beginning that only one pod or one workload has."""
    if name in pods:
        return _one(pods[name])
    found = [pod for key, pod in pods.items() if "/" not in name and pod.name == name]
    if len(found) > 1:
        raise CannotAnswer(
            f"{len(found)} pods are called {name!r}; name one of {_some(pod.key for pod in found)}"
        )
    if not found:
        found = [
            pod for key, pod in pods.items() if (key if "/" in name else pod.name).startswith(name)
        ]
    if len(found) == 1:
        return _one(found[0])
    if not found:
        raise CannotAnswer(unknown("pod", name, list(pods)))
    workloads = {owners.workload(pod) for pod in found}
    if len(workloads) == 1 and None not in workloads:
        (workload,) = workloads
        assert workload is not None
        kind, namespace, owner = workload
        return owners.target(kind, owner, namespace, name)
    raise CannotAnswer(
        f"{len(found):,} pods begin with {name!r}; name one of {_some(pod.key for pod in found)}"
    )


def _one(pod: Pod) -> Target:
    if pod.finished:
        raise CannotAnswer(f"pod {pod.key} has finished, so it needs no node")
    return Target((pod.key,))


class _Owners:
    """Which workload a pod belongs to, through all its owners."""

    def __init__(self, objects: Sequence[KubeObject], refused: Iterable[Refused] = ()) -> None:
        self._objects = objects
        self._refused = refused
        self._known = {(obj.kind.lower(), obj.namespace, obj.name): obj for obj in objects}

    def kind(self, text: str) -> str:
        """`deploy`, `deployments` or `deployment.apps` → `deployment`; "" if no object is of that kind."""
        bare = text.lower().partition(".")[0]
        if bare in _ALIASES:
            return _ALIASES[bare]
        controllers = (obj.metadata.controller for obj in self._objects if isinstance(obj, Pod))
        owners = {owner.kind.lower() for owner in controllers if owner is not None}
        known = owners | {key[0] for key in self._known}
        return next((kind for kind in (bare, bare.removesuffix("s")) if kind in known), "")

    def target(self, kind: str, name: str, namespace: str | None, text: str) -> Target:
        """By the full name of the workload, or by a beginning that only one has."""
        of_kind: dict[_Key, list[Pod]] = {}
        for obj in self._objects:
            if isinstance(obj, Pod) and not obj.finished:
                for key in self.chain(obj):
                    if key[0] == kind and namespace in (None, key[1]):
                        of_kind.setdefault(key, []).append(obj)
        found = {key: pods for key, pods in of_kind.items() if key[2] == name}
        verb = "are called"
        if not found and not self._exists(kind, name, namespace):
            found = {key: pods for key, pods in of_kind.items() if key[2].startswith(name)}
            verb = "begin with"
        if not found:
            raise CannotAnswer(self._nothing(kind, name, namespace, text))
        if len(found) > 1:
            names = _some("/".join(each) for each in found)
            raise CannotAnswer(f"{len(found)} workloads {verb} {text!r}; name one of {names}")
        ((key, pods),) = found.items()
        return Target(tuple(pod.key for pod in pods), self._title(key))

    def workload(self, pod: Pod) -> _Key | None:
        """The outermost owner; None for a pod on its own."""
        return next(iter(reversed(list(self.chain(pod)))), None)

    def chain(self, pod: Pod) -> Iterator[_Key]:
        """The controller of the pod, the controller of that, and so on."""
        obj: KubeObject | None = pod
        while obj is not None and (owner := obj.metadata.controller) is not None:
            key = (owner.kind.lower(), pod.namespace, owner.name)
            yield key
            obj = self._known.get(key)
            suffix = f"-{pod.labels.get(TEMPLATE_HASH)}"
            if obj is None and key[0] == "replicaset" and owner.name.endswith(suffix):
                # The ReplicaSet was not read, but its name has that of the Deployment.
                yield "deployment", pod.namespace, owner.name.removesuffix(suffix)

    def _nothing(self, kind: str, name: str, namespace: str | None, text: str) -> str:
        owned = {key for obj in self._objects if isinstance(obj, Pod) for key in self.chain(obj)}
        same = sorted({f"{key[0]}/{key[2]}" for key in owned if key[0] == kind})
        if self._exists(kind, name, namespace):
            return self._why_without_pods(kind, name, namespace, text)
        return unknown(kind, f"{kind}/{name}", same)

    def _exists(self, kind: str, name: str, namespace: str | None) -> bool:
        return any(
            key[0] == kind and key[2] == name and namespace in (None, key[1]) for key in self._known
        )

    def _why_without_pods(self, kind: str, name: str, namespace: str | None, text: str) -> str:
        reasons = [
            each.reason
            for each in self._refused
            if isinstance(each.object, Pod)
            and namespace in (None, each.object.namespace)
            and any(key[0] == kind and key[2] == name for key in self.chain(each.object))
        ]
        if not reasons:
            return f"{text} has no pods that need a node"
        pods = "its pod" if len(reasons) == 1 else f"any of its {len(reasons)} pods"
        return f"{text} has no pods: the API server would not create {pods}: {reasons[0]}"

    def _title(self, key: _Key) -> str:
        obj = self._known.get(key)
        kind = obj.kind if obj is not None else key[0].capitalize()
        return f"{kind} {key[1]}/{key[2]}"


def _some(names: Iterable[str]) -> str:
    listed = sorted(names)
    more = f" and {len(listed) - _MOST_NAMES:,} more" if len(listed) > _MOST_NAMES else ""
    return ", ".join(listed[:_MOST_NAMES]) + more
