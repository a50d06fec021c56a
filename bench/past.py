"""Inserts many consumers with many earlier orders, so that a risk decision has to find its own rows among them."""

from __future__ import annotations

from uuid import UUID

import asyncpg

# c counts consumers, n counts a consumer's orders. Two of four installments are paid; the second one of every tenth
# order late.
_IDS = "md5('order' || c || '-' || n)::uuid"
_EACH = "FROM generate_series(1, $2::integer) c, generate_series(1, $3::integer) n"
_AT = "now() - interval '1 day' * n"
_FILL = (
    f"""INSERT INTO orders (merchant_id, order_id, token, version, status, currency, amount, fee, auto_capture,
        captured, transfers, events, created_at, expires_at) SELECT $1::uuid, {_IDS}, md5('token' || c || '-' || n)::uuid, 3,
        'Approved', 'USD', 10000, 0, true, 10000, 0, 2, {_AT}, {_AT} {_EACH}""",
    f"""INSERT INTO plans (merchant_id, order_id, consumer_id, time_zone, first_day, agreement, agreement_hash,
        agreed_at, payer) SELECT $1::uuid, {_IDS}, md5('consumer' || c)::uuid, 'America/New_York', current_date - n, 'text',
        'hash', {_AT}, '{{"surname": "Rivera"}}' {_EACH}""",
    f"""INSERT INTO installments (merchant_id, order_id, number, due_on, amount, fee, charge_id, failures)
        SELECT $1::uuid, {_IDS}, i, current_date + 1 + 14 * (i - 3), 2500, 0,
        CASE WHEN i < 3 THEN md5('charge' || c || '-' || n || '-' || i)::uuid END, CASE WHEN i = 2 AND n % 10 = 0 THEN 1 ELSE 0 END
        {_EACH}, generate_series(1, 4) i""",
    f"""INSERT INTO charges (merchant_id, order_id, charge_id, installment, amount, card_token, card_brand, card_last4,
        state, created_at, settled_at) SELECT $1::uuid, {_IDS}, md5('charge' || c || '-' || n || '-' || i)::uuid, i, 2500, 'card',
        'visa', '4242', 'succeeded', {_AT}, {_AT} {_EACH}, generate_series(1, 2) i""",
    f"""INSERT INTO decisions (merchant_id, order_id, decided_at, approved, reasons, policy_version, inputs, consumer_id,
        score, credit_limit) SELECT $1::uuid, {_IDS}, {_AT}, true, '{{approved}}', 'past', '{{}}', md5('consumer' || c)::uuid, 0, 0
        {_EACH}""",
    f"""INSERT INTO signals (merchant_id, order_id, kind, value_hash, at) SELECT $1::uuid, {_IDS}, k,
        sha256((k || c)::bytea), {_AT} {_EACH}, unnest(ARRAY['phone', 'card', 'address', 'device']) k""",
    """INSERT INTO consumer_exposure (consumer_id, version) SELECT md5('consumer' || c)::uuid, $3::integer
        FROM generate_series(1, $2::integer) c WHERE $1::uuid IS NOT NULL""",
)
_NAMES = "SELECT md5('consumer' || $1::integer)::uuid"


async def fill(owner: asyncpg.Connection, merchant_id: UUID, consumers: int, orders: int) -> None:
    """Insert `consumers` with `orders` earlier orders each, as the database's owner."""
    async with owner.transaction():
        # The inserted rows are correct, so the triggers need not check them.
        await owner.execute("SET LOCAL session_replication_role = replica")
        for statement in _FILL:
            await owner.execute(statement, merchant_id, consumers, orders)
    await owner.execute("VACUUM ANALYZE")


async def consumer(owner: asyncpg.Connection, number: int) -> UUID:
    """Return the id of one of the consumers."""
    found: UUID = await owner.fetchval(_NAMES, number)
    return found
