"""The calls of the database's functions that save orders: their parameters, and how rows become values for them.

The functions are `save_orders` and `create_orders`, in the migrations. A test compares their parameters with the lists here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from uuid import UUID

from cuota.db.order.columns import Values


@dataclass(frozen=True, slots=True)
class Answer:
    """The response to store for an Idempotency-Key, together with the money. It is saved only while the lease is held."""

    key: str
    lease: UUID
    status: int
    body: bytes


ANSWER = ("answer_key text", "answer_lease uuid", "answer_status smallint", "answer_body bytea")


def answer_values(answer: Answer | None) -> Values:
    """Return the values of ANSWER."""
    return (None,) * len(ANSWER) if answer is None else (answer.key, answer.lease, answer.status, answer.body)


@dataclass(frozen=True, slots=True)
class ArrayTable:
    """A table whose rows are passed to a function as arrays, one for each column.

    A column is `name type`; the first is order_id.
    """

    name: str
    columns: tuple[str, ...]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the function's parameters for this table, each as `name type`."""
        return tuple(f"{self.name}_{column}[]" for column in self.columns)

    def values(self, rows: Sequence[Values]) -> Values:
        """Return one list of values for each column. Without rows, return None for each column."""
        return tuple(map(list, zip(*rows, strict=True))) if rows else (None,) * len(self.columns)


@dataclass(frozen=True, slots=True)
class JsonTable:
    """A table that is rarely written. Its rows are passed to a function as one JSON array of objects, or null without rows.

    A column is `name type`, as the function reads it. The first is `nth`, the number of the row's order in the call,
    from 1.
    """

    name: str
    columns: tuple[str, ...]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the function's parameter for this table, as `name type`."""
        return (f"{self.name} json",)

    def values(self, rows: Sequence[Values]) -> tuple[str | None]:
        """Return the rows as JSON text."""
        if not rows:
            return (None,)
        names = [column.split()[0] for column in self.columns]
        return (json.dumps([dict(zip(names, row, strict=True)) for row in rows], default=_text),)


def _text(value: object) -> str:
    """Return a value that has no JSON type as a text that PostgreSQL can read."""
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    assert isinstance(value, UUID | date), f"{type(value)} in a JSON row"
    return str(value)


def call(function: str, parameters: Iterable[str]) -> str:
    """Return the SQL that calls a function with parameters `name type`, by position."""
    types = [parameter.split()[1] for parameter in parameters]
    asked = ", ".join(f"${number}::{kind}" for number, kind in enumerate(types, 1))
    return f"SELECT {function}({asked}) AS saved"
