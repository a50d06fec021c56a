"""The statements of the lists that a merchant may sort: each is a template, filled in for one order of the rows."""

from __future__ import annotations

from collections.abc import Iterator

from cuota.core.desk.sort import Sort
from cuota.db.desk import orders, sorted_lists

# The templates that filled() fills in.
TEMPLATES = (
    *(f"orders.{name}" for name in ("_ALL", "_NAMED", "_PAGE")),
    *(f"sorted_lists.{name}" for name in ("_PAYOUTS_BY_TIME", "_PAYOUTS", "_DISPUTES_BY_TIME", "_DISPUTES")),
)


def filled() -> Iterator[tuple[str, str]]:
    """Return every statement that a sorted list may send, as (name, text)."""
    for sort in orders._SORTED:
        for view in orders.View:
            for terms, kind in ((None, "all"), ((1,), "search")):
                asked = orders.Asked(view=view, sort=sort, terms=terms)
                yield f"orders.{sort.value}.{view.value}.{kind}", orders.statement(asked)
    for name in ("_PAYOUT_SORTS", "_DISPUTE_SORTS"):
        sorts: dict[Sort, tuple[str, str, str]] = getattr(sorted_lists, name)
        for sort, (sql, behind, way) in sorts.items():
            yield f"sorted_lists.{name}.{sort.value}", sql.format(behind=behind, way=way)
