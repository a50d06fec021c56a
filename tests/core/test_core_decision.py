"""core/decision: the same facts under the same policy give the same outcome, with its reasons."""

from __future__ import annotations

import json

import pytest

from cuota.core.decision import POLICY_VERSION, Facts, decide


@pytest.mark.parametrize("surname", ["Declinetest", "declinetest", " DECLINETEST "])
def test_the_sandbox_declines_the_surname_of_its_table(surname: str) -> None:
    decision = decide(Facts(10_000, "USD", surname, sandbox=True))
    assert not decision.approved
    assert decision.reasons == ("sandbox_decline_requested",)


@pytest.mark.parametrize("amount", [1, 10_000, 10**11])
def test_the_sandbox_approves_the_surname_of_its_table_whatever_the_amount(amount: int) -> None:
    decision = decide(Facts(amount, "USD", "Approvetest", sandbox=True))
    assert decision.approved
    assert decision.reasons == ("sandbox_approve_requested",)


@pytest.mark.parametrize("surname", ["Declinetest", "Approvetest", "Ruiz"])
def test_in_production_a_surname_decides_nothing_and_is_not_kept(surname: str) -> None:
    decision = decide(Facts(10_000, "USD", surname, sandbox=False))
    assert decision == decide(Facts(10_000, "USD", "Another", sandbox=False))
    assert surname.casefold() not in json.dumps(decision.inputs).casefold()


@pytest.mark.parametrize("surname", ["Declinetester", "De clinetest", "Ruiz", ""])
def test_other_surnames_are_approved_within_the_merchants_limits(surname: str) -> None:
    decision = decide(Facts(10_000, "USD", surname, sandbox=True))
    assert decision.approved
    assert decision.reasons == ("within_merchant_limits",)


def test_a_decision_names_its_policy_and_what_it_was_made_from() -> None:
    decision = decide(Facts(12_345, "USD", "Ruiz", sandbox=True))
    assert decision.policy_version == POLICY_VERSION
    assert decision.inputs == {"amount": 12_345, "currency": "USD", "sandbox": True}


def test_the_same_facts_give_the_same_decision() -> None:
    facts = Facts(10_000, "USD", "Declinetest", sandbox=True)
    assert decide(facts) == decide(facts)
