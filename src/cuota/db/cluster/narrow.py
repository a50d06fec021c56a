"""Restricts a statement that reads the rows of all merchants to some merchants. Then Citus queries only the nodes with these merchants."""

from __future__ import annotations

import re

from cuota.db.citus import MERCHANT, PLACES

_NAMES = "|".join(name for name, place in PLACES.items() if place == MERCHANT)
# A table with merchants' rows, and its alias. Keywords of the statements are in upper case, aliases in lower case.
_TABLE = re.compile(rf"\b(FROM|JOIN)\s+({_NAMES})\b(?:(?:\s+AS)?\s+([a-z]\w*))?")


def narrow(sql: str, number: int) -> str:
    """Return the statement with only the rows of the merchants in the parameter with this number.

    The condition stands at each table: outside a LIMIT or a count, it would come too late.
    """

    def some(found: re.Match[str]) -> str:
        word, table, alias = found.groups()
        return f"{word} (SELECT * FROM {table} WHERE merchant_id = ANY (${number}::uuid[])) {alias or table}"

    return _TABLE.sub(some, sql)
