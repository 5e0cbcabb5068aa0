"""Signatures: a plugin that names the fields it reads is asked only if these differ."""

from __future__ import annotations

import pytest

from mooring.framework.interface import Depends
from mooring.objects.taints import Toleration
from mooring.runtime.metrics import Metrics
from mooring.runtime.plugin_calls import Calls
from mooring.runtime.signatures import Signatures
from tests.makers import make_pod


class Tolerant:
    """Counts how often it is asked."""

    name = "Tolerant"
    signature_fields = ("spec.tolerations",)

    def __init__(self):
        self.asked = 0

    def depends_on(self, pod):
        return Depends.NODE

    def sign(self, pod):
        self.asked += 1
        return {"tolerations": frozenset(pod.spec.tolerations)}


class AlsoByLabels(Tolerant):
    """Reads more than the class that it is derived from."""

    name = "AlsoByLabels"

    def sign(self, pod):
        return {**super().sign(pod), "labels": pod.label_items}


def signatures_of(*plugins):
    return Signatures([Calls(plugin.name, plugin, Metrics()) for plugin in plugins])


def test_a_plugin_is_not_asked_while_its_fields_stay_the_same():
    plugin = Tolerant()
    signatures = signatures_of(plugin)

    first = signatures.of(make_pod("a", labels={"app": "a"}))
    assert signatures.of(make_pod("b", labels={"app": "b"})) == first
    assert plugin.asked == 1

    tolerating = make_pod("c", tolerations=[Toleration(operator="Exists")])
    assert signatures.of(tolerating) != first
    assert signatures.of(make_pod("d")) == first
    assert plugin.asked == 3


def test_a_plugin_is_asked_again_once_all_is_forgotten():
    plugin = Tolerant()
    signatures = signatures_of(plugin)
    signatures.of(make_pod("a"))

    signatures.forget()
    signatures.of(make_pod("b"))

    assert plugin.asked == 2


@pytest.mark.parametrize("beside", [(), (Tolerant(),)])
def test_the_fields_of_a_class_do_not_hold_for_methods_that_override_its_own(beside):
    signatures = signatures_of(AlsoByLabels(), *beside)

    of_a = signatures.of(make_pod("a", labels={"app": "a"}))

    assert signatures.of(make_pod("b", labels={"app": "b"})) != of_a
    assert signatures.of(make_pod("c", labels={"app": "a"})) == of_a


def test_a_plugin_that_reads_no_field_is_asked_once():
    class Cluster(Tolerant):
        signature_fields = ()

        def depends_on(self, pod):
            self.asked += 1
            return Depends.CLUSTER

        def sign(self, pod):
            raise AssertionError("its answers are not kept")

    plugin = Cluster()
    signatures = signatures_of(plugin)

    assert signatures.of(make_pod("a")) == signatures.of(make_pod("b")) == ((None,), ())
    assert plugin.asked == 1
