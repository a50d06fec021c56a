"""core/risk/approvals: reads ten fields, each with two names and a type. No input raises an exception."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuota.core.risk.approvals import FIELDS, NAMES, ApprovalsData, read_fields, risk_level
from support.properties.steady import STEADY

TODAY = date(2026, 11, 21)
AS_SENT = {
    "customerLoggedIn": "true",
    "customerIsMember": "true",
    "merchantRiskAssessment": "Low",
    "sameDevice": "false",
    "fulfillmentMethod": "Online only",
    "accountCreationDate": "2025-11-21",
    "lastTransactionDate": "2026-11-20",
    "customerTransactionCount": "12",
    "customerAverageOrderValue": "45.00",
    "customerFraudIncidents": "false",
}
AS_READ = {
    "customer_logged_in": True,
    "customer_is_member": True,
    "merchant_risk_assessment": "low",
    "same_device": False,
    "fulfillment_method": "online",
    "account_creation_date": 365,
    "last_transaction_date": 1,
    "customer_transaction_count": 12,
    "customer_average_order_value": 4_500,
    "customer_fraud_incidents": False,
}


def read(**raw: object) -> ApprovalsData:
    return read_fields(raw, TODAY)


def test_all_ten_fields_are_read_under_their_gateway_names() -> None:
    assert read_fields(AS_SENT, TODAY) == ApprovalsData(AS_READ, (), 0)


def test_all_ten_fields_are_read_under_their_smi_names() -> None:
    named = {field.smi: AS_SENT[field.gateway] for field in FIELDS}
    assert read_fields(named, TODAY) == ApprovalsData(AS_READ, (), 0)


@pytest.mark.parametrize("change", [str.upper, str.lower, str.swapcase])
def test_names_are_read_without_regard_to_case(change: object) -> None:
    named = {change(name): value for name, value in AS_SENT.items()}  # type: ignore[operator]
    assert read_fields(named, TODAY).fields == AS_READ


def test_json_numbers_and_booleans_are_read_like_their_texts() -> None:
    native = {
        **AS_SENT,
        "customerLoggedIn": True,
        "sameDevice": 0,
        "customerTransactionCount": 12,
        "customerAverageOrderValue": Decimal("45.00"),
        "customerFraudIncidents": False,
    }
    assert read_fields(native, TODAY).fields == AS_READ


def test_the_gateway_s_name_takes_precedence_and_a_different_value_under_the_smi_name_is_reported() -> None:
    found = read(same_device="true", sameDevice="false")
    assert found.fields == {"same_device": False}
    assert found.unreadable == ("same_device",)


def test_two_names_that_agree_are_no_conflict() -> None:
    assert read(customer_transaction_count="12.0", customerTransactionCount=12) == ApprovalsData(
        {"customer_transaction_count": 12}, (), 0
    )


def test_a_gateway_value_that_cannot_be_read_leaves_the_field_to_the_smi_name() -> None:
    found = read(sameDevice="perhaps", same_device="yes")
    assert found == ApprovalsData({"same_device": True}, ("sameDevice",), 0)


@pytest.mark.parametrize("nothing", [None, "", "  "])
def test_null_and_empty_text_are_the_same_as_absent(nothing: object) -> None:
    assert read(sameDevice=nothing, accountCreationDate=nothing) == ApprovalsData({}, (), 0)


def test_unknown_names_are_counted_and_not_stored() -> None:
    assert read_fields(
        {"favouriteColour": "teal", "same": "yes", "sameDevic\u0435": "yes"}, TODAY
    ) == ApprovalsData({}, (), 3)


@pytest.mark.parametrize("yes", [True, 1, 1.0, Decimal(1), "true", "TRUE", " Yes ", "1", "on"])
def test_true_can_be_written_in_many_forms(yes: object) -> None:
    assert read(customerIsMember=yes).fields == {"customer_is_member": True}


@pytest.mark.parametrize("no", [False, 0, -0.0, Decimal("0.0"), "false", "No", "0", "OFF"])
def test_false_can_be_written_in_many_forms(no: object) -> None:
    assert read(customerIsMember=no).fields == {"customer_is_member": False}


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("2026-11-21", 0),
        (" 2026-11-20 ", 1),
        ("2026-11-20T23:59:59", 1),
        ("2026-11-20 23:59", 1),
        ("2026-11-20t10:00:00.123z", 1),
        ("2026-11-20T23:30:00-05:00", 0),  # already the 21st in UTC
        ("2026-11-22T03:00:00+10:00", 0),  # still the 21st in UTC
        ("1998-02-28", 10_493),
    ],
)
def test_a_date_is_read_as_the_number_of_days_before_today(text: str, days: int) -> None:
    assert read(accountCreationDate=text).fields == {"account_creation_date": days}


@pytest.mark.parametrize(
    ("value", "count"),
    [("12", 12), ("12.0", 12), (12, 12), (12.0, 12), ("1,204", 1_204), (0, 0), (Decimal("1E1"), 10)],
)
def test_a_count_is_a_whole_number(value: object, count: int) -> None:
    assert read(customerTransactionCount=value).fields == {"customer_transaction_count": count}


@pytest.mark.parametrize(
    ("value", "cents"),
    [
        ("1,234.50", 123_450),
        ("$45.00", 4_500),
        ("$ 1,000", 100_000),
        ("USD 45.1", 4_510),
        ("45 usd", 4_500),
        (45.1, 4_510),
        (45, 4_500),
        (0.29, 29),  # 28.999999999999996 in binary
        ("33.333333333333", 3_333),
        (31.889999999999997, 3_189),
        (Decimal("0.005"), 1),
    ],
)
def test_an_average_amount_is_read_exactly_to_the_cent(value: object, cents: int) -> None:
    assert read(customerAverageOrderValue=value).fields == {"customer_average_order_value": cents}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("online", "online"), ("Online Only", "online"), ("home_delivery", "online"), ("SHIPPING", "online"),
        ("In-store pickup", "pickup"), ("IN_STORE_PICK_UP", "pickup"), ("BOPIS", "pickup"),
        ("online, pickup in store", "pickup"), ("by owl", "other"),
    ],
)  # fmt: skip
def test_the_methods_of_fulfillment_are_read_by_their_names(text: str, meant: str) -> None:
    assert read(fulfillmentMethod=text).fields == {"fulfillment_method": meant}


def test_an_assessment_is_trimmed_lowercased_and_cut_at_100_characters() -> None:
    kept = read(merchantRiskAssessment=f"  Tier\0B {'x' * 200}").fields["merchant_risk_assessment"]
    assert kept == f"tier b {'x' * 93}"
    assert read(merchantRiskAssessment=72.50).fields == {"merchant_risk_assessment": "72.5"}


@pytest.mark.parametrize(
    ("text", "level"),
    [("low", 10), ("Medium", 50), ("high risk", 90), ("0", 0), ("72.5", 73), ("100", 100), ("101", None), ("-3", None), ("tier b", None)],
)  # fmt: skip
def test_an_assessment_that_contains_a_risk_level_is_read_as_that_level(text: str, level: int | None) -> None:
    assert risk_level(text) == level


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("sameDevice", value) for value in ["maybe", 2, -1, [], {}, "truee"]),
        *(
            ("accountCreationDate", value)
            for value in [
                "2026-11-22", "9999-12-31", "1970-01-01", "0001-01-01T00:00:00+14:00", "2026-02-30", "21/11/2026",
                "2026-11-20T25:00", "20261120", 1_763_600_000, True, "2026-11-20Tx",
            ]
        ),
        *(("customerTransactionCount", value) for value in ["-1", -1, "12.5", "1,2", True, "many", "1e3", 10**30]),
        *(("customerAverageOrderValue", value) for value in ["-45", "4.5.0", "$", "45 EUR", float("nan"), float("inf"), 1e300]),
        *(("merchantRiskAssessment", value) for value in ["\0", True, [], Decimal(-1)]),
        *(("fulfillmentMethod", value) for value in [1, True, ["online"]]),
    ],
)  # fmt: skip
def test_an_unreadable_value_is_ignored_and_reported_as_it_was_sent(name: str, value: object) -> None:
    assert read_fields({name: value}, TODAY) == ApprovalsData({}, (name,), 0)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.decimals() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
_known = st.sampled_from(
    [name for field in FIELDS for name in (field.gateway, field.smi, field.gateway.upper())]
)
_likely = st.from_regex(r"[0-9$.,eE+:TZ -]{1,40}", fullmatch=True) | st.sampled_from(list(AS_SENT.values()))


@STEADY
@given(st.dictionaries(_known | st.text(), _json | _likely), st.dates())
def test_no_input_raises_an_exception_and_each_field_is_read_or_reported(
    raw: dict[str, object], today: date
) -> None:
    found = read_fields(raw, today)
    assert set(found.fields) <= set(NAMES)
    assert set(found.unreadable) <= set(raw)
    assert len(found.unreadable) + found.unknown <= len(raw)
    assert json.loads(json.dumps(found.fields)) == found.fields
    numbers = [value for value in found.fields.values() if not isinstance(value, str)]
    assert all(0 <= number <= 10**12 for number in numbers)
