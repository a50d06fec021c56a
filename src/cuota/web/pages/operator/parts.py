"""The parts of a page of the operator's dashboard: sections with facts, tables and texts for `operator/page.html`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar
from urllib.parse import urlencode
from uuid import UUID

from starlette.requests import Request

from cuota.db.position import Position
from cuota.web.pages.render import PageContext

ListedT = TypeVar("ListedT")
# The database cannot read every year that Python can write.
_YEARS = range(2000, 2300)


class ListPage(NamedTuple):
    """The beginning of a page in a long list: after the row at `after`, or at the first row."""

    address: str
    query: dict[str, str]
    after: Position | None

    @staticmethod
    def of(request: Request, address: str, **query: str) -> ListPage:
        """Read the beginning of the page from the address. If the position cannot be read, return the first page."""
        known = {name: value for name, value in query.items() if value}
        return ListPage(address, known, position_of(request.query_params.get("after", "")))

    def links(
        self, found: Sequence[ListedT], a_page: int, position: Callable[[ListedT], Position]
    ) -> list[tuple[str, str]]:
        """Return the links below the list. If there is a next page, `found` has one row more than a page."""
        links = [(self._to(), "First page")] if self.after else []
        if len(found) > a_page:
            at, row_id = position(found[a_page - 1])
            links.append((self._to(after=f"{at.isoformat()}_{row_id}"), "Next page"))
        return links

    def _to(self, **more: str) -> str:
        query = urlencode({**self.query, **more})
        return f"{self.address}?{query}" if query else self.address


def position_of(text: str) -> Position | None:
    """Read a position in a list from a link, or return None if the text cannot be read."""
    at, _, row_id = text.partition("_")
    try:
        found = datetime.fromisoformat(at), UUID(row_id)
    except ValueError:
        return None
    return found if found[0].tzinfo is not None and found[0].year in _YEARS else None


def cell(
    text: object, address: str | None = None, *, more: str = "", amount: bool = False, wide: bool = False
) -> PageContext:
    """Return a cell of a table. `wide` hides it on a phone, `amount` aligns it to the right, `more` is a second line."""
    return {
        "text": str(text), "address": address, "more": more, "amount": amount, "wide": wide, "state": None,
    }  # fmt: skip


def state(word: str, kind: str) -> PageContext:
    """Return a cell with a status: a word, and the kind of its mark (`done`, `wait`, `off` or `bad`)."""
    return {**cell(word), "state": {"word": word, "kind": kind}}


def section(
    title: str = "",
    *,
    texts: Iterable[str] = (),
    pairs: Iterable[tuple[str, object]] = (),
    lines: Sequence[str] = (),
    links: Iterable[tuple[str, str]] = (),
) -> PageContext:
    """Return a section with texts, facts as (label, value), preformatted lines, and links as (address, label)."""
    return {
        "title": title,
        "texts": list(texts),
        "pairs": list(pairs),
        "lines": "\n".join(lines),
        "links": [{"address": address, "label": label} for address, label in links],
        "columns": [],
        "rows": [],
        "empty": "",
        # Charts, each with a table of its numbers behind it.
        "charts": [],
        "behind": None,
    }


def table(
    title: str,
    columns: Sequence[PageContext],
    rows: Iterable[Sequence[PageContext]],
    empty: str,
    links: Iterable[tuple[str, str]] = (),
) -> PageContext:
    """Return a section with a table, or with the text `empty` if there are no rows.

    Links below the table are pairs of (address, label).
    """
    return {**section(title, links=links), "columns": list(columns), "rows": list(rows), "empty": empty}
