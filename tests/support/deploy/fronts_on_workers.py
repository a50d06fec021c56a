"""Storefronts with merchants on every worker of a Citus cluster."""

from __future__ import annotations

import httpx

from support.deploy.citus_nodes import Nodes
from support.deploy.machines import ORDER, bearer, command, merchant
from support.deploy.timed_storefront import TimedStorefront

EACH_WORKER = 2


async def fronts(nodes: Nodes, url: str, shared: dict[str, str]) -> list[TimedStorefront]:
    """Make storefronts on every worker, each with its own approved order."""
    wanted = {node: EACH_WORKER for node in await nodes.urls() if node > 0}
    found: list[TimedStorefront] = []
    while any(wanted.values()):
        shop = merchant(**shared)
        node = await nodes.worker_of(shop["merchantId"])
        if not wanted[node]:
            continue
        wanted[node] -= 1
        headers = bearer(url, shop)
        async with httpx.AsyncClient(trust_env=False, timeout=60, headers=headers) as http:
            answer = await http.post(f"{url}/order", json=ORDER)
        made = answer.raise_for_status().json()
        command("sandbox", "complete", made["redirectUrl"], "--outcome", "approved", **shared)
        order_id = str(made["orderId"])
        found.append(TimedStorefront([url], headers, order_id, node=node, merchant=shop["merchantId"]))
    return found
