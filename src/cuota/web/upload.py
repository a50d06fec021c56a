"""Reads forms with files (multipart/form-data), of limited size. Only authenticated senders may send them.

The form is parsed while it arrives. So an upload of MOST_UPLOAD_BYTES needs about twice its size in memory, and AT_ONCE
uploads together need at most about 80 MiB in each process.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID
from weakref import WeakValueDictionary

from multipart import MultipartError, ParserLimitReached, PushMultipartParser, parse_options_header
from starlette.requests import Request

from cuota.core.dispute.evidence_file import MOST_FILES, MOST_TOTAL_BYTES
from cuota.core.refusal import Code, Refused
from cuota.web.body import read_chunks
from cuota.web.server.deadlines import BODY_SECONDS

# The limit covers the files, and the text fields around them.
MOST_UPLOAD_BYTES = MOST_TOTAL_BYTES + 128 * 1024
MOST_FIELD_BYTES = 64 * 1024
MOST_PARTS = 20
# The field whose parts are files. A file in any other field is refused.
FILES = "files"
# A process reads at most this many uploads at a time, and only one of each sender. The other uploads wait unread.
AT_ONCE = 4
WAIT_SECONDS = 10
assert WAIT_SECONDS < BODY_SECONDS, "a waiting upload must be refused before its time for the body is over"
_places: asyncio.Semaphore | None = None
_senders: WeakValueDictionary[UUID, asyncio.Lock] = WeakValueDictionary()


@dataclass(slots=True)
class UploadedForm:
    """The fields of a form, and its files as (name, content). An empty file input adds no file."""

    fields: dict[str, str] = field(default_factory=dict)
    files: list[tuple[str, bytes]] = field(default_factory=list)


@asynccontextmanager
async def upload_place(sender: UUID) -> AsyncIterator[None]:
    """Wait for this sender's turn, then for one of the AT_ONCE places: together at most WAIT_SECONDS. Raises Refused(unavailable)."""
    global _places  # noqa: PLW0603, a semaphore belongs to the loop that first uses it
    if _places is None:
        _places = asyncio.Semaphore(AT_ONCE)
    own = _senders.setdefault(sender, asyncio.Lock())
    until = asyncio.get_running_loop().time() + WAIT_SECONDS
    try:
        async with asyncio.timeout_at(until):
            await own.acquire()
    except TimeoutError:
        raise _busy("Your other files are still arriving.") from None
    try:
        try:
            async with asyncio.timeout_at(until):
                await _places.acquire()
        except TimeoutError:
            raise _busy("Many files are arriving right now.") from None
        try:
            yield
        finally:
            _places.release()
    finally:
        own.release()


async def read_upload(request: Request) -> UploadedForm:
    """Read the form. Raises Refused if it is too large or cannot be read, as soon as this is known."""
    kind, options = parse_options_header(request.headers.get("content-type", "")[:500])
    chunks = read_chunks(request, MOST_UPLOAD_BYTES)
    reader = _FormReader()
    try:
        if kind != "multipart/form-data":
            raise _unreadable()
        parser = PushMultipartParser(
            options.get("boundary", ""), max_segment_count=MOST_PARTS, strict=True, header_charset="utf8"
        )
        with parser:
            async for chunk in chunks:
                for event in parser.parse(chunk):
                    reader.read(event)
    except ParserLimitReached:
        message = (
            f"The form has too many parts. Send at most {MOST_FILES} files at a time. Nothing was changed."
        )
        raise Refused(Code.MALFORMED_REQUEST, message) from None
    except (MultipartError, UnicodeDecodeError):
        raise _unreadable() from None
    return reader.form


class _FormReader:
    """Collects the parser's events: for each part its head, its content in pieces, and None at its end."""

    def __init__(self) -> None:
        self.form = UploadedForm()
        self._name, self._filename, self._content = "", "", bytearray()
        self._is_file = False

    def read(self, event: object) -> None:
        """Process one event. Raises Refused or UnicodeDecodeError if the part does not fit the form."""
        if event is None:
            self._end()
        elif isinstance(event, bytes | bytearray):
            self._content += event
            if not self._is_file and len(self._content) > MOST_FIELD_BYTES:
                raise _unreadable()
        else:
            self._name, filename = str(getattr(event, "name", "")), getattr(event, "filename", None)
            self._is_file, self._filename, self._content = filename is not None, filename or "", bytearray()
            if self._is_file and self._name != FILES:
                raise _unreadable()

    def _end(self) -> None:
        if self._name == FILES and not self._is_file:
            if self._content:
                raise _unreadable()
        elif not self._is_file:
            text = self._content.decode().strip()
            if "\0" not in text:
                self.form.fields[self._name] = text
        elif self._filename or self._content:
            self.form.files.append((self._filename, bytes(self._content)))
        self._content = bytearray()


def _busy(why: str) -> Refused:
    return Refused(Code.UNAVAILABLE, f"{why} Nothing was sent. Try again in a minute.", retry_after=60)


def _unreadable() -> Refused:
    return Refused(
        Code.MALFORMED_REQUEST,
        "The form could not be read. Nothing was changed. Send it again from the page.",
    )
