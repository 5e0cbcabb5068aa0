"""`mooring ui` as its users start it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec
import pytest

from mooring.objects.meta import encode_hook
from tests.cli.running import mooring
from tests.web_unit.clusters import run_spec

pytestmark = pytest.mark.long


@pytest.fixture
def cluster(tmp_path):
    path = tmp_path / "cluster.json"
    document = {"apiVersion": "v1", "kind": "List", "items": run_spec().objects}
    path.write_bytes(msgspec.json.encode(document, enc_hook=encode_hook))
    return path


@pytest.fixture
def token_file(tmp_path):
    path = tmp_path / "token"
    path.write_text("a-token-from-a-file\n")
    return path


@asynccontextmanager
async def ui(*arguments: object, **environment: str):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mooring", "ui", "--no-open", *map(str, arguments)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | environment,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def address_of(process):
    line = (await process.stdout.readline()).decode()
    assert " is at http://" in line, line or (await process.stderr.read()).decode()
    return line.split()[-1]


async def test_the_printed_address_opens_the_page_and_interrupting_ends_it(cluster, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    async with ui("-f", cluster, TMPDIR=str(temporary)) as process:
        address = await address_of(process)
        assert address.startswith("http://127.0.0.1:")
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar) as http, http.get(address) as response:
            assert response.status == 200
            assert "token" not in str(response.url)
            async with http.get(response.url.with_path("/api/events")) as events:
                async for line in events.content:
                    if b'"state":"ready"' in line:
                        break

        process.send_signal(signal.SIGINT)

        assert await process.wait() == 0
    assert not list(temporary.iterdir())


async def test_a_given_token_and_port_are_used(cluster, token_file, unused_tcp_port):
    async with ui(cluster, "--token-file", token_file, "--port", unused_tcp_port) as process:
        assert await address_of(process) == (
            f"http://127.0.0.1:{unused_tcp_port}/?token=a-token-from-a-file"
        )


async def test_with_a_token_it_listens_elsewhere_and_is_known_by_its_names(cluster, token_file):
    arguments = ("-f", cluster, "--listen", "0.0.0.0", "--token-file", token_file, "--name", "moor")
    async with ui(*arguments) as process:
        port = (await address_of(process)).partition("?")[0].rstrip("/").rpartition(":")[2]
        headers = {"Authorization": "Bearer a-token-from-a-file"}
        async with aiohttp.ClientSession(headers=headers) as http:
            for host, status in (("moor", 200), ("10.1.2.3", 200), ("evil.example", 403)):
                async with http.get(
                    f"http://127.0.0.1:{port}/api/session", headers={"Host": host}
                ) as response:
                    assert response.status == status, host


async def test_a_port_that_is_taken_is_told(cluster, unused_tcp_port):
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", unused_tcp_port)
    async with server, ui("-f", cluster, "--port", unused_tcp_port) as process:
        _, errors = await process.communicate()

    assert process.returncode == 2
    assert f"cannot listen on 127.0.0.1, port {unused_tcp_port}: " in errors.decode()
    assert "Traceback" not in errors.decode()


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "10.0.0.1", "example.com"])
def test_it_does_not_listen_elsewhere_without_a_token(cluster, address):
    result = mooring("ui", "-f", cluster, "--listen", address)

    assert result.exit_code == 2
    assert "--token-file" in result.output


@pytest.mark.parametrize(
    "token", ["", "short", "a token with a\nline end in it", "tökentökentöken"]
)
def test_a_token_that_can_be_guessed_or_mistyped_is_not_taken(cluster, token_file, token):
    token_file.write_text(token)

    result = mooring("ui", "-f", cluster, "--token-file", token_file)

    assert result.exit_code == 2
    assert "token" in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param([], "nothing to read", id="nothing"),
        pytest.param(["-f", "nowhere.yaml"], "nowhere.yaml", id="no such file"),
        pytest.param(["--trace", "nowhere/"], "nowhere", id="no such trace"),
        pytest.param(["--trace", "a/", "-f", "b/"], "--trace brings its own", id="both"),
        pytest.param(["--port", "99999"], "99999", id="no port"),
    ],
)
def test_bad_input_is_told_before_anything_is_served(arguments, words):
    result = mooring("ui", *arguments)

    assert result.exit_code == 2
    assert words in result.output


def test_a_bad_configuration_is_told_before_anything_is_served(cluster, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: Pod\n")

    result = mooring("ui", "-f", cluster, "--config", config)

    assert result.exit_code == 2
    assert str(config) in result.output


async def test_a_cluster_that_cannot_be_simulated_is_told(cluster, tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p, annotations: {mooring.dev/run-seconds: x}}\n"
        "spec: {containers: [{name: c, image: i}]}\n"
    )
    async with ui("-f", cluster, "-f", bad) as process:
        _, errors = await process.communicate()

    assert process.returncode == 2
    assert "default/p" in errors.decode()
    assert "Traceback" not in errors.decode()


async def test_the_address_is_printed_before_the_files_are_read(cluster, tmp_path):
    async with ui("-f", _slow_file(tmp_path)) as process:
        address = await address_of(process)
        async with _sessions(address) as sessions:
            first = await anext(sessions)
            assert [first["title"].rpartition("/")[2], first["runs"][0]["read"]] == [
                "slow.json",
                False,
            ]
            (tmp_path / "slow.json").write_bytes(cluster.read_bytes())
            async for session in sessions:
                if session["runs"][0]["state"] == "ready":
                    break
    assert session["runs"][0]["read"]


async def test_what_cannot_be_answered_before_the_files_are_read_is_refused(tmp_path):
    async with ui("-f", _slow_file(tmp_path)) as process:
        address = await address_of(process)
        root, _, token = address.partition("?token=")
        headers = {"Authorization": f"Bearer {token}"}
        async with aiohttp.ClientSession(headers=headers) as http:
            for path in ("config", "start", "object?kind=Pod&key=a/b", "map", "changes"):
                async with http.get(f"{root}api/runs/1/{path}") as response:
                    assert response.status == 409, path
            for path, body in (
                ("runs", {"base": 1, "addNodes": [{"like": "n1"}]}),
                ("check", {"run": 1, "config": "x"}),
                ("runs/1/capacity", {"pod": "a/b"}),
            ):
                async with http.post(f"{root}api/{path}", json=body) as response:
                    assert response.status == 409, path


async def test_input_that_is_bad_ends_it_and_is_told_to_open_pages_too(tmp_path):
    async with ui("-f", _slow_file(tmp_path)) as process:
        address = await address_of(process)
        async with _sessions(address) as sessions:
            await anext(sessions)
            (tmp_path / "slow.json").write_text('{"kind": "Pod", "apiVersion": "v1", "spec": 3}')
            last = [session async for session in sessions][-1]
        _, errors = await process.communicate()

    assert process.returncode == 2
    [problem] = last["runs"][0]["problems"]
    assert "slow.json" in problem["text"]
    assert f"error: {problem['text']}" in errors.decode()
    assert "Traceback" not in errors.decode()


async def test_standard_input_is_read_by_another_process(cluster):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mooring", "ui", "--no-open", "-f", "-"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    process.stdin.write(cluster.read_bytes())
    process.stdin.close()
    async with _sessions(await address_of(process)) as sessions:
        async for session in sessions:
            if session["runs"][0]["state"] != "running":
                break
    process.terminate()
    await process.communicate()

    assert session["runs"][0]["state"] == "ready"


@pytest.mark.parametrize(("option", "placed"), [([], 2), (["--endless"], 1)])
async def test_a_trace_whose_pods_never_end_fills_the_cluster(tmp_path, option, placed):
    (tmp_path / "nodes.csv").write_text("name,cpu,memory\nn1,4,8Gi\n")
    (tmp_path / "pods.csv").write_text(
        "name,arrives_s,runs_s,cpu,memory\na,0,10,4,1Gi\nb,60,10,4,1Gi\n"
    )
    async with (
        ui("--trace", tmp_path, *option) as process,
        _sessions(await address_of(process)) as sessions,
    ):
        async for session in sessions:
            if session["runs"][0]["state"] != "running":
                break
    assert session["runs"][0]["problems"] == []
    assert session["runs"][0]["summary"]["placed"] == placed


def _slow_file(folder: Path) -> Path:
    """A file whose reader waits until somebody writes it."""
    os.mkfifo(folder / "slow.json")
    return folder / "slow.json"


@asynccontextmanager
async def _sessions(address):
    """The session, now and whenever it changes, until the server ends."""
    root, _, token = address.partition("?token=")
    headers = {"Authorization": f"Bearer {token}"}

    async def read(response):
        async for line in response.content:
            if line.startswith(b"data: "):
                yield msgspec.json.decode(line.removeprefix(b"data: "))

    async with (
        aiohttp.ClientSession(headers=headers, read_bufsize=1 << 22) as http,
        http.get(f"{root}api/events") as response,
    ):
        events = read(response)
        yield events
        await events.aclose()


async def test_workers_do_not_outlive_a_server_that_is_killed(cluster):
    async with ui("-f", cluster) as process:
        await address_of(process)
        workers = _children(process.pid)
        assert workers

        process.kill()
        await process.wait()

        for worker in workers:
            await asyncio.wait_for(_gone(worker), 60)


def _children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    if not path.exists():
        pytest.skip("only Linux tells who is whose child")
    return [int(each) for each in path.read_text().split()]


async def _gone(pid: int) -> None:
    # Another process cannot set an Event of this one.
    while _is_running(pid):  # noqa: ASYNC110
        await asyncio.sleep(0.05)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    # Nobody may be there to collect it.
    return state != "Z"
