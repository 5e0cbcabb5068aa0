"""What `/metrics/resources` says of pods is what kube-scheduler says."""

from __future__ import annotations

from mooring.live.pod_resources import exposition
from mooring.objects.decoding import decode_json
from mooring.objects.pod import Pod

POD = b"""{
  "metadata": {"namespace": "ns", "name": "p"},
  "spec": {
    "schedulerName": "s", "nodeName": "n", "priority": 7,
    "overhead": {"cpu": "100m", "memory": "1Mi"},
    "containers": [
      {"name": "a", "resources": {
        "requests": {"cpu": "250m", "memory": "1Gi", "example.com/gpu": "2", "hugepages-2Mi": "4Mi"},
        "limits": {"cpu": "1"}}},
      {"name": "b", "resources": {"requests": {"cpu": "250m"}, "limits": {"cpu": "500m"}}}
    ],
    "initContainers": [{"name": "i", "resources": {"limits": {"cpu": "2", "memory": "0"}}}]
  }
}"""
WHOSE = 'namespace="ns",node="n",pod="p",priority="7"'


def lines_of(*pods: Pod) -> set[str]:
    text = exposition(pods).decode()
    return {line for line in text.splitlines() if not line.startswith("#")}


def line(name: str, resource: str, unit: str, value: str) -> str:
    return f'{name}{{{WHOSE},resource="{resource}",scheduler="s",unit="{unit}"}} {value}'


def test_each_resource_of_each_pod_has_a_line_with_its_unit():
    assert lines_of(decode_json(POD, Pod)) == {
        line("kube_pod_resource_request", "cpu", "cores", "0.6"),
        line("kube_pod_resource_request", "memory", "bytes", "1.0747904e+09"),
        line("kube_pod_resource_request", "example.com/gpu", "", "2.0"),
        line("kube_pod_resource_request", "hugepages-2Mi", "bytes", "4.194304e+06"),
        line("kube_pod_resource_limit", "cpu", "cores", "2.1"),
    }


def test_pods_that_have_ended_hold_nothing():
    ended = POD.replace(b'"spec"', b'"status": {"phase": "Succeeded"}, "spec"')

    assert lines_of(decode_json(ended, Pod)) == set()
