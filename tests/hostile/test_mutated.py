"""Sends valid requests of every interface, with bytes changed at random, over raw sockets to a real service.

pytest tests/hostile/test_mutated.py                             about 1,500 requests; 3,000 in `make faults`
HOSTILE_REQUESTS=100000 pytest -s tests/hostile/test_mutated.py  the long run
HOSTILE_SEED=... pytest tests/hostile/test_mutated.py            the same requests again
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from support.contract import Contract
from support.faults.served import Service
from support.hostile.hostile_shop import BACK, Shop, fired_at, seeds_of
from support.hostile.judge import Verdict, fire
from support.hostile.mutator import barrage, made
from support.long_run import LONG, seed_of_campaign

REQUESTS = int(os.environ.get("HOSTILE_REQUESTS") or (3000 if LONG else 1500))
SEED = seed_of_campaign("HOSTILE_SEED")
NAMES = {"capture": "captures", "void": "voids", "refund": "refunds"}


def moved(record: dict[str, Any]) -> set[tuple[str, str, str]]:
    """Return the movements that an order's record lists."""
    return {
        (record["orderId"], kind, movement["merchantReference"])
        for kind, listed in NAMES.items()
        for movement in record[listed]
    }


def assert_only_what_was_told(shop: Shop, before: dict[str, Any], verdict: Verdict) -> None:
    """Assert that every answer 200 has its movement, and that any other new movement belongs to a request without an
    answer."""
    after = shop.records()
    listed = {each for record in after.values() for each in moved(record)}
    new = listed - {each for record in before.values() for each in moved(record)}
    told = set(verdict.applied)
    assert max(verdict.applied.values(), default=1) == 1, f"seed {SEED}: a key was applied twice"
    assert told <= new, f"seed {SEED}: answered 200 but not applied: {told - new}"
    untold = new - told
    assert len(untold) <= verdict.untold.total(), f"seed {SEED}: applied but not answered 200: {untold}"
    for name in verdict.created:
        assert shop.http.get(f"/order/{name}").status_code == 200, (
            f"seed {SEED}: {name} was created but does not exist"
        )


def refused(service: Service) -> str:
    """What the service says of the requests that it turned away."""
    text = httpx.get(f"{service.url}/metrics", trust_env=False, timeout=60).text
    return "\n".join(line for line in text.splitlines() if line.startswith("cuota_refused"))


def assert_well(service: Service, shop: Shop) -> None:
    """Assert that the service answers, logged no unexpected error, and that `cuota verify` finds no problem."""
    assert shop.order()["orderId"]
    assert httpx.get(f"{service.url}/health/ready", trust_env=False, timeout=60).status_code == 200
    assert "accident" not in service.errors(), f"seed {SEED}\n{service.errors()[-3000:]}"
    checked = service.run("verify")
    assert checked.returncode == 0, f"seed {SEED}\n{checked.stdout}{checked.stderr}"


@pytest.fixture(scope="module")
def fired() -> Iterator[tuple[Service, Shop, Shop]]:
    with fired_at() as opened:
        yield opened


async def test_a_client_that_disconnects_between_pipelined_requests_causes_no_unexpected_error(
    fired: tuple[Service, Shop, Shop],
) -> None:
    service, shop, _ = fired
    body = json.dumps({"amount": "10.00", "merchantReference": "A", "merchant": BACK}).encode()
    lines = ["POST /order HTTP/1.1", "Host: 127.0.0.1", *(f"{name}: {value}" for name, value in shop.bearer)]
    head = "\r\n".join([*lines, "Content-Type: application/json", f"Content-Length: {len(body)}"])
    for wait in range(60):
        _, writer = await asyncio.open_connection("127.0.0.1", service.port)
        writer.write((head.encode() + b"\r\n\r\n" + body) * 3)
        await writer.drain()
        # The client disconnects before, during or after the answer to the first of the three requests.
        await asyncio.sleep(0.0005 * (wait % 20))
        writer.transport.abort()
    assert_well(service, shop)


async def test_no_changed_request_breaks_the_service_or_moves_money_without_an_answer(
    fired: tuple[Service, Shop, Shop],
) -> None:
    print(f"\n{REQUESTS} requests, HOSTILE_SEED={SEED}")
    verdict = Verdict(Contract())
    service, shop, bystander = fired
    theirs = bystander.approved("50.00")
    seeds = seeds_of(shop, theirs)
    before, quiet = shop.records(), bystander.records()
    await fire(service.port, barrage(seeds, REQUESTS, SEED), verdict)
    print(dict(sorted(verdict.statuses.items())), f"{verdict.controls} of them unchanged")
    faults = "\n\n".join(verdict.faults[:10])
    assert not verdict.faults, f"seed {SEED}: {len(verdict.faults)} faults\n{faults}"
    # The test sends only a few requests at a time, so the service must not refuse valid ones as overload.
    assert verdict.turned_away * 20 <= verdict.controls, (
        f"seed {SEED}: {verdict.turned_away} of {verdict.controls} valid requests were refused\n{refused(service)}"
    )
    assert_only_what_was_told(shop, before, verdict)
    assert bystander.records() == quiet, f"seed {SEED}: the uninvolved merchant's order changed"
    assert_well(service, shop)
    # Some requests must be valid enough to move money and create orders. Otherwise this test proves nothing.
    assert verdict.applied
    assert verdict.created


@pytest.mark.parametrize("number", range(3))
def test_the_same_seed_makes_the_same_requests(number: int) -> None:
    from support.hostile.mutator import Seed

    seeds = [Seed("a", "POST", "/order", (("A", "b"),), b'{"a":1}'), Seed("b", "GET", "/x")]
    once, again = (list(barrage(seeds, 50, number)) for _ in range(2))
    assert once == again
    assert once != list(barrage(seeds, 50, number + 1))
    assert made(seeds[0], 0, random.Random(1), change=False).content.endswith(b'\r\n\r\n{"a":1}')
