"""Who we are to the API server: a kubeconfig, or the service account of the pod that mooring runs in.

Plain kubeconfigs (`plain_kubeconfig`) and service accounts are read here. All others are left to
kubernetes-asyncio's loader, which knows exec plugins, OIDC and much else; it is imported only here, and only
when needed, as that takes most of a second. One thing is done before it: an OIDC token that runs out is
renewed here, since the loader would send the refresh token over a connection whose certificate it does not
check.

A connection belongs to the event loop that made it.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import copy
import logging
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

import msgspec

from mooring.errors import CredentialsError
from mooring.framework.clock import Clock
from mooring.live.clock import WallClock
from mooring.live.connection import Connection
from mooring.live.plain_kubeconfig import PlainKubeconfig, Settings, plain_kubeconfig

_LOG = logging.getLogger(__name__)

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

#: Tokens and certificates in files may be replaced at any time: how often to look.
LOOK_EVERY_S = 60.0
#: How long before its end a token is replaced.
_EARLY_S = 300.0
#: Credentials that are refused are not asked for more often than this.
_RENEW_AT_MOST_EVERY_S = 10.0

_NO_WAY = (
    "no cluster configured: there is no kubeconfig at {} and no service account of a pod; give one"
    " with --kubeconfig or KUBECONFIG"
)


async def connect(
    kubeconfig: str | Path | None = None,
    context: str | None = None,
    *,
    clock: Clock | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Connection:
    """A kubeconfig if one is named; else the pod's service account; else the user's own kubeconfig.

    Raises CredentialsError.
    """
    clock = clock or WallClock()
    if kubeconfig is not None:
        return await from_kubeconfig(kubeconfig, context, clock=clock, environ=environ)
    if environ.get("KUBERNETES_SERVICE_HOST") and context is None:
        return await from_service_account(clock=clock, environ=environ)
    own = environ.get("KUBECONFIG") or str(Path(environ.get("HOME", "~")) / ".kube" / "config")
    if not _files(own):
        raise CredentialsError(_NO_WAY.format(own))
    return await from_kubeconfig(own, context, clock=clock, environ=environ)


async def from_kubeconfig(
    kubeconfig: str | Path,
    context: str | None = None,
    *,
    clock: Clock,
    environ: Mapping[str, str] = os.environ,
) -> Connection:
    """One file, or several as in the variable KUBECONFIG. Raises CredentialsError."""
    plain = plain_kubeconfig(_files(str(kubeconfig)), context)
    credentials = (
        _Kubeconfig(str(kubeconfig), context, clock)
        if plain is None
        else _Plain(str(kubeconfig), plain, clock)
    )
    await credentials.load()
    return credentials.connection(environ)


async def from_service_account(
    *,
    clock: Clock,
    environ: Mapping[str, str] = os.environ,
    folder: Path = SERVICE_ACCOUNT,
) -> Connection:
    """The credentials of the pod that this process runs in. Raises CredentialsError."""
    credentials = _ServiceAccount(folder, clock, environ)
    await credentials.load()
    return credentials.connection(environ)


class _Credentials:
    """What both kinds have in common: they are loaded again when it is time, and when refused."""

    def __init__(self, clock: Clock, config: Any = None) -> None:
        """`config` is a Settings, or the Configuration of the library."""
        self._clock = clock
        self._config = Settings() if config is None else config
        self._loading = asyncio.Lock()
        self._loaded_at = 0.0
        #: When that was last tried after the first time.
        self._tried_at = 0.0
        #: When to load again; infinite if there is nothing that could change.
        self._due_at = 0.0
        self._tls: ssl.SSLContext | None = None
        #: The certificate and key that the TLS context holds.
        self._pair: tuple[bytes, bytes] | None = None

    def connection(self, environ: Mapping[str, str]) -> Connection:
        server = str(self._config.host).rstrip("/")
        if urlsplit(server).scheme not in ("http", "https"):
            raise CredentialsError(f"{self.source}: {server!r} is not the address of an API server")
        return Connection(
            server=server,
            ssl_context=self._tls,
            authorization=self.authorization,
            renew=self.renew,
            tls_server_name=self._config.tls_server_name or None,
            proxy=self._config.proxy or _proxy(server, environ),
        )

    async def load(self) -> None:
        """Raises CredentialsError."""
        try:
            await self._load()
            self._tls = self._make_tls()
            self._take_pair()
        except Exception as error:
            # The loader raises whatever the contents of a file make it stumble over.
            raise CredentialsError(f"{self.source}: {_said(error)}") from error

    async def authorization(self) -> str | None:
        if self._clock.now() >= self._due_at:
            await self._load_again()
        token = self._config.api_key.get("BearerToken")
        # Files tend to end with a newline, which must not get into a header.
        return "".join(token.split("\n")).strip() if token else None

    async def renew(self) -> None:
        if self._clock.now() - self._loaded_at >= _RENEW_AT_MOST_EVERY_S:
            self._expire()
            await self._load_again()

    async def _load_again(self) -> None:
        """What cannot be renewed is used on: the API server says whether it still will do."""
        asked_at = self._clock.now()
        async with self._loading:
            if self._tried_at >= asked_at:
                # Another request was first.
                return
            self._tried_at = self._clock.now()
            try:
                await self._load()
                self._take_pair()
            except Exception as error:
                _LOG.warning("%s: cannot renew the credentials: %s", self.source, _said(error))
                self._due_at = self._clock.now() + _RENEW_AT_MOST_EVERY_S

    def _make_tls(self) -> ssl.SSLContext:
        config = self._config
        context = ssl.create_default_context(cafile=config.ssl_ca_cert)
        if hasattr(ssl, "VERIFY_X509_STRICT"):
            # Newer Pythons refuse authorities that Kubernetes itself makes, and every client takes.
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not config.verify_ssl:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def _take_pair(self) -> None:
        """Into the same context: connections made from now on use the certificate as it is now."""
        cert_file, key_file = self._config.cert_file, self._config.key_file
        if self._tls is None or not cert_file or not key_file:
            return
        pair = Path(cert_file).read_bytes(), Path(key_file).read_bytes()
        if pair != self._pair:
            self._tls.load_cert_chain(cert_file, key_file)
            self._pair = pair

    async def _load(self) -> None:
        """Into `_config`, and set `_loaded_at` and `_due_at`."""
        raise NotImplementedError

    def _expire(self) -> None:
        """Do not think that what was loaded is still good."""

    @property
    def source(self) -> str:
        raise NotImplementedError


class _Plain(_Credentials):
    def __init__(self, path: str, plain: PlainKubeconfig, clock: Clock) -> None:
        super().__init__(clock)
        self._path = path
        self._plain = plain

    @property
    def source(self) -> str:
        return f"kubeconfig {self._path}"

    async def _load(self) -> None:
        self._plain.load(self._config)
        self._loaded_at = self._clock.now()
        self._due_at = self._loaded_at + LOOK_EVERY_S


class _Kubeconfig(_Credentials):
    def __init__(self, paths: str, context: str | None, clock: Clock) -> None:
        super().__init__(clock, _configuration())
        from kubernetes_asyncio.config import kube_config

        self._paths = paths
        self._context = context
        self._kube_config = kube_config
        self._merger: Any = None
        self._loader: Any = None

    @property
    def source(self) -> str:
        return f"kubeconfig {self._paths}"

    async def _load(self) -> None:
        if self._merger is None:
            if not _files(self._paths):
                raise FileNotFoundError("no such file")
            self._merger = self._kube_config.KubeConfigMerger(self._paths)
            self._loader = self._make_loader(self._merger.config)
        user = self._user(self._merger.config)
        provider = _oidc(user)
        if provider is not None:
            await self._renew_oidc(provider)
            self._loader = self._make_loader(self._with_token(provider.get("id-token", "")))
        await self._loader.load_and_set(self._config)
        self._loaded_at = self._clock.now()
        self._due_at = self._loaded_at + LOOK_EVERY_S
        if "exec" in user:
            self._due_at = self._end_of_exec()

    def _make_loader(self, config: Any) -> Any:
        return self._kube_config.KubeConfigLoader(
            config, active_context=self._context, config_base_path=None
        )

    def _user(self, config: Any) -> dict[str, Any]:
        """The entry in a kubeconfig for the user of the context."""
        name = self._loader.current_context["context"].get("user")
        users = config["users"] if config.safe_get("users") else None
        found = users.get_with_name(name, safe=True) if users is not None and name else None
        user: dict[str, Any] = {}
        if found is not None and found.safe_get("user"):
            user = found["user"].value
        return user

    def _with_token(self, token: str) -> Any:
        """The kubeconfig as if it had this token, which the loader then leaves alone."""
        config = copy.deepcopy(self._merger.config)
        user = self._user(config)
        del user["auth-provider"]
        user["token"] = token
        return config

    def _end_of_exec(self) -> float:
        """Plugins are run again when what they gave runs out, or is refused."""
        expiry = getattr(self._loader, "exec_plugin_expiry", None)
        if expiry is None:
            return float("inf")
        early: float = expiry.timestamp() - _EARLY_S
        return max(early, self._loaded_at + _RENEW_AT_MOST_EVERY_S)

    def _expire(self) -> None:
        if getattr(self._loader, "exec_plugin_expiry", None) is not None:
            del self._loader.exec_plugin_expiry

    async def _renew_oidc(self, provider: dict[str, Any]) -> None:
        if "refresh-token" not in provider:
            return
        if _expiry_of(provider.get("id-token", "")) - self._clock.now() > 2 * LOOK_EVERY_S:
            return
        await _refresh_oidc(provider)
        # A refresh token may be good for one time only: what is not kept is lost.
        try:
            self._merger.save_changes()
        except OSError as error:
            _LOG.warning("%s: cannot save the renewed token: %s", self.source, error)


class _ServiceAccount(_Credentials):
    def __init__(self, folder: Path, clock: Clock, environ: Mapping[str, str]) -> None:
        super().__init__(clock)
        self._folder = folder
        self._environ = environ

    @property
    def source(self) -> str:
        return f"service account {self._folder}"

    async def _load(self) -> None:
        host = self._environ.get("KUBERNETES_SERVICE_HOST")
        port = self._environ.get("KUBERNETES_SERVICE_PORT")
        if not host or not port:
            raise CredentialsError(
                "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"
            )
        token, authority = (self._folder / "token").read_text(), self._folder / "ca.crt"
        if not token.strip():
            raise CredentialsError("the token is empty")
        if not authority.read_bytes():
            raise CredentialsError("the certificate of the authority is empty")
        self._config.host = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
        self._config.ssl_ca_cert = str(authority)
        self._config.api_key["BearerToken"] = f"Bearer {token}"
        self._loaded_at = self._clock.now()
        self._due_at = self._loaded_at + LOOK_EVERY_S


def _configuration() -> Any:
    from kubernetes_asyncio.client import Configuration

    return Configuration()


def _files(paths: str) -> list[Path]:
    """Those of a list of files that are there."""
    named = [Path(path).expanduser() for path in paths.split(os.pathsep) if path]
    return [path for path in named if path.is_file()]


def _said(error: Exception) -> str:
    if isinstance(error, TypeError | AttributeError | KeyError):
        # The error of the loader is about its own code and does not help users.
        return "not a kubeconfig with a cluster, a user and a context"
    return str(error) or type(error).__name__


def _proxy(server: str, environ: Mapping[str, str]) -> str | None:
    """What HTTPS_PROXY and NO_PROXY say; to this machine itself there is none."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    if host in ("localhost", "::1") or host.startswith("127."):
        return None
    proxies = {
        name.lower().removesuffix("_proxy"): value
        for name, value in environ.items()
        if name.lower().endswith("_proxy") and value
    }
    if proxy_bypass_environment(parts.netloc, proxies):
        return None
    return proxies.get(parts.scheme) or proxies.get("all")


