"""core/wire/json_member: reads one string of a JSON object whose signature is not verified yet, in bounded time."""

from __future__ import annotations

import json

import pytest

from cuota.core.wire.json_member import MOST_STEPS, find_text
from cuota.core.wire.strict_json import MOST_VALUES, BadJson, read_json
from support.lines_run import lines_run

ID = "0198a000-0000-7000-8000-000000000001"
NAMED = f'"merchantId":"{ID}"'


@pytest.mark.parametrize(
    "text",
    [
        "{" + NAMED + "}",
        " {\n" + NAMED + ' , "a":1}',
        '{"order":{"merchantId":"other","x":[{"merchantId":"other"}]},' + NAMED + "}",
        '{"a":"\\"merchantId\\":\\"other\\"","b":[[],{},"]}"],' + NAMED + "}",
        '{"additionalData":{"a":NaN,"a":Infinity},' + NAMED + "}",
        '{"merchant\\u0049d" : "' + ID.replace("0", "\\u0030", 1) + '"}',
        '{"amount":1e9,"capture":true,"none":null,' + NAMED + "",
    ],
)
def test_a_member_of_the_outer_object_is_found_at_any_position(text: str) -> None:
    assert find_text(text.encode(), "merchantId") == ID


@pytest.mark.parametrize(
    ("text", "found"),
    [("{}", None), (" { } ", None), ('{"a":{"merchantId":"x"}}', None), ('{"merchantId":null}', None),
     ('{"merchantId":7}', False), ('{"merchantId":["x"]}', False), ('{"merchantId":""}', False)],
)  # fmt: skip
def test_absent_null_and_non_text_members_are_distinguished(text: str, found: object) -> None:
    assert find_text(text.encode(), "merchantId") is found


@pytest.mark.parametrize(
    "text", ["", "[]", '"merchantId"', "{", '{"a"', '{"a":', '{"a":1', '{"a":1 "b":2}', '{"a":[', '{"a":"', "{,}"]
)  # fmt: skip
def test_a_body_that_is_no_object_in_the_part_that_is_read_is_refused(text: str) -> None:
    with pytest.raises(BadJson):
        find_text(text.encode(), "merchantId")


def test_a_merchant_s_id_after_a_cart_of_a_thousand_items_is_found() -> None:
    items = [{"name": "A", "price": 1.5, "quantity": 1, "sku": "{["} for _ in range(1000)]
    body = json.dumps({"order": {"lineItems": items}, "merchantId": ID}).encode()
    assert find_text(body, "merchantId") == ID


HOSTILE = {
    "numbers": lambda n: b'{"a":[' + b"0," * (n // 2),
    "brackets": lambda n: b'{"a":[' + b"[]," * (n // 3),
    "deep": lambda n: b'{"a":' + b"[" * n,
    "members": lambda n: b"{" + b'"":0,' * (n // 5),
    "escaped names": lambda n: b"{" + b'"\\u0061":0,' * (n // 11),
    "quotes": lambda n: b'{"a":' + b'""' * (n // 2),
    "escapes": lambda n: b'{"a":"' + b'\\"' * (n // 2),
    "digits": lambda n: b'{"a":' + b"9" * n,
    "spaces": lambda n: b"{" + b" " * n,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_body_costs_a_bounded_number_of_steps_however_large_it_is(kind: str) -> None:
    small, large = (HOSTILE[kind](size) for size in (128 * 1024, 1024 * 1024))
    assert lines_run(lambda: find_text(small, "merchantId"), BadJson) <= 20 * MOST_STEPS
    assert lines_run(lambda: find_text(large, "merchantId"), BadJson) <= 20 * MOST_STEPS


def test_a_body_with_more_than_ten_thousand_values_is_refused_and_commas_in_texts_do_not_count() -> None:
    keys = {f"k{number}": number for number in range(20_000)}
    with pytest.raises(BadJson, match="more than 10,000 values"):
        read_json(json.dumps(keys).encode())
    with pytest.raises(BadJson, match="more than 10,000 values"):
        read_json(b"[" + b"[]," * 20_000 + b"1]")
    text = ",[{" * MOST_VALUES
    assert read_json(json.dumps({"description": text, "a": [1] * 100}).encode())["description"] == text


@pytest.mark.parametrize("kind", HOSTILE)
def test_the_strict_reader_takes_a_bounded_number_of_steps_too(kind: str) -> None:
    """Allow twenty lines of Python for each of the values that a body may have."""
    assert lines_run(lambda: read_json(HOSTILE[kind](1024 * 1024)), BadJson) <= 20 * MOST_VALUES
