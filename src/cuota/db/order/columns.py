"""The columns of an order and of an installment. Every read and every write uses these lists.

A column has the same name as its field, and no statement refers to columns by position. So a value cannot get into the
wrong column.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import attrgetter, itemgetter

from cuota.core.installment import Installment
from cuota.core.order.movement import Movement, MovementKind
from cuota.core.order.order import Order, Status
from cuota.core.order.outcome import Outcome
from cuota.core.risk.review import ReviewState
from cuota.db.nested import Nested
from cuota.db.pool import Row

Values = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of `orders`. `new` columns are written for a new order, `changed` columns with every outcome."""

    name: str
    type: str
    new: bool = False
    changed: bool = False

    @property
    def typed(self) -> str:
        """Return the name and the type in SQL."""
        return f"{self.name} {self.type}"


# Only an outcome about a dispute or a return notice changes these (db/order/claim_tables.py).
_CLAIMED = (
    Column("disputed", "bigint"),
    Column("charged_back", "bigint"),
    Column("open_disputes", "smallint"),
    Column("open_chargebacks", "smallint"),
    Column("paused_at", "timestamptz"),
    Column("return_hold_until", "timestamptz"),
)
CLAIMED = tuple(column.typed for column in _CLAIMED)
# Only an outcome about a review changes these (db/order/review_tables.py).
_REVIEWED = (Column("review", "text"), Column("review_by", "timestamptz"))
REVIEWED = tuple(column.typed for column in _REVIEWED)
ORDER = (
    Column("merchant_id", "uuid", new=True),
    Column("order_id", "uuid", new=True),
    Column("token", "uuid", new=True),
    Column("version", "integer"),  # 1 at first; every save adds 1
    Column("status", "text", new=True, changed=True),
    Column("currency", "text", new=True),
    Column("amount", "bigint", new=True),
    Column("fee", "bigint", new=True),
    Column("auto_capture", "boolean", new=True),
    Column("created_at", "timestamptz", new=True),
    Column("expires_at", "timestamptz", new=True),
    Column("captured", "bigint", changed=True),
    Column("voided", "bigint", changed=True),
    Column("refunded", "bigint", changed=True),
    Column("fee_returned", "bigint", changed=True),
    Column("authorization_expires_at", "timestamptz", changed=True),
    Column("lapsed", "boolean", changed=True),
    Column("warned", "smallint", changed=True),
    Column("card_failures", "smallint", changed=True),
    Column("charging", "uuid", changed=True),
    Column("charging_since", "timestamptz", changed=True),
    Column("collect_at", "timestamptz", changed=True),
    Column("due_at", "timestamptz", new=True, changed=True),
    Column("transfers", "integer", changed=True),
    Column("events", "integer", new=True, changed=True),
    *_CLAIMED,
    *_REVIEWED,
)
# Columns that are not attributes of an Order: the merchant, and counters that are changed while writing.
_APART = ("merchant_id", "order_id", "token", "version", "transfers", "events")
_PLAIN = tuple(column for column in ORDER if column.name not in _APART)
_BY_NAME = {column.name: column for column in ORDER}


def _typed(*names: str) -> tuple[str, ...]:
    return tuple(_BY_NAME[name].typed for name in names)


_PLAIN_NEW = tuple(column.name for column in _PLAIN if column.new)
_PLAIN_CHANGED = tuple(column.name for column in _PLAIN if column.changed)
NEW = _typed("order_id", "token", "events", *_PLAIN_NEW)
CHANGED = _typed("order_id", "version", "transfers", "events", *_PLAIN_CHANGED)
_new_values = attrgetter(*_PLAIN_NEW)
_changed_values = attrgetter(*_PLAIN_CHANGED)


def new_row(order: Order, token: object, events: int) -> Values:
    """Return the values of NEW for an order that begins with this many events."""
    return (order.order_id, token, events, *_new_values(order))


_claimed_values = attrgetter(*(column.name for column in _CLAIMED))


def claimed_row(order: Order) -> Values:
    """Return the values of CLAIMED."""
    values: Values = _claimed_values(order)
    return values


_reviewed_values = attrgetter(*(column.name for column in _REVIEWED))


def reviewed_row(order: Order) -> Values:
    """Return the values of REVIEWED."""
    values: Values = _reviewed_values(order)
    return values


def changed_row(outcome: Outcome) -> Values:
    """Return the values of CHANGED for an outcome. `version` is the version that was read."""
    new = outcome.order
    transfers, events = new.transfers + len(outcome.transfers), new.events + len(outcome.events)
    return (new.order_id, new.version, transfers, events, *_changed_values(new))


_READ = tuple(field.name for field in fields(Order))
MONEY = ", ".join(f"o.{name}" for name in _READ)
_read_values = itemgetter(*_READ)
_STATUS, _REVIEW = _READ.index("status"), _READ.index("review")


def order_of(row: Row) -> Order:
    """Return an Order from a row with the columns of MONEY."""
    values = list(_read_values(row))
    values[_STATUS] = Status(values[_STATUS])
    if values[_REVIEW] is not None:
        values[_REVIEW] = ReviewState(values[_REVIEW])
    return Order(*values)


_NUMBERED = tuple(field.name for field in fields(Installment))
_TYPES = {
    "number": "smallint",
    "due_on": "date",
    "amount": "bigint",
    "fee": "bigint",
    "charge_id": "uuid",
    "returned": "bigint",
    "charge_at": "timestamptz",
    "remind_at": "timestamptz",
    "failures": "smallint",
}
# `written_off_at` is not in this list: save_orders does not change it, and db/plan/write_offs.py sets it.
INSTALLMENT = tuple(f"{name} {kind}" for name, kind in _TYPES.items())
PLAN = Nested(
    "plan",
    tuple(f"i.{name}" for name in _NUMBERED),
    "FROM installments i WHERE i.merchant_id = $1 AND i.order_id = o.order_id ORDER BY i.number",
)
MOVED = Nested(
    "moved",
    ("m.kind", "m.movement_id", "m.reference", "m.amount", "m.created_at"),
    """FROM movements m WHERE m.merchant_id = $1 AND m.order_id = o.order_id
        ORDER BY m.created_at, m.movement_id""",
)
_installment_values = attrgetter(*_TYPES)


def installment_row(item: Installment) -> Values:
    """Return the values of INSTALLMENT."""
    values: Values = _installment_values(item)
    return values


def plan_of(row: Row) -> tuple[Installment, ...]:
    """Return the installments from a row with the columns of PLAN."""
    return tuple(Installment(*each) for each in PLAN.of(row))


def movements_of(row: Row) -> tuple[Movement, ...]:
    """Return the movements from a row with the columns of MOVED, earliest first."""
    return tuple(Movement(MovementKind(kind), *rest) for kind, *rest in MOVED.of(row))
