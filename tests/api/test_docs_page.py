"""The page at `/docs` shows the whole contract, from this origin alone; `/openapi.json` is the contract."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from starlette.routing import Route, Router

import cuota.web
from cuota.core.refusal import Code
from cuota.web.api.docs import CSP, docs_page, load_contract, openapi_json
from cuota.web.api.docs_view import operations, webhooks
from cuota.web.edge import Edge
from cuota.web.service import Service

BASE = "https://shop-pays.test"
CONTRACT: Any = load_contract(BASE)


@pytest.fixture
async def client() -> Any:
    routes = Router([Route("/docs", docs_page), Route("/openapi.json", openapi_json)])
    app = Edge(
        routes, cast("Service", SimpleNamespace(settings=SimpleNamespace(public_url=BASE, secure=True)))
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE) as http:
        yield http


async def test_the_page_has_every_operation_and_code_and_no_other_origin(client: httpx.AsyncClient) -> None:
    answer = await client.get("/docs")
    assert answer.status_code == 200
    assert answer.headers["content-security-policy"] == CSP
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    page = answer.text
    anchors = re.findall(r'\bid="([^"]+)"', page)
    assert len(anchors) == len(set(anchors))
    for method, path, operation in operations(CONTRACT):
        assert operation["operationId"] in anchors
        assert f"{method}</span> <code>{path}</code>" in page
    for name, call in webhooks(CONTRACT):
        assert call["operationId"] in anchors
        assert f"<code>{name}</code></p>" in page
    assert {code.value for code in Code} <= set(anchors)
    assert not re.search(r"""(?:src|href|action)\s*=\s*["']?\s*(?:[a-z]+:)?//""", page, re.IGNORECASE)
    assert not re.search(r"<script|<style|\sstyle=|\son[a-z]+=", page, re.IGNORECASE)
    assert {f"#{anchor}" for anchor in anchors} >= set(re.findall(r'href="(#[^"]+)"', page))
    for row in CONTRACT["x-sandbox"]["rows"]:
        assert row["give"] in page
    assert f"{BASE}/order" in page
    assert "pay.example" not in page


async def test_the_document_is_served_with_the_address_of_this_service(client: httpx.AsyncClient) -> None:
    answer = await client.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["content-security-policy"] == CSP
    assert answer.json() == load_contract(BASE)
    assert answer.json()["servers"][0]["url"] == BASE
    assert "pay.example" not in answer.text


def test_the_stylesheet_fetches_nothing() -> None:
    assert cuota.web.__file__ is not None
    sheet = (Path(cuota.web.__file__).parent / "pages" / "static" / "docs.css").read_text()
    assert "url(" not in sheet
    assert "@import" not in sheet
