"""Rules for every path: methods, media types, sizes, request ids, no CORS, and the form of an error."""

from __future__ import annotations

import asyncio
import json
import re
from uuid import UUID, uuid4

import httpx
import pytest

from support.api.bodies import JSON, assert_refused, post
from support.makers import Merchant, Running, order_body

PATHS = {
    "/oauth/token": {"POST"},
    "/configuration": {"GET", "HEAD"},
    "/order": {"GET", "HEAD", "POST"},
    "/order/019aa3c4-7b10-7c3e-9a51-2f6d8e0b4c11": {"GET", "HEAD"},
    "/order/019aa3c4-7b10-7c3e-9a51-2f6d8e0b4c11/capture": {"POST"},
    "/order/019aa3c4-7b10-7c3e-9a51-2f6d8e0b4c11/void": {"POST"},
    "/order/019aa3c4-7b10-7c3e-9a51-2f6d8e0b4c11/refund": {"POST"},
    "/health/live": {"GET", "HEAD"},
    "/openapi.json": {"GET", "HEAD"},
}
WRONG = [
    (method, path)
    for path, known in PATHS.items()
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND")
    if method not in known
]


@pytest.mark.parametrize(("method", "path"), WRONG)
async def test_another_method_is_405_and_the_answer_names_the_allowed_methods(
    merchant: Merchant, method: str, path: str
) -> None:
    answer = await merchant.http.request(method, path)
    assert_refused(answer, 405, "method_not_allowed")
    assert set(answer.headers["allow"].replace(" ", "").split(",")) == PATHS[path]


async def test_a_method_override_is_ignored(merchant: Merchant) -> None:
    order = await merchant.create()
    headers = {"X-HTTP-Method-Override": "DELETE", "X-Method-Override": "DELETE"}
    answer = await merchant.http.get(f"/order/{order['orderId']}", headers=headers)
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "path", ["//", "/orderz", "/nobody", "/order/x/y", "/order/x/capture/z", "//order", "//configuration", "/Configuration", "/configuration//", "/order/./x/y", "/.well-known/nobody", "/v1/order"],
)  # fmt: skip
async def test_an_unknown_path_is_404(merchant: Merchant, path: str) -> None:
    answer = await merchant.http.get(merchant.service.settings.public_url + path)
    assert_refused(answer, 404, "not_found")


@pytest.mark.parametrize("path", ["/configuration/", "/health/live/", "/openapi.json/"])
async def test_one_trailing_slash_is_tolerated_without_a_redirect(merchant: Merchant, path: str) -> None:
    assert (await merchant.http.get(path)).status_code == 200


async def test_a_post_survives_a_trailing_slash(merchant: Merchant) -> None:
    created = await merchant.http.post("/order/", json=order_body("10.00"))
    assert created.status_code == 200
    path = f"/order/{created.json()['orderId']}/capture/"
    answer = await merchant.http.post(path, json={"amount": 1, "merchantReference": "x"})
    assert_refused(answer, 422, "order_not_completed")


@pytest.mark.parametrize(
    "path", ["/configuration", "/health/live", "/openapi.json", "/.well-known/jwks.json"]
)
async def test_head_gets_the_same_answer_as_get_without_the_body(merchant: Merchant, path: str) -> None:
    # With compression, the length differs from the length of the text.
    plain = {"accept-encoding": "identity"}
    get = await merchant.http.get(path, headers=plain)
    head = await merchant.http.head(path, headers=plain)
    assert head.status_code == get.status_code == 200
    assert head.content == b""
    assert head.headers["content-length"] == str(len(get.content))


