"""Every address of API.md, asked over a socket."""

from __future__ import annotations

import asyncio
import io
import json

import aiohttp
import pytest
import pytest_asyncio
from yarl import URL

from mooring.library import Cluster
from tests.web_unit.asking import TOKEN, asking
from tests.web_unit.clusters import BIG, WEB, run_spec
from tests.web_unit.test_what_if import MOST_ALLOCATED, POD

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def asker():
    """A session that all tests of this module look at; none of them changes the first run."""
    async with asking(run_spec()) as asker:
        assert (await asker.over(1))["state"] == "done"
        yield asker


@pytest_asyncio.fixture(loop_scope="module")
async def stranger(asker):
    async with aiohttp.ClientSession() as http:
        yield http


# What is answered


async def test_the_session_tells_of_the_first_run(asker):
    session = await asker.get("/api/session")

    (run, *_) = session["runs"]
    assert run["state"] == "ready"
    assert run["summary"]["nodes"] == 4
    assert run["summary"]["pending"] == 2
    assert session["report"] is False


async def test_the_map_comes_compressed_and_plain(asker):
    address = f"{asker.address}/api/runs/1/map"
    async with asker.http.get(address, headers={"Accept-Encoding": "gzip"}) as response:
        assert response.headers["Content-Encoding"] == "gzip"
        data = await response.json()
    async with asker.http.get(address, headers={"Accept-Encoding": "identity"}) as response:
        assert "Content-Encoding" not in response.headers
        assert await response.json() == data
    assert data["run"] == 1
    assert data["nodes"]["name"] == ["n1", "n2", "gpu", "shut"]


async def test_the_passage_of_time_is_told(asker):
    data = await asker.get("/api/runs/1/time")

    assert len(data["start"]) == len(run_spec().pods)
    assert data["endSeconds"] == 10.0


@pytest.mark.parametrize("key", [BIG, WEB])
async def test_a_pods_page_is_explains_answer(asker, key):
    data = await asker.get(f"/api/runs/1/pod?key={key}")

    # A simulation has an event loop of its own.
    explained = await asyncio.to_thread(Cluster.of(run_spec().objects).explain, key)
    expected = explained.to_data()
    assert data["message"] == expected["message"]
    assert data["story"] == expected["story"]


async def test_the_texts_of_a_run_can_be_had(asker):
    config = await asker.get("/api/runs/1/config")
    pod = await asker.get(f"/api/runs/1/object?kind=Pod&key={BIG}")

    assert "kind: KubeSchedulerConfiguration" in config["text"]
    assert "name: big" in pod["text"]


async def test_counterfactuals_are_a_job_and_can_be_made_true(asker):
    body = {"pod": BIG, "budgetSeconds": 20}
    job = (await asker.post("/api/runs/1/counterfactuals", body))["job"]
    assert (await asker.over(job))["state"] == "done"
    found = await asker.get(f"/api/jobs/{job}/result")
    assert found["run"] == 1
    assert found["answers"]

    again = await asker.post("/api/runs/1/counterfactuals", body)
    assert again == {"job": job}

    what_if = {"base": 1, "counterfactual": {"job": job, "answer": 0}}
    made = await asker.post("/api/runs", what_if)
    assert (await asker.over(made["job"]))["state"] == "done"
    run = await asker.run(made["run"])
    assert run["state"] == "ready"
    assert run["base"] == 1
    assert run["summary"]["pending"] == 1
    assert found["answers"][0]["text"] in run["changes"][0]


async def test_two_runs_can_be_compared(asker):
    body = {
        "base": 1,
        "name": "packed",
        "config": MOST_ALLOCATED,
        "addNodes": [{"like": "n1", "count": 2}],
    }
    made = await asker.post("/api/runs", body)
    await asker.over(made["job"])

    job = (await asker.post("/api/compare", {"runs": [1, made["run"]]}))["job"]
    assert (await asker.over(job))["state"] == "done"
    data = await asker.get(f"/api/jobs/{job}/result")

    assert data["runs"] == [1, made["run"]]
    assert [each["name"] for each in data["variants"]] == ["as it is", "packed"]
    assert data["labels"]["utilisation.cpu"] == "cpu utilisation"
    assert data["differences"][0]["moved"]
    assert await asker.post("/api/compare", {"runs": [1, made["run"]]}) == {"job": job}


