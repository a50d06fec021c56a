"""A merchant of a service with failpoints that repeats requests until the answer is definite; its consumers; the clock."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import httpx

from cuota.commands.checkout_walker import CannotWalk, walk
from support.faults.books import Books, books
from support.faults.served import ORDER, Service, service, token, until
from support.faults.struck import Receiver, StruckService, receiver
from support.phones import phone_number
from support.ports import free_port

HANG_SECONDS = 0.6
IMPATIENT_SECONDS = 0.25
NOT_DEFINITE = {409, 429, 500, 503}
ACTIONS = ("raise", "hang", "cut", "kill")
Moment = tuple[str, str, str]
EVENTS = "SELECT events FROM orders WHERE order_id = $1::text::uuid"
MADE_BEFORE_THE_MOVE = """SELECT created_at < now() + coalesce((SELECT ahead FROM sandbox_clock), interval '0') - interval '10 minutes'
    FROM orders WHERE order_id = $1::text::uuid"""
CHARGING = "SELECT charging IS NOT NULL FROM orders WHERE order_id = $1::text::uuid"


def _walk(address: str) -> None:
    """Try to complete a checkout as a consumer with a new phone number."""
    with contextlib.suppress(httpx.HTTPError, CannotWalk):
        walk(address, "approved", phone=phone_number())


@dataclass
class Shop:
    """One merchant with its receiver, and access to the service's database."""

    service: StruckService
    hooks: Receiver
    books: Books
    http: httpx.Client

    def ask(
        self, path: str, body: dict[str, Any], *, impatient: bool = False, key: str = ""
    ) -> httpx.Response:
        """Repeat a request until the answer is definite. The first attempt may have a short timeout."""
        deadline, wait = time.monotonic() + 120, IMPATIENT_SECONDS if impatient else 10.0
        headers = {"Idempotency-Key": key} if key else {}
        while True:
            assert time.monotonic() < deadline, "no definite answer"
            try:
                answer = self.http.post(path, json=body, headers=headers, timeout=wait)
            except httpx.TransportError:
                wait = 10.0
                continue
            if answer.status_code not in NOT_DEFINITE:
                return answer
            if answer.status_code == 409:
                # The process that held the key is dead or paused. Its lease would end in half a minute; end it at
                # once.
                self.books.rows("UPDATE idempotency_keys SET lease_ends_at = now() WHERE key = $1", key)
            time.sleep(0.02)

    def arm(self, moment: Moment, action: str) -> None:
        self.service.arm(*moment, action, HANG_SECONDS)

    def order(self) -> dict[str, Any]:
        """Create an order of 100.00 whose events go to this shop's receiver.

        If `later` has just moved the clock and a worker has not read it yet, the order expires at once. Then make
        another one.
        """
        merchant = {**ORDER["merchant"], "statusCallbackUrl": self.hooks.url}
        while True:
            made = dict(self.ask("/order", {**ORDER, "merchant": merchant}).json())
            if not self.books.one(MADE_BEFORE_THE_MOVE, made["orderId"]):
                return made
            time.sleep(0.05)

    def completed(self, order: dict[str, Any] | None = None) -> str:
        """Return an order that its consumer completed. Start the checkout again as often as needed."""
        made = order or self.order()
        # This limit only guards against a hang, for example if the service cannot finish any charge.
        deadline, moved_at = time.monotonic() + 300, 0.0
        while (status := self.status(made["orderId"])) == "Created":
            consumer = threading.Thread(target=_walk, args=(made["redirectUrl"],), daemon=True)
            consumer.start()
            while consumer.is_alive():
                assert time.monotonic() < deadline, f"order {made['orderId']} was not completed in time"
                consumer.join(0.2)
                rested = time.monotonic() > moved_at + 1
                if rested and self.books.one(CHARGING, made["orderId"]) and not self.service.file.exists():
                    # A charge without an answer is looked up after a while. Move the clock past that time. If it moved faster, the
                    # order's time would end before a busy machine has looked the charge up.
                    self.later("20 seconds")
                    moved_at = time.monotonic()
        assert status == "Approved", status
        return str(made["orderId"])

    def status(self, order: str) -> str:
        return str(self.books.one("SELECT status FROM orders WHERE order_id = $1::text::uuid", order))

    def later(self, interval: str) -> None:
        """Move the service's clock. Only the service's own workers do the work that becomes due."""
        self.books.rows(
            "INSERT INTO sandbox_clock (ahead) VALUES ($1::text::interval)"
            " ON CONFLICT (single) DO UPDATE SET ahead = sandbox_clock.ahead + excluded.ahead",
            interval,
        )

    def just_before(self, instant: str, *values: object) -> None:
        """Move the service's clock to a minute before the time that this statement returns."""
        self.books.rows(
            f"INSERT INTO sandbox_clock (ahead) VALUES (({instant}) - now() - interval '1 minute')"
            " ON CONFLICT (single) DO UPDATE SET ahead = excluded.ahead",
            *values,
        )

    def until(self, sql: str, *values: object, seconds: float = 120.0) -> None:
        """Wait until a statement returns true."""
        until(lambda: self.books.one(sql, *values), seconds)

    def told_in_order(self, order: str, seconds: float = 120.0) -> None:
        """Wait until each event of an order has arrived, then check that the first arrivals came in order."""
        events = self.books.one(EVENTS, order)
        until(lambda: len(set(self.hooks.sequences(order))) == events, seconds)
        assert list(dict.fromkeys(self.hooks.sequences(order))) == list(range(1, events + 1))

    def verified(self) -> None:
        report = self.service.run("verify")
        assert report.returncode == 0, report.stdout


@contextlib.contextmanager
def struck_shop(
    workers: int = 2,
    kind: type[StruckService] = StruckService,
    place: Callable[[], AbstractContextManager[Service]] = service,
) -> Iterator[Shop]:
    """Make a service with failpoints, and one merchant."""
    with place() as plain, receiver() as hooks:
        served = kind(plain.data, free_port())
        try:
            served.start(workers)
            headers = token(served.url, served.merchant())
            with (
                books(served.data) as opened,
                httpx.Client(
                    base_url=served.url, headers=headers, trust_env=False, timeout=60, verify=False
                ) as http,
            ):
                yield Shop(served, hooks, opened, http)
        finally:
            served.kill()
