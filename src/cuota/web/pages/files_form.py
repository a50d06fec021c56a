"""Reads a form with files from a browser whose person is known. The forms of one person are read one after the other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.dispute.evidence_file import MOST_TOTAL_BYTES
from cuota.core.refusal import Code, Refused
from cuota.web.pages.checkout.session import Stop, require_own
from cuota.web.pages.render import PageForm, problem
from cuota.web.upload import UploadedForm, read_upload, upload_place

# What a page answers to a form that could not be read.
UnreadPage = Callable[[Request, Refused], Response]


@asynccontextmanager
async def files_form(
    request: Request, sender: UUID, secret: str, place: str, unread: UnreadPage
) -> AsyncIterator[UploadedForm]:
    """Read the form, and keep the sender's place until the end of the block. Raises Stop.

    `place` names the page from which the form must come. `unread` makes the page for a form that is too large or cannot be read.
    """
    async with AsyncExitStack() as held:
        try:
            await held.enter_async_context(upload_place(sender))
            form = await read_upload(request)
            require_own(request, secret, place, form.fields)
        except Refused as refused:
            raise Stop(early(unread(request, refused))) from None
        yield form


def early(response: Response) -> Response:
    """Close the connection after an answer that does not wait for the files, so that the browser stops sending them."""
    response.headers["Connection"] = "close"
    return response


def unread_by(errors: PageForm) -> UnreadPage:
    """Return a function that makes the page for a form that is too large, cannot be read, or must wait.

    `errors` makes the page for a form that must wait.
    """

    def unread(request: Request, refused: Refused) -> Response:
        if refused.code is Code.UNAVAILABLE:
            return errors.answer(request, refused)
        return unread_form(request, refused)

    return unread


def unread_form(request: Request, refused: Refused) -> Response:
    """Return the page for a form whose body is too large or cannot be read."""
    if refused.code is Code.BODY_TOO_LARGE:
        most = f"{MOST_TOTAL_BYTES // 2**20} MB"
        text = f"Your files may have at most {most} together. Nothing was sent. Go back and choose smaller files."
        return problem(request, 413, "These files are too large", text)
    return problem(request, 400, "This form could not be read", refused.message)
