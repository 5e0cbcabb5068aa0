"""The model of the API server answers a script of requests as a real kube-apiserver did."""

from __future__ import annotations

import json

from tests.fuzz.api_script import RECORDED, Script
from tests.fuzz.model import ModelServer


def test_the_model_answers_as_a_real_server_did():
    with ModelServer() as server:
        answers = Script(server).run()

    assert answers == json.loads(RECORDED.read_text())
