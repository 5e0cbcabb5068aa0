"""A pod fits where single GPUs have enough left, and holds certain GPUs of its node."""

import pytest
from hypothesis import given

from mooring.cluster.cache import Cluster
from mooring.plugin import SKIP, SUCCESS, ApiError, Conflict, CycleState, PluginError
from mooring_policies.gpu_sharing import gpu_choice
from mooring_policies.gpu_sharing.fgd import FGDScore
from mooring_policies.gpu_sharing.free_gpus import GPU_INDEX, FreeGpus
from mooring_policies.gpu_sharing.open_gpu_share import (
    NO_GPU,
    NOT_FREE,
    OTHER_MODEL,
    TOO_FEW,
    OpenGpuShare,
)
from mooring_policies.gpu_sharing.requests import GpuRequest
from policies.tests.gpu_sharing.clusters import Handle, clusters, gpu_node, gpu_pod, pods
from tests.plugins.agreement import assert_filters_agree


def cluster_of(node, *placed) -> Cluster:
    cluster = Cluster()
    cluster.add_node(node)
    for pod in placed:
        cluster.add_pod(pod)
    return cluster


def share(name, milli, on=""):
    return gpu_pod(name, share=milli, node="n", on=on)


def left(cluster) -> list[int]:
    return FreeGpus(cluster.infos).at(cluster.infos["n"]).free


# Filter


@pytest.mark.parametrize(
    ("pod", "node", "placed", "verdict"),
    [
        pytest.param(gpu_pod(share=600), gpu_node(), [], SUCCESS, id="an unused GPU"),
        pytest.param(
            gpu_pod(share=600),
            gpu_node(),
            [share("a", 500, "0"), share("b", 500, "1")],
            NOT_FREE,
            id="1000 are free, but 500 on each GPU",
        ),
        pytest.param(
            gpu_pod(share=500),
            gpu_node(),
            [share("a", 500, "0"), share("b", 600, "1")],
            SUCCESS,
            id="as much as one GPU has left",
        ),
        pytest.param(
            gpu_pod(whole=1), gpu_node(gpus=1), [share("a", 1, "0")], NOT_FREE, id="a GPU in use"
        ),
        pytest.param(gpu_pod(whole=3), gpu_node(), [], TOO_FEW, id="too few GPUs"),
        pytest.param(gpu_pod(share=1), gpu_node(gpus=0), [], NO_GPU, id="no GPU"),
        pytest.param(
            gpu_pod(share=1, models=["T4"]),
            gpu_node(model="A10"),
            [],
            OTHER_MODEL,
            id="A10, not T4",
        ),
        pytest.param(
            gpu_pod(share=1, models=["A10", "T4"]),
            gpu_node(model="T4"),
            [],
            SUCCESS,
            id="its model",
        ),
    ],
)
def test_a_pod_fits_if_single_gpus_have_enough_left(pod, node, placed, verdict):
    cluster = cluster_of(node, *placed)

    plugin = OpenGpuShare(None, Handle(cluster))

    assert plugin.filter(CycleState(), pod, cluster.infos["n"]) == verdict


def test_pods_without_gpus_are_none_of_its_business():
    plugin = OpenGpuShare(None, Handle())

    assert plugin.pre_filter(CycleState(), gpu_pod(), Cluster().snapshot()) == SKIP


@given(cluster=clusters(), pod=pods(), later=pods("later", node="n0"))
def test_all_rows_at_once_say_what_each_node_says(cluster, pod, later):
    plugin = OpenGpuShare(None, Handle(cluster))

    assert_filters_agree(plugin, CycleState(), pod, cluster.snapshot())
    cluster.add_pod(later)
    assert_filters_agree(plugin, CycleState(), pod, cluster.snapshot())


def test_rows_follow_a_node_that_changes_its_gpus():
    cluster = cluster_of(gpu_node(gpus=1, model="T4"))
    plugin, pod = OpenGpuShare(None, Handle(cluster)), gpu_pod(whole=2, models=["A10"])
    assert_filters_agree(plugin, CycleState(), pod, cluster.snapshot())

    cluster.update_node(gpu_node(gpus=12, model="A10"))

    snapshot = cluster.snapshot()
    verdicts = plugin.filter_rows(CycleState(), pod, snapshot.columns, snapshot.columns.all_rows)
    assert verdicts.status(0) == SUCCESS


# Which GPUs are held


@pytest.mark.parametrize(
    ("placed", "free"),
    [
        pytest.param([share("a", 300, "1")], [1000, 700], id="the GPU of the annotation"),
        pytest.param([gpu_pod("a", whole=2, node="n", on="0-1")], [0, 0], id="several"),
        pytest.param([share("a", 300)], [700, 1000], id="no annotation: where it fits best"),
        pytest.param(
            [share("a", 300), share("b", 500, "1")],
            [1000, 200],
            id="no annotation: beside a pod that says where it is",
        ),
        pytest.param([share("a", 300, "7")], [700, 1000], id="a GPU that the node does not have"),
        pytest.param([share("a", 300, "x")], [700, 1000], id="an annotation that says nothing"),
        pytest.param(
            [share("a", 800, "0"), share("b", 800, "0")], [0, 1000], id="more than there is"
        ),
    ],
)
def test_pods_on_a_node_hold_its_gpus(placed, free):
    assert left(cluster_of(gpu_node(), *placed)) == free


