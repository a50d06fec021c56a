"""The parts of the SQL statement that saves outcomes.

The part `changed` updates the orders whose version is still the one that was read. Every other part joins its rows to
`changed`, so an order that has changed meanwhile writes nothing. A part holds the rows of one outcome or of many
(`db/gathered.py`); the statement is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.db.order.columns import CHANGED, NEW, Values, changed_row, new_row


@dataclass(frozen=True, slots=True)
class StatementPart:
    """One CTE: its name, its SQL with parameters numbered from :1, and the values of the parameters."""

    name: str
    sql: str
    values: Values


@dataclass(frozen=True, slots=True)
class OutcomeTable:
    """What outcomes write into one table.

    `sql` takes one array for each of `width` columns; order_id is the first column.
    """

    name: str
    sql: str
    width: int

    def part(self, rows: Sequence[Values]) -> StatementPart:
        """Return these rows as a part, one array for each column."""
        return StatementPart(self.name, self.sql, tuple(map(list, zip(*rows, strict=True))))


def unnested(columns: Sequence[str], first: int = 1) -> tuple[str, str]:
    """Return the arrays `:1::uuid[], ...` and the column names, for columns written as `name type`."""
    names, types = zip(*(column.split() for column in columns), strict=True)
    arrays = ", ".join(f":{number}::{kind}[]" for number, kind in enumerate(types, first))
    return arrays, ", ".join(names)


def added(name: str, table: str, columns: str, conflict: str = "") -> OutcomeTable:
    """Return the insert of new rows. Each row belongs to an order in `changed`."""
    every = ["order_id uuid", *columns.split(", ")]
    arrays, names = unnested(every)
    sql = f"""INSERT INTO {table} (merchant_id, {names}) SELECT changed.merchant_id, r.* FROM changed
        JOIN unnest({arrays}) AS r ({names}) ON r.order_id = changed.order_id {conflict}"""
    return OutcomeTable(name, sql, len(every))


def altered(name: str, table: str, columns: str, change: str, also: str = "") -> OutcomeTable:
    """Return the update of existing rows. In `change` and `also`, `r` is the row of new values."""
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
    """Lock the lease on an Idempotency-Key. Without the lease, nothing is written."""
    return StatementPart("held", _HELD, (merchant_id, key, lease))


def kept(merchant_id: UUID, key: str, lease: UUID, status: int, body: bytes) -> StatementPart:
    """Store the response for an Idempotency-Key, only if the outcome was written."""
    return StatementPart("kept", _KEPT, (merchant_id, key, lease, status, body))


_SET = ", ".join(f"{name} = n.{name}" for name in (column.split()[0] for column in CHANGED[2:]))
_ARRAYS, _NAMES = unnested(CHANGED, 2)
_CHANGED = f"""UPDATE orders o SET version = o.version + 1, {_SET} FROM unnest({_ARRAYS}) AS n ({_NAMES})
    WHERE o.merchant_id = :1 AND o.order_id = n.order_id AND o.version = n.version{{only}}
    RETURNING o.merchant_id, o.order_id"""
_CHANGED_PLAIN = _CHANGED.format(only="")
_CHANGED_LEASED = _CHANGED.format(only=" AND EXISTS (SELECT FROM held)")
_CHANGED_GUARDED = _CHANGED.format(only=" AND EXISTS (SELECT FROM guarded)")


def changed(outcomes: Sequence[Outcome], *, leased: bool = False, guarded: bool = False) -> StatementPart:
    """Return the part that updates one merchant's orders whose version is still the one that was read.

    With `leased` the lease on the Idempotency-Key, and with `guarded` the consumer's exposure, must be unchanged too.
    """
    assert not (leased and guarded), "a request with an Idempotency-Key never makes a risk decision"
    rows = [changed_row(outcome) for outcome in outcomes]
    sql = _CHANGED_LEASED if leased else _CHANGED_GUARDED if guarded else _CHANGED_PLAIN
    return StatementPart("changed", sql, (outcomes[0].order.merchant_id, *map(list, zip(*rows, strict=True))))


_NEW_ARRAYS, _NEW_NAMES = unnested(NEW, 2)
_CREATED = f"""INSERT INTO orders (merchant_id, version, {_NEW_NAMES})
    SELECT :1::uuid, 1, n.* FROM unnest({_NEW_ARRAYS}) AS n ({_NEW_NAMES}){{lease}} RETURNING merchant_id, order_id"""
_CREATED_PLAIN = _CREATED.format(lease="")
_CREATED_LEASED = _CREATED.format(lease=" WHERE EXISTS (SELECT FROM held)")


def created(orders: Iterable[tuple[Order, UUID, int]], *, leased: bool = False) -> StatementPart:
    """Return the part that inserts one merchant's new orders, each with its token and its number of first events."""
    begun = list(orders)
    rows = [new_row(order, token, events) for order, token, events in begun]
    values = (begun[0][0].merchant_id, *map(list, zip(*rows, strict=True)))
    return StatementPart("changed", _CREATED_LEASED if leased else _CREATED_PLAIN, values)
