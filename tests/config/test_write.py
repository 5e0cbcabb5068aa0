from __future__ import annotations

import json

import pytest
import yaml

from mooring.config import default_config, load_config, write_config
from tests.config.documents import TYPE_META, document, load

EVERYTHING = document(
    parallelism=3,
    leaderElection={"leaderElect": False, "leaseDuration": "1m30s"},
    clientConnection={"kubeconfig": "/k", "qps": 7.5, "burst": 9},
    enableProfiling=False,
    percentageOfNodesToScore=30,
    podInitialBackoffSeconds=2,
    podMaxBackoffSeconds=20,
    delayCacheUntilActive=True,
    extenders=[
        {
            "urlPrefix": "http://x",
            "enableHTTPS": True,
            "tlsConfig": {"caData": "YQ=="},
            "httpTimeout": "250ms",
            "managedResources": [{"name": "example.com/x", "ignoredByScheduler": True}],
        }
    ],
    profiles=[
        {
            "schedulerName": "a",
            "percentageOfNodesToScore": 0,
            "plugins": {
                "multiPoint": {"disabled": [{"name": "NodeName"}], "enabled": [{"name": "m:C"}]},
                "score": {"disabled": [{"name": "*"}], "enabled": [{"name": "m:C", "weight": 4}]},
            },
            "pluginConfig": [
                {"name": "m:C", "args": {"list": [], "none": None, "deep": {"a": 1}}},
                {"name": "DynamicResources", "args": {"filterTimeout": "0s"}},
                {
                    "name": "NodeAffinity",
                    "args": {
                        "addedAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": [
                                    {
                                        "matchExpressions": [
                                            {"key": "a", "operator": "In", "values": ["b"]}
                                        ]
                                    },
                                    {},
                                ]
                            },
                            "preferredDuringSchedulingIgnoredDuringExecution": [],
                        }
                    },
                },
                {
                    "name": "NodeResourcesFit",
                    "args": {
                        "scoringStrategy": {
                            "type": "RequestedToCapacityRatio",
                            "requestedToCapacityRatio": {"shape": [{"utilization": 0, "score": 0}]},
                        }
                    },
                },
                {
                    "name": "PodTopologySpread",
                    "args": {
                        "defaultingType": "List",
                        "defaultConstraints": [
                            {
                                "maxSkew": 2,
                                "topologyKey": "zone",
                                "whenUnsatisfiable": "ScheduleAnyway",
                            }
                        ],
                    },
                },
            ],
        },
        {"schedulerName": "b"},
    ],
)


@pytest.mark.parametrize(
    "source", [pytest.param(TYPE_META, id="default"), pytest.param(EVERYTHING, id="everything")]
)
def test_what_is_written_reads_back_the_same(source):
    config = load_config(source)

    written = write_config(config)

    assert load_config(written) == config
    assert load_config(yaml.safe_dump(written)) == config
    assert load_config(json.dumps(written)) == config
    assert write_config(load_config(written)) == written


def test_what_is_written_has_its_kind_and_every_default():
    written = write_config(default_config())

    assert list(written)[:3] == ["apiVersion", "kind", "parallelism"]
    assert written["apiVersion"] == "kubescheduler.config.k8s.io/v1"
    assert written["kind"] == "KubeSchedulerConfiguration"
    assert written["leaderElection"] == {
        "leaderElect": True,
        "leaseDuration": "15s",
        "renewDeadline": "10s",
        "retryPeriod": "2s",
        "resourceLock": "leases",
        "resourceName": "kube-scheduler",
        "resourceNamespace": "kube-system",
    }
    (profile,) = written["profiles"]
    assert profile["schedulerName"] == "default-scheduler"
    assert profile["plugins"]["multiPoint"]["enabled"][:5] == [
        {"name": "SchedulingGates"},
        {"name": "PrioritySort"},
        {"name": "NodeUnschedulable"},
        {"name": "NodeName"},
        {"name": "TaintToleration", "weight": 3},
    ]
    assert profile["pluginConfig"][1] == {
        "name": "DynamicResources",
        "args": {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "DynamicResourcesArgs",
            "filterTimeout": "10s",
            "bindingTimeout": "10m0s",
        },
    }


def test_the_args_of_a_foreign_plugin_are_written_as_they_were():
    args = {"list": [], "none": None, "deep": {"a": []}}
    config = load(profiles=[{"pluginConfig": [{"name": "Mine", "args": args}]}])

    assert write_config(config)["profiles"][0]["pluginConfig"][0] == {"name": "Mine", "args": args}


def test_changing_what_was_written_does_not_change_the_configuration():
    config = load(profiles=[{"pluginConfig": [{"name": "Mine", "args": {"a": [1]}}]}])

    write_config(config)["profiles"][0]["pluginConfig"][0]["args"]["a"].append(2)

    assert config.profiles[0].args_of("Mine") == {"a": [1]}
