"""From a kubeconfig or a service account to a connection that stays good."""

from __future__ import annotations

import base64
import json
import ssl
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from mooring.errors import CredentialsError
from mooring.live.client import ApiClient
from mooring.live.connection import Connection
from mooring.live.credentials import connect, from_kubeconfig, from_service_account
from mooring.live.plain_kubeconfig import plain_kubeconfig
from tests.clock import FakeClock
from tests.live_unit.api_server import SERVER_NAME, ApiServer, ok, refusal
from tests.webhook_server import CERTIFICATES

NOW_S = 1_767_225_600.0


def write_kubeconfig(
    folder: Path, user: dict[str, Any], *, server: str = "https://api.test:6443", **cluster: Any
) -> Path:
    known = {
        "server": server,
        "certificate-authority": str(CERTIFICATES / "authority.pem"),
        "tls-server-name": SERVER_NAME,
    }
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "contexts": [
            {"name": "main", "context": {"cluster": "c", "user": "u"}},
            {"name": "other", "context": {"cluster": "c", "user": "nobody"}},
        ],
        "clusters": [{"name": "c", "cluster": {**known, **cluster}}],
        "users": [{"name": "u", "user": user}, {"name": "nobody", "user": {"token": "other"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


async def load(path: Path, clock: FakeClock | None = None, **more: Any) -> Connection:
    return await from_kubeconfig(path, clock=clock or FakeClock(NOW_S), environ={}, **more)


async def test_a_token_of_the_context_is_used_and_tls_is_verified(tmp_path):
    path = write_kubeconfig(tmp_path, {"token": "secret"})

    connection = await load(path)

    assert connection.server == "https://api.test:6443"
    assert connection.tls_server_name == SERVER_NAME
    assert await connection.authorization() == "Bearer secret"
    assert connection.ssl_context is not None
    assert connection.ssl_context.verify_mode == ssl.CERT_REQUIRED
    assert connection.ssl_context.check_hostname
    other = await load(path, context="other")
    assert await other.authorization() == "Bearer other"


async def test_verification_is_off_only_if_the_kubeconfig_says_so(tmp_path):
    path = write_kubeconfig(tmp_path, {"token": "t"}, **{"insecure-skip-tls-verify": True})

    connection = await load(path)

    assert connection.ssl_context is not None
    assert connection.ssl_context.verify_mode == ssl.CERT_NONE


async def test_a_token_in_a_file_is_read_again_every_minute(tmp_path):
    clock = FakeClock(NOW_S)
    token = tmp_path / "token"
    token.write_text("first\n")
    connection = await load(write_kubeconfig(tmp_path, {"tokenFile": str(token)}), clock)

    assert await connection.authorization() == "Bearer first"
    token.write_text("second\n")
    assert await connection.authorization() == "Bearer first"
    clock.advance(60.0)
    assert await connection.authorization() == "Bearer second"
    token.unlink()
    clock.advance(60.0)
    assert await connection.authorization() == "Bearer second"


@pytest.mark.parametrize(
    ("user", "cluster"),
    [
        pytest.param({"token": "t"}, {}, id="a token"),
        pytest.param({"token": "t\n"}, {}, id="a token with a newline"),
        pytest.param({}, {}, id="nobody"),
        pytest.param({"tokenFile": "secret"}, {}, id="a token file beside the kubeconfig"),
        pytest.param({"token": "t"}, {"server": "http://h:1/prefix/"}, id="without TLS"),
        pytest.param({"token": "t"}, {"tls-server-name": "n"}, id="another name"),
        pytest.param({"token": "t"}, {"insecure-skip-tls-verify": True}, id="not verified"),
        pytest.param({"token": "t"}, {"insecure-skip-tls-verify": False}, id="verified"),
    ],
)
async def test_a_plain_kubeconfig_means_what_the_library_says(tmp_path, user, cluster):
    (tmp_path / "secret").write_text("from a file\n")
    path = write_kubeconfig(tmp_path, user, **cluster)

    plain = await load(path)
    # Two files are left to the library; the second says nothing.
    (tmp_path / "second").write_text("apiVersion: v1\nkind: Config\n")
    other = await load(f"{path}:{tmp_path / 'second'}")  # type: ignore[arg-type]

    for name in ("server", "tls_server_name", "proxy"):
        assert getattr(plain, name) == getattr(other, name)
    assert await plain.authorization() == await other.authorization()
    assert plain.ssl_context is not None
    assert other.ssl_context is not None
    for name in ("verify_mode", "check_hostname", "verify_flags"):
        assert getattr(plain.ssl_context, name) == getattr(other.ssl_context, name)
    assert plain.ssl_context.get_ca_certs() == other.ssl_context.get_ca_certs()


@pytest.mark.parametrize(
    ("user", "cluster"),
    [
        pytest.param({"exec": {"command": "x"}}, {}, id="a plugin"),
        pytest.param({"auth-provider": {"name": "oidc"}}, {}, id="a provider"),
        pytest.param({"token": "t", "as": "someone"}, {}, id="impersonation"),
        pytest.param({"token": "t", "tokenFile": "f"}, {}, id="two tokens"),
        pytest.param({"token": 3}, {}, id="a number"),
        pytest.param({"client-key-data": "!"}, {}, id="not base64"),
        pytest.param({"token": "t"}, {"proxy-url": "http://p:1"}, id="a proxy"),
        pytest.param({"token": "t"}, {"insecure-skip-tls-verify": "no"}, id="not a boolean"),
    ],
)
def test_what_is_unusual_in_a_kubeconfig_is_left_to_the_library(tmp_path, user, cluster):
    path = write_kubeconfig(tmp_path, user, **cluster)

    assert plain_kubeconfig([path], None) is None
    assert plain_kubeconfig([path], "missing") is None
    assert plain_kubeconfig([path], "other") is None or not cluster


def test_a_plain_kubeconfig_is_read_without_the_library(tmp_path):
    path = write_kubeconfig(tmp_path, {"token": "t"})
    program = (
        "import asyncio, sys\n"
        "from mooring.live.credentials import connect\n"
        f"asyncio.run(connect({str(path)!r}))\n"
        "sys.exit('kubernetes_asyncio' in sys.modules)\n"
    )

    subprocess.run([sys.executable, "-c", program], check=True)


async def test_a_client_certificate_is_shown_and_needs_no_token(tmp_path):
    data = {
        f"{name}-data": base64.b64encode((CERTIFICATES / file).read_bytes()).decode()
        for name, file in (("client-certificate", "client.pem"), ("client-key", "client.key"))
    }
    async with ApiServer(client_authority=True) as server:
        server.answers = [ok()]
        path = write_kubeconfig(tmp_path, data, server=f"https://127.0.0.1:{server.port}/")
        connection = await load(path)
        async with ApiClient(connection) as client:
            await client.request("GET", "/api")

    assert "Authorization" not in server.asked[0].headers


def exec_user(folder: Path, **status: Any) -> dict[str, Any]:
    """A plugin that gives token-1, token-2, … each time that it is run."""
    (folder / "status").write_text(json.dumps(status))
    plugin = folder / "plugin.py"
    plugin.write_text(
        "import json, pathlib\n"
        f"folder = pathlib.Path({str(folder)!r})\n"
        "runs = folder / 'runs'\n"
        "runs.write_text(runs.read_text() + 'x' if runs.exists() else 'x')\n"
        "status = json.loads((folder / 'status').read_text())\n"
        "status['token'] = f'token-{len(runs.read_text())}'\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1',\n"
        "                  'kind': 'ExecCredential', 'status': status}))\n"
    )
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(plugin)],
            "interactiveMode": "Never",
        }
    }


