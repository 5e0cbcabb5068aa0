"""A plain client of a kube-apiserver: JSON over HTTPS, from the standard library.

Tests and benchmarks look at the cluster through it, so it shares nothing with mooring's own client. It
blocks, and any number of threads may use one.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

#: An object as the API has it.
Json = dict[str, Any]

#: A request that takes longer has failed; a watch may be silent for as long.
TIMEOUT_S = 60.0

#: Where objects of a kind live: the path before the namespace, the plural, whether they have a namespace.
RESOURCES = {
    "Binding": ("/api/v1", "bindings", True),
    "ClusterRole": ("/apis/rbac.authorization.k8s.io/v1", "clusterroles", False),
    "ClusterRoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", False),
    "CSIDriver": ("/apis/storage.k8s.io/v1", "csidrivers", False),
    "CSINode": ("/apis/storage.k8s.io/v1", "csinodes", False),
    "CSIStorageCapacity": ("/apis/storage.k8s.io/v1", "csistoragecapacities", True),
    "DeviceClass": ("/apis/resource.k8s.io/v1", "deviceclasses", False),
    "Event": ("/apis/events.k8s.io/v1", "events", True),
    "Lease": ("/apis/coordination.k8s.io/v1", "leases", True),
    "Namespace": ("/api/v1", "namespaces", False),
    "Node": ("/api/v1", "nodes", False),
    "PersistentVolume": ("/api/v1", "persistentvolumes", False),
    "PersistentVolumeClaim": ("/api/v1", "persistentvolumeclaims", True),
    "Pod": ("/api/v1", "pods", True),
    "PodDisruptionBudget": ("/apis/policy/v1", "poddisruptionbudgets", True),
    "PodGroup": ("/apis/scheduling.k8s.io/v1alpha2", "podgroups", True),
    "PriorityClass": ("/apis/scheduling.k8s.io/v1", "priorityclasses", False),
    "ReplicaSet": ("/apis/apps/v1", "replicasets", True),
    "ResourceClaim": ("/apis/resource.k8s.io/v1", "resourceclaims", True),
    "ResourceClaimTemplate": ("/apis/resource.k8s.io/v1", "resourceclaimtemplates", True),
    "ResourceSlice": ("/apis/resource.k8s.io/v1", "resourceslices", False),
    "Service": ("/api/v1", "services", True),
    "StorageClass": ("/apis/storage.k8s.io/v1", "storageclasses", False),
    "Workload": ("/apis/scheduling.k8s.io/v1alpha2", "workloads", True),
}


class ApiFailure(Exception):
    """The API server refused a request."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason


