from mooring.framework.events import Action, EventResource, Hint
from mooring.framework.status import SUCCESS, unresolvable
from mooring.plugins.scheduling_gates import SchedulingGates
from tests.makers import make_pod

PLUGIN = SchedulingGates()


def test_a_pod_without_gates_may_enter_the_queue():
    assert PLUGIN.pre_enqueue(make_pod()) == SUCCESS


def test_a_gated_pod_is_held_back_and_told_its_gates_in_order():
    pod = make_pod(gates=["example.com/b", "example.com/a"])

    expected = unresolvable("waiting for scheduling gates: [example.com/b example.com/a]")
    assert PLUGIN.pre_enqueue(pod) == expected


def test_only_its_own_last_gate_brings_a_pod_back():
    (registered,) = PLUGIN.events_to_register()
    pod = make_pod("p", gates=["g"])

    assert registered.event.resource == EventResource.POD
    assert registered.event.action == Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
    assert registered.hint(pod, pod, make_pod("p")) == Hint.QUEUE
    assert registered.hint(pod, make_pod("other", gates=["g"]), make_pod("other")) == Hint.SKIP