async def test_a_what_if_of_objects_replaces_and_adds(asker):
    body = {"base": 1, "objects": POD, "remove": [{"kind": "Node", "key": "shut"}]}
    made = await asker.post("/api/runs", body)
    await asker.over(made["job"])

    run = await asker.run(made["run"])
    assert run["changes"] == ["remove node shut", "replace pod default/big"]
    assert run["summary"]["nodes"] == 3
    assert run["summary"]["pending"] == 1


async def test_a_run_can_be_forgotten_but_not_the_first(asker):
    made = await asker.post("/api/runs", {"base": 1, "addNodes": [{"like": "n1"}]})
    await asker.over(made["job"])

    await asker.send("DELETE", f"/api/runs/{made['run']}", status=204)

    await asker.get(f"/api/runs/{made['run']}/map", status=404)
    await asker.send("DELETE", "/api/runs/1", status=409)


async def test_texts_are_checked_as_one_types(asker):
    good = await asker.post("/api/check", {"run": 1, "config": MOST_ALLOCATED}, 200)
    bad = await asker.post("/api/check", {"run": 1, "config": MOST_ALLOCATED + "x: 1\n"}, 200)
    pod = await asker.post("/api/check", {"run": 1, "objects": POD}, 200)
    worse = await asker.post("/api/check", {"run": 1, "objects": POD.replace("100m", "-1")}, 200)

    assert good == {"ok": True, "problems": [], "found": []}
    assert bad["problems"] == [{"path": "x", "line": 8, "text": "unknown field"}]
    assert pod["found"] == ["replace pod default/big"]
    assert worse["problems"][0]["line"] == 6


# What cannot be answered


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/runs/99/map", 404),
        ("/api/runs/99/time", 404),
        ("/api/runs/99/config", 404),
        ("/api/runs/99/changes", 404),
        ("/api/runs/x/changes", 404),
        ("/api/runs/9999999999/changes", 404),
        ("/api/runs/1/pod?key=default/nobody", 404),
        ("/api/runs/1/pod", 400),
        ("/api/runs/1/object?kind=Pod&key=default/nobody", 404),
        ("/api/runs/1/object?kind=Pod", 400),
        ("/api/jobs/99/result", 404),
        ("/api/jobs/1/result", 404),
        ("/api/nothing", 404),
        ("/nothing", 404),
    ],
)
async def test_what_is_not_there_is_an_error_in_json(asker, path, status):
    answer = await asker.get(path, status)

    assert answer["error"]["message"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/runs", {"base": 1}),
        ("/api/runs", {}),
        ("/api/runs", {"base": 1, "what": 2}),
        ("/api/runs", {"base": 1, "config": "kind: Pod"}),
        ("/api/runs", {"base": 1, "objects": "kind: Pod"}),
        ("/api/runs", {"base": 1, "addNodes": [{"like": "nowhere"}]}),
        ("/api/runs", {"base": 1, "remove": [{"kind": "Node", "key": "nowhere"}]}),
        ("/api/runs", []),
        ("/api/compare", {"runs": [1, 1]}),
        ("/api/compare", {"runs": [1]}),
        ("/api/check", {"run": 1}),
        ("/api/export", {}),
        ("/api/export", []),
        ("/api/export", {"run": "1"}),
        ("/api/export", {"run": 1, "changes": {}}),
        ("/api/export", {"run": 1, "changes": [{"dran": "n1"}]}),
        ("/api/export", {"run": 1, "changes": [{"drain": "nowhere"}]}),
        ("/api/export", {"run": 1, "changes": [{"scale": {"workload": "x", "replicas": -1}}]}),
        ("/api/export", {"run": 1, "changes": [{"objects": "a: ["}]}),
        ("/api/export", {"run": 1, "changes": [{"config": "kind: Pod"}]}),
        ("/api/runs", {"base": 1, "changes": [{"lose": "nowhere"}]}),
        ("/api/runs", {"base": 1, "changes": [{"nodes": "3xnonsense"}]}),
        ("/api/runs/1/capacity", {}),
        ("/api/runs/1/capacity", []),
        ("/api/runs/1/capacity", {"pod": 7}),
        ("/api/runs/1/capacity", {"pod": WEB, "count": 3}),
        ("/api/runs/1/counterfactuals", {"pod": BIG, "budgetSeconds": 0}),
        ("/api/runs/1/counterfactuals", {"pod": BIG, "budgetSeconds": 1e9}),
    ],
)
async def test_a_question_that_makes_no_sense_is_refused(asker, path, body):
    before = len((await asker.get("/api/session"))["runs"])

    answer = await asker.post(path, body, 400)

    assert answer["error"]["message"]
    assert len((await asker.get("/api/session"))["runs"]) == before


