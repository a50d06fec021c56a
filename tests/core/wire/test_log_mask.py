"""What the request log keeps of a body: amounts, references and codes; never a name, an address, a card or a secret."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuota.core.wire.log_mask import (
    CLOSED,
    DEEPEST,
    KEPT,
    MASK,
    TEXTS,
    answer_for_log,
    for_log,
    query_for_log,
)
from cuota.core.wire.log_shapes import SHAPES
from cuota.web.docs.bundle import bundle
from support.properties.steady import STEADY

PERSON = {
    "givenNames": "Jordan", "surname": "Rivera", "email": "jordan@mail.example", "phoneNumber": "2125550100",
    "addressLine1": "1480 Mission Street", "city": "San Francisco", "state": "CA", "postcode": "94103", "name": "Jordan Rivera",
    "secret": "whsec_abc", "token": "6c1f0000-0000-4000-8000-000000000000", "redirectUrl": "https://pay.example/c?token=6c1f",
    "cardNumber": "4242424242424242", "description": "For Jordan", "client_secret": "secret_x", "text": "I am Jordan", "last4": "4242",
    "redirectConfirmUrl": "https://shop.example/?mail=jordan@mail.example",
}  # fmt: skip


@pytest.mark.parametrize("name", list(PERSON))
def test_what_names_a_person_or_opens_something_is_masked(name: str) -> None:
    assert for_log({name: PERSON[name]}) == {name: MASK}
    assert for_log({"order": {"consumer": [{name: PERSON[name]}]}}) == {"order": {"consumer": [{name: MASK}]}}


@pytest.mark.parametrize("name", sorted(CLOSED))
def test_nothing_of_a_person_or_a_card_is_kept_under_any_name(name: str) -> None:
    inner = {
        "id": "Jordan",
        "code": "94103",
        "number": 2125550100,
        "tags": [{"reference": "1480 Mission"}],
        "vip": True,
    }
    shown = json.dumps(for_log({"order": {name: inner, "amount": 5}}))
    for part in ("Jordan", "94103", "2125550100", "1480"):
        assert part not in shown
    assert '"amount": 5' in shown


def test_the_number_of_a_card_is_masked_however_short() -> None:
    assert for_log({"number": "501800000009", "cvc": "123"}) == {"number": MASK, "cvc": MASK}


@pytest.mark.parametrize("value", ["739146", 739146, "K3X-9Q", "NY 10001"])
def test_only_a_code_of_ours_is_kept_and_no_code_of_a_card_or_a_message(value: object) -> None:
    assert for_log({"code": value}) == {"code": MASK}
    refusal = {"code": "amount_out_of_range"}
    assert answer_for_log(refusal, refused=True) == refusal


def test_amounts_references_and_codes_stay_exactly() -> None:
    body = {
        "amount": Decimal("1234567890.10"), "merchantReference": "A-1042", "merchantRefundReference": 77, "currency": "USD",
        "code": "capture_exceeds_authorized", "status": 422, "errors": [{"field": "amount", "code": "invalid"}],
        "orderId": "01a20cba-aa56-7018-9c21-e05ae7a21571", "dryRun": True, "nothing": None, "empty": "",
    }  # fmt: skip
    assert answer_for_log(body, refused=True) == body


WRONG = [
    "Jordan Rivera",
    "jordan",
    "4242 4242 4242 4242",
    "+1 212 555 0100",
    "1480 Mission Street",
    4242424242424242,
]
MERCHANT_CHOOSES = {"merchantReference", "merchantRefundReference", "reference", "refundReference", "sku"}


@pytest.mark.parametrize("name", sorted(SHAPES.keys() - MERCHANT_CHOOSES))
@pytest.mark.parametrize("value", WRONG)
def test_a_wrong_value_of_a_known_field_is_replaced_by_its_type_and_length(name: str, value: object) -> None:
    kind = "number, more than 12 digits" if isinstance(value, int) else f"text, {len(str(value))} characters"
    assert for_log({"order": {name: value}}) == {"order": {name: f"{MASK} ({kind})"}}


@pytest.mark.parametrize("name", ["status", "display", "currency", "orderId", "capture", "createdDateTime"])
def test_a_number_in_a_field_of_words_or_times_is_replaced_by_its_length(name: str) -> None:
    assert for_log({name: 2125550100}) == {name: f"{MASK} (number, 10 digits)"}


def test_every_value_that_the_api_describes_for_a_known_field_is_kept() -> None:
    schemas = bundle()["components"]["schemas"]
    found = {pair for part in schemas.values() for pair in described(part, schemas)}
    assert len(found) > 80
    lost = [
        (name, value)
        for name, value in sorted(found)
        if answer_for_log({name: value}, refused=True) != {name: value}
    ]
    assert lost == []


def described(part: Any, schemas: Any) -> Iterator[tuple[str, str]]:
    """Yield the texts that a schema lists for known fields: the values of an enum or a const, and the examples."""
    if isinstance(part, list):
        for each in part:
            yield from described(each, schemas)
    elif isinstance(part, dict):
        properties = part.get("properties")
        for name, given in properties.items() if isinstance(properties, dict) else ():
            if name in KEPT and isinstance(given, dict):
                schema = schemas[given["$ref"].rpartition("/")[2]] if "$ref" in given else given
                values = [*schema.get("enum", ()), schema.get("const"), *schema.get("examples", ())]
                yield from ((name, value) for value in values if isinstance(value, str))
        for each in part.values():
            yield from described(each, schemas)


def test_a_value_in_the_place_of_a_name_is_masked() -> None:
    body = {
        "jordan@mail.example": 1,
        "2125550100": 1,
        "4242424242424242": 1,
        "Jordan Rivera": 1,
        "merchantReferense": "A-1",
    }
    assert list(for_log(body)) == [MASK, "merchantReferense"]


@pytest.mark.parametrize(
    "value",
    [
        "jordan@mail.example",
        "4242 4242 4242 4242",
        "4242424242424242",
        4242424242424242,
        "order 4242-4242-4242-4242",
    ],
)
def test_a_mail_address_or_a_card_number_in_a_reference_is_masked(value: object) -> None:
    shown = json.dumps(for_log({"merchantReference": value}))
    assert "jordan" not in shown
    assert "424242424" not in shown.replace("-", "").replace(" ", "")


def test_our_own_texts_stay_readable_without_what_they_repeat() -> None:
    text = "merchantReference jordan@mail.example or 212-555-0100 or 4242 4242 4242 4242 is wrong: at most 1234.00."
    shown = answer_for_log({"message": text}, refused=True)["message"]
    assert shown.startswith("merchantReference ***")
    assert shown.endswith("is wrong: at most 1234.00.")
    for part in ("jordan", "555", "4242 4242 4242"):
        assert part not in shown


def test_a_text_of_somebody_else_under_the_name_of_ours_is_masked() -> None:
    inner = {"message": "I am Jordan", "detail": "Jordan", "hint": "Jordan"}
    assert "Jordan" not in json.dumps(for_log({**inner, "warnings": [inner]}))
    assert "Jordan" not in json.dumps(answer_for_log({**inner, "x": inner, "metadata": inner}, refused=False))
    assert "Jordan" not in json.dumps(answer_for_log({"metadata": [inner], "consumer": inner}, refused=True))


def test_the_warnings_of_an_answer_stay_readable() -> None:
    warning = {"field": "consumer.nickname", "code": "unknown_field", "message": "was ignored"}
    shown = answer_for_log({"test": True, "warnings": [warning]}, refused=False)
    assert shown == {"test": True, "warnings": [warning]}


def test_a_query_is_masked_like_a_body() -> None:
    query = query_for_log(
        "limit=5&status=Approved&reference=A-1&email=jordan%40mail.example&after=7&dryRun=true"
    )
    assert query == {
        "limit": "5", "status": "Approved", "reference": "A-1", "email": MASK, "after": "7", "dryRun": "true",
    }  # fmt: skip


def test_a_very_deep_value_is_cut() -> None:
    value: Any = "secret"
    for _ in range(DEEPEST + 50):
        value = [value]
    assert MASK in json.dumps(for_log(value))


def test_no_kept_name_is_one_of_a_person_or_a_secret() -> None:
    for part in (
        "name",
        "mail",
        "phone",
        "address",
        "line1",
        "line2",
        "city",
        "postcode",
        "secret",
        "token",
        "url",
        "cardnumber",
        "last4",
    ):
        assert [name for name in KEPT | TEXTS if part in name.lower()] == [], part


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)  # fmt: skip


@STEADY
@given(JSON)
def test_a_text_under_an_unknown_name_never_comes_out(value: Any) -> None:
    planted = "Zxq-Jordan-Rivera"
    shown = json.dumps(for_log({"metadata": {"x": planted, "y": value, "z": [planted, {"w": planted}]}}))
    assert planted not in shown
