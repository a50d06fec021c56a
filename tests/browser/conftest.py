"""A real Chromium, and the shop on its own origin beside the service."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser, Page

from support.browser.chromium import PATIENCE_MS
from support.browser.tabs import PHONE, OpenTab, Shop
from support.makers import Running, make_merchant
from support.ports import free_port


@pytest.fixture(scope="session")
async def shop(service: Running, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shop]:
    """Run `python -m cuota_demo` against the service of this run, with its own folder."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    async with make_merchant(service, defer_funds_capture=True) as merchant:
        environment = {
            **os.environ,
            "SHOP_API_URL": service.settings.public_url,
            "SHOP_CLIENT_ID": merchant.client_id,
            "SHOP_CLIENT_SECRET": merchant.client_secret,
            "SHOP_AUDIENCE": service.settings.audience,
            "SHOP_PUBLIC_URL": url,
            "SHOP_DATA": str(tmp_path_factory.mktemp("shop")),
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "cuota_demo",
            "--port",
            str(port),
            env=environment,
            cwd=Path(__file__).parent,
        )
        await _answering(process, url)
        yield Shop(url, merchant)
        process.terminate()
        await process.wait()


async def _answering(process: asyncio.subprocess.Process, url: str) -> None:
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        for _ in range(2400):
            assert process.returncode is None, "the shop could not start; the reason is in the output above"
            try:
                await http.get(f"{url}/health")
            except httpx.HTTPError:
                await asyncio.sleep(0.05)
            else:
                return
    raise AssertionError("the shop did not become ready")


@pytest.fixture
async def open_tab(chromium: Browser) -> AsyncIterator[OpenTab]:
    """Opens tabs, each in its own browser profile. An error in a tab's console fails the test at its end.

    Such errors include violations of the content security policy, and any script, style or picture that was not
    loaded. `expected` is a regular expression for the errors that a test causes on purpose.
    """
    complaints: list[str] = []

    async with AsyncExitStack() as stack:

        async def open_one(expected: str | None = None, **options: Any) -> Page:
            def complain(text: str) -> None:
                if expected is None or not re.search(expected, text):
                    complaints.append(text)

            def heard(kind: str, text: str) -> None:
                # The browser also logs a page that answers 4xx on purpose. A failed part of a page is logged below.
                if kind in {"error", "warning"} and "the server responded with a status of 4" not in text:
                    complain(f"{kind}: {text}")

            context = await chromium.new_context(**{"viewport": PHONE, **options})
            stack.push_async_callback(context.close)
            page = await context.new_page()
            page.set_default_timeout(PATIENCE_MS)
            page.on("console", lambda message: heard(message.type, message.text))
            page.on("pageerror", lambda error: complain(str(error)))
            page.on(
                "response",
                lambda answer: (
                    complain(f"{answer.status} {answer.url}")
                    if answer.status >= 400 and answer.request.resource_type != "document"
                    else None
                ),
            )
            return page

        yield open_one
    assert complaints == []
