"""Planted bugs: the harness puts bugs into a worker. A bug is active only while BUG_FILE contains its name.

They prove that the checker works: the checker finds each bug in the clients' responses and in the database. None of
these bugs is in `src`.
"""

from __future__ import annotations

import asyncio
import functools
import os
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

FILE = Path(os.environ.get("BUG_FILE", ""))
LATE_SECONDS = 0.4
SHORT_SECONDS = 0.15

# Bugs that change a part of an SQL statement: the original part, and its replacement.
STATEMENTS: dict[str, tuple[tuple[str, str], ...]] = {
    "tenant left out": (
        ("WHERE o.merchant_id = $1 AND o.order_id = $2", "WHERE o.order_id = $2"),
        ("ON o.merchant_id = $1 AND o.order_id = q.order_id", "ON o.order_id = q.order_id"),
    ),
    # The sleep lengthens the time between reading a delivery and claiming it, like a busy machine.
    "claim without its predicate": (
        ("SELECT d.spot, s.waits_for", "SELECT s.order_id, s.receiver, s.sequence, s.waits_for"),
        (" AND d.xmin = s.version AND d.try_at <= $2\n        LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED", " AND (SELECT pg_sleep(0.1)) IS NOT NULL LIMIT 1"),
        ("d.ctid = h.spot", "(d.order_id, d.receiver, d.sequence) = (h.order_id, h.receiver, h.sequence)"),
    ),
}  # fmt: skip
_TELL = """WITH told AS (INSERT INTO events
    (merchant_id, order_id, sequence, type, operation, amount, reference, success, message, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING merchant_id, order_id, sequence)
    INSERT INTO outbox (merchant_id, order_id, sequence) SELECT * FROM told"""


def bug(name: str) -> bool:
    try:
        return FILE.read_text() == name
    except OSError:
        return False


def plant() -> None:
    """Put all bugs into this process. Each one is inactive until BUG_FILE contains its name."""
    _statements()
    _saving()
    _deciding()
    _reserving()
    _outside()
    if bug("synchronous_commit=off"):
        from cuota.db import pool

        pool.SESSION["synchronous_commit"] = pool.TOGETHER["synchronous_commit"] = "off"


def plant_in_supervisor() -> None:
    """While the bug is active, the embedded server starts with fsync off."""
    from cuota.db.embedded import cluster as embedded_cluster

    settings = embedded_cluster._settings

    def weakened(places: Any) -> list[str]:
        return ["fsync=off" if bug("fsync=off") and each == "fsync=on" else each for each in settings(places)]

    embedded_cluster._settings = weakened


def _statements() -> None:
    import asyncpg

    def without(sql: str) -> str:
        try:
            name = FILE.read_text()
        except OSError:
            return sql
        for piece, instead in STATEMENTS.get(name, ()):
            sql = sql.replace(piece, instead)
        return sql

    for name in ("fetchrow", "fetch"):
        real = getattr(asyncpg.Connection, name)

        def asked(self: Any, sql: str, *values: Any, real: Any = real, **more: Any) -> Any:
            return real(self, without(sql), *values, **more)

        setattr(asyncpg.Connection, name, functools.wraps(real)(asked))


def _saving() -> None:
    """Bugs around the commit: a response before it, a connection lost during it, and an event written after it."""
    from cuota.db.order import outcome_tables, outcomes
    from cuota.db.pool import unavailable

    save, events = outcomes.save, outcome_tables._events
    running: set[asyncio.Task[Any]] = set()

    def without_events(outcome: Any) -> Any:
        return [] if bug("event in a second transaction") else events(outcome)

    async def late(session: Any, outcome: Any) -> bool:
        await asyncio.sleep(LATE_SECONDS)
        return bool(await save(session, outcome))

    async def saved(session: Any, outcome: Any, answer: Any = None) -> bool:
        if outcome.movement is not None and bug("answer before commit"):
            task = asyncio.create_task(late(session, outcome))
            running.add(task)
            task.add_done_callback(running.discard)
            return True
        if outcome.movement is not None and bug("timeout around COMMIT"):
            try:
                return await asyncio.wait_for(save(session, outcome, answer), SHORT_SECONDS)
            except TimeoutError:
                raise unavailable("The database is slow; nothing was applied. Try again shortly.") from None
        done = await save(session, outcome, answer)
        if done and bug("event in a second transaction"):
            order = outcome.order
            for number, e in enumerate(outcome.events, order.events + 1):
                await session.fetchrow(
                    _TELL, order.merchant_id, order.order_id, number, e.type, e.operation, e.amount, e.reference,
                    e.success, e.message, outcome.at,
                )  # fmt: skip
        return done

    outcome_tables.ARRAYS = tuple(
        (table, without_events if rows_of is events else rows_of) for table, rows_of in outcome_tables.ARRAYS
    )
    outcomes.save = saved


