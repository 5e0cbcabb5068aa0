"""The cluster of a test, seen through the API server alone: make things, look, check the books."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal

from control_plane import ControlPlane
from plain_client import Json, PlainClient

from tests.live.waiting import PATIENCE_S, wait_for

#: What a test may leave behind, in the order in which it goes.
NAMESPACED = (
    "Pod",
    "PersistentVolumeClaim",
    "PodDisruptionBudget",
    "ReplicaSet",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "CSIStorageCapacity",
    "Event",
    "Lease",
)
CLUSTER_WIDE = (
    "Node",
    "PersistentVolume",
    "StorageClass",
    "CSINode",
    "CSIDriver",
    "DeviceClass",
    "ResourceSlice",
)
SYSTEM_PRIORITIES = "system-"

SUFFIXES = {
    "m": Decimal("0.001"),
    "Ki": Decimal(1 << 10),
    "Mi": Decimal(1 << 20),
    "Gi": Decimal(1 << 30),
    "k": Decimal(1000),
    "M": Decimal(1000**2),
    "G": Decimal(1000**3),
    "": Decimal(1),
}


class Cluster:
    def __init__(self, control_plane: ControlPlane, client: PlainClient) -> None:
        self.control_plane = control_plane
        self.client = client
        self._audited = control_plane.audit_position()

    def add(self, *documents: Json) -> None:
        self.client.create_all(documents)

    def pod(self, name: str, namespace: str = "default") -> Json:
        return self.client.get("Pod", name, namespace)

    def pods(self) -> list[Json]:
        return self.client.list("Pod", "")

    def nodes_of(self, names: Iterable[str]) -> dict[str, str]:
        """Where these pods of the default namespace are bound; "" where they are not."""
        bound = {each["metadata"]["name"]: node_name(each) for each in self.client.list("Pod")}
        return {name: bound[name] for name in names}

    def wait_until_bound(self, *names: str, within_s: float = PATIENCE_S) -> dict[str, str]:
        """Wait until these pods (all, if none is named) are bound, and say where all of them are."""

        def pending() -> list[str]:
            return [
                name
                for pod in self.pods()
                for name in [pod["metadata"]["name"]]
                if not node_name(pod) and (not names or name in names)
            ]

        def told() -> str:
            waiting = pending()
            lines = [f"{len(waiting)} pods are pending:"]
            for pod in self.pods():
                if pod["metadata"]["name"] in waiting[:10]:
                    lines.append(f"  {pod['metadata']['name']}: {scheduled_condition(pod)}")
            return "\n".join(lines)

        wait_for(lambda: not pending(), told, within_s=within_s)
        return {each["metadata"]["name"]: node_name(each) for each in self.pods()}

    def wait_until_refused(
        self, name: str, *, saying: str = "", within_s: float = PATIENCE_S
    ) -> Json:
        """Wait until a pod is said to fit nowhere, and return the condition that says so.

        Nodes and pods come by watches of their own, so a pod may be tried before the nodes that were made
        before it are seen. Where that matters, `saying` waits for the condition with these words.
        """

        def look() -> Json | None:
            condition = scheduled_condition(self.pod(name))
            if not condition or condition["status"] != "False":
                return None
            return condition if saying in condition.get("message", "") else None

        what = f"{name} has the condition PodScheduled=False {saying}"
        found = wait_for(look, what, within_s=within_s)
        assert found is not None
        return found

    def events_of(self, name: str, namespace: str = "default") -> list[Json]:
        """What was told of a pod, the first first."""
        events = self.client.list("Event", namespace)
        mine = [event for event in events if event["regarding"].get("name") == name]
        return sorted(mine, key=lambda event: event["eventTime"] or "")

    def wait_for_event(self, name: str, reason: str, *, within_s: float = PATIENCE_S) -> Json:
        def look() -> Json | None:
            events = [event for event in self.events_of(name) if event["reason"] == reason]
            return events[0] if events else None

        found = wait_for(look, f"an Event {reason} of {name}", within_s=within_s)
        assert found is not None
        return found

    def answers_to_binds(self) -> list[tuple[str, str, int]]:
        """(pod, user, status) of every bind since the test began."""
        return [
            (
                f"{entry['objectRef']['namespace']}/{entry['objectRef']['name']}",
                entry["user"]["username"],
                entry["responseStatus"]["code"],
            )
            for entry in self.control_plane.audited(self._audited)
            if entry["objectRef"].get("subresource") == "binding"
        ]

    def check_books(self) -> None:
        """No node has more than it holds, and no pod was bound twice."""
        self.check_capacity()
        made = Counter(pod for pod, _, status in self.answers_to_binds() if status == 201)
        assert all(count == 1 for count in made.values()), f"bound more than once: {made}"

    def check_capacity(self) -> None:
        """No node has more than it holds."""
        nodes = {node["metadata"]["name"]: node for node in self.client.list("Node")}
        used = {name: Counter[str]() for name in nodes}
        for pod in self.pods():
            name = node_name(pod)
            if name in used and pod["status"].get("phase") not in ("Succeeded", "Failed"):
                for resource, amount in requests(pod).items():
                    used[name][resource] += amount
        for name, amounts in used.items():
            allocatable = nodes[name]["status"]["allocatable"]
            for resource, amount in amounts.items():
                assert amount <= units(allocatable.get(resource, "0")), (
                    f"{name} is over-committed: {amounts} of {allocatable}"
                )

    def wipe(self) -> None:
        """Remove what the test made."""
        for namespace in self.client.list("Namespace"):
            for kind in NAMESPACED:
                self.client.delete_all(kind, namespace["metadata"]["name"])
        for kind in CLUSTER_WIDE:
            self.client.delete_all(kind)
        for each in self.client.list("PriorityClass"):
            if not each["metadata"]["name"].startswith(SYSTEM_PRIORITIES):
                self.client.delete("PriorityClass", each["metadata"]["name"])


def node_name(pod: Json) -> str:
    name: str = pod["spec"].get("nodeName", "")
    return name


def scheduled_condition(pod: Json) -> Json | None:
    conditions = pod["status"].get("conditions", [])
    return next((each for each in conditions if each["type"] == "PodScheduled"), None)


def requests(pod: Json) -> Counter[str]:
    """What the containers ask for, in thousandths, and one pod."""
    total = Counter({"pods": units("1")})
    for container in pod["spec"]["containers"]:
        for resource, amount in container["resources"].get("requests", {}).items():
            total[resource] += units(amount)
    return total


def units(quantity: str) -> int:
    """A quantity in thousandths."""
    number = quantity.rstrip("kKMGim")
    return int(Decimal(number) * SUFFIXES[quantity[len(number) :]] * 1000)


def is_gone(client: PlainClient, name: str, namespace: str = "default") -> bool:
    return client.find("Pod", name, namespace) is None


def bind_by_hand(client: PlainClient, name: str, node: str, namespace: str = "default") -> None:
    """Bind a pod as another scheduler would."""
    client.request(
        "POST",
        f"/api/v1/namespaces/{namespace}/pods/{name}/binding",
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace},
            "target": {"kind": "Node", "name": node},
        },
    )
