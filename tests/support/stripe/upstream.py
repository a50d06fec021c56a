"""Starts localstripe as a process of its own, and calls it."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx

from support.folders import new_folder
from support.tool_environment import ToolEnvironment

RUNNER = Path(__file__).with_name("localstripe_runner.py")
STARTS_WITHIN = 60.0
ENVIRONMENT = ToolEnvironment("localstripe", "tests/rails/stripe/requirements.lock")
Json = dict[str, Any]
Pairs = Sequence[tuple[str, str]]
# localstripe takes any key that begins with sk_.
KEY = "sk_test_standin0000"


class Upstream:
    """localstripe's API. Calls are answered with the status and the JSON."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def call(self, method: str, path: str, pairs: Pairs = ()) -> tuple[int, Json]:
        text = urlencode(list(pairs))
        url = f"{path}?{text}" if method == "GET" and text else path
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/x-www-form-urlencoded"}
        answer = await self.http.request(
            method, url, content=text if method == "POST" else None, headers=headers
        )
        try:
            return answer.status_code, answer.json()
        except ValueError:
            return 500, {"error": {"type": "api_error", "message": "localstripe failed"}}

    async def get(self, path: str) -> Json:
        status, found = await self.call("GET", path)
        assert status == 200, (path, found)
        return found


@asynccontextmanager
async def opened_localstripe() -> AsyncIterator[Upstream]:
    """Start localstripe on loopback, in a folder of its own, and end it."""
    python = await asyncio.to_thread(ENVIRONMENT.python)
    folder = new_folder("cuota-localstripe-")
    port_file, log = folder / "port", (folder / "log").open("w")
    process = subprocess.Popen(  # noqa: ASYNC220 - starts at once, and is waited for below
        [python, RUNNER, port_file], cwd=folder, env={"HOME": str(folder)}, stdout=log, stderr=log
    )
    try:
        async with asyncio.timeout(STARTS_WITHIN):
            while not port_file.exists():
                assert process.poll() is None, (folder / "log").read_text()[-2000:]
                await asyncio.sleep(0.02)
        base = f"http://127.0.0.1:{port_file.read_text()}"
        limits = httpx.Limits(max_connections=40)
        async with httpx.AsyncClient(base_url=base, timeout=60, limits=limits, trust_env=False) as http:
            async with asyncio.timeout(STARTS_WITHIN):
                while True:
                    with contextlib.suppress(httpx.TransportError):
                        await http.get("/js.stripe.com/v3/")
                        break
                    await asyncio.sleep(0.02)
            yield Upstream(http)
    finally:
        process.kill()
        process.wait()
        log.close()
        shutil.rmtree(folder, ignore_errors=True)
