"""Who is refused: no token, a foreign name, a foreign page, a path outside."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

import pytest

from tests.web.conftest import OpenPage
from tests.web.page_server import PageServer

pytestmark = pytest.mark.web


def answer_to(
    server: PageServer, path: str, *, method: str = "GET", **headers: str
) -> tuple[int, bytes]:
    """As sent, without a client's tidying of paths or headers."""
    place = urlsplit(server.root)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
    try:
        connection.putrequest(method, path, skip_host="host" in headers)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


@pytest.mark.parametrize(
    "path", ["/", "/api/session", "/api/events", "/static/main.js", "/api/runs/1/map"]
)
def test_nobody_is_told_anything_without_the_token(served: PageServer, path: str) -> None:
    status, body = answer_to(served, path)
    assert status == 401
    assert b"harbour" not in body


def test_a_wrong_token_is_refused(served: PageServer) -> None:
    assert answer_to(served, "/?token=wrong")[0] == 401
    assert answer_to(served, "/api/session", authorization="Bearer wrong")[0] == 401


def test_a_foreign_host_is_refused_even_with_the_token(served: PageServer) -> None:
    bearer = f"Bearer {served.token}"
    assert answer_to(served, "/api/session", host="evil.example", authorization=bearer)[0] == 403
    assert answer_to(served, f"/?token={served.token}", host="evil.example")[0] == 403


def test_a_foreign_origin_is_refused_even_with_the_token(served: PageServer) -> None:
    bearer = f"Bearer {served.token}"
    status, _ = answer_to(
        served, "/api/session", origin="https://evil.example", authorization=bearer
    )
    assert status == 403
    status, _ = answer_to(
        served, "/api/jobs/1", method="DELETE", origin="https://evil.example", authorization=bearer
    )
    assert status == 403


@pytest.mark.parametrize(
    "path",
    [
        "/static/../session.py",
        "/static/..%2fsession.py",
        "/static/%2e%2e/%2e%2e/session.py",
        "/static//etc/passwd",
        "/../../../../etc/passwd",
        "/static/vendor/../../API.md",
    ],
)
def test_a_path_outside_leads_nowhere(served: PageServer, path: str) -> None:
    status, body = answer_to(served, path, authorization=f"Bearer {served.token}")
    assert status in (400, 403, 404)
    assert b"import" not in body
    assert b"root:" not in body


def test_a_page_of_another_site_cannot_ask(served: PageServer, open_page: OpenPage) -> None:
    """Even in the browser that has the cookie."""
    page = open_page(served.address)
    page.locator(".whole").wait_for()
    stranger = page.context.new_page()
    stranger.route("http://stranger.test/", lambda route: route.fulfill(body="<h1>hello</h1>"))
    stranger.goto("http://stranger.test/")
    heard = stranger.evaluate(
        """async (address) => {
            try { return (await fetch(address, {credentials: "include"})).status; }
            catch { return "refused"; }
        }""",
        f"{served.root}api/session",
    )
    assert heard == "refused"


def test_inline_scripts_do_not_run(
    served: PageServer, open_page: OpenPage, complaints: list[str]
) -> None:
    page = open_page(served.address)
    page.locator(".whole").wait_for()
    ran = page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.ran = true";
            const blocked = new Promise((resolve) =>
                addEventListener("securitypolicyviolation", (event) => resolve(event.violatedDirective)));
            document.body.append(script);
            return blocked.then((directive) => [directive, window.ran === true]);
        }"""
    )
    assert ran[0].startswith("script-src")
    assert ran[1] is False
    assert "inline script" in complaints.pop()
