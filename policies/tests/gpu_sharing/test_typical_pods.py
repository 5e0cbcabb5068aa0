"""The most frequent shapes of a workload."""

from mooring_policies.gpu_sharing.typical_pods import Shape, TypicalPod, typical_pods
from policies.tests.gpu_sharing.clusters import gpu_pod

SHARE = Shape(2000, 460, 1, ())
WHOLE = Shape(8000, 1000, 2, ("T4",))
CPU = Shape(1000, 0, 0, ())

#: 60 shares, 36 pods without GPUs, and 4 with two whole GPUs.
WORKLOAD = (
    [gpu_pod(share=460, cpu="2")] * 60
    + [gpu_pod(cpu="1")] * 36
    + [gpu_pod(whole=2, cpu="8", models=["T4"])] * 4
)


def test_shapes_are_taken_from_the_most_frequent_on_until_they_make_up_the_percentage():
    assert typical_pods(WORKLOAD, popularity_percent=60) == [TypicalPod(SHARE, 60)]
    assert typical_pods(WORKLOAD, popularity_percent=61) == [
        TypicalPod(SHARE, 60),
        TypicalPod(CPU, 36),
    ]
    assert [each.shape for each in typical_pods(WORKLOAD)] == [SHARE, CPU]
    assert [each.shape for each in typical_pods(WORKLOAD, popularity_percent=100)] == [
        SHARE,
        CPU,
        WHOLE,
    ]


def test_pods_without_gpus_can_be_left_out():
    shapes = [each.shape for each in typical_pods(WORKLOAD, with_cpu_pods=False)]

    # 60 of 64 pods are 93.75 %.
    assert shapes == [SHARE, WHOLE]


def test_whole_gpus_can_count_for_more():
    assert typical_pods(WORKLOAD, popularity_percent=100, gpu_weight=10)[0] == TypicalPod(WHOLE, 84)


def test_several_shapes_can_be_added_at_a_time():
    assert len(typical_pods(WORKLOAD, popularity_percent=1, increase_step=2)) == 2


def test_of_equally_frequent_shapes_the_larger_comes_first():
    pods = [gpu_pod(cpu="1"), gpu_pod(share=100, cpu="1"), gpu_pod(cpu="2")]

    shapes = [each.shape for each in typical_pods(pods, popularity_percent=100)]

    assert shapes == [Shape(2000, 0, 0, ()), Shape(1000, 100, 1, ()), Shape(1000, 0, 0, ())]


def test_a_workload_without_pods_has_no_typical_pods():
    assert typical_pods([]) == []
