"""One script of requests for two API servers: the model of the random worlds, and a real kube-apiserver.

Each step says what is asked; what comes back is reduced to what mooring reads of it. Names that a server
chooses (UIDs, versions) are numbered in the order in which they appear, so that two runs can be compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

Json = dict[str, Any]

STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
#: What a real kube-apiserver answered, by `MOORING_WRITE_ANSWERS=1 pytest tests/live/test_model.py`.
RECORDED = Path(__file__).with_name("api_answers.json")

UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"


class Server(Protocol):
    """What a script needs of a server."""

    def create(self, path: str, document: Json) -> Json:
        """As a user does."""
        ...

    def finish(self, name: str) -> None:
        """As the kubelet does when a pod has run to its end."""
        ...

    def forget(self) -> None:
        """Compact the history, and start again without what was kept of it."""
        ...

    def ask(
        self, method: str, path: str, body: Json | None = None, content_type: str = ""
    ) -> tuple[int, Json]: ...

    def watch(
        self, path: str, params: dict[str, str], *, meanwhile: Callable[[], None]
    ) -> tuple[int, list[Json]]:
        """The status, and all that the watch tells until it ends."""
        ...


class Script:
    """Asks everything, and keeps what was answered, by what was asked."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._uids: dict[str, str] = {}
        #: The latest version of each object, to say whether a write has changed it.
        self._versions: dict[str, int] = {}
        self.answers: dict[str, Any] = {}

    def run(self) -> dict[str, Any]:
        for part in (
            self._reads,
            self._binds,
            self._status_patches,
            self._deletes,
            self._claims,
            self._leases,
            self._events,
            self._lists_and_watches,
        ):
            part()
        # As a file has it: lists for tuples.
        plain: dict[str, Any] = json.loads(json.dumps(self.answers))
        return plain

    # The parts

    def _reads(self) -> None:
        self._server.create(NODES, node("n1"))
        self._server.create(PODS, pod("p1"))
        self._ask("a pod", "GET", f"{PODS}/p1")
        self._ask("a pod that is not there", "GET", f"{PODS}/nobody")
        self._ask("a lease that is not there", "GET", f"{LEASES}/nobody")

    def _binds(self) -> None:
        uid = self._uid(f"{PODS}/p1")
        self._ask("bind, another UID", "POST", f"{PODS}/p1/binding", binding("p1", "other", "n1"))
        self._ask("not bound by that", "GET", f"{PODS}/p1")
        self._ask("bind", "POST", f"{PODS}/p1/binding", binding("p1", uid, "n1"))
        self._ask("bound", "GET", f"{PODS}/p1")
        self._ask("bind again", "POST", f"{PODS}/p1/binding", binding("p1", uid, "n1"))
        self._ask("bind elsewhere", "POST", f"{PODS}/p1/binding", binding("p1", uid, "n2"))
        self._ask("bind nobody", "POST", f"{PODS}/nobody/binding", binding("nobody", "u", "n1"))
        self._server.create(PODS, pod("gated", schedulingGates=[{"name": "example.com/wait"}]))
        uid = self._uid(f"{PODS}/gated")
        self._ask("bind, gated", "POST", f"{PODS}/gated/binding", binding("gated", uid, "n1"))
        self._server.create(PODS, pod("nominated"))
        uid = self._uid(f"{PODS}/nominated")
        self._status("nominate", "nominated", uid, {"nominatedNodeName": "n1"})
        self._ask("bind it", "POST", f"{PODS}/nominated/binding", binding("nominated", uid, "n1"))
        self._ask("bound and no longer nominated", "GET", f"{PODS}/nominated")

    def _status_patches(self) -> None:
        self._server.create(PODS, pod("p2"))
        uid = self._uid(f"{PODS}/p2")
        refused = condition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available")
        self._status("a condition", "p2", uid, {"conditions": [refused]})
        self._status("the same again", "p2", uid, {"conditions": [refused]})
        other = condition("DisruptionTarget", "True", "PreemptionByScheduler", "preempting")
        self._status("another one beside it", "p2", uid, {"conditions": [other]})
        words = {"type": "PodScheduled", "message": "other words"}
        self._status("a part of a condition", "p2", uid, {"conditions": [words]})
        self._status("a nomination", "p2", uid, {"nominatedNodeName": "n1"})
        self._status("no nomination", "p2", uid, {"nominatedNodeName": None})
        self._status("another UID", "p2", "other", {"nominatedNodeName": "n1"})
        self._status("nobody", "nobody", "other", {"nominatedNodeName": "n1"})

    def _deletes(self) -> None:
        uid = self._uid(f"{PODS}/p2")
        self._ask("delete, another UID", "DELETE", f"{PODS}/p2", only("other"))
        self._ask("delete what waits", "DELETE", f"{PODS}/p2", only(uid))
        self._ask("gone", "GET", f"{PODS}/p2")
        self._ask("delete what is gone", "DELETE", f"{PODS}/p2", only(uid))
        self._server.create(PODS, pod("slow", grace_s=600))
        uid = self._uid(f"{PODS}/slow")
        self._ask("bind", "POST", f"{PODS}/slow/binding", binding("slow", uid, "n1"))
        self._ask("delete what runs", "DELETE", f"{PODS}/slow", only(uid))
        self._ask("still there", "GET", f"{PODS}/slow")
        self._ask("delete once more", "DELETE", f"{PODS}/slow", only(uid))
        self._status(
            "patched to the end", "slow", uid, {"conditions": [condition("X", "True", "R", "m")]}
        )
        self._server.create(PODS, pod("p2"))
        self._ask("another one of the same name", "GET", f"{PODS}/p2")
        self._status("its UID is another one", "p2", uid, {"nominatedNodeName": "n1"})

    def _claims(self) -> None:
        self._server.create(CLAIMS, claim("c1"))
        status, stored = self._server.ask("GET", f"{CLAIMS}/c1")
        assert status == 200
        uid, version = stored["metadata"]["uid"], stored["metadata"]["resourceVersion"]
        finalizers = ["resource.kubernetes.io/delete-protection"]
        about: Json = {"uid": uid, "resourceVersion": version, "finalizers": finalizers}
        done = self._ask("a finalizer", "PATCH", f"{CLAIMS}/c1", {"metadata": about}, MERGE)
        about = {"uid": uid, "resourceVersion": version}
        given = {"allocation": allocation("n1"), "reservedFor": [user("p1", "u-1")]}
        change = {"metadata": about, "status": given}
        self._ask("of an old version", "PATCH", f"{CLAIMS}/c1/status", change, MERGE)
        about["resourceVersion"] = done["metadata"]["resourceVersion"]
        self._ask("allocation", "PATCH", f"{CLAIMS}/c1/status", change, MERGE)
        self._ask("twice", "PATCH", f"{CLAIMS}/c1/status", change, MERGE)
        doubled = {"reservedFor": [user("p1", "u-1"), user("p1", "u-1")]}
        change = {"metadata": {"uid": uid}, "status": doubled}
        self._ask("reserved twice for one pod", "PATCH", f"{CLAIMS}/c1/status", change, MERGE)
        gone = {"reservedFor": [{"$patch": "delete", "uid": "u-1"}]}
        change = {"metadata": {"uid": uid}, "status": gone}
        self._ask("give it back", "PATCH", f"{CLAIMS}/c1/status", change, STRATEGIC)
        change = {"metadata": {"uid": "other"}, "status": gone}
        self._ask("give it back, another UID", "PATCH", f"{CLAIMS}/c1/status", change, STRATEGIC)
        self._ask("of nobody", "PATCH", f"{CLAIMS}/nobody/status", change, STRATEGIC)
        self._ask("delete", "DELETE", f"{CLAIMS}/c1", only(uid))
        self._ask("kept by its finalizer", "GET", f"{CLAIMS}/c1")
        about = {"uid": uid, "finalizers": None}
        self._ask("let go", "PATCH", f"{CLAIMS}/c1", {"metadata": about}, MERGE)
        self._ask("gone", "GET", f"{CLAIMS}/c1")

    def _leases(self) -> None:
        spec = {"holderIdentity": "a", "leaseDurationSeconds": 15}
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "leader", "namespace": "default"},
            "spec": spec,
        }
        created = self._ask("create", "POST", LEASES, lease)
        self._ask("create again", "POST", LEASES, lease)
        renewed = {**created, "spec": {**spec, "holderIdentity": "b"}}
        self._ask("renew", "PUT", f"{LEASES}/leader", renewed)
        self._ask("renew from what was", "PUT", f"{LEASES}/leader", renewed)
        self._ask("read", "GET", f"{LEASES}/leader")

    def _events(self) -> None:
        self._ask("create", "POST", EVENTS, event("e1"))
        self._ask("create again", "POST", EVENTS, event("e1"))
        series = {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}}
        self._ask("a series", "PATCH", f"{EVENTS}/e1", series, STRATEGIC)
        self._ask("a series of nothing", "PATCH", f"{EVENTS}/nobody", series, STRATEGIC)

    def _lists_and_watches(self) -> None:
        status, listed = self._server.ask("GET", f"/api/v1/pods?fieldSelector={UNFINISHED}")
        names = sorted(item["metadata"]["name"] for item in listed["items"])
        newest = max(int(item["metadata"]["resourceVersion"]) for item in listed["items"])
        is_newer = int(listed["metadata"]["resourceVersion"]) >= newest
        self.answers["list"] = (status, names, is_newer)
        params = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "fieldSelector": UNFINISHED,
            "resourceVersion": listed["metadata"]["resourceVersion"],
            "timeoutSeconds": "8",
        }

        def meanwhile() -> None:
            self._server.create(PODS, pod("seen"))
            uid = self._uid(f"{PODS}/seen")
            self._server.ask("POST", f"{PODS}/seen/binding", binding("seen", uid, "n1"))
            self._server.finish("seen")
            self._server.create(PODS, pod("brief"))
            uid = self._uid(f"{PODS}/brief")
            self._server.ask("DELETE", f"{PODS}/brief", only(uid))

        status, told = self._server.watch("/api/v1/pods", params, meanwhile=meanwhile)
        self.answers["watch"] = (status, self._story(told, "seen"), self._story(told, "brief"))
        self.answers["watch, versions only grow"] = _grow(told)
        last = max(int(each["object"]["metadata"]["resourceVersion"]) for each in told)
        params |= {"resourceVersion": str(last), "timeoutSeconds": "2"}
        status, told = self._server.watch("/api/v1/pods", params, meanwhile=lambda: None)
        changes = [each for each in told if each["type"] != "BOOKMARK"]
        self.answers["watch from the last version"] = (status, changes)
        params |= {"resourceVersion": listed["metadata"]["resourceVersion"]}
        self._server.forget()
        status, told = self._server.watch("/api/v1/pods", params, meanwhile=lambda: None)
        self.answers["watch from a version that is gone"] = _expired(status, told)

    def _story(self, told: list[Json], name: str) -> list[object]:
        events = [each for each in told if each["object"]["metadata"].get("name") == name]
        return [(each["type"], _node_of(each["object"])) for each in events]

    # Asking

    def _uid(self, path: str) -> str:
        status, found = self._server.ask("GET", path)
        assert status == 200, found
        return str(found["metadata"]["uid"])

    def _status(self, what: str, name: str, uid: str, status: Json) -> None:
        change = {"metadata": {"uid": uid}, "status": status}
        self._ask(what, "PATCH", f"{PODS}/{name}/status", change, STRATEGIC)

    def _ask(
        self, what: str, method: str, path: str, body: Json | None = None, content_type: str = ""
    ) -> Json:
        status, answer = self._server.ask(method, path, body, content_type)
        name = f"{method} {path}: {what}"
        assert name not in self.answers, name
        self.answers[name] = status, self._reduced(answer)
        return answer

    def _reduced(self, answer: Json) -> object:
        if answer.get("kind") == "Status":
            if answer.get("status") == "Success":
                return "Success"
            return answer.get("reason"), self._named(answer.get("message", ""))
        metadata, status = answer.get("metadata", {}), answer.get("status", {})
        spec = answer.get("spec", {})
        reduced = {
            "name": metadata.get("name"),
            "uid": self._named(metadata.get("uid", "")),
            "changed": self._is_changed(metadata),
            "finalizers": metadata.get("finalizers", []),
            "terminating": "deletionTimestamp" in metadata,
            "node": _node_of(answer),
            "nominated": status.get("nominatedNodeName", ""),
            "conditions": sorted(_condition(each) for each in status.get("conditions", [])),
            "holder": spec.get("holderIdentity", ""),
            "allocated": "allocation" in status,
            "reserved": [each.get("uid") for each in status.get("reservedFor", [])],
            "series": (answer.get("series") or {}).get("count"),
        }
        return {name: value for name, value in reduced.items() if value}

    def _is_changed(self, metadata: Json) -> bool:
        uid, version = metadata.get("uid", ""), int(metadata.get("resourceVersion") or 0)
        before = self._versions.get(uid, 0)
        assert version >= before, "a version went back"
        self._versions[uid] = version
        return version > before

    def _named(self, text: str) -> str:
        def numbered(match: re.Match[str]) -> str:
            return self._uids.setdefault(match[0], f"UID-{len(self._uids)}")

        return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", numbered, text)


