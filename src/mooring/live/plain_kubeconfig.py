"""Kubeconfigs with nothing but addresses, tokens and certificates in one file: most of them.

They are read here, because loading the library that knows every kind takes a third of the time from start to
first bind. Whatever is unusual is left to it: several files, plugins, providers of tokens, proxies, a field
that is not known here, and everything that cannot be used, so that one place says why.
"""

from __future__ import annotations

import base64
import binascii
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

_CLUSTER_FIELDS = frozenset(
    (
        "server",
        "certificate-authority",
        "certificate-authority-data",
        "insecure-skip-tls-verify",
        "tls-server-name",
        "extensions",
    )
)
_USER_FIELDS = frozenset(
    (
        "token",
        "tokenFile",
        "client-certificate",
        "client-certificate-data",
        "client-key",
        "client-key-data",
    )
)
#: At most one field of each pair is given.
_EITHER_OR = (
    ("token", "tokenFile"),
    ("client-certificate", "client-certificate-data"),
    ("client-key", "client-key-data"),
)


@dataclass(slots=True)
class Settings:
    """How to reach an API server; the names are those of the library's Configuration."""

    host: str = ""
    ssl_ca_cert: str | None = None
    verify_ssl: bool = True
    cert_file: str | None = None
    key_file: str | None = None
    tls_server_name: str | None = None
    proxy: str | None = None
    api_key: dict[str, str] = field(default_factory=dict)


class PlainKubeconfig:
    """One context of a kubeconfig. Data in it becomes files that are gone with this object."""

    def __init__(self, cluster: Mapping[str, Any], user: Mapping[str, Any], folder: Path) -> None:
        self._cluster = cluster
        self._user = user
        #: What relative paths are relative to.
        self._folder = folder
        #: Where the files are that data became; None if there are none.
        self._files: str | None = None

    def load(self, settings: Settings) -> None:
        """Raises OSError, ValueError."""
        settings.host = str(self._cluster["server"])
        settings.verify_ssl = not self._cluster.get("insecure-skip-tls-verify", False)
        settings.tls_server_name = self._cluster.get("tls-server-name")
        if settings.host.startswith("https"):
            settings.ssl_ca_cert = self._file(self._cluster, "certificate-authority")
            settings.cert_file = self._file(self._user, "client-certificate")
            settings.key_file = self._file(self._user, "client-key")
        token = self._user.get("token")
        if "tokenFile" in self._user:
            token = self._path(self._user["tokenFile"]).read_text()
        if token:
            settings.api_key["BearerToken"] = f"Bearer {token}"

    def _file(self, fields: Mapping[str, Any], name: str) -> str | None:
        """A file with this content, which stands in the kubeconfig or in a file of its own."""
        data = fields.get(f"{name}-data")
        if data is None:
            return str(self._path(fields[name])) if name in fields else None
        if self._files is None:
            self._files = tempfile.mkdtemp(prefix="mooring-")
            weakref.finalize(self, shutil.rmtree, self._files, ignore_errors=True)
        path = Path(self._files, name)
        path.write_bytes(base64.b64decode(data))
        return str(path)

    def _path(self, name: str) -> Path:
        return self._folder / Path(name).expanduser()


def plain_kubeconfig(files: list[Path], context: str | None) -> PlainKubeconfig | None:
    """None for what the library must read."""
    if len(files) != 1:
        return None
    try:
        document = yaml.load(files[0].read_bytes(), Loader=yaml.CSafeLoader)
        chosen = _named(document["contexts"], context or document["current-context"], "context")
        cluster = _named(document["clusters"], chosen["cluster"], "cluster")
        user = _named(document["users"], chosen["user"], "user")
        is_plain = _is_plain(cluster, user)
    except (OSError, ValueError, yaml.YAMLError, LookupError, TypeError, AttributeError):
        return None
    return PlainKubeconfig(cluster, user, files[0].parent) if is_plain else None


def _named(entries: list[Any], name: str, part: str) -> dict[str, Any]:
    """Raises LookupError unless there is just one with this name."""
    (found,) = [entry[part] for entry in entries if entry["name"] == name]
    if not isinstance(found, dict):
        raise LookupError(name)
    return found


def _is_plain(cluster: dict[str, Any], user: dict[str, Any]) -> bool:
    """Raises ValueError for data that is not base64."""
    if not cluster.keys() <= _CLUSTER_FIELDS or not user.keys() <= _USER_FIELDS:
        return False
    if any(one in user and other in user for one, other in _EITHER_OR):
        return False
    authority = "certificate-authority"
    if not cluster.get("server") or (authority in cluster and f"{authority}-data" in cluster):
        return False
    for name, value in {**cluster, **user}.items():
        if name == "insecure-skip-tls-verify":
            if not isinstance(value, bool):
                return False
        elif name != "extensions" and not isinstance(value, str):
            return False
        elif name.endswith("-data"):
            try:
                base64.b64decode(value, validate=True)
            except binascii.Error:
                return False
    return True
