"""Two instances, one at work: whoever leads binds, and a leader that is gone is succeeded."""

from __future__ import annotations

from typing import Any

import pytest
from plain_client import Json

from tests.live import objects
from tests.live.cluster import Cluster
from tests.live.conftest import StartMooring
from tests.live.objects import DEFAULT_SCHEDULER
from tests.live.process import SHORT_LEASE, Mooring, configuration
from tests.live.proxy import Proxy, binds
from tests.live.waiting import hold_for, wait_for

pytestmark = pytest.mark.live


def elected(**fields: Any) -> Json:
    return configuration(DEFAULT_SCHEDULER, leaderElection=SHORT_LEASE, **fields)


def lease(cluster: Cluster) -> Json:
    found = cluster.client.find("Lease", "mooring", "kube-system")
    return found["spec"] if found else {}


def holder(cluster: Cluster) -> str:
    identity: str = lease(cluster).get("holderIdentity") or ""
    return identity


def bound_by(mooring: Mooring) -> float:
    return mooring.metric("scheduler_schedule_attempts_total", result="scheduled")


@pytest.fixture
def pair(cluster: Cluster, start_mooring: StartMooring) -> tuple[Mooring, Mooring]:
    """The leader, and the one that stands by."""
    cluster.add(*(objects.node(f"node-{number}") for number in range(5)))
    first = start_mooring(elected(), name="first")
    wait_for(lambda: holder(cluster), "the first one leads")
    return first, start_mooring(elected(), name="second")


def test_only_the_leader_works(cluster: Cluster, pair: tuple[Mooring, Mooring]) -> None:
    leader, standby = pair

    cluster.add(*objects.pods("web", 50))
    cluster.wait_until_bound()

    wait_for(lambda: bound_by(leader) == 50, "the leader bound all of them")
    assert bound_by(standby) == 0
    assert standby.read("readyz") == "ok"
    assert leader.metric("leader_election_master_status") == 1
    cluster.check_books()


def test_a_killed_leader_is_succeeded(cluster: Cluster, pair: tuple[Mooring, Mooring]) -> None:
    leader, standby = pair
    before = holder(cluster)
    cluster.add(*objects.pods("web", 50))
    wait_for(cluster.answers_to_binds, "it has begun")

    leader.kill()
    cluster.add(*objects.pods("late", 20))

    cluster.wait_until_bound()
    assert holder(cluster) != before
    assert lease(cluster)["leaseTransitions"] == 1
    assert bound_by(standby) >= 20
    cluster.check_books()


def test_a_leader_that_leaves_hands_over_at_once(
    cluster: Cluster, pair: tuple[Mooring, Mooring]
) -> None:
    leader, standby = pair
    before = holder(cluster)

    leader.stop()

    assert leader.exit_code == 0
    wait_for(lambda: holder(cluster) not in ("", before), "the other one leads")
    told = [
        event["note"].partition(" ")[2]
        for event in cluster.events_of("mooring", "kube-system")
        if event["regarding"]["kind"] == "Lease"
    ]
    assert told[:2] == ["became leader", "stopped leading"]
    cluster.add(*objects.pods("web", 10))
    cluster.wait_until_bound()
    assert bound_by(standby) == 10


def test_a_leader_that_slept_through_its_lease_binds_nothing_more(
    cluster: Cluster, start_mooring: StartMooring, proxy: Proxy
) -> None:
    """The story of a virtual machine that was moved.

    1. The leader has decided on pods; their binds have not left the machine.
    2. It is held still for longer than its lease lasts. The other one takes over and binds the pods.
    3. It goes on, in the middle of what it did.
    """
    cluster.add(*(objects.node(f"node-{number}") for number in range(5)))
    slowly = elected(clientConnection={"qps": 2, "burst": 1})
    sleeper = start_mooring(slowly, name="sleeper", through=proxy)
    wait_for(lambda: holder(cluster), "the first one leads")
    other = start_mooring(elected(), name="other")
    before = holder(cluster)
    cluster.add(*objects.pods("web", 30))
    wait_for(cluster.answers_to_binds, "the first bind was made")
    sleeper.pause()
    bound_before = len(cluster.answers_to_binds())

    wait_for(lambda: holder(cluster) not in ("", before), "the other one leads")
    cluster.wait_until_bound()
    watched = proxy.hold(binds)
    sleeper.resume()

    wait_for(lambda: not sleeper.running, "the one that slept gave up")
    assert sleeper.exit_code == 1
    assert watched.met == []
    assert bound_before < 30
    wait_for(lambda: bound_by(other) >= 30 - bound_before - 1, "the other one bound the rest")
    cluster.check_books()


def test_a_leader_that_cannot_reach_the_api_server_stops(
    cluster: Cluster, start_mooring: StartMooring, proxy: Proxy
) -> None:
    cluster.add(objects.node("node-a"))
    leader = start_mooring(elected(), through=proxy)
    wait_for(lambda: leader.metric("leader_election_master_status") == 1, "it knows that it leads")

    proxy.cut()

    wait_for(lambda: not leader.running, "it gave up")
    assert leader.exit_code == 1


def test_one_that_delays_its_cache_watches_only_when_it_leads(
    cluster: Cluster, start_mooring: StartMooring, proxy: Proxy
) -> None:
    cluster.add(objects.node("node-a"))
    leader = start_mooring(elected(), name="first")
    wait_for(lambda: holder(cluster), "the first one leads")
    watches = proxy.delay(lambda request: request.is_watch, 0.0)
    standby = start_mooring(
        elected(delayCacheUntilActive=True), name="second", through=proxy, ready=False
    )
    wait_for(lambda: standby.read("livez") == "ok", "the second one is up")
    hold_for(lambda: not watches.met, "it watches nothing", seconds=1)
    # As the reference has it: nothing is synced before it leads.
    assert standby.read("readyz") == ""
    assert standby.read("readyz/leaderElection") == "ok"
    assert standby.read("healthz") == "ok"

    leader.kill()
    cluster.add(*objects.pods("web", 5))

    cluster.wait_until_bound()
    # It has read the pods from its lists: they can be bound before the first watch is open.
    wait_for(lambda: bool(watches.met), "it watches")
    standby.wait_until_ready()
