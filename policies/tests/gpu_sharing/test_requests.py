"""What pods and nodes say about GPUs."""

import pytest

from mooring_policies.gpu_sharing.requests import (
    GPU,
    GPU_MILLI,
    GPU_MODEL,
    NO_GPU,
    GpuRequest,
    gpu_count,
    gpu_model,
    gpu_models,
    gpu_request,
)
from policies.tests.gpu_sharing.clusters import gpu_node, gpu_pod
from tests.makers import make_node, make_pod

ALIBABA = "alibabacloud.com/"


@pytest.mark.parametrize(
    ("pod", "request_"),
    [
        pytest.param(make_pod(cpu="1"), NO_GPU, id="no GPU"),
        pytest.param(make_pod(requests={GPU_MILLI: 460}), GpuRequest(1, 460), id="a share"),
        pytest.param(make_pod(requests={GPU: 4}), GpuRequest(4, 1000), id="whole GPUs"),
        pytest.param(
            make_pod(requests={GPU: 2, GPU_MILLI: 2000}), GpuRequest(2, 1000), id="as in a trace"
        ),
        pytest.param(
            make_pod(requests={GPU_MILLI: 1500}), GpuRequest(2, 1000), id="a share is below one GPU"
        ),
        pytest.param(
            make_pod(annotations={ALIBABA + "gpu-milli": "300", ALIBABA + "gpu-count": "1"}),
            GpuRequest(1, 300),
            id="Alibaba's annotations",
        ),
        pytest.param(
            make_pod(annotations={ALIBABA + "gpu-milli": "much", ALIBABA + "gpu-count": "1"}),
            NO_GPU,
            id="Alibaba's annotations that are no numbers",
        ),
    ],
)
def test_a_pod_wants_a_share_or_whole_gpus(pod, request_):
    assert gpu_request(pod) == request_


@pytest.mark.parametrize(
    ("pod", "models"),
    [
        pytest.param(gpu_pod(share=1), (), id="any"),
        pytest.param(gpu_pod(share=1, models=["T4", "A10"]), ("A10", "T4"), id="node affinity"),
        pytest.param(make_pod(node_selector={GPU_MODEL: "T4"}), ("T4",), id="node selector"),
        pytest.param(
            make_pod(annotations={ALIBABA + "gpu-card-model": "P4||T4"}),
            ("P4", "T4"),
            id="Alibaba's annotation",
        ),
    ],
)
def test_a_pod_may_be_restricted_to_models(pod, models):
    assert gpu_models(pod) == models


def test_a_node_has_gpus_of_a_model_in_either_vocabulary():
    ours = gpu_node(gpus=8, model="T4")
    theirs = make_node(labels={ALIBABA + "gpu-card-model": "P4"}, **{ALIBABA + "gpu-count": 2})

    assert [(gpu_count(node), gpu_model(node)) for node in (ours, theirs, make_node())] == [
        (8, "T4"),
        (2, "P4"),
        (0, ""),
    ]