async def test_the_problems_of_a_what_if_are_told_one_by_one(asker):
    config = MOST_ALLOCATED.replace("MostAllocated", "Whatever") + "parallelism: 0\n"

    answer = await asker.post("/api/runs", {"base": 1, "config": config}, 400)

    assert len(answer["error"]["problems"]) == 2


async def test_a_job_about_a_pod_that_is_not_there_fails(asker):
    job = (await asker.post("/api/runs/1/counterfactuals", {"pod": "default/nobody"}))["job"]

    assert (await asker.over(job))["state"] == "failed"
    answer = await asker.get(f"/api/jobs/{job}/result", 409)
    assert "default/nobody" in answer["error"]["problems"][0]["text"]


async def test_the_capacity_for_a_pod_that_is_not_there_fails(asker):
    for pod in ("default/nobody", "", "nonsense", "../../etc"):
        job = (await asker.post("/api/runs/1/capacity", {"pod": pod}))["job"]
        assert (await asker.over(job))["state"] == "failed"
        answer = await asker.get(f"/api/jobs/{job}/result", 409)
        assert repr(pod) in answer["error"]["problems"][0]["text"]
    await asker.post("/api/runs/99/capacity", {"pod": WEB}, 404)


async def test_nothing_is_exported_or_changed_for_a_run_that_is_not_there(asker):
    await asker.post("/api/export", {"run": 99, "changes": [{"drain": "n1"}]}, 404)
    await asker.post("/api/runs", {"base": 99, "changes": [{"drain": "n1"}]}, 404)


async def test_the_changes_of_a_run_are_exported_and_can_be_had_back(asker):
    changes = [{"drain": "n1"}, {"scale": {"workload": "ReplicaSet default/web", "replicas": 1}}]
    made = await asker.post("/api/runs", {"base": 1, "name": "smaller", "changes": changes})
    await asker.over(made["job"])

    assert await asker.get(f"/api/runs/{made['run']}/changes") == {
        "base": 1,
        "name": "smaller",
        "changes": changes,
    }
    assert (await asker.get("/api/runs/1/changes"))["changes"] == []
    exported = await asker.post("/api/export", {"run": made["run"]}, 200)
    assert "drain: n1" in exported["text"]
    assert exported["command"].startswith("mooring simulate")


async def test_capacity_is_counted(asker):
    job = (await asker.post("/api/runs/1/capacity", {"pod": WEB}))["job"]
    assert (await asker.over(job))["state"] == "done"
    assert (await asker.get(f"/api/jobs/{job}/result"))["more"] > 0


async def test_text_that_is_no_json_is_refused(asker):
    for data in (b"{", b"\xff\xfe", b"[" * 100_000):
        async with asker.http.post(
            f"{asker.address}/api/check", data=data, headers={"Content-Type": "application/json"}
        ) as response:
            assert response.status == 400


# The page


async def test_the_page_is_there_with_its_policy(asker):
    async with asker.http.get(f"{asker.address}/") as response:
        text = await response.text()
        policy = response.headers["Content-Security-Policy"]

    assert '<script type="importmap">' in text
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


