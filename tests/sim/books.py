"""What must hold once a simulation has come to rest, whatever went wrong on the way."""

from __future__ import annotations

from mooring.objects.pod import Pod
from mooring.objects.storage import PersistentVolume, PersistentVolumeClaim
from mooring.sim.simulation import Simulation


def validate(sim: Simulation) -> bool:
    """Whatever is kept is what a rebuild gives. Returns False, so that a run may go on after it."""
    sim.scheduler.validate()
    return False


def assert_at_rest(sim: Simulation) -> None:
    """Everything that was assumed for a pod is confirmed or undone, and the books agree with the API."""
    scheduler = sim.scheduler
    validate(sim)
    assert sim.errors == []
    assert scheduler.cluster.assumed_pods() == []
    assert len(scheduler.waiting_pods) == 0
    assert len(scheduler.parts.pods_in_pre_bind) == 0
    assert scheduler.queue.in_flight_pods() == []
    assert_no_volume_is_held(sim)
    assert_nominations_are_of_pending_pods(sim)
    assert_books_agree_with_api(sim)


def assert_no_volume_is_held(sim: Simulation) -> None:
    """Every claim and volume is seen as the API server shows it."""
    cluster = sim.scheduler.cluster
    for volume in sim.api.all(PersistentVolume):
        assert cluster.volumes.volumes.get(volume.key) == volume
    for claim in sim.api.all(PersistentVolumeClaim):
        assert cluster.volumes.claims.get(claim.key) == claim


def assert_nominations_are_of_pending_pods(sim: Simulation) -> None:
    nominator = sim.scheduler.nominator
    pending = {pod.uid for pod in sim.api.all(Pod) if not pod.node_name}
    held_for = {
        pod.uid for name in nominator.nodes() for pod in nominator.nominated_pods_for_node(name)
    }
    assert held_for <= pending
    for pod in sim.api.all(Pod):
        assert not (pod.node_name and pod.nominated_node_name), pod.key


def assert_books_agree_with_api(sim: Simulation) -> None:
    """The scheduler counts the pods that are on nodes, and knows of every other one it is to place."""
    scheduler = sim.scheduler
    running = {pod.uid: pod.node_name for pod in sim.api.all(Pod) if not pod.finished}
    placed = {uid: node for uid, node in running.items() if node}
    assert {uid: pod.node_name for uid, pod in scheduler.cluster.pods.items()} == placed
    waiting, _ = scheduler.queue.pending_pods()
    to_place = {
        pod.uid
        for pod in sim.api.all(Pod)
        if pod.uid not in placed
        and not pod.finished
        and not pod.terminating
        and pod.scheduler_name in scheduler.frameworks
    }
    assert to_place == {pod.uid for pod in waiting if not pod.terminating}