def _node_of(document: Json) -> str:
    return str(document.get("spec", {}).get("nodeName", ""))


def _condition(condition: Json) -> tuple[str, ...]:
    names = ("type", "status", "reason", "message")
    return tuple(condition.get(name) or "" for name in names)


def _grow(told: list[Json]) -> bool:
    versions = [int(each["object"]["metadata"]["resourceVersion"]) for each in told]
    return bool(versions) and versions == sorted(versions)


def _expired(status: int, told: list[Json]) -> object:
    """410 comes as the answer or as the first event; mooring understands both."""
    if status == 200 and told:
        return told[0]["type"], told[0]["object"]["code"], told[0]["object"]["reason"]
    return status


# Objects


def node(name: str) -> Json:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    status = {"capacity": amounts, "allocatable": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def pod(name: str, *, grace_s: int = 0, **spec: Any) -> Json:
    container = {"name": "main", "image": "nginx"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": grace_s, **spec},
    }


def claim(name: str) -> Json:
    request = {
        "name": "r",
        "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
    }


def allocation(node_name: str) -> Json:
    result = {"request": "r", "driver": "example.com", "pool": node_name, "device": "d0"}
    field = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return {"devices": {"results": [result]}, "nodeSelector": selector}


def user(name: str, uid: str) -> Json:
    return {"resource": "pods", "name": name, "uid": uid}


def binding(name: str, uid: str, node_name: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": "default", "name": name, "uid": uid},
        "target": {"kind": "Node", "name": node_name},
    }


def only(uid: str) -> Json:
    return {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}


def condition(type: str, status: str, reason: str, message: str) -> Json:
    return {"type": type, "status": status, "reason": reason, "message": message}


def event(name: str) -> Json:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "mooring",
        "reportingInstance": "mooring-0",
        "action": "Binding",
        "reason": "Scheduled",
        "type": "Normal",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p1"},
        "note": "bound",
    }
