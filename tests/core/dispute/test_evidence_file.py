"""The type of an evidence file is recognized by its content, and only pictures, PDF and plain text are accepted."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuota.core.dispute.evidence_file import (
    LONGEST_NAME,
    MOST_FILE_BYTES,
    MOST_FILES,
    MOST_TOTAL_BYTES,
    check_file,
    check_files,
)
from cuota.core.dispute.file_types import type_of
from cuota.core.refusal import Code, Refused
from support.evidence_files import JPEG, PDF, PNG, TEXT, WEBP, large_jpeg
from support.lines_run import lines_run
from support.properties.steady import steady

WHOLE = {
    "application/pdf": PDF,
    "image/png": PNG,
    "image/jpeg": JPEG,
    "image/webp": WEBP,
    "text/plain": TEXT,
}


def a_zip() -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("run.exe", b"MZ")
    return held.getvalue()


def a_chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


NO_SIZE = PNG[:8] + a_chunk(b"IHDR", bytes(8) + PNG[24:29]) + PNG[33:]


@pytest.mark.parametrize(("media_type", "content"), WHOLE.items())
def test_a_complete_file_has_the_type_of_its_content_whatever_its_name_is(
    media_type: str, content: bytes
) -> None:
    assert check_file("page.html", content).media_type == media_type
    assert check_file("page.html", content).content == content


def test_a_photo_may_have_data_after_its_end_as_phones_append_it() -> None:
    assert type_of(large_jpeg(100_000)) == "image/jpeg"
    assert type_of(PNG + b"rest") == "image/png"


@pytest.mark.parametrize(
    "content",
    [
        PNG[:8],
        PNG[:33],
        PNG[:-12],
        PNG.replace(b"IDAT", b"IDAX"),
        NO_SIZE,
        JPEG[:3],
        JPEG[:-2],
        b"\xff\xd8\xff<script>alert(1)</script>",
        WEBP[:12],
        WEBP[:-2],
        b"RIFF\x04\x00\x00\x00WEBP",
        b"RIFF\x24\x00\x00\x00WAVEfmt ",
        b"%PDF-1.4\n",
        b"%PDF-1.4\n<script>alert(1)</script>",
        b"#!/bin/sh\necho %PDF-1.4",
        PDF[:-20],
        PDF + a_zip(),
        PNG + a_zip(),
        JPEG + a_zip(),
        a_zip(),
        b"<!DOCTYPE html><p>Hello",
        b"\xef\xbb\xbf  <html>",
        b"Look:\n<SCRIPT src=x>",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b'<?xml version="1.0"?><svg/>',
        b"<?php system($_GET['x']);",
        b"{\\rtf1 x}",
        b"GIF89a;;;;",
        b"MZ\x90\x00",
        b"\x7fELF",
        b"text\x00text",
        b"\xff\xfet\x00",
        b"caf\xe9",
        b"   \r\n",
    ],
)  # fmt: skip
def test_a_file_that_is_not_completely_one_of_the_types_is_refused_with_an_explanation(
    content: bytes,
) -> None:
    with pytest.raises(Refused, match=r"The file box.png is not a PDF") as refused:
        check_file("box.png", content)
    assert refused.value.code is Code.BAD_FILE


@steady(500)
@given(st.sampled_from(sorted(WHOLE)), st.data())
def test_a_damaged_file_never_crashes_and_never_becomes_another_type(
    media_type: str, data: st.DataObject
) -> None:
    whole = WHOLE[media_type]
    at = data.draw(st.integers(0, len(whole) - 1))
    cut = whole[:at] + data.draw(st.binary(max_size=8)) + whole[at + data.draw(st.integers(0, 8)) :]
    assert type_of(cut) in {media_type, "text/plain", None}


def test_the_size_limits_are_exact_to_the_byte() -> None:
    assert check_file("a.jpg", large_jpeg(MOST_FILE_BYTES)).content
    with pytest.raises(Refused, match="larger than 5 MiB"):
        check_file("a.jpg", large_jpeg(MOST_FILE_BYTES + 1))
    with pytest.raises(Refused, match="is empty"):
        check_file("a.jpg", b"")
    half = ("a.jpg", large_jpeg(MOST_TOTAL_BYTES // 2))
    assert len(check_files([half, half])) == 2
    with pytest.raises(Refused, match="at most 10 MiB together"):
        check_files([half, half, ("b.txt", b"b")])
    assert len(check_files([("a.txt", b"a")] * MOST_FILES)) == MOST_FILES
    with pytest.raises(Refused, match="at most 5 files"):
        check_files([("a.txt", b"a")] * (MOST_FILES + 1))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("box.png", "box.png"),
        ("BOX.PNG", "BOX.PNG"),
        ("../../etc/box.png", "box.png"),
        ("C:\\fakepath\\box.png", "box.png"),
        ("invoice\u202egnp.exe", "invoicegnp.exe.png"),
        ('a"b\r\nSet-Cookie: x.png', "abSet-Cookie: x.png"),
        ("page.html", "page.html.png"),
        ("foto ñ.png", "foto ñ.png"),
        ("..", "file.png"),
        ("", "file.png"),
        ("\ud800.png", "png.png"),
    ],
)
def test_a_file_name_is_shown_without_its_path_and_with_the_extension_of_its_content(
    name: str, shown: str
) -> None:
    assert check_file(name, PNG).name == shown


@steady(500)
@given(st.text(max_size=300))
def test_a_file_name_is_short_and_printable_and_can_be_stored(name: str) -> None:
    shown = check_file(name, PNG).name
    assert 0 < len(shown) <= LONGEST_NAME
    assert shown.isprintable()
    assert shown.lower().endswith(".png")
    assert not set(shown) & set('/\\"')
    assert shown.encode()


MANY_CHUNKS = a_chunk(b"tEXt", b"") * 400_000


@pytest.mark.parametrize(
    "content",
    [
        PNG[:33] + MANY_CHUNKS + PNG[33:],
        JPEG[:2] + b"\xff\xfe\0\2" * 1_200_000 + JPEG[2:],
        JPEG[:2] + b"\xff" * 5_000_000 + JPEG[2:],
        b"RIFF" + struct.pack("<I", 4_800_012) + b"WEBPVP8L" + struct.pack("<I", 1) + b"/\0" + b"EXIF\0\0\0\0" * 600_000,
    ],
)  # fmt: skip
def test_a_picture_of_very_many_pieces_is_refused_after_the_first_ten_thousand(content: bytes) -> None:
    assert type_of(content) is None
    # All pieces would take more than three million.
    assert lines_run(lambda: type_of(content), ValueError) < 200_000


def test_markup_in_capital_letters_is_no_plain_text() -> None:
    assert type_of(b"Look: <ScRiPt>alert(1)</ScRiPt>") is None
    assert type_of(b" \n <!DOCTYPE html>") is None
    assert type_of(b"5 < 6, and <scripture> is a word") == "text/plain"
