import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.objects import requests
from mooring.objects.pod import ContainerStatus, PodCondition, ResourceRequirements
from mooring.objects.quantity import ZERO
from mooring.objects.requests import is_extended, is_scalar
from tests.makers import make_container, make_pod, resources

MI, GI = 2**20, 2**30


def sidecar(name="s", **asked):
    return make_container(name, restart_policy="Always", **asked)


Q1 = make_pod(
    containers=[make_container("c1", cpu="200m", memory="256Mi"), make_container("c2", cpu="300m")],
    init_containers=[make_container("i", cpu=1, memory="64Mi")],
    overhead={"cpu": "50m"},
)
Q2 = make_pod(
    containers=[make_container(cpu="300m")],
    init_containers=[
        sidecar("s1", cpu="100m"),
        make_container("i1", cpu="500m"),
        sidecar("s2", cpu="200m"),
        make_container("i2", cpu="450m"),
    ],
)
Q3 = make_pod(cpu="500m", memory="1Gi", pod_level={"cpu": 2}, overhead={"cpu": "250m"})
Q4 = make_pod(containers=[make_container("a"), make_container("b")], pod_level={"memory": "1Gi"})
Q5 = make_pod(containers=[make_container("a", cpu="0.5m"), make_container("b", cpu="0.5m")])
Q8 = make_pod(cpu="0")


@pytest.mark.parametrize(
    ("pod", "real", "non_zero"),
    [
        # 200 + 300 = 500 < 1000 of the init container; + 50 of overhead
        pytest.param(Q1, {"cpu": 1050, "memory": 256 * MI}, (1050, 456 * MI), id="Q1"),
        # max(300 + 100 + 200, 100, 500 + 100, 100 + 200, 450 + 300)
        pytest.param(Q2, {"cpu": 750}, (750, 600 * MI), id="Q2"),
        pytest.param(Q3, {"cpu": 2250, "memory": GI}, (2250, GI), id="Q3"),
        pytest.param(Q4, {"memory": GI}, (200, GI), id="Q4"),
        pytest.param(Q5, {"cpu": 1}, (1, 400 * MI), id="Q5"),
        pytest.param(Q8, {"cpu": 0}, (0, 200 * MI), id="Q8"),
    ],
)
def test_requests_are_summed_over_containers(pod, real, non_zero):
    assert pod.requests == real
    assert pod.held == real
    assert pod.held_non_zero == non_zero


@pytest.mark.parametrize(
    ("pod", "cpu", "memory"),
    [
        pytest.param(Q1, 1050, 456 * MI, id="Q1"),
        pytest.param(Q3, 750, GI, id="what is set for the pod is not looked at"),
        pytest.param(Q4, 200, 400 * MI, id="nor here"),
        pytest.param(Q8, 0, 200 * MI, id="an explicit zero stays"),
    ],
)
def test_scoring_assumes_something_of_containers_that_do_not_say(pod, cpu, memory):
    assert pod.scoring_requests == {"cpu": cpu, "memory": memory}


def resized(spec, actuated, allocated, *conditions):
    status = ContainerStatus(
        name="c",
        resources=ResourceRequirements(requests=resources(cpu=actuated)),
        allocated_resources=resources(cpu=allocated),
    )
    return make_pod(cpu=spec, node="n", container_statuses=[status], conditions=conditions)


def pending(reason):
    return PodCondition(type="PodResizePending", status="True", reason=reason)


@pytest.mark.parametrize(
    ("pod", "held"),
    [
        pytest.param(resized(1, 2, 1), 2000, id="shrinking, and not there yet"),
        pytest.param(resized(4, 1, 1), 4000, id="growing"),
        pytest.param(resized(4, 1, 1, pending("Deferred")), 4000, id="deferred"),
        pytest.param(resized(4, 1, 1, pending("Infeasible")), 1000, id="refused"),
    ],
)
def test_a_pod_resized_in_place_holds_the_most_of_what_it_has_and_wants(pod, held):
    assert pod.held == {"cpu": held}
    assert pod.held_non_zero[0] == held


def test_a_pod_to_be_placed_is_judged_by_its_spec_alone():
    assert resized(1, 2, 1).requests == {"cpu": 1000}


def test_an_init_container_runs_beside_the_sidecars_before_it():
    pod = make_pod(
        containers=[make_container(cpu=1)],
        init_containers=[make_container("i", cpu=3), sidecar(cpu=1), make_container("j", cpu=2.5)],
    )

    assert pod.requests == {"cpu": 3500}  # max(1 + 1, 3, 1, 2.5 + 1)


@pytest.mark.parametrize(
    ("name", "extended", "scalar"),
    [
        ("nvidia.com/gpu", True, True),
        ("hugepages-2Mi", False, True),
        ("attachable-volumes-aws-ebs", False, True),
        ("kubernetes.io/thing", False, True),
        ("my.kubernetes.io/thing", False, True),
        ("requests.nvidia.com/gpu", False, False),
        ("foo", False, False),
        ("-bad-/gpu", False, False),
        ("example.com/", False, False),
    ],
)
def test_resource_names_fall_into_classes(name, extended, scalar):
    assert (is_extended(name), is_scalar(name)) == (extended, scalar)


def test_names_that_are_no_resources_are_not_counted():
    assert make_pod(requests={"foo": 1, "cpu": 1, "nvidia.com/gpu": 2}).requests == {
        "cpu": 1000,
        "nvidia.com/gpu": 2,
    }


def amounts_or_none():
    return st.none() | st.sampled_from(("0", "1m", "250m", "1", "1.5", "64Mi", "1Gi"))


def drawn_containers():
    return st.builds(
        lambda cpu, memory, gpu, restart: make_container(
            restart_policy=restart, cpu=cpu, memory=memory, requests=gpu
        ),
        amounts_or_none(),
        amounts_or_none(),
        st.none() | st.just({"nvidia.com/gpu": "2"}),
        st.sampled_from(("", "Always")),
    )


@given(
    st.lists(drawn_containers(), max_size=2),
    st.lists(drawn_containers(), max_size=2),
    st.none() | st.just({"cpu": "250m"}),
    st.none() | st.just({"memory": "1Gi"}),
)
def test_pods_that_have_not_run_hold_what_the_sums_say(containers, inits, overhead, pod_level):
    pod = make_pod(
        containers=containers,
        init_containers=inits,
        **({} if overhead is None else {"overhead": overhead}),
        **({} if pod_level is None else {"pod_level": pod_level}),
    )
    held = requests.held_requests(pod)
    non_zero = requests.held_non_zero(pod, held)

    assert pod.requests == requests.amounts(requests.spec_requests(pod))
    assert pod.held == requests.amounts(held)
    assert pod.scoring_requests == requests.amounts(requests.scoring_requests(pod))
    assert pod.held_non_zero == (
        non_zero.get("cpu", ZERO).milli_value,
        non_zero.get("memory", ZERO).value,
    )
