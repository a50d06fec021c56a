"""The test drives that reveal a planted bug: a few operations, a fault at one step, and the checker's result."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Callable

import httpx

from support.faults.campaign import Campaign
from support.faults.fronts import Storefront
from support.faults.journal import Intent
from support.faults.served import until
from support.faults.struck_shop import EVENTS, HANG_SECONDS, Shop

SAVE = "save_orders("
POST = "GuardedClient.post"
CHARGE = "SandboxCardRail.charge"
SERIAL = 60
PENDING = "SELECT EXISTS (SELECT FROM outbox) OR EXISTS (SELECT FROM deliveries WHERE state = 'pending')"
Drive = Callable[[Shop, Campaign], list[str]]


def sent(under: Campaign, *intents: Intent) -> None:
    """Send operations with one patient client of the first merchant, which believes every answer."""
    (front,) = under.storefronts(under.service.url, 1, longest=10.0)
    front.believes = 1.0

    async def go() -> None:
        async with httpx.AsyncClient(
            base_url=front.url, headers=front.merchant.headers, trust_env=False, verify=False
        ) as http:
            for intent in intents:
                await front.settle(http, intent)

    asyncio.run(go())


def meant(under: Campaign, operation: str, amount: int, **more: str) -> Intent:
    own = under.merchants[0]
    return under.journal.intend(operation, own.merchant_id, own.orders[0], amount, **more)


def settled(under: Campaign) -> list[str]:
    under.look(settled=True)
    return under.problems


def killed_after(shop: Shop, under: Campaign) -> list[str]:
    """Kill every worker when the client has its answer."""
    sent(under, meant(under, "capture", 100))
    for worker in shop.service.workers():
        os.kill(worker, signal.SIGKILL)
    until(lambda: ready(shop), 60)
    return settled(under)


def ready(shop: Shop) -> bool:
    try:
        return shop.http.get("/health/ready", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def killed_at_save(shop: Shop, under: Campaign) -> list[str]:
    shop.service.arm("after", "sql", SAVE)
    sent(under, meant(under, "capture", 100))
    shop.service.wait_for_strike()
    return settled(under)


def hung_at_save(shop: Shop, under: Campaign) -> list[str]:
    shop.service.arm("after", "sql", SAVE, "hang", HANG_SECONDS)
    sent(under, meant(under, "capture", 100))
    shop.service.wait_for_strike()
    return settled(under)


def killed_at_send(shop: Shop, under: Campaign) -> list[str]:
    """Kill the worker during a delivery. A minute later, the event must be delivered anyway."""
    # First deliver the events of workers that were killed before. Then the next delivery is this capture's.
    shop.later("1 minute")
    settled_by = time.monotonic() + 10
    while shop.books.one(PENDING) and time.monotonic() < settled_by:
        time.sleep(0.1)
    shop.service.arm("before", "call", POST)
    sent(under, meant(under, "capture", 100))
    shop.service.wait_for_strike()
    shop.later("1 minute")
    until(lambda: ready(shop), 60)
    shop.until(
        "SELECT NOT EXISTS (SELECT FROM deliveries WHERE order_id = $1::text::uuid AND state = 'pending')",
        under.merchants[0].orders[0],
    )
    return settled(under)


def odd_amount(shop: Shop, under: Campaign) -> list[str]:
    sent(under, meant(under, "capture", 29), meant(under, "capture", 57), meant(under, "capture", 113))
    return settled(under)


def voided(shop: Shop, under: Campaign) -> list[str]:
    sent(under, meant(under, "void", 100))
    return settled(under)


def refused_and_freed(shop: Shop, under: Campaign) -> list[str]:
    first = meant(under, "capture", 999_999, wrong="over the limit")
    sent(under, first, meant(under, "capture", 1, reference=first.reference))
    return settled(under)


def strangers(shop: Shop, under: Campaign) -> list[str]:
    own, other = under.merchants
    theirs = under.journal.intend("capture", own.merchant_id, other.orders[0], 1, wrong="not theirs")
    sent(under, theirs)
    return settled(under)


def card_cut(shop: Shop, under: Campaign) -> list[str]:
    """Lose the request to charge the card, so that a worker sends the request again.

    If only the answer is lost, the consumer's page finds the charge, and nothing is sent again.
    """
    shop.service.arm("before", "call", CHARGE, "cut")
    shop.completed()
    shop.service.wait_for_strike()
    return settled(under)


def calm_load(shop: Shop, under: Campaign) -> list[str]:
    """Run many clients and two workers without any fault: every event must arrive once."""
    orders = {order for merchant in under.merchants for order in merchant.orders}
    # An event of an earlier drive may be sent again: its sender was killed before it recorded the delivery.
    known = {order: shop.books.one(EVENTS, order) for order in orders}
    under_load(under, 80)
    for order in orders:
        shop.told_in_order(order)
    found = settled(under)
    times = Counter((body["orderId"], body["sequence"]) for body in list(shop.hooks.bodies))
    return found + [
        f"event {(order, sequence)} arrived {n} times"
        for (order, sequence), n in times.items()
        if n > 1 and order in orders and sequence > known[order]
    ]


def crowded(shop: Shop, under: Campaign) -> list[str]:
    """Run many clients at once on one order."""
    under_load(under, 60)
    return settled(under)


def under_load(under: Campaign, operations: int) -> None:
    left = iter(range(operations))
    fronts = under.storefronts(under.service.url, 12, longest=10.0)

    async def go() -> None:
        await asyncio.gather(*(front.run(lambda: next(left, None) is not None) for front in fronts))

    asyncio.run(go())


def one_key_at_once(shop: Shop, under: Campaign) -> list[str]:
    """Run twenty clients with the same reference at one moment, ten times."""
    for _ in range(10):
        first = meant(under, "capture", 3)
        same = [first, *(meant(under, "capture", 3, reference=first.reference) for _ in range(19))]
        fronts = under.storefronts(under.service.url, len(same), longest=10.0)
        asyncio.run(all_at_once(fronts, same))
    return settled(under)


async def all_at_once(fronts: list[Storefront], intents: list[Intent]) -> None:
    async def go(front: Storefront, intent: Intent) -> None:
        async with httpx.AsyncClient(
            base_url=front.url, headers=front.merchant.headers, trust_env=False, verify=False
        ) as http:
            await front.settle(http, intent)

    await asyncio.gather(*(go(front, intent) for front, intent in zip(fronts, intents, strict=True)))


def serial(under: Campaign) -> int:
    """Capture one after the other: the disk must have one write for each acknowledged capture."""
    sent(under, *(meant(under, "capture", 1) for _ in range(SERIAL)))
    return under.tally()["applied"]