@pytest.mark.parametrize(
    "kind", [None, "", "text/plain", "application/xml", "application/x-www-form-urlencoded", "application/json; charset=utf-16", "application/json; charset=latin-1", "multipart/form-data", "application/jsonx"],
)  # fmt: skip
async def test_a_body_that_is_not_declared_as_json_in_utf_8_is_415(
    merchant: Merchant, kind: str | None
) -> None:
    order = await merchant.approved("10.00")
    headers = {} if kind is None else {"Content-Type": kind}
    for path in ("/order", f"/order/{order['orderId']}/capture"):
        content = json.dumps({**order_body("10.00"), "amount": "1.00"}).encode()
        answer = await merchant.http.post(path, content=content, headers=headers)
        assert_refused(answer, 415, "unsupported_media_type")


@pytest.mark.parametrize(
    "kind", ["application/json", "application/json;charset=UTF-8", 'application/json; charset="utf-8"', "Application/JSON"],
)  # fmt: skip
async def test_json_in_utf_8_is_accepted_in_every_notation_of_its_media_type(
    merchant: Merchant, kind: str
) -> None:
    content = json.dumps(order_body("10.00")).encode()
    answer = await merchant.http.post("/order", content=content, headers={"Content-Type": kind})
    assert answer.status_code == 200, answer.text


async def test_256_kib_are_accepted_and_one_byte_more_is_413(merchant: Merchant) -> None:
    body = json.dumps(order_body("10.00")).encode()
    exact = body + b" " * (256 * 1024 - len(body))
    assert (await post(merchant, exact)).status_code == 200
    assert_refused(await post(merchant, exact + b" "), 413, "body_too_large")


async def test_a_body_of_unknown_length_is_limited_while_it_is_read(merchant: Merchant) -> None:
    async def chunks():  # noqa: ANN202 - httpx takes any async iterator of bytes
        for _ in range(40):
            yield b" " * 8192

    headers = {**JSON, "x-no-contract": "1"}
    answer = await merchant.http.post("/order", content=chunks(), headers=headers)
    assert_refused(answer, 413, "body_too_large")


async def test_every_answer_has_a_new_request_id(merchant: Merchant) -> None:
    paths = ["/configuration", "/nobody", "/health/live", "/metrics", "/docs", "/order", "/checkout/x"]
    pages = {"x-no-contract": "1"}
    answers = [await merchant.http.get(path, headers=pages) for path in paths]
    answers.append(await merchant.http.put("/order"))
    answers.append(await merchant.http.post("/oauth/token", json={}))
    ids = [answer.headers["x-request-id"] for answer in answers]
    assert len(set(ids)) == len(ids)
    assert all(UUID(text) for text in ids)
    for answer in answers:
        if answer.headers["content-type"] == "application/problem+json":
            assert answer.json()["requestId"] == answer.headers["x-request-id"]


async def test_a_caller_s_request_id_is_not_used(merchant: Merchant) -> None:
    answer = await merchant.http.get("/configuration", headers={"X-Request-Id": "mine\t<script>"})
    assert answer.headers["x-request-id"] != "mine\t<script>"


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
async def test_the_api_has_no_cors_headers_for_browsers_of_other_origins(
    merchant: Merchant, method: str
) -> None:
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    for path in ("/order", "/configuration", "/oauth/token"):
        answer = await merchant.http.request(method, path, headers=headers)
        assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "*/*;q=0", "nonsense"])
async def test_the_accept_header_changes_nothing(merchant: Merchant, accept: str) -> None:
    order = await merchant.create()
    for path, kind in ((f"/order/{order['orderId']}", "application/json"), (f"/order/{uuid4()}", "application/problem+json")):  # fmt: skip
        answer = await merchant.http.get(path, headers={"Accept": accept})
        assert answer.headers["content-type"] == kind


