from __future__ import annotations

import pytest

from mooring.web.access import LOOPBACK_NAMES, Access, is_loopback

TOKEN = "a-token-of-the-test"


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8000", "127.0.0.1:1", "[::1]:80", "LOCALHOST:8000"]
)
def test_this_machine_is_known_by_its_own_names(host):
    assert not Access(TOKEN).refuses_host(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:8000",
        "localhost.evil.example",
        "10.0.0.1",
        "[::2]",
        "127.0.0.1.nip.io",
    ],
)
def test_any_other_name_is_refused(host):
    assert Access(TOKEN).refuses_host(host)


def test_beyond_this_machine_plain_addresses_and_given_names_are_known():
    access = Access(TOKEN, LOOPBACK_NAMES | {"mooring.internal"}, anywhere=True)

    assert not access.refuses_host("10.0.0.1:8000")
    assert not access.refuses_host("[2001:db8::1]:8000")
    assert not access.refuses_host("mooring.internal")
    assert access.refuses_host("evil.example")


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        pytest.param({}, False, id="no origin"),
        pytest.param({"Origin": "http://localhost:8000"}, False, id="its own"),
        pytest.param({"Origin": "http://localhost:9000"}, True, id="another port"),
        pytest.param({"Origin": "http://evil.example"}, True, id="another host"),
        pytest.param({"Origin": "null"}, True, id="a file or a frame without origin"),
        pytest.param({"Sec-Fetch-Site": "same-origin"}, False, id="same origin"),
        pytest.param({"Sec-Fetch-Site": "none"}, False, id="typed by a person"),
        pytest.param({"Sec-Fetch-Site": "same-site"}, True, id="same site"),
        pytest.param({"Sec-Fetch-Site": "cross-site"}, True, id="cross site"),
    ],
)
def test_pages_of_others_are_refused(headers, refused):
    assert Access(TOKEN).refuses_origin(headers, "localhost:8000") is refused


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Bearer x", f"Basic {TOKEN}", TOKEN, "Bearer \xe9"]
)
def test_nobody_is_known_without_the_token(header):
    assert not Access(TOKEN).knows(cookie="", authorization=header)


def test_the_token_and_the_cookie_are_known():
    access = Access(TOKEN)

    assert access.knows(cookie="", authorization=f"Bearer {TOKEN}")
    assert access.knows(cookie=access.secret, authorization="")
    assert not access.knows(cookie=TOKEN, authorization="")


@pytest.mark.parametrize(
    ("address", "own"),
    [("127.0.0.1", True), ("127.0.0.2", True), ("::1", True), ("localhost", True)]
    + [("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("example.com", False), ("", False)],
)
def test_only_loopback_addresses_stay_on_this_machine(address, own):
    assert is_loopback(address) is own
