"""A merchant's logo: judged by its content, and reduced to the picture."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuota.core.dispute.file_types import type_of
from cuota.core.logo import MOST_LOGO_BYTES, BadLogo, read_logo
from support.core.pictures import chunk, jpeg, png, riff, segment, webp
from support.properties.steady import STEADY

SECRET = b"taken at 40.7128 N, 74.0060 W <script>alert(1)</script>"


EXTRA = {
    "png": (png, chunk(b"tEXt", SECRET), "image/png"),
    "jpeg": (jpeg, segment(0xE1, b"Exif\0\0" + SECRET) + segment(0xFE, SECRET), "image/jpeg"),
    "webp": (webp, riff(b"EXIF", SECRET) + riff(b"XMP ", SECRET), "image/webp"),
}


@pytest.mark.parametrize("kind", list(EXTRA))
def test_a_picture_keeps_what_draws_it_and_loses_everything_else(kind: str) -> None:
    make, extra, media_type = EXTRA[kind]
    plain = read_logo(make())
    loaded = read_logo(make(extra=extra) + (SECRET if kind != "webp" else b""))
    assert loaded == plain
    assert plain.media_type == media_type
    assert type_of(plain.content) == media_type
    assert SECRET not in loaded.content
    assert read_logo(plain.content) == plain


def test_a_webp_no_longer_says_that_it_has_metadata() -> None:
    assert read_logo(webp(flags=0b00101100)).content == read_logo(webp()).content


@pytest.mark.parametrize("make", [png, jpeg, webp])
@pytest.mark.parametrize(("width", "height"), [(15, 32), (32, 15), (1501, 32), (32, 1501), (16383, 16383)])
def test_a_picture_that_is_too_small_or_too_large_is_refused(make: object, width: int, height: int) -> None:
    with pytest.raises(BadLogo, match=f"{width} by {height} pixels"):
        read_logo(make(width, height))  # type: ignore[operator]


@pytest.mark.parametrize(
    "content",
    [
        b"", b"GIF89a" + bytes(100), b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
        b"%PDF-1.7\n", b"hello", png()[:-6], png()[:40], jpeg()[:-2], jpeg()[:12], webp()[:-10],
        b"\x89PNG\r\n\x1a\n<html>", png() + b"PK\x05\x06" + bytes(18), bytes(MOST_LOGO_BYTES + 1),
        webp(extra=riff(b"ANMF", bytes(24))),
    ],
)  # fmt: skip
def test_what_is_no_picture_is_refused_in_words(content: bytes) -> None:
    with pytest.raises(BadLogo) as refused:
        read_logo(content)
    assert str(refused.value).endswith(".")


@STEADY
@given(st.sampled_from([png(), jpeg(), webp()]), st.data())
def test_a_damaged_picture_never_breaks_the_reader(whole: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(whole) - 1))
    damaged = whole[:at] + data.draw(st.binary(max_size=8)) + whole[at + data.draw(st.integers(0, 8)) :]
    try:
        logo = read_logo(damaged)
    except BadLogo:
        return
    assert type_of(logo.content) == logo.media_type
