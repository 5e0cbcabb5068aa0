"""A past decision on a member of a group is shown as it was made, though several placements were tried."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.config import default_config
from mooring.explain.past_decision import RunInput, run_again
from mooring.objects.pod import Volume
from mooring.sim.simulation import Simulation
from tests.groups import BY_RACK, gates
from tests.makers import make_group, make_node, make_pod

RACK = "example.com/rack"


@settings(max_examples=15)
@given(
    racks=st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=3), min_size=2, max_size=3),
    used=st.lists(st.integers(0, 8), max_size=3),
    sizes=st.lists(st.integers(1, 3), min_size=1, max_size=2),
    tries_all=st.booleans(),
)
def test_the_matrix_is_that_of_the_moment(racks, used, sizes, tries_all):
    """A volume makes the scheduler try every placement, so that the one it takes is not the last."""
    nodes = [
        make_node(f"r{rack}-{n}", cpu=cpu, labels={RACK: f"r{rack}"})
        for rack, cpus in enumerate(racks)
        for n, cpu in enumerate(cpus)
    ]
    busy = [make_pod(f"old-{n}", cpu=1, node=nodes[n % len(nodes)].name) for n in set(used)]
    volumes = [Volume(name="scratch")] if tries_all else []
    groups = [
        obj
        for g, size in enumerate(sizes)
        for obj in (
            make_group(f"g{g}", min_count=size, rack_key=RACK),
            *(make_pod(f"g{g}-{n}", group=f"g{g}", cpu=1, volumes=volumes) for n in range(size)),
        )
    ]
    source = RunInput([*nodes, *busy, *groups], default_config(gates(BY_RACK)))
    with Simulation(source.options()) as simulation:
        simulation.load(source.objects)
        simulation.run()
        recorded = list(simulation.journal.decisions)

    for decided in recorded:
        view = run_again(source, (decided,))[decided]
        assert (view.chosen or "") == decided.node
        assert int((view.matrix.verdicts == 0).sum()) == decided.feasible
        if decided.node and len(view.matrix.totals):
            assert view.matrix.node(decided.node).total == max(view.matrix.totals)
