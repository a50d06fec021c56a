"""Orders of a served sandbox, and commands for it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx

from support.faults.served import Service
from support.time.receiver import callback


async def run(served: Service, *arguments: str) -> Any:
    """Run a command that must succeed, and return its JSON."""
    done = await asyncio.to_thread(served.run, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


async def create(served: Service, headers: dict[str, str], url: str, *, approve: bool) -> dict[str, Any]:
    """Create an order whose events go to this address, and return its record."""
    async with httpx.AsyncClient(base_url=served.url, trust_env=False, timeout=60, headers=headers) as http:
        body = {"amount": "100.00", "merchantReference": "A-1", **callback(url)}
        made = (await http.post("/order", json=body)).json()
        if approve:
            await run(served, "sandbox", "complete", made["redirectUrl"], "--outcome", "approved")
        return dict((await http.get(f"/order/{made['orderId']}")).json())
