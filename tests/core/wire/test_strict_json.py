"""core/wire/strict_json: reads JSON exactly, and refuses bad JSON quickly (rows B01 to B27 of bad_inputs.csv)."""

from __future__ import annotations

import json
import time
from decimal import Decimal

import pytest

from cuota.core import money
from cuota.core.wire.strict_json import DEEPEST, BadJson, read_json
from support.lines_run import lines_run

HALF_MEBIBYTE = 512 * 1024


def _amount(text: str) -> int:
    """Read an amount like a body's amount: first as JSON, then as cents."""
    return money.cents_of(read_json(f'{{"amount":{text}}}'.encode())["amount"])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b'{"amount":1,}',
        b'{"amount":10}garbage',
        b"{",
        b"[1,2",
        b'{"a" 1}',
        b"{'a':1}",
        b"nul",
        b'"a',
        b"{}{}",
    ],
)
def test_text_that_is_not_json_is_refused(body: bytes) -> None:
    with pytest.raises(BadJson):
        read_json(body)


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbf{}",
        '{"a":1}'.encode("utf-16"),
        '{"a":1}'.encode("utf-16-le"),
        '{"a":1}'.encode("utf-32"),
        '{"a":1}'.encode("utf-32-be"),
        b'{"a":"\xff"}',
        b'{"a":"\xc0\xaf"}',
        b'{"a":"\xed\xa0\x80"}',
        b'{"a":"\xf4\x90\x80\x80"}',
    ],
)
def test_a_body_that_is_not_plain_utf8_is_refused(body: bytes) -> None:
    with pytest.raises(BadJson):
        read_json(body)


@pytest.mark.parametrize(
    "body", [rb'"\u0000"', rb'{"a":["x\u0000y"]}', rb'{"\u0000":1}', rb'{"a":{"b\u0000":1}}']
)
def test_a_nul_character_is_refused_at_any_position(body: bytes) -> None:
    with pytest.raises(BadJson, match="NUL"):
        read_json(body)


@pytest.mark.parametrize(
    "body", [rb'"\ud800"', rb'{"a":["x\udfff"]}', rb'{"\udc00":1}', rb'"\ude00\ud83d"', rb'"\ud83dx\ude00"']
)
def test_half_a_surrogate_pair_is_refused_at_any_position(body: bytes) -> None:
    with pytest.raises(BadJson, match="surrogate"):
        read_json(body)


def test_a_whole_surrogate_pair_is_one_character() -> None:
    assert read_json(rb'"\ud83d\ude00"') == "\U0001f600"


def test_a_backslash_before_u0000_that_is_itself_escaped_is_plain_text() -> None:
    assert read_json(rb'"\\u0000"') == "\\u0000"


@pytest.mark.parametrize("byte", [0x00, 0x01, 0x09, 0x0A, 0x1F])
def test_a_raw_control_byte_in_a_string_is_refused(byte: int) -> None:
    with pytest.raises(BadJson):
        read_json(b'{"a":"x' + bytes([byte]) + b'"}')


@pytest.mark.parametrize("depth", [DEEPEST + 1, 2000, 100_000])
@pytest.mark.parametrize(("start", "end"), [(b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]")])
def test_nesting_deeper_than_32_is_refused(depth: int, start: bytes, end: bytes) -> None:
    with pytest.raises(BadJson, match="nested deeper than 32"):
        read_json(b'{"x":' + start * depth + b"1" + end * depth + b"}")


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'["'])
def test_deep_nesting_that_is_never_closed_is_refused_too(opening: bytes) -> None:
    with pytest.raises(BadJson):
        read_json(opening * 100_000)


def test_nesting_of_exactly_32_is_accepted() -> None:
    value = read_json(b"[" * DEEPEST + b"]" * DEEPEST)
    depth = 1
    while value:
        value, depth = value[0], depth + 1
    assert depth == DEEPEST


def test_brackets_inside_a_string_do_not_count_as_nesting() -> None:
    text = '[{"\\' * 1000
    assert read_json(json.dumps({"a": text, "b": [1]}).encode()) == {"a": text, "b": [1]}


def test_many_shallow_brackets_are_accepted() -> None:
    assert len(read_json(b"[" + b"[],{}," * 1000 + b"1]")) == 2001


@pytest.mark.parametrize(
    "body",
    [
        b'{"amount":1,"amount":999}', b'{"amount":1,"amount":1}', b'{"a":{"b":1,"b":2}}', b'[{"a":1,"b":2,"a":3}]',
        rb'{"amount":1,"\u0061mount":999}', b'{"":1,"":2}',
    ],
)  # fmt: skip
def test_a_duplicate_key_in_one_object_is_refused(body: bytes) -> None:
    with pytest.raises(BadJson, match="twice"):
        read_json(body)


