"""What the API server does to an object before it stores it: completes it, shapes it, or refuses it.

In the order of the API server's admission plugins, as far as they are configured by objects:

    defaults and priority    `objects.defaults`
    LimitRange, defaults     limit_range.py
    RuntimeClass             runtime_class.py
    LimitRange, limits       limit_range.py
    ResourceQuota            resource_quota.py

All policies count as applied before everything else, whatever their order in the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from mooring.objects.admission.limit_range import LimitRanges
from mooring.objects.admission.refusal import Refusal
from mooring.objects.admission.refusal import Refused as Refused
from mooring.objects.admission.resource_quota import ResourceQuotas
from mooring.objects.admission.runtime_class import RuntimeClasses
from mooring.objects.claims import named_claims
from mooring.objects.defaults import Defaults
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.objects.policies import LimitRange, ResourceQuota, RuntimeClass
from mooring.objects.shared_parts import have_same_parts
from mooring.objects.storage import PersistentVolumeClaim


class Admission:
    """The admission of one cluster, given its objects."""

    def __init__(
        self, objects: Iterable[KubeObject] = (), *, stored: Iterable[KubeObject] = ()
    ) -> None:
        """`stored` are the objects that exist already: they count for quotas."""
        objects = list(objects)
        self.defaults = Defaults(objects)
        #: What would not be created, in order.
        self.refused: list[Refused] = []
        self._runtime_classes = RuntimeClasses(o for o in objects if isinstance(o, RuntimeClass))
        self._limit_ranges = LimitRanges(o for o in objects if isinstance(o, LimitRange))
        self._quotas = ResourceQuotas(o for o in objects if isinstance(o, ResourceQuota))
        if self._quotas:
            for obj in stored:
                self._quotas.count(self.defaults.of(obj))
        self._has_policies = bool(self._limit_ranges or self._quotas)
        #: The UID and the key of what is refused → why.
        self._why: dict[object, str] = {}
        #: The last pod whose spec was changed.
        self._latest: Pod | None = None

    def created(
        self, obj: KubeObject, made: Iterable[KubeObject], *, stored: bool
    ) -> Iterator[KubeObject]:
        """An object and what controllers create for it, without what would be refused.

        A stored object has been through admission.
        """
        complete = self.defaults.of(obj) if stored else self.create(obj)
        if complete is None:
            why = f"its {obj.kind} {obj.name} is not created: {self._why[obj.uid]}"
            for pod in made:
                if isinstance(pod, Pod):
                    self._refuse(pod, why)
            return
        yield complete
        for each in made:
            if (created := self.create(each)) is not None:
                yield created

    def create(self, obj: KubeObject) -> KubeObject | None:
        """The object as the API server would store it; None if it would refuse the object."""
        if self._why and self._lost_with_owner(obj):
            return None
        complete = self.defaults.of(obj)
        if not self._has_policies and not _is_special(complete):
            # The common case, for many thousands of pods.
            return complete
        try:
            if isinstance(complete, Pod):
                complete = self._pod(complete)
            elif isinstance(complete, PersistentVolumeClaim):
                self._limit_ranges.check_claim(complete)
            self._quotas.charge(complete)
        except Refusal as refusal:
            self._refuse(obj, str(refusal))
            return None
        return complete

    def _pod(self, pod: Pod) -> Pod:
        """Raises Refusal."""
        if pod.metadata.controller is not None and pod.metadata.controller.kind == "StatefulSet":
            self._check_claims(pod)
        spec = self._limit_ranges.with_defaults(pod.namespace, pod.spec)
        spec = self._runtime_classes.applied(spec)
        self._limit_ranges.check_pod(pod.namespace, spec)
        self._runtime_classes.check(spec)
        if spec is pod.spec:
            return pod
        previous, shaped = self._latest, replace(pod, spec=spec)
        if (
            previous is not None
            and previous.namespace == shaped.namespace
            and have_same_parts(previous.spec, spec)
        ):
            shaped.take_derived_from(previous)
        self._latest = shaped
        return shaped

    def _check_claims(self, pod: Pod) -> None:
        """A StatefulSet creates a pod only after its claims. Raises Refusal."""
        for name in named_claims(pod):
            why = self._why.get((PersistentVolumeClaim, f"{pod.namespace}/{name}"))
            if why is not None:
                raise Refusal(
                    f"failed to create PVC {name}: "
                    f'persistentvolumeclaims "{name}" is forbidden: {why}'
                )

    def _lost_with_owner(self, obj: KubeObject) -> bool:
        """Whether the object is not created because its controller was refused."""
        owner = obj.metadata.controller
        why = self._why.get(owner.uid) if owner is not None and owner.uid else None
        if owner is None or why is None:
            return False
        if isinstance(obj, Pod):
            of = "" if why.startswith("its ") else f"its {owner.kind} {owner.name} is not created: "
            self._refuse(obj, of + why)
        else:
            self._why[obj.uid] = f"its {owner.kind} {owner.name} is not created: {why}"
        return True

    def _refuse(self, obj: KubeObject, reason: str) -> None:
        self.refused.append(Refused(obj, reason))
        self._why[obj.uid] = reason
        self._why[type(obj), obj.key] = reason


def _is_special(obj: KubeObject) -> bool:
    """Whether a rule concerns the object that needs no limit range and no quota."""
    return isinstance(obj, Pod) and (
        obj.spec.runtime_class_name is not None or bool(obj.spec.overhead)
    )