class PlainClient:
    """Requests to one API server as one user; a connection a thread, kept open."""

    def __init__(self, url: str, *, token: str, ca_file: Path) -> None:
        address = urlsplit(url)
        self._host, self._port = address.hostname or "", address.port
        self._tls = ssl.create_default_context(cafile=ca_file)
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self._threads = threading.local()
        #: Every connection that was opened, so that `close` finds those of other threads.
        self._opened: list[http.client.HTTPSConnection] = []

    def __enter__(self) -> PlainClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        while self._opened:
            self._opened.pop().close()

    def create(self, document: Json) -> Json:
        return self.request("POST", self._collection_of(document), document)

    def create_all(self, documents: Iterable[Json], *, workers: int = 8) -> None:
        """Create many, several at a time."""
        with ThreadPoolExecutor(workers) as pool:
            for _ in pool.map(self.create, documents):
                pass

    def get(self, kind: str, name: str, namespace: str = "default") -> Json:
        return self.request("GET", f"{collection(kind, namespace)}/{quote(name)}")

    def find(self, kind: str, name: str, namespace: str = "default") -> Json | None:
        """As `get`; None where there is no such object."""
        try:
            return self.get(kind, name, namespace)
        except ApiFailure as failure:
            if failure.status == 404:
                return None
            raise

    def list(self, kind: str, namespace: str = "default", **selectors: str) -> list[Json]:
        """The objects of one moment; `namespace` "" for all; `fieldSelector`, `labelSelector`."""
        items: list[Json] = self.list_document(kind, namespace, **selectors)["items"]
        return items

    def list_document(self, kind: str, namespace: str = "default", **selectors: str) -> Json:
        """As `list`, with the resource version of the moment."""
        query = f"?{urlencode(selectors)}" if selectors else ""
        return self.request("GET", collection(kind, namespace) + query)

    def replace(self, document: Json) -> Json:
        name = document["metadata"]["name"]
        return self.request("PUT", f"{self._collection_of(document)}/{quote(name)}", document)

    def patch(
        self, kind: str, name: str, change: Json, *, namespace: str = "default", part: str = ""
    ) -> Json:
        """Merge a change into an object (RFC 7386), or into a part of it such as its status."""
        path = f"{collection(kind, namespace)}/{quote(name)}" + (f"/{part}" if part else "")
        return self.request("PATCH", path, change, content_type="application/merge-patch+json")

    def delete(
        self, kind: str, name: str, namespace: str = "default", *, grace_s: int | None = None
    ) -> None:
        options = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        self.request("DELETE", f"{collection(kind, namespace)}/{quote(name)}", options)

    def delete_all(self, kind: str, namespace: str = "default") -> None:
        """Delete every object of a kind (in a namespace, if it has one), pods without grace."""
        self.request("DELETE", collection(kind, namespace), {"gracePeriodSeconds": 0})

    def watch(
        self, kind: str, namespace: str = "default", *, version: str, timeout_s: int = 10
    ) -> Iterator[Json]:
        """Each event after a resource version, until the API server ends the watch."""
        query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": timeout_s}
        connection = self._open()
        try:
            path = f"{collection(kind, namespace)}?{urlencode(query)}"
            connection.request("GET", path, headers=self._headers)
            answer = connection.getresponse()
            if answer.status != 200:
                raise _failure(answer.status, answer.read())
            for line in answer:
                yield json.loads(line)
        finally:
            connection.close()

    def read(self, path: str) -> str:
        """The text at a path such as /readyz."""
        return self._exchange("GET", path, None, self._headers).decode()

    def request(
        self,
        method: str,
        path: str,
        document: Json | None = None,
        *,
        content_type: str = "application/json",
    ) -> Json:
        body = None if document is None else json.dumps(document).encode()
        headers = self._headers if body is None else self._headers | {"Content-Type": content_type}
        decoded: Json = json.loads(self._exchange(method, path, body, headers))
        return decoded

    def _exchange(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> bytes:
        connection: http.client.HTTPSConnection | None = getattr(self._threads, "connection", None)
        is_fresh = connection is None
        if connection is None:
            connection = self._threads.connection = self._open()
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            self._threads.connection = None
            # A connection that was kept open may have been closed at the other end since.
            if is_fresh or isinstance(error, TimeoutError):
                raise _as_os_error(error) from error
            return self._exchange(method, path, body, headers)
        if answer.status >= 400:
            raise _failure(answer.status, content)
        return content

    def _open(self) -> http.client.HTTPSConnection:
        connection = http.client.HTTPSConnection(
            self._host, self._port, timeout=TIMEOUT_S, context=self._tls
        )
        self._opened.append(connection)
        return connection

    def _collection_of(self, document: Json) -> str:
        return collection(document["kind"], document["metadata"].get("namespace", "default"))


def collection(kind: str, namespace: str = "default") -> str:
    """The path of the objects of a kind; of all namespaces for namespace ""."""
    prefix, plural, has_namespace = RESOURCES[kind]
    if has_namespace and namespace:
        return f"{prefix}/namespaces/{quote(namespace)}/{plural}"
    return f"{prefix}/{plural}"


def _as_os_error(error: OSError | http.client.HTTPException) -> OSError:
    return error if isinstance(error, OSError) else ConnectionError(str(error))


def _failure(status: int, content: bytes) -> ApiFailure:
    try:
        document = json.loads(content)
        return ApiFailure(status, document.get("reason", ""), document.get("message", ""))
    except (ValueError, AttributeError):
        return ApiFailure(status, "", content.decode(errors="replace")[:500])
