"""The parts of the one statement that saves outcomes.

Every part joins its rows to `changed`, the orders that were still as they were read: no order, no write. A part holds
the rows of one outcome or of many (`db/gathered`); the statement is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome

Values = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class StatementPart:
    """One CTE: its name, its SQL with parameters numbered from :1, and their values."""

    name: str
    sql: str
    values: Values


@dataclass(frozen=True, slots=True)
class OutcomeTable:
    """What outcomes write into one table. `sql` takes one array for each of `width` columns, order_id first."""

    name: str
    sql: str
    width: int

    def part(self, rows: Sequence[Values]) -> StatementPart:
        """These rows, as columns."""
        return StatementPart(self.name, self.sql, tuple(map(list, zip(*rows, strict=True))))


def unnested(columns: Sequence[str], first: int = 1) -> tuple[str, str]:
    """`:1::uuid[], ...` and the names, for columns written `name type`."""
    names, types = zip(*(column.split() for column in columns), strict=True)
    arrays = ", ".join(f":{number}::{kind}[]" for number, kind in enumerate(types, first))
    return arrays, ", ".join(names)


def added(name: str, table: str, columns: str, conflict: str = "") -> OutcomeTable:
    """New rows of a table, each with the order that it belongs to."""
    every = ["order_id uuid", *columns.split(", ")]
    arrays, names = unnested(every)
    sql = f"""INSERT INTO {table} (merchant_id, {names}) SELECT changed.merchant_id, r.* FROM changed
        JOIN unnest({arrays}) AS r ({names}) ON r.order_id = changed.order_id {conflict}"""
    return OutcomeTable(name, sql, len(every))


def altered(name: str, table: str, columns: str, change: str, also: str = "") -> OutcomeTable:
    """Changed rows of a table; `change` and `also` name a row's new values `r`."""
    every = ["order_id uuid", *columns.split(", ")]
    arrays, names = unnested(every)
    sql = f"""UPDATE {table} t SET {change} FROM changed JOIN unnest({arrays}) AS r ({names})
        ON r.order_id = changed.order_id
        WHERE t.merchant_id = changed.merchant_id AND t.order_id = changed.order_id {also}"""
    return OutcomeTable(name, sql, len(every))


_HELD = """SELECT 1 FROM idempotency_keys
    WHERE merchant_id = :1 AND key = :2 AND lease = :3 AND status IS NULL FOR UPDATE"""
_KEPT = """UPDATE idempotency_keys k SET status = :4::smallint, body = :5 FROM changed
    WHERE k.merchant_id = :1 AND k.key = :2 AND k.lease = :3 AND k.status IS NULL"""


def held(merchant_id: UUID, key: str, lease: UUID) -> StatementPart:
    """The lease on an Idempotency-Key, locked: without it nothing is written."""
    return StatementPart("held", _HELD, (merchant_id, key, lease))


def kept(merchant_id: UUID, key: str, lease: UUID, status: int, body: bytes) -> StatementPart:
    """The answer for an Idempotency-Key: kept only if what it answers was written."""
    return StatementPart("kept", _KEPT, (merchant_id, key, lease, status, body))


_MOVING = (
    "order_id uuid", "version integer", "status text", "captured bigint", "voided bigint", "refunded bigint",
    "fee_returned bigint", "lapsed boolean", "card_failures smallint", "charging uuid",
    "charging_since timestamptz", "transfers integer", "events integer", "authorization_expires_at timestamptz",
    "due_at timestamptz", "warned smallint", "collect_at timestamptz",
)  # fmt: skip
_SET = ", ".join(f"{name} = n.{name}" for name in (column.split()[0] for column in _MOVING[2:]))
_ARRAYS, _NAMES = unnested(_MOVING, 2)
_CHANGED = f"""UPDATE orders o SET version = o.version + 1, {_SET} FROM unnest({_ARRAYS}) AS n ({_NAMES})
    WHERE o.merchant_id = :1 AND o.order_id = n.order_id AND o.version = n.version{{only}}
    RETURNING o.merchant_id, o.order_id"""
_CHANGED_PLAIN = _CHANGED.format(only="")
_CHANGED_LEASED = _CHANGED.format(only=" AND EXISTS (SELECT FROM held)")
_CHANGED_GUARDED = _CHANGED.format(only=" AND EXISTS (SELECT FROM guarded)")


def changed(outcomes: Sequence[Outcome], *, leased: bool = False, guarded: bool = False) -> StatementPart:
    """One merchant's orders, where nobody changed them since they were read, nor what `leased` and `guarded` mean."""
    assert not (leased and guarded), "no call of a merchant begins a charge"
    rows = [
        (
            new.order_id, new.version, new.status, new.captured, new.voided, new.refunded, new.fee_returned,
            new.lapsed, new.card_failures, new.charging, new.charging_since,
            new.transfers + len(outcome.transfers), new.events + len(outcome.events),
            new.authorization_expires_at, new.due_at, new.warned, new.collect_at,
        )
        for outcome in outcomes
        for new in (outcome.order,)
    ]  # fmt: skip
    sql = _CHANGED_LEASED if leased else _CHANGED_GUARDED if guarded else _CHANGED_PLAIN
    return StatementPart("changed", sql, (outcomes[0].order.merchant_id, *map(list, zip(*rows, strict=True))))


_NEW = (
    "order_id uuid", "token uuid", "currency text", "amount bigint", "fee bigint", "auto_capture boolean",
    "created_at timestamptz", "expires_at timestamptz", "status text", "events integer", "due_at timestamptz",
)  # fmt: skip
_NEW_ARRAYS, _NEW_NAMES = unnested(_NEW, 2)
_CREATED = f"""INSERT INTO orders (merchant_id, version, {_NEW_NAMES})
    SELECT :1::uuid, 1, n.* FROM unnest({_NEW_ARRAYS}) AS n ({_NEW_NAMES}){{lease}} RETURNING merchant_id, order_id"""
_CREATED_PLAIN = _CREATED.format(lease="")
_CREATED_LEASED = _CREATED.format(lease=" WHERE EXISTS (SELECT FROM held)")


def created(orders: Iterable[tuple[Order, UUID, int]], *, leased: bool = False) -> StatementPart:
    """One merchant's new orders, each with its token and as many events as it begins with."""
    rows = [
        (
            order.merchant_id, order.order_id, token, order.currency, order.amount, order.fee, order.auto_capture,
            order.created_at, order.expires_at, order.status, events, order.due_at,
        )
        for order, token, events in orders
    ]  # fmt: skip
    merchant_id, *columns = map(list, zip(*rows, strict=True))
    return StatementPart("changed", _CREATED_LEASED if leased else _CREATED_PLAIN, (merchant_id[0], *columns))
