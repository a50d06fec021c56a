"""core/wire/form_text: reads and writes forms like the standard library, in bounded time."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuota.core.wire import form_text
from support.properties.steady import steady

FIELDS = st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), max_size=6)


@steady(300)
@given(FIELDS)
def test_a_form_is_written_as_by_the_standard_library(fields: list[tuple[str, str]]) -> None:
    fields = [
        field for field in fields if not any("\ud800" <= char <= "\udfff" for part in field for char in part)
    ]
    assert form_text.written(fields).decode() == urlencode(fields)


@steady(500)
@given(st.text(alphabet="ab=&+%3dD2605fFeEcC9\x00;é ", max_size=30))
def test_a_form_is_read_as_by_the_standard_library(text: str) -> None:
    try:
        usual = parse_qsl(text.encode().decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError:
        with pytest.raises(ValueError):  # noqa: PT011 - any is the same refusal
            form_text.read(text.encode(), 100)
        return
    assert form_text.read(text.encode(), 100) == usual


def test_a_form_with_too_many_fields_is_refused_before_any_field_is_read() -> None:
    assert len(form_text.read(b"a=1&" * 9 + b"a=1", 10)) == 10
    with pytest.raises(ValueError, match="too many"):
        form_text.read(b"%" + b"&" * 10, 10)
