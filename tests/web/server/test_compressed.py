"""Public content is compressed. Personal data never is."""

from __future__ import annotations

import gzip

import httpx
import pytest

from cuota.web.served import accepts_gzip
from support.makers import Merchant, Running

FILES = [
    "/openapi.json", "/docs", "/docs/sdk", "/docs/webhooks", "/docs/reference/standalone.esm.js",
    "/static/checkout.css", "/static/docs.js", "/v1/pay.js", "/v1/pay.d.ts",
]  # fmt: skip


async def raw(http: httpx.AsyncClient, path: str, **headers: str) -> tuple[httpx.Response, bytes]:
    """Return the answer, and its body as it was transferred."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    async with http.stream("GET", path, headers={"x-no-contract": "1", **sent}) as answer:
        return answer, b"".join([part async for part in answer.aiter_raw()])


@pytest.fixture
async def http(service: Running) -> httpx.AsyncClient:
    async with httpx.AsyncClient(base_url=service.settings.public_url, trust_env=False, timeout=60) as client:
        yield client


@pytest.mark.parametrize("path", FILES)
async def test_a_file_is_sent_compressed_if_the_client_accepts_that_and_has_the_same_content(
    http: httpx.AsyncClient, path: str
) -> None:
    plain, content = await raw(http, path, accept_encoding="identity")
    packed, small = await raw(http, path, accept_encoding="gzip, deflate, br")
    assert (plain.status_code, packed.status_code) == (200, 200)
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(small) == content
    assert len(small) < len(content) * 0.6
    assert int(packed.headers["content-length"]) == len(small)
    assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"
    assert plain.headers["content-type"] == packed.headers["content-type"]
    assert plain.headers["etag"] != packed.headers["etag"]


@pytest.mark.parametrize("path", FILES)
async def test_a_file_that_the_client_has_cached_is_not_sent_again(
    http: httpx.AsyncClient, path: str
) -> None:
    for accepted in ("gzip", "identity"):
        first, _ = await raw(http, path, accept_encoding=accepted)
        tag = first.headers["etag"]
        for given in (tag, f"W/{tag}", f'"other", {tag}', "*"):
            again, body = await raw(http, path, accept_encoding=accepted, if_none_match=given)
            assert (again.status_code, body) == (304, b"")
            assert again.headers["etag"] == tag
            assert again.headers["vary"] == "Accept-Encoding"
        changed, _ = await raw(http, path, accept_encoding=accepted, if_none_match='"other"')
        assert changed.status_code == 200


async def test_answers_of_the_api_and_pages_of_a_person_are_never_compressed(
    merchant: Merchant, http: httpx.AsyncClient
) -> None:
    # With secrets beside text that a stranger chose, the compressed length would reveal the secret (BREACH).
    order = await merchant.create(description="A text that repeats. " * 200)
    token = {"accept_encoding": "gzip", "authorization": merchant.http.headers["authorization"]}
    for path in (f"/order/{order['orderId']}", "/configuration", order["redirectUrl"], "/account"):
        answer, _ = await raw(http, path, **token)
        assert "content-encoding" not in answer.headers, path
        assert "accept-encoding" not in answer.headers.get("vary", "").lower(), path


@pytest.mark.parametrize(
    ("accepted", "taken"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("*", True),
        ("gzip;q=0", False),
        ("gzip; q=0.0, *", False),
        ("*;q=0", False),
        ("identity", False),
        ("br", False),
        ("", False),
        ("gzip;q=much", False),
        ("gzipped", False),
    ],
)
def test_gzip_is_sent_only_to_clients_that_accept_it(accepted: str, taken: bool) -> None:  # noqa: FBT001
    assert accepts_gzip(accepted) is taken
