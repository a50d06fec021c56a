"""The prepared answer to a refused request says the same as the answer that every other refusal gets."""

from __future__ import annotations

import json

import pytest

from cuota.web.problem import response_of
from cuota.web.server.busy import BUSY, BUSY_STATUS, BusyAnswers
from cuota.web.server.request_id import new_request_id
from support.server.crowd import routed

URL = "https://pay.example"


@pytest.mark.parametrize(
    "path",
    [
        "/order",
        "/nowhere",
        '/order/"quoted" \u00e9\\',
        "/order/4111111111111111",
        "/order/4111 1111 1111 1111/capture",
        "/order/4111-1111-1111-1111",
        "/order/\t4111111111111111",
    ],
)
def test_the_prepared_answer_equals_the_one_built_from_the_refusal(path: str) -> None:
    request_id = new_request_id()
    scope = routed({"type": "http", "method": "GET", "path": path, "headers": []})
    headers, body = BusyAnswers(URL, []).answer({**scope, "request_id": request_id})
    normal = response_of(BUSY, public_url=URL, path=path, request_id=request_id)
    assert body == normal.body
    assert sorted(headers) == sorted(normal.raw_headers)
    assert normal.status_code == BUSY_STATUS == json.loads(body)["status"]
    assert "4111111111111111" not in "".join(character for character in body.decode() if character.isdigit())