async def test_every_module_of_the_page_can_be_had(asker):
    async with asker.http.get(f"{asker.address}/") as response:
        text = await response.text()
    modules = json.loads(text.partition('<script type="importmap">')[2].partition("</script>")[0])
    for address in modules["imports"].values():
        async with asker.http.get(f"{asker.address}/{address}") as response:
            assert response.status == 200
            assert response.content_type == "text/javascript"
            tag = response.headers["ETag"]
        async with asker.http.get(
            f"{asker.address}/{address}", headers={"If-None-Match": tag}
        ) as response:
            assert response.status == 304


@pytest.mark.parametrize("path", ["/", "/api/session", "/nothing", "/static/main.js"])
async def test_every_answer_has_the_headers_that_keep_it_in_its_place(asker, path):
    async with asker.http.get(f"{asker.address}{path}") as response:
        headers = response.headers

    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


# Who may ask


async def test_the_token_is_exchanged_for_a_cookie_and_taken_out_of_the_address(asker, stranger):
    url = f"{asker.address}/?token={TOKEN}"
    async with stranger.get(url, allow_redirects=False) as response:
        cookie = response.headers["Set-Cookie"]
        assert response.status == 303
        assert response.headers["Location"] == "./"
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert TOKEN not in cookie

    name, _, value = cookie.partition(";")[0].partition("=")
    async with stranger.get(
        f"{asker.address}/api/session", headers={"Cookie": f"{name}={value}"}
    ) as response:
        assert response.status == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/?token=wrong"),
        ("GET", "/?token="),
        ("GET", f"/api/session?token={TOKEN}"),
        ("GET", "/api/session"),
        ("GET", "/api/events"),
        ("GET", "/api/runs/1/map"),
        ("GET", "/static/main.js"),
        ("GET", "/nothing"),
        ("POST", "/api/runs"),
        ("POST", f"/?token={TOKEN}"),
        ("DELETE", "/api/jobs/1"),
    ],
)
async def test_nobody_is_answered_without_the_token(asker, stranger, method, path):
    async with stranger.request(method, f"{asker.address}{path}") as response:
        assert response.status == 401
        assert "Set-Cookie" not in response.headers


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example:80", "10.0.0.1"])
async def test_a_foreign_host_is_refused_even_with_the_token(asker, host):
    for path in ("/", f"/?token={TOKEN}", "/api/session", "/static/main.js"):
        async with asker.http.get(f"{asker.address}{path}", headers={"Host": host}) as response:
            assert response.status == 403


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}],
)
async def test_a_foreign_page_is_refused_even_with_the_token(asker, headers):
    async with asker.http.get(f"{asker.address}/api/session", headers=headers) as response:
        assert response.status == 403
    async with asker.http.post(
        f"{asker.address}/api/compare", json={"runs": [1, 2]}, headers=headers
    ) as response:
        assert response.status == 403


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py",
        "/static/..%2fserver.py",
        "/static/%2e%2e/%2e%2e/pyproject.toml",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/index.html",
        "/static/",
        "/..%5c..%5cetc",
    ],
)
async def test_no_path_leads_out_of_the_page(asker, path):
    # As it stands: a client would tidy it up.
    url = URL(f"{asker.address}{path}", encoded=True)
    async with asker.http.get(url) as response:
        assert response.status == 404


async def test_a_body_that_is_too_large_is_refused(asker):
    body = io.BytesIO(json.dumps({"run": 1, "config": "x" * 3_000_000}).encode())
    async with asker.http.post(
        f"{asker.address}/api/check", data=body, headers={"Content-Type": "application/json"}
    ) as response:
        assert response.status == 413


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", "/api/session"), ("POST", "/api/session"), ("GET", "/api/compare"), ("DELETE", "/")],
)
async def test_a_wrong_method_is_refused(asker, method, path):
    async with asker.http.request(method, f"{asker.address}{path}", json={}) as response:
        assert response.status == 405
        assert (await response.json())["error"]


async def test_only_json_is_taken(asker):
    async with asker.http.post(f"{asker.address}/api/compare", data={"runs": "1"}) as response:
        assert response.status == 415