@pytest.mark.parametrize(
    ("method", "gpus"),
    [pytest.param("best", (1,), id="fullest"), pytest.param("worst", (0,), id="emptiest")],
)
def test_a_share_goes_to_the_gpu_that_the_method_chooses(method, gpus):
    assert gpu_choice.METHODS[method]([900, 400, 400, 100], GpuRequest(1, 300), "") == gpus


@pytest.mark.parametrize("method", gpu_choice.METHODS)
def test_every_method_gives_whole_gpus_in_order_and_nothing_if_they_do_not_suffice(method):
    choose = gpu_choice.METHODS[method]

    assert choose([1000, 999, 1000, 1000], GpuRequest(2, 1000), "uid") == (0, 2)
    assert choose([1000, 999], GpuRequest(2, 1000), "uid") == ()
    assert choose([100, 99], GpuRequest(1, 300), "uid") == ()


def test_random_chooses_among_all_gpus_that_suffice():
    chosen = {gpu_choice.at_random([500, 100, 500], GpuRequest(1, 300), f"{i}") for i in range(30)}

    assert chosen == {(0,), (2,)}


def test_fgd_chooses_a_gpu_of_its_own():
    """The fullest GPU that suffices has 600 left, which the typical pod could use: FGD spares it."""
    cluster = cluster_of(gpu_node(), share("a", 400, "1"))
    handle = Handle(cluster)
    typical = {"typicalPods": [{"weight": 1, "gpuMilli": 600, "gpuCount": 1}]}
    fgd = FGDScore(typical, handle)
    state, pod = CycleState(), gpu_pod("p", share=400)
    plugin = OpenGpuShare({"gpuSelMethod": "FGDScore"}, handle)
    plugin.pre_filter(state, pod, cluster.snapshot())
    fgd.pre_filter(state, pod, cluster.snapshot())
    cluster.assume_pod(pod.placed_on("n"))

    assert plugin.reserve(state, pod, "n") == SUCCESS

    assert FreeGpus.within(state).at(cluster.infos["n"]).free == [600, 600]


def test_a_method_of_a_plugin_needs_the_plugin():
    cluster = cluster_of(gpu_node())
    plugin = OpenGpuShare({"gpuSelMethod": "FGDScore"}, Handle(cluster))

    with pytest.raises(PluginError, match="needs the plugin FGDScore"):
        plugin.reserve(CycleState(), gpu_pod(share=1), "n")
    with pytest.raises(PluginError, match="'tightest' is unknown; use one of best, worst"):
        OpenGpuShare({"gpuSelMethod": "tightest"}, Handle())


# Reserve and PreBind


class Server:
    """Stores the pod that is written, after as many conflicts as it is told."""

    def __init__(self, *problems: Exception) -> None:
        self.problems = list(problems)
        self.stored = []

    async def update_object(self, pod):
        if self.problems:
            raise self.problems.pop(0)
        self.stored.append(pod)
        return pod


class RunsAtOnce:
    """A clock on which every wait is over at once."""

    def call_later(self, delay_s, callback):
        callback()
        return self

    def cancel(self):
        pass


async def bound(server, pod=None, **handle):
    """The status of PreBind for a share of 300 on a node whose GPU 1 has 500 left."""
    cluster = cluster_of(gpu_node(), share("a", 500, "1"))
    plugin = OpenGpuShare(None, Handle(cluster, writer=server, clock=RunsAtOnce(), **handle))
    pod = pod or gpu_pod("p", share=300)
    cluster.assume_pod(pod.placed_on("n"))
    assert plugin.reserve(CycleState(), pod, "n") == SUCCESS
    return await plugin.pre_bind(CycleState(), pod, "n")


async def test_the_gpus_are_written_into_an_annotation_where_the_next_scheduler_finds_them():
    server = Server()

    assert await bound(server) == SUCCESS

    (stored,) = server.stored
    assert stored.metadata.annotations[GPU_INDEX] == "1"
    assert left(cluster_of(gpu_node(), share("a", 500, "1"), stored.placed_on("n"))) == [1000, 200]


async def test_a_conflict_is_resolved_with_the_pod_as_it_is_then():
    newer = gpu_pod("p", share=300, on="0")
    server = Server(Conflict("has been modified"))

    assert await bound(server, observed_pod=lambda _: newer) == SUCCESS

    assert server.stored[0].metadata.annotations == {GPU_INDEX: "1"}


async def test_a_pod_that_keeps_changing_is_tried_again_later():
    status = await bound(Server(*[Conflict("has been modified")] * 99))

    assert status.rejected
    assert "keeps changing" in status.message


async def test_a_write_that_fails_is_an_error():
    error = ApiError("no route to host")

    assert (await bound(Server(error))).error is error


def test_what_is_reserved_is_held_until_it_is_unreserved():
    cluster = cluster_of(gpu_node(gpus=1))
    plugin, state = OpenGpuShare(None, Handle(cluster)), CycleState()
    plugin.pre_filter(state, gpu_pod(share=1), cluster.snapshot())
    first, second = gpu_pod("a", share=600), gpu_pod("b", share=600)
    cluster.assume_pod(first.placed_on("n"))

    assert plugin.reserve(state, first, "n") == SUCCESS
    assert plugin.filter(state, second, cluster.infos["n"]) == NOT_FREE
    assert plugin.reserve(state, second, "n") == NOT_FREE

    plugin.unreserve(state, first, "n")
    cluster.forget_pod(first.placed_on("n"))
    assert plugin.filter(state, second, cluster.infos["n"]) == SUCCESS
