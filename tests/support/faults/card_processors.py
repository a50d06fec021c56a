"""Both card processors beside a service whose workers are killed: the simulated one, and the stand-in for Stripe."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Coroutine, Iterator
from typing import Any, Protocol, TypeVar

import httpx

from cuota.commands.checkout_walker import CannotWalk, walk
from support.faults.struck import StruckService
from support.faults.struck_shop import CHARGING, Shop, struck_shop
from support.phones import phone_number
from support.stripe.stand_in import StandIn, enter_card, opened_stand_in

T = TypeVar("T")
PAYS, ACTION = "4242424242424242", "4000002760003184"
CHARGES = "SELECT charge_id::text AS charge_id, amount FROM charges WHERE order_id = $1::text::uuid"


class Processor(Protocol):
    """The operations of a card processor that the tests use."""

    def card(self, number: str) -> dict[str, str]:
        """Return what a consumer's browser sends for a card."""
        ...

    def confirm_all(self) -> None:
        """Confirm every payment that waits for its consumer, as the consumer does at the bank."""
        ...

    def books(self, shop: Shop, charge_id: str) -> tuple[int, int]:
        """Return the cents that the processor took and gave back for a charge, in its own books."""
        ...


class SimulatedProcessor:
    """The sandbox's simulated processor. Its bank's page is a page of the service, and `walk` confirms the
    payment there."""

    def card(self, number: str) -> dict[str, str]:
        return {"card_number": number}

    def confirm_all(self) -> None:
        """Do nothing: the walk through the checkout has already confirmed the payment."""

    def books(self, shop: Shop, charge_id: str) -> tuple[int, int]:
        taken = "SELECT coalesce(sum(amount), 0)::bigint FROM card_simulator.charges WHERE key = $1::text::uuid AND approved"
        back = "SELECT coalesce(sum(amount), 0)::bigint FROM card_simulator.refunds WHERE charge = $1::text::uuid"
        return shop.books.one(taken, charge_id), shop.books.one(back, charge_id)


class StripeBeside:
    """The stand-in for Stripe. It runs in a thread with its own event loop, because these tests block
    theirs."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self._opened = opened_stand_in()
        self.stand_in: StandIn = self.call(self._opened.__aenter__())

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in that thread, and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(120)

    def close(self) -> None:
        """End the stand-in and its thread."""
        self.call(self._opened.__aexit__(None, None, None))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(30)
        self.loop.close()

    def card(self, number: str) -> dict[str, str]:
        return {"card_token": self.call(enter_card(self.stand_in, number))}

    def confirm_all(self) -> None:
        for intent_id in list(self.stand_in.intents.added):
            with contextlib.suppress(httpx.HTTPError):
                httpx.post(
                    f"{self.stand_in.intents.url}/bank/{intent_id}",
                    content="passed=yes",
                    trust_env=False,
                    timeout=60,
                )

    def books(self, shop: Shop, charge_id: str) -> tuple[int, int]:
        del shop
        return self.call(self.stand_in.intents.books(charge_id))

    def settings(self) -> dict[str, str]:
        """Return the settings of a service that charges cards with this stand-in."""
        keys = self.stand_in.stripe_keys
        return {
            "CUOTA_CARD_RAIL": "stripe",
            "CUOTA_STRIPE_SECRET_KEY": keys.secret,
            "CUOTA_STRIPE_PUBLISHABLE_KEY": keys.publishable,
            "CUOTA_STRIPE_WEBHOOK_SECRET": keys.webhook_secret,
            "CUOTA_STRIPE_API_URL": keys.api_url,
        }


@contextlib.contextmanager
def simulated_shop() -> Iterator[tuple[Shop, Processor]]:
    """Yield a shop of a service with failpoints, and the simulated processor."""
    with struck_shop() as shop:
        yield shop, SimulatedProcessor()


@contextlib.contextmanager
def stripe_shop() -> Iterator[tuple[Shop, Processor]]:
    """Yield a shop of a service with failpoints, and the stand-in for Stripe."""
    beside = StripeBeside()

    class Served(StruckService):
        @property
        def environment(self) -> dict[str, str]:
            return {**super().environment, **beside.settings()}

    try:
        with struck_shop(kind=Served) as shop:
            yield shop, beside
    finally:
        beside.close()


# The pause between two moves of the clock. On a busy machine, the consumer's confirmation takes seconds, and must not be too late.
MOVE_SECONDS = 1.5
SLOW_MOVES = 6


def complete(shop: Shop, processor: Processor, order: dict[str, Any], number: str) -> None:
    """Take an order through its checkout, however often its consumer has to start again."""
    phone = phone_number()

    def attempt() -> None:
        with contextlib.suppress(httpx.HTTPError, CannotWalk):
            walk(order["redirectUrl"], "approved", phone=phone, **processor.card(number))

    again, moved_at, moves = False, 0.0, 0
    while (status := shop.status(order["orderId"])) == "Created":
        consumer = threading.Thread(target=attempt)
        consumer.start()
        while consumer.is_alive():
            consumer.join(0.2)
            # The consumer confirms at the bank while the checkout's page waits.
            processor.confirm_all()
            struck = not shop.service.file.exists()
            if not (struck or again) or time.monotonic() - moved_at < MOVE_SECONDS:
                continue
            if shop.books.one(CHARGING, order["orderId"]):
                # A charge without an answer is looked up after a while, and a charge that nobody confirms is given up
                # after 20 minutes. Move the clock past that time: slowly at first, because a charge that never reached
                # the processor is not made after the order's time, and a busy machine needs seconds for a look-up.
                shop.later("20 seconds" if moves < SLOW_MOVES else "2 minutes")
                moved_at, moves = time.monotonic(), moves + 1
        again = True
    assert status == "Approved"


def paid_once(shop: Shop, processor: Processor, order_id: str) -> list[tuple[int, int]]:
    """Check that each charge of an order was taken once or not at all. Return what the processor took and gave back."""
    booked = []
    for row in shop.books.rows(CHARGES, order_id):
        taken, back = processor.books(shop, row["charge_id"])
        assert taken in {0, row["amount"]}, "a charge was taken twice, or in part"
        if taken:
            booked.append((taken, back))
    return booked