# OIDC


def _oidc(user: Mapping[str, Any]) -> dict[str, Any] | None:
    """The configuration of the OIDC provider of a user; None if there is none."""
    provider = user.get("auth-provider") or {}
    if provider.get("name") != "oidc":
        return None
    config = provider.get("config")
    return config if isinstance(config, dict) else None


class _Claims(msgspec.Struct, frozen=True):
    exp: float = 0.0


def _expiry_of(id_token: str) -> float:
    """When a token runs out; in the past if it does not say, or is none."""
    parts = id_token.split(".")
    if len(parts) != 3:
        return 0.0
    try:
        padded = parts[1] + "=" * (-len(parts[1]) % 4)
        return msgspec.json.decode(base64.urlsafe_b64decode(padded), type=_Claims).exp
    except (binascii.Error, msgspec.DecodeError):
        return 0.0


async def _refresh_oidc(provider: dict[str, Any]) -> None:
    """Put new tokens in the place of the old ones. Raises whatever goes wrong."""
    import aiohttp

    authority = provider.get("idp-certificate-authority-data")
    tls = ssl.create_default_context(
        cafile=provider.get("idp-certificate-authority"),
        cadata=base64.b64decode(authority).decode() if authority else None,
    )
    issuer = str(provider["idp-issuer-url"]).rstrip("/")
    names = provider["client-id"], provider.get("client-secret", "")
    client = ":".join(quote_plus(name) for name in names)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=tls),
        timeout=aiohttp.ClientTimeout(total=30.0),
        raise_for_status=True,
        trust_env=True,
    ) as session:
        async with session.get(f"{issuer}/.well-known/openid-configuration") as answer:
            endpoint = (await answer.json(content_type=None))["token_endpoint"]
        async with session.post(
            endpoint,
            data={"grant_type": "refresh_token", "refresh_token": provider["refresh-token"]},
            headers={"Authorization": f"Basic {base64.b64encode(client.encode()).decode()}"},
        ) as answer:
            tokens = await answer.json(content_type=None)
    provider["id-token"] = tokens["id_token"]
    provider["refresh-token"] = tokens.get("refresh_token", provider["refresh-token"])
