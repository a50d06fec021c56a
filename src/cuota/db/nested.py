"""Rows inside a row, for example the movements inside a row of an order.

Each column becomes an array. `ARRAY(SELECT ROW(...))` would be shorter, but the nodes of a Citus cluster cannot send each other
records without a named type. Arrays carry every value in its own type, so no cent and no microsecond is converted.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from cuota.db.pool import Row


class Nested:
    """Rows of another table inside each row of a statement: `columns` for its SELECT, `join` for the end of its FROM.

    `source` begins with FROM, names the merchant, and orders the rows. It may refer to the tables before it.
    """

    def __init__(self, name: str, columns: tuple[str, ...], source: str) -> None:
        assert len(columns) > 1, "one column is ARRAY(SELECT ...)"
        names = tuple(f"{name}_{number}" for number in range(1, len(columns) + 1))
        inner = ", ".join(f"{column} AS {alias}" for column, alias in zip(columns, names, strict=True))
        arrays = ", ".join(f"array_agg({alias}) AS {alias}" for alias in names)
        self.columns = ", ".join(f"{name}.{alias}" for alias in names)
        self.join = f"CROSS JOIN LATERAL (SELECT {arrays} FROM (SELECT {inner} {source}) {name}) {name}"
        self._arrays = itemgetter(*names)

    def of(self, row: Row) -> Iterator[tuple[Any, ...]]:
        """Yield the nested rows of a row."""
        arrays = self._arrays(row)
        # array_agg returns NULL if there are no rows.
        return iter(()) if arrays[0] is None else zip(*arrays, strict=True)
