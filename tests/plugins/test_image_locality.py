from dataclasses import dataclass

import pytest

from mooring.cluster.cache import Cluster
from mooring.framework.cycle_state import CycleState
from mooring.objects.storage import ImageVolumeSource, Volume
from mooring.plugins.image_locality import ImageLocality
from tests.makers import make_container, make_node, make_pod

MI = 1024 * 1024


@dataclass
class Handle:
    cluster: Cluster


def scorer(cluster):
    return ImageLocality(None, Handle(cluster))


def volume(image):
    return Volume(name="v", image=ImageVolumeSource(reference=image))


@pytest.mark.parametrize(
    ("images", "total_nodes", "pod", "score"),
    [
        pytest.param({"a:1": (500, 2)}, 4, make_pod(image="a:1"), 23, id="100 * (250 - 23) / 977"),
        pytest.param({"a:1": (1200, 3)}, 3, make_pod(image="a:1"), 100, id="capped"),
        pytest.param(
            {"a:1": (40, 1)},
            2,
            make_pod(containers=[make_container(image="a:1"), make_container(image="b:1")]),
            0,
            id="20 Mi is too little to count",
        ),
        pytest.param(
            {"i:1": (300, 1), "a:1": (600, 2), "v:1": (150, 3)},
            3,
            make_pod(
                init_containers=[make_container(image="i:1")],
                image="a:1",
                volumes=[volume("v:1")],
            ),
            31,
            id="100 + 400 + 150 Mi for two containers: 62700 / 1977",
        ),
        pytest.param({"a:1": (23, 1)}, 1, make_pod(image="a:1"), 0, id="the least that counts"),
        pytest.param(
            {"a:1": (250, 1)},
            1,
            make_pod(containers=[make_container(image="a:1")] * 2),
            24,
            id="used twice counts twice: 100 * (500 - 23) / 1977",
        ),
        pytest.param({"b:1": (500, 1)}, 1, make_pod(image="a:1"), 0, id="other images only"),
    ],
)
def test_a_node_is_better_the_more_of_the_images_it_has(images, total_nodes, pod, score):
    """`images` gives the size in Mi and how many nodes have it; the first node has them all."""
    cluster = Cluster()
    for i in range(total_nodes):
        has = {name: size * MI for name, (size, nodes) in images.items() if i < nodes}
        cluster.add_node(make_node(f"n{i}", images=has))

    assert scorer(cluster).score(CycleState(), pod, cluster.snapshot().get("n0")) == score


@pytest.mark.parametrize(
    ("image", "listed", "found"),
    [
        pytest.param("app", "app:latest", True, id="no tag"),
        pytest.param("app:v1", "app:v1", True, id="tag"),
        pytest.param("host:5000/app", "host:5000/app:latest", True, id="the colon is a port's"),
        pytest.param("app@sha256:00", "app@sha256:00", True, id="digest"),
        pytest.param("app:v1", "docker.io/library/app:v1", False, id="no registry is filled in"),
    ],
)
def test_an_image_is_found_by_the_name_that_nodes_list(image, listed, found):
    cluster = Cluster()
    cluster.add_node(make_node("n", images={listed: 1000 * MI}))

    score = scorer(cluster).score(CycleState(), make_pod(image=image), cluster.snapshot().get("n"))
    assert score == (100 if found else 0)


def test_an_image_is_as_large_as_the_first_node_that_listed_it_says():
    cluster = Cluster()
    for i, size in enumerate((1000, 500, 23)):
        cluster.add_node(make_node(f"n{i}", images={"a:1": size * MI}))

    for node in cluster.snapshot():
        assert scorer(cluster).score(CycleState(), make_pod(image="a:1"), node) == 100


def test_pods_are_alike_that_use_the_same_images_as_often():
    plugin = scorer(Cluster())
    a, b = make_container(image="a"), make_container(image="b")

    signature = plugin.sign(make_pod(containers=[a, b]))
    assert signature == plugin.sign(make_pod(containers=[b], init_containers=[a]))
    assert signature == plugin.sign(make_pod(containers=[b, make_container(image="a:latest")]))
    assert signature != plugin.sign(make_pod(containers=[a, b, b]))
    assert signature != plugin.sign(make_pod(containers=[a], volumes=[volume("b")]))


def test_pods_are_signed_by_the_images_that_nodes_have():
    cluster = Cluster()
    cluster.add_node(make_node("n"))
    cluster.snapshot()
    plugin = scorer(cluster)
    one, other = make_pod(image="a:1"), make_pod(image="b:1")
    before = plugin.sign_version()
    assert plugin.sign_here(one) == plugin.sign_here(other)

    cluster.update_node(make_node("n", images={"a:1": 500 * MI}))
    cluster.snapshot()
    with_image = plugin.sign_version()
    assert plugin.sign_here(one) != plugin.sign_here(other)
    assert with_image != before

    cluster.update_node(make_node("n"))
    cluster.snapshot()
    assert plugin.sign_here(one) == plugin.sign_here(other)
    assert plugin.sign_version() not in (before, with_image)


def test_only_nodes_and_images_that_come_and_go_concern_other_nodes():
    cluster = Cluster()
    for name in ("n1", "n2"):
        cluster.add_node(make_node(name, images={"a:1": 500 * MI}))
    cluster.snapshot()
    plugin = scorer(cluster)
    versions = [plugin.nodes_version()]

    def version_after(change):
        change()
        cluster.snapshot()
        versions.append(plugin.nodes_version())
        return versions[-1]

    tainted = make_node("n1", images={"a:1": 500 * MI}, labels={"disk": "ssd"})
    assert version_after(lambda: cluster.update_node(tainted)) == versions[0]
    for change in (
        lambda: cluster.update_node(make_node("n1")),
        lambda: cluster.update_node(make_node("n1", images={"a:1": 500 * MI})),
        lambda: cluster.add_node(make_node("n3")),
        lambda: cluster.remove_node("n3"),
    ):
        before = versions[-1]
        assert version_after(change) != before