def _deciding() -> None:
    """Three bugs: a void or refund reduces the next installments first, amounts are floats, a refusal uses up its reference."""
    from cuota.core import money
    from cuota.core.order import refund, void
    from cuota.core.refusal import Code, Refused
    from cuota.flows.order import capture_order

    cut, cents_of, move = void.cut, money.cents_of, capture_order.move
    burnt: set[tuple[Any, str]] = set()

    def from_the_front(plan: Any, amount: int, fee: int, *more: Any) -> Any:
        done = cut(plan, amount, fee, *more)
        if not bug("plan cut from the front"):
            return done
        unpaid = [item for item in done.plan if not item.paid]
        mirrored = {item.number: other.amount for item, other in zip(unpaid, reversed(unpaid), strict=True)}
        plan = tuple(replace(i, amount=mirrored.get(i.number, i.amount)) for i in done.plan)
        return replace(done, plan=plan)

    def floated(value: Any) -> int:
        return int(float(str(value)) * 100) if bug("float amounts") else cents_of(value)

    async def burning(context: Any, merchant_id: Any, order_id: Any, asked: Any, *more: Any) -> Any:
        if bug("rejected key burnt") and (order_id, asked.reference) in burnt:
            original = {"operation": "capture", "id": "", "amount": 0, "dateTime": "", "sameRequest": False}
            raise Refused(Code.DUPLICATE_REFERENCE, "This reference was used.", facts={"original": original})
        try:
            return await move(context, merchant_id, order_id, asked, *more)
        except Refused:
            burnt.add((order_id, asked.reference))
            raise

    void.cut = refund.cut = from_the_front
    money.cents_of, capture_order.move = floated, burning


def _reserving() -> None:
    """A bug: the decision ignores the reservations of the consumer's other orders."""
    from cuota.db.risk import reservations

    reserve = reservations.reserve

    async def alone(*arguments: Any) -> Any:
        found = await reserve(*arguments)
        return replace(found, earlier={}) if bug("reservations not counted") else found

    reservations.reserve = alone


def _outside() -> None:
    """Two bugs: a webhook is marked as delivered before it is sent, and a charge is repeated under another key."""
    from cuota.core.webhook.delivery import Attempt
    from cuota.db.webhook.deliveries import Result
    from cuota.flows import charge_card
    from cuota.flows.webhook.deliver_webhooks import Courier

    send, look_up = Courier._send, charge_card.look_up

    async def marked(self: Any, item: Any, *more: Any) -> None:
        if bug("marked before sent"):
            await self._recorder.record(Result(item, Attempt(204, 1), self._context.now(), "delivered", None))
        await send(self, item, *more)

    async def anew(context: Any, asked: Any, record: Any, *more: Any) -> bool:
        if not bug("retry that changes its key"):
            return bool(await look_up(context, asked, record, *more))
        await record(await context.rails.card.charge(replace(asked, key=uuid.uuid4())))
        return True

    Courier._send, charge_card.look_up = marked, anew
    # These modules imported `look_up` by name, so replace it there too.
    from cuota.flows.checkout import submit_checkout
    from cuota.flows.plan import collect_installments

    collect_installments.charge_card.look_up = submit_checkout.look_up = anew