def test_the_error_repeats_a_duplicate_key_only_if_it_looks_like_a_name() -> None:
    with pytest.raises(BadJson, match="the key 'amount' appears twice"):
        read_json(b'{"amount":1,"amount":2}')
    with pytest.raises(BadJson, match=r"^a key appears twice"):
        read_json(b'{"4242424242424242":1,"4242424242424242":2}')


def test_the_same_key_in_two_objects_is_not_a_duplicate() -> None:
    assert read_json(b'{"a":{"a":1},"b":[{"a":2},{"a":3}]}') == {"a": {"a": 1}, "b": [{"a": 2}, {"a": 3}]}


def test_the_error_names_a_duplicate_key_and_shortens_it() -> None:
    key = "k" * 5000
    with pytest.raises(BadJson) as caught:
        read_json(f'{{"{key}":1,"{key}":2}}'.encode())
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "nan", "+Infinity", "-NaN"])
def test_a_malformed_number_is_refused(text: str) -> None:
    with pytest.raises(BadJson):
        _amount(text)


@pytest.mark.parametrize(
    "text", ["010", "+10", ".5", "5.", "0x10", "1_000", "1e", "--1", "1.e2", "0b1", "\u0661"]
)
def test_a_number_that_json_does_not_define_is_refused(text: str) -> None:
    with pytest.raises(BadJson):
        _amount(text)


@pytest.mark.parametrize(
    "text", ["1234567890123456.78", "9999999999999999.99", "0.1", "31.889999999999997", "1E-400", "112.0000"]
)
def test_a_number_is_read_exactly_as_it_is_written(text: str) -> None:
    value = read_json(text.encode())
    assert isinstance(value, Decimal)
    assert str(value) == str(Decimal(text))


def test_an_amount_of_18_digits_is_exact_to_the_cent() -> None:
    assert _amount("1234567890123456.78") == 123_456_789_012_345_678
    assert _amount('"1234567890123456.78"') == 123_456_789_012_345_678


@pytest.mark.parametrize("text", ["1e1", "10.0", "10.00", "1.0E+1", "10", '"10.00"'])
def test_ten_is_read_as_ten_in_every_notation(text: str) -> None:
    assert _amount(text) == 1000


@pytest.mark.parametrize(("text", "cents"), [("0", 0), ("0.00", 0), ("-0", 0), ("-0.0", 0), ("-1", -100)])
def test_zero_and_negative_numbers_are_read_and_refused_only_later_by_the_field_rules(
    text: str, cents: int
) -> None:
    assert _amount(text) == cents


@pytest.mark.parametrize(
    "text", ["1234567890123456789", "9" * 5000, "-" + "9" * 5000, "1" + "0" * 5000 + ".00", "1e400", "1e-400"]
)
def test_a_number_of_any_length_is_read_but_refused_as_an_amount(text: str) -> None:
    with pytest.raises(money.BadAmount):
        _amount(text)


def test_ten_with_five_thousand_decimal_zeros_is_ten() -> None:
    assert _amount("10." + "0" * 5000) == 1000


@pytest.mark.parametrize("text", ["1e99999999999999999999", "1e-99999999999999999999"])
def test_an_exponent_beyond_any_number_is_refused(text: str) -> None:
    with pytest.raises((BadJson, money.BadAmount)):
        _amount(text)


@pytest.mark.parametrize("text", ["true", "null", "[10]", "{}"])
def test_a_value_that_is_neither_number_nor_string_is_no_amount(text: str) -> None:
    with pytest.raises(money.BadAmount):
        _amount(text)


def test_plain_json_is_read_as_the_standard_library_reads_it() -> None:
    body = json.dumps({"a": [1, "é", None, True, {"b": ""}], "c": '\t"\\/', "d": -7}).encode()
    assert read_json(body) == json.loads(body)


def test_a_large_text_is_read_whole() -> None:
    assert len(read_json(b'"' + b"x" * HALF_MEBIBYTE + b'"')) == HALF_MEBIBYTE


@pytest.mark.parametrize("end", [b"", b"\\", b'"'])
def test_escaped_quotes_in_a_text_that_never_ends_take_linear_time(end: bytes) -> None:
    # In quadratic time, this body takes ten minutes.
    body = b"[" * (DEEPEST + 1) + b'"' + rb"\"" * (HALF_MEBIBYTE // 2) + end
    started = time.process_time()
    with pytest.raises(BadJson):
        read_json(body)
    assert time.process_time() - started < 5


@pytest.mark.parametrize("many", [b'"",', b"[],", b'{"":1},', b'[["'])
def test_a_body_with_too_many_values_is_refused_before_the_rest_is_read(many: bytes) -> None:
    body = b"[" + many * (28 * HALF_MEBIBYTE // len(many))
    with pytest.raises(BadJson, match=r"more than 10,000 values|nested deeper"):
        read_json(body)
    # All values would take at least thirty million.
    assert lines_run(lambda: read_json(body), BadJson) < 200_000
