"""`KubeSchedulerConfiguration` v1, field by field.

The defaults here are those of absent fields. Defaults that depend on other fields, or replace a
zero, are in `defaults`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any

import msgspec

from mooring.config.document import KIND as KIND
from mooring.config.durations import Duration, seconds
from mooring.config.extension_points import ExtensionPoint
from mooring.config.gates import FeatureGates

GROUP = "kubescheduler.config.k8s.io"
API_VERSION = f"{GROUP}/v1"

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class ConfigPart(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A part of the configuration. Parts with `omit_defaults` are written without defaults."""


class Plugin(ConfigPart, frozen=True, omit_defaults=True):
    """A plugin by name. The weight is that of its score; 0 means that none is set."""

    name: str = ""
    weight: Int32 = 0


class PluginSet(ConfigPart, frozen=True, omit_defaults=True):
    enabled: tuple[Plugin, ...] = ()
    disabled: tuple[Plugin, ...] = ()


class Plugins(ConfigPart, frozen=True, omit_defaults=True):
    """The plugins enabled and disabled at each extension point and, with `multi_point`, at all."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()

    def at(self, point: ExtensionPoint) -> PluginSet:
        """The set given for this point alone."""
        plugin_set: PluginSet = getattr(self, point.name.lower())
        return plugin_set

    def sets(self) -> Iterator[tuple[str, PluginSet]]:
        """Every set with its key in the configuration, including `multiPoint`."""
        for key, name in _plugin_sets():
            yield key, getattr(self, name)

    @property
    def enabled_names(self) -> frozenset[str]:
        """Every plugin that is enabled at some point: the plugins to build."""
        return frozenset(plugin.name for _, found in self.sets() for plugin in found.enabled)


@cache
def _plugin_sets() -> tuple[tuple[str, str], ...]:
    """Key in the configuration and name of the field."""
    return tuple((field.encode_name, field.name) for field in msgspec.structs.fields(Plugins))


class PluginConfig(ConfigPart, frozen=True, omit_defaults=True):
    name: str = ""
    #: A struct of `args` if the plugin has one there, otherwise the mapping as written. `Any`,
    #: because the API leaves it open.
    args: Any = None


class SchedulerProfile(ConfigPart, frozen=True, omit_defaults=True):
    """How pods with this `scheduler_name` are scheduled (`KubeSchedulerProfile`)."""

    scheduler_name: str = ""
    #: None means the value of the whole configuration.
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()

    def args_of(self, plugin: str) -> Any:
        """The plugin's args, or None if it has none."""
        return next((entry.args for entry in self.plugin_config if entry.name == plugin), None)


class LeaderElectionConfiguration(ConfigPart, frozen=True):
    leader_elect: bool = True
    lease_duration: Duration = seconds(15)
    renew_deadline: Duration = seconds(10)
    retry_period: Duration = seconds(2)
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnectionConfiguration(ConfigPart, frozen=True):
    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float = 50.0
    burst: Int32 = 100


class ExtenderManagedResource(ConfigPart, frozen=True, omit_defaults=True):
    name: str = ""
    ignored_by_scheduler: bool = False


class ExtenderTLSConfig(ConfigPart, frozen=True, omit_defaults=True):
    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class Extender(ConfigPart, frozen=True, omit_defaults=True):
    """A scheduler extender. An empty verb means that the extender does not offer it."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(name="enableHTTPS", default=False)
    tls_config: ExtenderTLSConfig | None = None
    http_timeout: Duration = seconds(5)
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False


class KubeSchedulerConfiguration(ConfigPart, frozen=True):
    parallelism: Int32 = 16
    leader_election: LeaderElectionConfiguration = LeaderElectionConfiguration()
    client_connection: ClientConnectionConfiguration = ClientConnectionConfiguration()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    #: 0 lets the scheduler choose.
    percentage_of_nodes_to_score: Int32 = 0
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[SchedulerProfile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False
    #: Gate → whether it is on, for gates that do not have their default. A field of mooring: kube-scheduler
    #: takes these from its flag only.
    feature_gates: dict[str, bool] = {}

    @property
    def gates(self) -> FeatureGates:
        """Which feature gates are on. The configuration was loaded with them."""
        return FeatureGates(self.feature_gates)

    def percentage_for(self, profile: SchedulerProfile) -> int:
        """The percentage of nodes to score: that of the profile, or that of the configuration."""
        if profile.percentage_of_nodes_to_score is not None:
            return profile.percentage_of_nodes_to_score
        return self.percentage_of_nodes_to_score
