"""`/docs`, the API reference and the guides load everything from this origin, and `/openapi.json` is the contract."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

import cuota.web
from cuota.core.refusal import Code
from cuota.web.app import ROUTES
from cuota.web.docs import guides, pages
from cuota.web.docs.contract import load_contract
from cuota.web.docs.guides import Listed, listed
from cuota.web.server.edge import Edge
from cuota.web.server.routes import Routes
from cuota.web.service import Service
from support.makers import Running

BASE = "https://shop-pays.test"
CONTRACT: Any = load_contract(BASE)
TOKEN_CODES = CONTRACT["components"]["schemas"]["TokenErrorCode"]["enum"]


@pytest.fixture
async def client() -> Any:
    """The documentation of a production service."""
    routes = Routes([route for route in ROUTES if route.path.startswith(("/docs", "/openapi.json"))])
    settings = SimpleNamespace(public_url=BASE, secure=True, sandbox=False, audience=f"{BASE}/api")
    app = Edge(routes, cast("Service", SimpleNamespace(settings=settings, requests=None)))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE) as http:
        yield http


def paths() -> list[str]:
    return ["/docs", *(guide.path for guide in listed())]


def anchors_of(page: str) -> list[str]:
    return re.findall(r'\bid="([^"]+)"', page)


async def test_the_first_page_explains_every_error_code_at_the_address_in_the_errors(
    client: httpx.AsyncClient,
) -> None:
    page = (await client.get("/docs")).text
    anchors = anchors_of(page)
    assert {code.value for code in Code} <= set(anchors)
    assert {f"token-{code}" for code in TOKEN_CODES} <= set(anchors)
    assert all(row["give"] in page for row in CONTRACT["x-sandbox"]["rows"])


@pytest.mark.parametrize("path", paths())
async def test_a_page_loads_nothing_from_other_origins_and_its_text_cannot_run_scripts(
    client: httpx.AsyncClient, path: str
) -> None:
    answer = await client.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-security-policy"] == pages.CSP
    assert "unsafe" not in pages.CSP
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    page = answer.text
    anchors = anchors_of(page)
    assert len(anchors) == len(set(anchors))
    assert re.findall(r"<script[^>]*>", page) == ['<script src="/static/docs.js" defer>']
    assert not re.search(r"<style|\sstyle=|<img|\son[a-z]+=", page.partition("<main")[0], re.IGNORECASE)
    assert not re.search(r"<(?:style|img|iframe|object)|\ssrc=.?(?:[a-z]+:)?//", page, re.IGNORECASE)
    assert "{base_url}" not in page
    assert "pay.example" not in page


async def test_every_link_between_the_pages_leads_to_an_existing_page_and_anchor(
    client: httpx.AsyncClient,
) -> None:
    texts = {path: (await client.get(path)).text for path in [*paths(), "/docs/reference"]}
    seen = 0
    for path, text in texts.items():
        for address in map(unescape, re.findall(r'<a[^>]* href="([^"]+)"', text)):
            target, _, anchor = address.partition("#")
            assert not target.endswith(".md"), f"{path}: {address}"
            if target.startswith("https://") or target in {"/openapi.json", "/account"}:
                continue
            page = texts[target or path]
            assert not anchor or anchor in anchors_of(page), f"{path}: {address}"
            seen += 1
    assert seen > 50


async def test_exactly_the_existing_guides_are_listed(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {guide.name for guide in listed()}
    assert {"api", "sdk", "webhooks", "gateway", "client", "virtual-card"} <= names
    page = (await client.get("/docs")).text
    assert all(f'<a href="{guide.path}">{guide.title}</a>' in page for guide in listed())
    listed.cache_clear()
    try:
        monkeypatch.setattr(guides, "_ALL", (*guides._ALL, Listed("nowhere", "Nowhere", "Not written yet.")))
        assert {guide.name for guide in listed()} == names
    finally:
        listed.cache_clear()


@pytest.mark.parametrize(
    "path",
    [
        "/docs/nothing",
        "/docs/map",
        "/docs/..%2Fpyproject",
        "/docs/reference/x.js",
        "/docs/reference/..%2Fpages.py",
    ],
)
async def test_no_other_files_are_served_beside_the_pages(service: Running, path: str) -> None:
    async with service.client() as http:
        answer = await http.get(path)
    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"


async def test_the_reference_can_send_requests_in_the_sandbox_but_not_in_production(
    client: httpx.AsyncClient, service: Running
) -> None:
    assert 'data-try="no"' in (await client.get("/docs/reference")).text
    async with service.client() as http:
        assert 'data-try="yes"' in (await http.get("/docs/reference")).text


async def test_the_reference_may_only_run_our_scripts_and_only_call_this_origin(
    client: httpx.AsyncClient,
) -> None:
    one, two = [await client.get("/docs/reference") for _ in range(2)]
    policy = dict(part.strip().split(" ", 1) for part in one.headers["content-security-policy"].split(";"))
    assert (policy["default-src"], policy["script-src"], policy["connect-src"]) == (
        "'none'",
        "'self'",
        "'self'",
    )
    nonce = re.findall(r'nonce="([^"]+)"', one.text)[0]
    assert policy["style-src-elem"] == f"'self' 'nonce-{nonce}'"
    assert nonce not in two.text
    assert one.headers["cache-control"] == "no-cache"


async def test_the_openapi_document_contains_the_address_of_this_service(client: httpx.AsyncClient) -> None:
    answer = await client.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == load_contract(BASE)
    assert answer.json()["servers"][0]["url"] == BASE
    assert "pay.example" not in answer.text


@pytest.mark.parametrize("name", ["docs.css", "reference.css"])
def test_a_stylesheet_loads_nothing(name: str) -> None:
    assert cuota.web.__file__ is not None
    sheet = (Path(cuota.web.__file__).parent / "pages" / "static" / name).read_text()
    assert "url(" not in sheet
    assert "@import" not in sheet