async def test_an_error_has_the_fields_of_rfc_9457_and_our_own(merchant: Merchant) -> None:
    answers = [
        await merchant.http.get("/nobody"),
        await merchant.http.get(f"/order/{uuid4()}"),
        await merchant.http.put("/order"),
        await merchant.http.post("/order", json={}),
        await merchant.http.get("/configuration", headers={"Authorization": "Bearer x"}),
    ]
    for answer in answers:
        body = answer.json()
        members = {"type", "title", "status", "detail", "instance", "code", "message", "requestId", "errors"}
        assert set(body) == members
        assert body["status"] == answer.status_code
        assert body["message"] == body["detail"]
        assert body["type"] == f"{merchant.service.settings.public_url}/docs#{body['code']}"
        assert body["instance"] == answer.request.url.path
        assert isinstance(body["errors"], list)
    page = (await merchant.http.get("/docs", headers={"x-no-contract": "1"})).text
    assert 'id="order_not_found"' in page


async def test_an_error_contains_the_path_but_never_as_html(merchant: Merchant) -> None:
    answer = await merchant.http.get("/%3Cscript%3Ealert(1)%3C/script%3E")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_health_says_that_the_process_is_alive_and_ready(service: Running) -> None:
    async with service.client() as http:
        for path in ("/health/live", "/health/ready"):
            answer = await http.get(path)
            assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_a_draining_process_is_alive_and_not_ready(service: Running) -> None:
    service.app.drain()
    try:
        async with service.client() as http:
            ready, live = await http.get("/health/ready"), await http.get("/health/live")
    finally:
        service.app.draining = False
    assert_refused(ready, 503, "unavailable")
    assert int(ready.headers["retry-after"]) > 0
    assert live.status_code == 200
    assert live.headers["connection"] == "close"


def sample(text: str, line: str) -> float:
    """Return the value of one metric line, or 0 if there is none yet."""
    found = re.search(rf"^{re.escape(line)} ([0-9.e+]+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


async def test_metrics_count_requests_orders_and_sessions_and_contain_no_personal_data(
    merchant: Merchant,
) -> None:
    async def read() -> httpx.Response:
        """Read until the service has added up the metrics again, on which it spends at most a tenth of its time."""
        first = await merchant.http.get("/metrics")
        async with asyncio.timeout(60):
            while (answer := await merchant.http.get("/metrics")).text == first.text:  # noqa: ASYNC110 - no event tells
                await asyncio.sleep(0.05)
        return answer

    asked = 'cuota_requests_total{method="POST",route="/order/{order_id}/capture",status="200"}'
    approved = 'cuota_orders_total{status="Approved"}'
    before = (await read()).text
    order = await merchant.approved("10.00")
    await merchant.move(order, "capture", "1.00")
    answer = await read()
    after = answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert sample(after, asked) == sample(before, asked) + 1
    assert sample(after, approved) == sample(before, approved) + 1
    assert 'cuota_request_seconds_bucket{le="0.1",route="/order/{order_id}/capture"}' in after
    assert sample(after, 'cuota_pool_sessions{state="open"}') > 0
    for secret in (order["orderId"], order["token"], merchant.client_id, str(merchant.merchant_id)):
        assert secret not in after


async def test_unknown_paths_and_methods_do_not_add_metrics(merchant: Merchant) -> None:
    for name in ("made-up-1", "made-up-2"):
        await merchant.http.get(f"/{name}")
        await merchant.http.request("PROPFIND", f"/{name}")
    text = (await merchant.http.get("/metrics")).text
    assert "made-up" not in text
    assert "PROPFIND" not in text


async def test_the_contract_is_served_with_this_service_s_address(service: Running) -> None:
    async with service.client() as http:
        document = (await http.get("/openapi.json")).json()
    assert document["openapi"].startswith("3.1")
    assert document["servers"][0]["url"] == service.settings.public_url
    assert "/order/{orderId}/capture" in document["paths"]


async def test_a_static_name_of_any_length_is_not_found(service: Running) -> None:
    async with service.client() as client:
        assert (await client.get(f"/static/{'a' * 5000}")).status_code == 404


async def test_a_browser_at_the_service_s_root_address_is_redirected_to_the_docs(service: Running) -> None:
    async with service.client() as client:
        answer = await client.get("/", headers={"x-no-contract": "1"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/docs")
