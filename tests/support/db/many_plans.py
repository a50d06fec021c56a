"""Gives a consumer many plans in a few statements: copies of the rows of one order."""

from __future__ import annotations

from uuid import UUID

from support.makers import complete
from support.own_service import Own
from support.phones import phone_number

_TABLES = (
    "orders",
    "order_details",
    "plans",
    "installments",
    "charges",
    "events",
    "transfers",
    "messages",
    "decisions",
    "signals",
)
_COLUMNS = """SELECT attname AS name, atttypid = 'uuid'::regtype AS is_id FROM pg_attribute
    WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum"""
_SAME = {"merchant_id", "consumer_id"}


def _value(name: str, *, is_id: bool) -> str:
    """Return a column of a copy. Ids of a copy differ from all others, and refer to rows of the same copy."""
    if name == "order_id":
        return "copy.order_id"
    return f"md5(t.{name}::text || copy.order_id)::uuid" if is_id and name not in _SAME else f"t.{name}"


async def many_plans(own: Own, count: int) -> tuple[str, UUID]:
    """Make a consumer with this many plans at one merchant. Return the phone number and the consumer's id."""
    phone = phone_number()
    order = await own.merchant.create("100.00")
    await complete(own.service, own.merchant.merchant_id, order, phone=phone)
    async with own.owner() as owner:
        # The tables refer to each other, and triggers would write more rows.
        await owner.execute("SET session_replication_role = replica")
        await owner.execute(
            f"CREATE TEMP TABLE copies AS SELECT gen_random_uuid() AS order_id FROM generate_series(2, {count})"
        )
        for table in _TABLES:
            columns = [(row["name"], row["is_id"]) for row in await owner.fetch(_COLUMNS, table)]
            names = ", ".join(name for name, _ in columns)
            values = ", ".join(_value(name, is_id=is_id) for name, is_id in columns)
            await owner.execute(
                f"INSERT INTO {table} ({names}) SELECT {values} FROM {table} t CROSS JOIN copies copy WHERE t.order_id = $1",
                UUID(order["orderId"]),
            )
    return phone, own.context.vault.consumer_id(phone)
