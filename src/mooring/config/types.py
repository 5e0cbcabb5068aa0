"""`KubeSchedulerConfiguration` v1, field by field.

The defaults written here are those of a field that is not given. The ones that depend on other
fields, or that replace a given zero, are in `defaults`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from mooring.config.durations import Duration, seconds
from mooring.config.extension_points import ExtensionPoint

GROUP = "kubescheduler.config.k8s.io"
API_VERSION = f"{GROUP}/v1"
KIND = "KubeSchedulerConfiguration"

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class ConfigPart(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A piece of the configuration. Those that omit their defaults also do so when written out."""


class Plugin(ConfigPart, frozen=True, omit_defaults=True):
    """A plugin by name; the weight counts where it scores, and 0 stands for none given."""

    name: str = ""
    weight: Int32 = 0


class PluginSet(ConfigPart, frozen=True, omit_defaults=True):
    enabled: tuple[Plugin, ...] = ()
    disabled: tuple[Plugin, ...] = ()


class Plugins(ConfigPart, frozen=True, omit_defaults=True):
    """What is switched on and off: at each extension point and, by `multi_point`, at them all."""

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
        """Every set with its key in the configuration, `multiPoint` among them."""
        for field in msgspec.structs.fields(self):
            yield field.encode_name, getattr(self, field.name)

    @property
    def enabled_names(self) -> frozenset[str]:
        """Every plugin that is enabled anywhere: the ones to build."""
        return frozenset(plugin.name for _, found in self.sets() for plugin in found.enabled)


class PluginConfig(ConfigPart, frozen=True, omit_defaults=True):
    name: str = ""
    #: A struct of `args` for the plugins that have one there, and for any other the mapping as
    #: given. `Any`, as the API leaves it open.
    args: Any = None


class SchedulerProfile(ConfigPart, frozen=True, omit_defaults=True):
    """How the pods that ask for `scheduler_name` are scheduled (`KubeSchedulerProfile`)."""

    scheduler_name: str = ""
    #: None leaves it to the configuration's own.
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
    """A scheduler extender; an empty verb is one that it does not offer."""

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
    #: 0 leaves the choice to the scheduler.
    percentage_of_nodes_to_score: Int32 = 0
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[SchedulerProfile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False

    def percentage_for(self, profile: SchedulerProfile) -> int:
        """The percentage of nodes to score under a profile: its own, else the one for all."""
        if profile.percentage_of_nodes_to_score is not None:
            return profile.percentage_of_nodes_to_score
        return self.percentage_of_nodes_to_score