async def test_a_plugin_without_an_end_is_run_again_only_when_it_is_refused(tmp_path):
    clock = FakeClock(NOW_S)
    async with ApiServer() as server:
        path = write_kubeconfig(
            tmp_path, exec_user(tmp_path), server=f"https://127.0.0.1:{server.port}"
        )
        connection = await load(path, clock)
        async with ApiClient(connection) as client:
            server.answers = [ok(), refusal(401), ok()]
            await client.request("GET", "/api")
            clock.advance(3600.0)
            await client.request("GET", "/api")

    sent = [asked.headers["Authorization"] for asked in server.asked]
    assert sent == ["Bearer token-1", "Bearer token-1", "Bearer token-2"]


async def test_a_plugin_is_run_again_before_its_token_runs_out(tmp_path):
    # The loader judges the end by the wall's clock, so this token is always about to end.
    clock = FakeClock(datetime.now(UTC).timestamp())  # noqa: TID251
    ends = datetime.fromtimestamp(clock.now() + 60.0, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    user = exec_user(tmp_path, expirationTimestamp=ends)
    connection = await load(write_kubeconfig(tmp_path, user), clock)

    assert await connection.authorization() == "Bearer token-1"
    clock.advance(9.0)
    assert await connection.authorization() == "Bearer token-1"
    clock.advance(1.0)
    assert await connection.authorization() == "Bearer token-2"


def id_token(exp: float) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": exp}).encode()).decode().rstrip("=")
    return f"head.{claims}.signature"


async def test_an_oidc_token_is_refreshed_and_kept(tmp_path):
    fresh = id_token(NOW_S * 2)

    async def discovery(request: web.Request) -> web.Response:
        return web.json_response({"token_endpoint": f"http://{request.host}/token"})

    async def token(request: web.Request) -> web.Response:
        form = await request.post()
        assert dict(form) == {"grant_type": "refresh_token", "refresh_token": "r1"}
        assert request.headers["Authorization"].startswith("Basic ")
        return web.json_response({"id_token": fresh, "refresh_token": "r2"})

    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", discovery)
    app.router.add_post("/token", token)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        provider = {
            "idp-issuer-url": f"http://127.0.0.1:{runner.addresses[0][1]}",
            "client-id": "id",
            "client-secret": "secret",
            "refresh-token": "r1",
            "id-token": id_token(NOW_S - 1),
        }
        user = {"auth-provider": {"name": "oidc", "config": provider}}
        path = write_kubeconfig(tmp_path, user)
        connection = await load(path)
    finally:
        await runner.cleanup()

    assert await connection.authorization() == f"Bearer {fresh}"
    kept = yaml.safe_load(path.read_text())["users"][0]["user"]["auth-provider"]["config"]
    assert (kept["id-token"], kept["refresh-token"]) == (fresh, "r2")


async def test_a_refresh_token_is_not_sent_to_a_server_that_cannot_be_trusted(tmp_path):
    async with ApiServer() as server:
        provider = {
            "idp-issuer-url": f"https://127.0.0.1:{server.port}",
            "client-id": "id",
            "refresh-token": "r1",
            "id-token": id_token(NOW_S - 1),
        }
        user = {"auth-provider": {"name": "oidc", "config": provider}}
        with pytest.raises(CredentialsError, match="certificate verify failed"):
            await load(write_kubeconfig(tmp_path, user))

    assert not server.asked


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("{}", "kubeconfig", id="empty"),
        pytest.param("a: [", "kubeconfig", id="no YAML"),
        pytest.param("current-context: x\ncontexts: []\nclusters: []", "contexts", id="no context"),
    ],
)
async def test_a_kubeconfig_that_cannot_be_used_is_named(tmp_path, text, words):
    path = tmp_path / "broken"
    path.write_text(text)

    with pytest.raises(CredentialsError, match=words) as raised:
        await load(path)
    assert str(path) in str(raised.value)


