"""Judging all rows from what is kept says what judging each node says, whatever happened in between."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.device_world import GPU, NS, World, claim, gpu_class, pod_with
from tests.devices.device_makers import make_device, make_request, make_slice
from tests.makers import make_node, make_pod

SMALL = make_request("r", 'device.attributes["d"].size == 1')
TWO = make_request("r", count=2)
ALL = make_request("r", mode="All")
KINDS = {"one": make_request(), "small": SMALL, "two": TWO, "all": ALL}


def devices(name: str, sizes: list[int]):
    return [make_device(f"{name}{i}", attributes={"size": s}) for i, s in enumerate(sizes)]


def slices(sizes: list[int]):
    yield make_slice(*devices("x", sizes), name="s1")
    yield make_slice(*devices("y", sizes[::-1]), name="s2", pool="q", node="n2")
    yield make_slice(*devices("z", sizes[:1]), name="s3", pool="fabric", all_nodes=True)


def objects(sizes: list[int]):
    yield from (make_node("n1"), make_node("n2"), make_node("n3", **{GPU: 1}))
    yield gpu_class(resource=GPU)
    yield from slices(sizes)


#: What happens: a pod of a kind comes and is placed if it can be, a pod goes, a slice or a node changes.
_STEPS = st.one_of(
    st.tuples(st.just("place"), st.sampled_from([*KINDS, "resource"])),
    st.tuples(st.just("free"), st.integers(0, 9)),
    st.tuples(st.just("undo"), st.sampled_from(list(KINDS))),
    st.tuples(st.just("slice"), st.lists(st.integers(1, 2), min_size=1, max_size=3)),
    st.tuples(st.just("node"), st.integers(0, 2)),
)


class Life:
    def __init__(self, sizes: list[int]) -> None:
        self.world = World(*objects(sizes))
        self.made = 0
        self.placed: list[str] = []

    def pod_of(self, kind: str):
        self.made += 1
        if kind == "resource":
            return make_pod(f"pod-{self.made}", namespace=NS, requests={GPU: 1})
        name = f"c-{self.made}"
        self.world.put(claim(name, KINDS[kind]))
        return pod_with(name, name=f"pod-{self.made}")

    def judged_alike(self, pod):
        _, one_by_one = self.world.filter(pod)
        state, at_once = self.world.filter_rows(pod)
        assert at_once == one_by_one
        return state, [node for node, status in one_by_one.items() if status.ok]

    def step(self, what: str, how) -> None:
        world = self.world
        if what == "place":
            pod = self.pod_of(how)
            world.pods[pod.key] = pod
            state, nodes = self.judged_alike(pod)
            if nodes:
                world.plugin.reserve(state, pod, nodes[0])
                world.pre_bind(state, pod, nodes[0])
                self.placed += [c.name for c in world.cluster.claims.all() if c.status.reserved_for]
        elif what == "undo":
            pod = self.pod_of(how)
            state, nodes = self.judged_alike(pod)
            if nodes:
                world.plugin.reserve(state, pod, nodes[-1])
                self.judged_alike(self.pod_of(how))
                world.unreserve(state, pod, nodes[-1])
        elif what == "free" and self.placed:
            name = self.placed.pop(how % len(self.placed))
            found = world.cluster.claims.get(f"{NS}/{name}")
            if found is not None:
                world.drop(found)
        elif what == "slice":
            for piece in slices(how):
                world.put(piece)
        elif what == "node":
            world.put(make_node("n3", **({GPU: how} if how else {})))


@given(
    sizes=st.lists(st.integers(1, 2), min_size=1, max_size=3), steps=st.lists(_STEPS, max_size=12)
)
def test_what_is_kept_is_what_each_node_would_be_told_now(sizes, steps):
    life = Life(sizes)
    try:
        for what, how in steps:
            life.step(what, how)
            life.world.cluster.validate()
        for kind in (*KINDS, "resource"):
            life.judged_alike(life.pod_of(kind))
    finally:
        life.world.close()


def test_after_a_pod_is_placed_only_its_node_is_asked_again():
    world = World(*objects([1, 1]))
    asked: list[str] = []
    look = world.plugin._filter.look

    def counted(claims, pod, node):
        asked.append(node.name)
        return look(claims, pod, node)

    world.plugin._filter.look = counted  # type: ignore[method-assign]
    world.drop(next(each for each in slices([1]) if each.name == "s3"))
    for name in ("c1", "c2"):
        world.put(claim(name))
    first, second = pod_with("c1", name="p1"), pod_with("c2", name="p2")
    state, _ = world.filter_rows(first)
    assert sorted(asked) == ["n1", "n2", "n3"]
    world.plugin.reserve(state, first, "n1")
    asked.clear()

    world.filter_rows(second)

    assert asked == ["n1"]
    world.close()


def test_an_allocated_claim_is_judged_on_all_rows_as_on_each_node():
    held = claim("c", holds=["x0"], on="n2")
    world = World(*objects([1, 1]), held)

    assert world.filter_rows(pod_with("c"))[1] == world.filter(pod_with("c"))[1]
    # One claim is allocated and the other is not: node by node.
    world.put(replace(claim("e"), metadata=replace(claim("e").metadata, uid="e")))
    assert world.filter_rows(pod_with("c", "e"))[1] is None
    world.close()
