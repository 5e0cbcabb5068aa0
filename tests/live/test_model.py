"""The model of the API server that the random worlds run against answers as a real kube-apiserver does."""

from __future__ import annotations

import http.client
import json
import os
import threading
from collections.abc import Callable
from urllib.parse import urlencode

import pytest

from tests.fuzz.api_script import RECORDED, Json, Script
from tests.live.cluster import Cluster

pytestmark = pytest.mark.live


class RealServer:
    """A `Server`."""

    def __init__(self, cluster: Cluster) -> None:
        self._client = cluster.client
        self._control_plane = cluster.control_plane

    def create(self, path: str, document: Json) -> Json:
        return self._client.request("POST", path, document)

    def finish(self, name: str) -> None:
        self._client.patch("Pod", name, {"status": {"phase": "Succeeded"}}, part="status")

    def forget(self) -> None:
        self._control_plane.compact()
        self._control_plane.restart_api_server()

    def ask(
        self, method: str, path: str, body: Json | None = None, content_type: str = ""
    ) -> tuple[int, Json]:
        connection = self._client._open()
        headers = {**self._client._headers, "Content-Type": content_type or "application/json"}
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def watch(
        self, path: str, params: dict[str, str], *, meanwhile: Callable[[], None]
    ) -> tuple[int, list[Json]]:
        connection = self._client._open()
        try:
            connection.request("GET", f"{path}?{urlencode(params)}", headers=self._client._headers)
            answer = connection.getresponse()
            told: list[Json] = []
            reader = threading.Thread(target=_read_all, args=(answer, told))
            reader.start()
            meanwhile()
            reader.join()
            return answer.status, told
        finally:
            connection.close()


def _read_all(answer: http.client.HTTPResponse, told: list[Json]) -> None:
    if answer.status == 200:
        told.extend(json.loads(line) for line in answer)


def test_a_real_server_answers_as_recorded(cluster: Cluster):
    """`tests/fuzz/test_model.py` holds the model to the same answers."""
    answers = Script(RealServer(cluster)).run()

    if os.environ.get("MOORING_WRITE_ANSWERS"):
        RECORDED.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n")
    assert answers == json.loads(RECORDED.read_text())
