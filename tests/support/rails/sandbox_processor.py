"""The sandbox's processor for the conformance suite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from cuota.core.checkout.card import CardEntry
from cuota.db.pool import Pool
from cuota.rails.card.protocol import Card, CardHolder, ChargeRequest
from cuota.rails.card.sandbox import SandboxCardRail
from cuota.rails.stores import RailDatabase
from support.rails.parts import rail_parts
from support.rails.processor import DisputeInBooks, Kind, Message

_NUMBERS: dict[Kind, str] = {
    "pays": "4242424242424242",
    "no_funds": "4000000000009995",
    "lost": "4000000000009987",
    "action": "4000002760003184",
    "action_declined": "4000008260003178",
    "disputed": "4000000000002685",
}


class LossyBooks:
    """The simulator's database behind a connection that can be lost before or after a statement."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.loses: str | None = None

    async def _run(self, method: str, sql: str, values: Sequence[object]) -> Any:
        if self.loses == "request":
            raise ConnectionError
        found = await getattr(self._pool, method)(sql, *values)
        if self.loses == "answer":
            raise ConnectionError
        return found

    async def fetchrow(self, sql: str, *values: object) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = await self._run("fetchrow", sql, values)
        return found

    async def fetch(self, sql: str, *values: object) -> Sequence[Mapping[str, Any]]:
        found: Sequence[Mapping[str, Any]] = await self._run("fetch", sql, values)
        return found

    async def execute(self, sql: str, *values: object) -> str:
        return str(await self._run("execute", sql, values))

    async def append(self, sql: str, *columns: Sequence[object]) -> None:
        await self._run("append", sql, columns)


class SandboxProcessor:
    """The simulated processor."""

    def __init__(self, pool: Pool) -> None:
        settings, self._pool, vault, now = rail_parts(pool)
        self._books = LossyBooks(pool)
        books: RailDatabase = self._books
        self.rail = SandboxCardRail(settings, books, vault, now)

    async def browser_token(self, kind: Kind) -> str:
        number = _NUMBERS[kind]
        return await self.rail.tokenize(CardEntry(number, 12, 2035, "123", "visa"))

    async def ready(self, kind: Kind, holder: CardHolder) -> Card:
        card = await self.rail.keep(await self.browser_token(kind), holder)
        if kind == "lost":
            # The sandbox's test card is reported lost after its first payment.
            first = ChargeRequest(
                UUID(bytes=holder.order_id.bytes), card.token, 100, "USD", holder.merchant_id, holder.order_id
            )
            assert (await self.rail.charge(first)).approved
        return card

    async def confirm(self, action_url: str, *, passed: bool) -> bool:
        return await self.rail.confirm(UUID(action_url.rpartition("/")[2]), passed=passed) is not None

    async def books(self, charge: ChargeRequest) -> tuple[int, int]:
        row = await self._pool.fetchrow(
            """SELECT coalesce(sum(amount) FILTER (WHERE approved), 0)::bigint AS taken,
                coalesce(sum(refunded), 0)::bigint AS back FROM card_simulator.charges WHERE key = $1""",
            charge.key,
        )
        assert row is not None
        return row["taken"], row["back"]

    @contextmanager
    def _losing(self, what: str) -> Iterator[None]:
        self._books.loses = what
        try:
            yield
        finally:
            self._books.loses = None

    def lost_answer(self) -> Any:
        return self._losing("answer")

    def lost_request(self) -> Any:
        return self._losing("request")

    async def message(self, charge: ChargeRequest) -> Message:
        return self.rail.sign_event(charge)

    async def old_message(self, charge: ChargeRequest) -> Message | None:
        return None

    async def dispute(self, charge: ChargeRequest) -> None:
        """Move the charge into the past, so that its bank opens the dispute now."""
        await self._pool.execute(
            "UPDATE card_simulator.charges SET created_at = created_at - interval '8 days' WHERE key = $1",
            charge.key,
        )

    async def dispute_in_books(self, reference: str) -> DisputeInBooks:
        row = await self._pool.fetchrow(
            "SELECT evidence, files, accepted_at FROM card_simulator.disputes WHERE charge = $1",
            UUID(reference.removeprefix("dp_")),
        )
        if row is None:
            return DisputeInBooks(None, 0, accepted=False)
        accepted = row["accepted_at"] is not None
        return DisputeInBooks(row["evidence"], row["files"], accepted)
