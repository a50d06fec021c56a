"""core/risk/explanation and core/wire/script_json: a decision for an operator, in words and for scripts."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files

from cuota.core.risk.decision import decide
from cuota.core.risk.explanation import counted, explain
from cuota.core.risk.facts import Approvals, Facts, FieldValue, History, Velocity
from cuota.core.risk.policy import load_policy
from cuota.core.wire.script_json import for_scripts

POLICY = load_policy(files("cuota.policies").joinpath("standard.toml").read_text())
FACTS = Facts(
    10_000,
    "USD",
    100,
    200_000,
    History(approved_orders=1, paid_installments=1, days_known=1, outstanding=7_500),
    Velocity(phone=1),
)


def words(fields: dict[str, FieldValue], *unreadable: str, **more: object) -> str:
    approvals = replace(Approvals("on", fields), **more)
    facts = replace(FACTS, approvals=approvals)
    return "\n".join(explain(decide(facts, POLICY), facts, POLICY, unreadable))


def test_the_merchant_s_data_is_explained_in_words() -> None:
    told = words(
        {
            "account_creation_date": 1055, "customer_logged_in": True, "customer_fraud_incidents": False,
            "last_transaction_date": 1, "customer_transaction_count": 12, "customer_average_order_value": 4_550,
            "merchant_risk_assessment": "low", "fulfillment_method": "pickup",
        }
    )  # fmt: skip
    for said in (
        "the customer's account is 1,055 days old", "customer is logged in: yes", "customer had fraud incidents: no",
        "the last purchase at this merchant was 1 day ago", "12 earlier purchases at this merchant",
        "the average order at this merchant is $45.50", "merchant's own risk assessment: low", "fulfillment: pickup",
    ):  # fmt: skip
        assert f"{said}\n" in f"{told}\n", said
    assert "account_creation_date" not in told


def test_fields_that_could_not_be_read_are_listed() -> None:
    assert "not readable, and therefore not used: sameDevice, customer_is_member" in words(
        {}, "sameDevice", "customer_is_member"
    )
    assert "the merchant sent no data." in words({})


def test_the_shift_and_the_bound_are_explained_in_words() -> None:
    given = (("same_device", 90), ("shift", -5), ("bound", -25))
    told = words({"same_device": True}, model="m", points=60, contributions=given)
    assert "-5  shift: added whenever there is data" in told
    assert "-25  bound: the sum is cut off" in told


def test_a_count_of_one_is_in_the_singular() -> None:
    assert (counted(0, "order"), counted(1, "order"), counted(1_200, "order")) == (
        "0 orders",
        "1 order",
        "1,200 orders",
    )
    told = words({})
    assert "based on 1 installment paid" in told
    assert "1 order approved" in told
    assert "the first approved order was 1 day ago." in told


def test_the_json_for_scripts_has_camel_case_names_and_amounts_as_text_and_unchanged_field_names() -> None:
    fields: dict[str, FieldValue] = {"customer_average_order_value": 4_550, "customer_transaction_count": 3}
    inputs = replace(FACTS, approvals=Approvals("on", fields)).as_inputs()
    told = for_scripts(inputs)
    assert (told["amount"], told["merchantMinimum"], told["history"]["outstanding"]) == (
        "100.00",
        "1.00",
        "75.00",
    )
    assert told["history"]["paidInstallments"] == 1
    assert told["approvals"]["fields"] == {
        "customer_average_order_value": "45.50",
        "customer_transaction_count": 3,
    }


def test_the_json_for_scripts_shows_altered_rows_unchanged() -> None:
    assert for_scripts({"amount": "x", "fields": None, "history": {"outstanding": None}}) == {
        "amount": "x",
        "fields": None,
        "history": {"outstanding": None},
    }
