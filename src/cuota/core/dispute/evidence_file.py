"""Checks the files of a statement: their type is recognized by their content, never by their name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cuota.core.dispute.evidence import EvidenceFile
from cuota.core.dispute.file_types import type_of
from cuota.core.refusal import Code, Refused

MOST_FILES = 5
MOST_FILE_BYTES = 5 * 1024 * 1024
MOST_TOTAL_BYTES = 10 * 1024 * 1024
LONGEST_NAME = 100
# The file extensions of each type. If a name has another extension, the first of these is appended, because a computer
# opens a file by its extension, and a picture must not be opened as a web page.
_ENDINGS = {
    "application/pdf": (".pdf",),
    "image/png": (".png",),
    "image/jpeg": (".jpg", ".jpeg"),
    "image/webp": (".webp",),
    "text/plain": (".txt",),
}


def check_files(files: Sequence[tuple[str, bytes]]) -> list[EvidenceFile]:
    """Return the files of one statement, checked. Raises Refused(bad_file)."""
    if len(files) > MOST_FILES:
        raise Refused(Code.BAD_FILE, f"Send at most {MOST_FILES} files at a time.")
    if sum(len(content) for _, content in files) > MOST_TOTAL_BYTES:
        raise Refused(Code.BAD_FILE, f"The files may have at most {MOST_TOTAL_BYTES // 2**20} MiB together.")
    return [check_file(name, content) for name, content in files]


def check_file(name: str, content: bytes) -> EvidenceFile:
    """Return one file, checked. Raises Refused(bad_file)."""
    shown = _shown(name)
    if not content:
        raise Refused(Code.BAD_FILE, f"The file {shown} is empty.")
    if len(content) > MOST_FILE_BYTES:
        raise Refused(Code.BAD_FILE, f"The file {shown} is larger than {MOST_FILE_BYTES // 2**20} MiB.")
    media_type = type_of(content)
    if media_type is None:
        message = (
            f"The file {shown} is not a PDF, a PNG, JPEG or WebP picture, or plain text, or it is damaged."
        )
        raise Refused(Code.BAD_FILE, message)
    return EvidenceFile(_named(shown, media_type), media_type, content)


def _shown(name: str) -> str:
    """Return the last part of a path, of printable characters, at most LONGEST_NAME of them."""
    last = re.split(r"[/\\]", name[-1000:])[-1]
    printable = "".join(letter for letter in last if letter.isprintable() and letter != '"')
    return printable.strip(" .")[-LONGEST_NAME:].strip(" .") or "file"


def _named(shown: str, media_type: str) -> str:
    endings = _ENDINGS[media_type]
    if shown.lower().endswith(endings):
        return shown
    return shown[: LONGEST_NAME - len(endings[0])] + endings[0]
