"""The parts of a page of the operator's dashboard: sections with facts, tables and texts, as `operator/page.html` shows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cuota.web.pages.render import PageContext


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
    }


def table(
    title: str, columns: Sequence[PageContext], rows: Iterable[Sequence[PageContext]], empty: str
) -> PageContext:
    """Return a section with a table, or with the text `empty` if there are no rows."""
    return {**section(title), "columns": list(columns), "rows": list(rows), "empty": empty}
