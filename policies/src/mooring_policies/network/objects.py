"""AppGroup and NetworkTopology, and the labels by which pods name their group and workload."""

from __future__ import annotations

from mooring.objects.kinds import custom_kind
from mooring.objects.meta import KubeObject, Part

APP_GROUP_LABEL = "appgroup.diktyo.x-k8s.io"
WORKLOAD_LABEL = "appgroup.diktyo.x-k8s.io.workload"
REGION = "topology.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"
#: The name of the weights that a controller measures, which it keeps sorted.
MEASURED = "NetperfCosts"


class WorkloadInfo(Part, frozen=True):
    #: The value of the pods' workload label.
    selector: str = ""


class Dependency(Part, frozen=True):
    workload: WorkloadInfo = WorkloadInfo()
    max_network_cost: int = 0


class AppGroupWorkload(Part, frozen=True):
    workload: WorkloadInfo = WorkloadInfo()
    dependencies: list[Dependency] = []


class AppGroupSpec(Part, frozen=True):
    workloads: list[AppGroupWorkload] = []


class OrderedWorkload(Part, frozen=True):
    workload: WorkloadInfo = WorkloadInfo()
    index: int = 0


class AppGroupStatus(Part, frozen=True):
    #: By selector.
    topology_order: list[OrderedWorkload] = []


class AppGroup(KubeObject, frozen=True):
    spec: AppGroupSpec = AppGroupSpec()
    status: AppGroupStatus = AppGroupStatus()


class Cost(Part, frozen=True):
    destination: str = ""
    network_cost: int = 0


class Origin(Part, frozen=True):
    origin: str = ""
    cost_list: list[Cost] = []
    #: The name in upstream's example.
    costs: list[Cost] = []

    @property
    def all_costs(self) -> list[Cost]:
        return self.cost_list or self.costs


class Topology(Part, frozen=True):
    topology_key: str = ""
    origin_list: list[Origin] = []
    #: The name in upstream's example.
    origin_costs: list[Origin] = []

    @property
    def origins(self) -> list[Origin]:
        return self.origin_list or self.origin_costs


class Weight(Part, frozen=True):
    name: str = ""
    topology_list: list[Topology] = []
    #: The name in upstream's example.
    cost_list: list[Topology] = []

    @property
    def topologies(self) -> list[Topology]:
        return self.topology_list or self.cost_list


class NetworkTopologySpec(Part, frozen=True):
    weights: list[Weight] = []


class NetworkTopology(KubeObject, frozen=True):
    spec: NetworkTopologySpec = NetworkTopologySpec()


APP_GROUPS = custom_kind(AppGroup, "appgroup.diktyo.x-k8s.io", "appgroups", version="v1alpha1")
NETWORK_TOPOLOGIES = custom_kind(
    NetworkTopology, "networktopology.diktyo.x-k8s.io", "networktopologies", version="v1alpha1"
)