async def test_a_kubeconfig_that_is_not_there_is_named(tmp_path):
    with pytest.raises(CredentialsError, match="no such file"):
        await load(tmp_path / "none")


def service_account(folder: Path) -> dict[str, str]:
    (folder / "token").write_text("first")
    (folder / "ca.crt").write_bytes((CERTIFICATES / "authority.pem").read_bytes())
    return {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


async def test_a_service_account_token_is_read_again_every_minute(tmp_path):
    clock = FakeClock(NOW_S)
    environ = service_account(tmp_path)
    connection = await from_service_account(clock=clock, environ=environ, folder=tmp_path)

    assert connection.server == "https://10.0.0.1:443"
    assert await connection.authorization() == "Bearer first"
    (tmp_path / "token").write_text("second\n")
    clock.advance(60.0)
    assert await connection.authorization() == "Bearer second"
    (tmp_path / "token").write_text("")
    clock.advance(60.0)
    assert await connection.authorization() == "Bearer second"


async def test_without_anything_it_says_what_to_do(tmp_path):
    with pytest.raises(CredentialsError, match="--kubeconfig"):
        await connect(environ={"HOME": str(tmp_path)})


async def test_the_users_own_kubeconfig_is_found(tmp_path):
    path = write_kubeconfig(tmp_path, {"token": "own"})

    connection = await connect(environ={"KUBECONFIG": str(path)}, clock=FakeClock(NOW_S))

    assert await connection.authorization() == "Bearer own"


@pytest.mark.parametrize(
    ("environ", "proxy"),
    [
        ({}, None),
        ({"HTTPS_PROXY": "http://proxy:3128"}, "http://proxy:3128"),
        ({"https_proxy": "http://proxy:3128", "no_proxy": ".test"}, None),
    ],
)
async def test_a_proxy_is_taken_from_the_environment(tmp_path, environ, proxy):
    path = write_kubeconfig(tmp_path, {"token": "t"})

    connection = await from_kubeconfig(path, clock=FakeClock(NOW_S), environ=environ)

    assert connection.proxy == proxy


@pytest.mark.parametrize("text", ["", "clusters: 3", "[]", "apiVersion: v1\nkind: Config\n"])
async def test_a_file_that_is_no_kubeconfig_is_said_to_be_none(tmp_path, text):
    path = tmp_path / "config"
    path.write_text(text)

    with pytest.raises(CredentialsError) as raised:
        await from_kubeconfig(path, clock=FakeClock())

    assert str(path) in str(raised.value)
    assert "object" not in str(raised.value).replace("Expected object", "")
