"""A campaign: a service, a proxy in front of it, storefronts, a receiver, and a checker that runs all the time."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import httpx

from cuota.commands.checkout_walker import walk
from support.faults import checker, snapshot
from support.faults.blows import schedule, strike
from support.faults.books import Books
from support.faults.fronts import Merchant, Storefront
from support.faults.journal import Journal, read
from support.faults.proxy import Proxy
from support.faults.served import ORDER, token
from support.faults.struck import Receiver, StruckService
from support.faults.struck_shop import struck_shop

SAMPLE_SECONDS = 1.0
DELIVERED_SECONDS = 60.0


@dataclass
class Campaign:
    """The service under test, and the problems found so far."""

    service: StruckService
    hooks: Receiver
    books: Books
    journal: Journal
    seed: int
    merchants: list[Merchant] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    samples: int = 0
    # Seconds from the last fault until every event was delivered.
    told_after: float = 0.0
    forgiven: set[str] = field(default_factory=set)

    def known(self, books: Books) -> None:
        """Store the problems that the card network already had before this campaign, so that they do not count."""
        self.forgiven = set(snapshot.take(books, []).cards)

    def merchant(self, orders: int) -> Merchant:
        """Add a merchant with this many orders of 2,000.00 that consumers completed."""
        made = self.service.merchant()
        merchant = Merchant(made["merchantId"], token(self.service.url, made))
        self.merchants.append(merchant)
        body = {**ORDER, "amount": "2000.00", "merchantReference": checker.OWN}
        body["merchant"] = {**ORDER["merchant"], "statusCallbackUrl": self.hooks.url}
        for _ in range(orders):
            answer = httpx.post(
                f"{self.service.url}/order", json=body, headers=merchant.headers, trust_env=False, timeout=60
            )
            phone = f"212{Random(f'{self.seed} {len(merchant.orders)}').randint(2_000_000, 9_999_999)}"
            walk(answer.json()["redirectUrl"], "approved", phone=phone)
            merchant.orders.append(answer.json()["orderId"])
        return merchant

    def storefronts(self, url: str, clients: int, longest: float = 2.0) -> list[Storefront]:
        """Make this many clients, spread over the merchants. Each knows the orders of all other merchants."""
        made = []
        for number, merchant in zip(range(clients), itertools.cycle(self.merchants), strict=False):
            theirs = [order for other in self.merchants if other is not merchant for order in other.orders]
            chance = Random(f"{self.seed} client {number}")
            made.append(Storefront(url, merchant, self.journal, chance, self.hooks.url, theirs, longest))
        return made

    def look(self, *, settled: bool = False) -> snapshot.Snapshot:
        """Compare now. Everything that clients recorded before must agree with the database afterwards."""
        stories, strange = read(self.journal.path)
        seen = snapshot.take(self.books, [merchant.merchant_id for merchant in self.merchants])
        arrived = {(body["orderId"], body["sequence"]) for body in list(self.hooks.bodies)}
        # This second reading covers every row of the snapshot, because clients write to the journal before they send.
        intended, _ = read(self.journal.path)
        found = checker.problems(stories, seen, intended, settled=settled, arrived=arrived)
        self.samples += 1
        known = {*self.problems, *self.forgiven}
        self.problems += [each for each in (*found, *strange) if each not in known]
        return seen

    def close_the_books(self) -> list[str]:
        """Check the end: every operation has an answer, every event arrived in order, and `cuota verify` agrees."""
        seen = self.look(settled=True)
        self.problems += checker.unanswered(read(self.journal.path)[0])
        healed = time.monotonic()
        while (late := checker.late(seen, self._first_arrivals())) and self.told_after < DELIVERED_SECONDS:
            time.sleep(0.2)
            self.told_after = time.monotonic() - healed
            # On a slow machine, the service may still apply a request whose client has its answer from a repetition.
            seen = self.look(settled=True)
        self.problems += late
        report = self.service.run("verify")
        if report.returncode != 0:
            self.problems.append(f"cuota verify: {report.stdout[:2000]}")
        return self.problems

    def _first_arrivals(self) -> dict[str, list[int]]:
        firsts: dict[str, dict[int, None]] = {}
        for body in list(self.hooks.bodies):
            firsts.setdefault(body["orderId"], {})[body["sequence"]] = None
        return {order: list(numbers) for order, numbers in firsts.items()}

    def tally(self) -> Counter[str]:
        """Return how many operations ended in each way."""
        stories, _ = read(self.journal.path)
        return Counter(story.told.result if story.told else "unanswered" for story in stories)

    def hurry(self) -> None:
        """End the leases of dead processes now. Otherwise the leases would expire within a minute."""
        self.books.rows(
            "UPDATE idempotency_keys SET lease_ends_at = now() WHERE created_at < now() - interval '4 s'"
        )

    def minute_later(self) -> None:
        """Move the clock by a minute: claims of dead workers expire, and failed deliveries are retried."""
        self.books.rows(
            "INSERT INTO sandbox_clock (ahead) VALUES (interval '1 minute')"
            " ON CONFLICT (single) DO UPDATE SET ahead = sandbox_clock.ahead + excluded.ahead"
        )


@contextlib.contextmanager
def campaign_on(
    served: StruckService, hooks: Receiver, opened: Books, seed: int, *, merchants: int = 2, orders: int = 3
) -> Iterator[Campaign]:
    """Make merchants with completed orders, and an empty journal, on a running service."""
    folder = Path(tempfile.mkdtemp(prefix="cuota-journal-"))
    try:
        with contextlib.closing(Journal(folder / "journal")) as journal:
            made = Campaign(served, hooks, opened, journal, seed)
            for _ in range(merchants):
                made.merchant(orders)
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def campaign(seed: int, *, orders: int = 3) -> Iterator[Campaign]:
    """Do the same on a new service with two workers."""
    with (
        struck_shop() as shop,
        campaign_on(shop.service, shop.hooks, shop.books, seed, orders=orders) as made,
    ):
        yield made


async def retried(under: Campaign, operations: int, clients: int = 24) -> Proxy:
    """Run this many operations through a bad network. Ends when each has its answer, or its client has given up."""
    async with Proxy(under.service.port, under.seed) as proxy:
        left = iter(range(operations))
        await _run(under, under.storefronts(proxy.url, clients), lambda: next(left, None) is not None)
    return proxy


async def battered(
    under: Campaign, seconds: float, clients: int = 12, *, hurry: bool, least: int = 0
) -> Counter[str]:
    """Inject faults by the seed's schedule, under load. Return how often each kind occurred. At the end, everything runs again.

    The load continues until at least `least` operations were applied, however slow the machine is.
    """
    fallen = Counter[str]()
    chance = Random(f"{under.seed} targets")
    over = asyncio.Event()
    fronts = under.storefronts(under.service.url, clients)
    load = asyncio.create_task(_run(under, fronts, lambda: not over.is_set(), hurry=hurry))
    for again in range(5):
        for blow in schedule(under.seed + again, seconds):
            await asyncio.sleep(blow.pause)
            fell = await asyncio.to_thread(strike, under.service, blow, chance)
            fallen[blow.name] += fell
            took = f" for {blow.seconds:.1f} s" if blow.seconds else ""
            print(f"  {blow.name}{took}{'' if fell else ': found no process to strike'}", flush=True)
        # In a short campaign, perhaps no fault found a running process. In that case, inject more faults.
        if fallen.total():
            break
    try:
        async with asyncio.timeout(120):
            while under.tally()["applied"] < least:  # noqa: ASYNC110 - the journal tells nobody
                await asyncio.sleep(0.1)
    finally:
        over.set()
        await load
    return fallen


async def _run(
    under: Campaign, fronts: list[Storefront], goes_on: Callable[[], bool], *, hurry: bool = False
) -> None:
    tasks = [asyncio.create_task(front.run(goes_on)) for front in fronts]
    while not all(task.done() for task in tasks):
        began = time.monotonic()
        await asyncio.to_thread(under.look)
        if hurry:
            await asyncio.to_thread(under.hurry)
        await asyncio.wait(tasks, timeout=max(0.0, SAMPLE_SECONDS - (time.monotonic() - began)))
    await asyncio.gather(*tasks)
