"""docs/client.md is correct: its examples run, and its tables are complete."""

from __future__ import annotations

import asyncio
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from cuota import client
from cuota.client import AsyncClient, Client
from support.client_tools import Both, reason
from support.makers import Merchant

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "client.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def names_of(merchant: Merchant) -> dict[str, Any]:
    settings = merchant.service.settings
    return {
        "API": settings.public_url,
        "CLIENT_ID": merchant.client_id,
        "CLIENT_SECRET": merchant.client_secret,
        "WEBHOOK_SECRET": "whsec_YQ==",
        "SIGNING_SECRET": merchant.signing_secret,
    }


async def test_the_page_s_examples_run(merchant: Merchant, capsys: pytest.CaptureFixture[str]) -> None:
    names = names_of(merchant)
    create, move, refuse, webhook, waiting = BLOCKS
    await asyncio.to_thread(exec, create, names)
    assert names["order"].order_id in capsys.readouterr().out
    paid = await merchant.approved("119.96")
    async with Both.of("blocking", merchant) as both:
        names |= {"pay": both.client, "order_id": paid["orderId"]}
        await asyncio.to_thread(exec, move, names)
        await asyncio.to_thread(exec, refuse, names)
    assert capsys.readouterr().out == "59.98\nrefund_exceeds_captured 39.98\n"
    exec(webhook, names)
    assert names["webhook"](b"{}", {}) == 401
    exec(waiting, names)
    await names["missed"](None)


def test_the_page_lists_every_call_and_both_clients_have_the_same_calls() -> None:
    def public(kind: type) -> dict[str, str]:
        return {
            name: str(inspect.signature(call))
            for name, call in vars(kind).items()
            if not name.startswith("_") and name not in {"close", "aclose"}
        }

    blocking, waiting = public(Client), public(AsyncClient)
    assert {name: text.replace("Async", "") for name, text in waiting.items()} == blocking
    for name in blocking:
        assert re.search(rf"`{name}\b", PAGE), name


def test_the_page_lists_every_error() -> None:
    for name in client.__all__:
        kind = getattr(client, name)
        if isinstance(kind, type) and issubclass(kind, Exception):
            assert re.search(rf"^[│├└─ ]*{name} ", PAGE, re.MULTILINE), name


async def test_the_page_has_the_default_number_of_attempts(merchant: Merchant, kind: str) -> None:
    async with Both.of(kind, merchant, pauses=client.sync.PAUSES) as both:
        assert both.client._terms.pauses == (0.2, 0.8, 2.0)
        assert both.client._terms.longest_wait == 30
        await reason(both("get_order", "o-1"), client.NotFound)
