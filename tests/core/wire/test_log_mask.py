"""What the request log keeps of a body: amounts, references and codes; never a name, an address, a card or a secret."""

from __future__ import annotations

import json
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
    assert for_log({"code": "amount_out_of_range"}) == {"code": "amount_out_of_range"}


def test_amounts_references_and_codes_stay_exactly() -> None:
    body = {
        "amount": Decimal("1234567890.10"), "merchantReference": "A-1042", "merchantRefundReference": 77, "currency": "USD",
        "code": "capture_exceeds_authorized", "status": 422, "errors": [{"field": "amount", "code": "invalid"}],
        "orderId": "01a20cba-aa56-7018-9c21-e05ae7a21571", "dryRun": True, "nothing": None, "empty": "",
    }  # fmt: skip
    assert for_log(body) == body


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
    shown = answer_for_log({"orderId": "x", "warnings": [warning]}, refused=False)
    assert shown == {"orderId": "x", "warnings": [warning]}


def test_a_query_is_masked_like_a_body() -> None:
    query = query_for_log(
        "limit=5&status=Approved&reference=A-1&email=jordan%40mail.example&after=x&dryRun=true"
    )
    assert query == {
        "limit": "5", "status": "Approved", "reference": "A-1", "email": MASK, "after": "x", "dryRun": "true",
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
