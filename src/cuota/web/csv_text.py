"""Writes CSV (RFC 4180, UTF-8) without formulas that a spreadsheet would execute.

A file is written page by page, so a large file needs no more memory than a small one.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import AsyncIterator, Iterable, Mapping

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from cuota.web.body import CHECK_CALLER

_DANGEROUS = r"=+\-@\t\r\n'\uff1d\uff0b\uff0d\uff20"
# In many countries, a spreadsheet splits the file at semicolons. It then starts a cell inside of a text, and quotes around
# the whole text do not prevent that, because for this spreadsheet they are in the middle of a cell.
_CELL_STARTS = re.compile(f"""^(?=[{_DANGEROUS}])|(?<=;)(?=[{_DANGEROUS}"])""")


def safe(text: str | None) -> str:
    """Return a text from outside in a form that a spreadsheet does not execute.

    A text that begins like a formula, or with an apostrophe, gets an apostrophe in front. So does such a part, or a part
    that begins with a quote, after a semicolon. To get the text back, remove these apostrophes.
    """
    return _CELL_STARTS.sub("'", text) if text else ""


def rows_of(rows: Iterable[Iterable[object]]) -> bytes:
    """Write rows of a CSV file."""
    written = io.StringIO()
    csv.writer(written, lineterminator="\r\n").writerows(rows)
    return written.getvalue().encode()


async def stream(
    request: Request, pages: AsyncIterator[bytes], name: str, more: Mapping[str, str] | None = None
) -> Response:
    """Answer with a file `NAME.csv`. Each page of rows is read from the database when it is sent. `more` are further headers.

    A large file takes minutes. If the caller may not read the file any more, the connection ends before the next page.
    """
    check = request.scope[CHECK_CALLER]
    headers = {
        **(more or {}),
        "Content-Disposition": f'attachment; filename="{name}.csv"',
        "Vary": "Accept",
        "Cache-Control": "no-store",
    }
    kind = "text/csv; charset=utf-8; header=present"
    if request.method == "HEAD":
        return Response(headers={**headers, "Content-Type": kind})
    # Read the first pages before the answer begins, so that an unavailable database gives a proper error.
    first = [await anext(pages), await anext(pages, b"")]

    async def all_pages() -> AsyncIterator[bytes]:
        for page in first:
            yield page
        first.clear()
        async for page in pages:
            await check()
            yield page

    return StreamingResponse(all_pages(), headers={**headers, "Content-Type": kind})
