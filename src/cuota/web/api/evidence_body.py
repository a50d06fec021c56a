"""Reads the body of evidence and of an appeal: a text, and files in base64."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any

from cuota.core.dispute.evidence import MOST_TEXT, EvidenceFile
from cuota.core.dispute.evidence_file import check_files
from cuota.web.api.unknown import shape, unknown_fields
from cuota.web.fields import Reader, WrongField, text, wrong_type

# Files of 10 MiB in total have 13.4 MiB in base64. The rest is for the text and the names.
MOST_EVIDENCE_BYTES = 14 * 1024 * 1024
_LONGEST_NAME = 255
_SHAPE = shape("text", files=shape("name", "content"))


@dataclass(frozen=True, slots=True)
class EvidenceBody:
    """The text and the files that a merchant sent. `warnings` name fields that were ignored."""

    text: str
    files: list[EvidenceFile]
    warnings: list[dict[str, str]]


def read_evidence(body: dict[str, Any]) -> EvidenceBody:
    """Read a parsed body. Raises Refused: malformed_request, validation_failed, or bad_file for a file's content."""
    reader = Reader(lenient=False)
    written = reader.read(body, "text", text(0, MOST_TEXT, lines=True)) or ""
    entries = reader.read(body, "files", _entries) or []
    named = [_file(reader, entry, f"files[{place}]") for place, entry in enumerate(entries)]
    if not written.strip() and not named and not reader.errors:
        reader.fail("text", WrongField("required", "is required if there are no files"))
    reader.finish()
    return EvidenceBody(written, check_files([each for each in named if each]), unknown_fields(body, _SHAPE))


def _entries(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise wrong_type("a list")
    return value


def _file(reader: Reader, entry: Any, path: str) -> tuple[str, bytes] | None:
    if not isinstance(entry, dict):
        reader.fail(path, wrong_type("an object"))
        return None
    name = reader.read(entry, f"{path}.name", text(1, _LONGEST_NAME), required=True)
    content = reader.read(entry, f"{path}.content", _decoded, required=True)
    return None if name is None or content is None else (name, content)


def _decoded(value: Any) -> bytes:
    if not isinstance(value, str):
        raise wrong_type("a string")
    try:
        return base64.b64decode(value.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        raise WrongField("invalid", "must be the file's bytes in base64, on one line") from None
