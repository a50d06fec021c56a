"""Properties of referrals under every valid policy: fair to good history, only in their band, and declined on their own facts."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from cuota.core.risk.adverse import SENTENCES
from cuota.core.risk.decision import REVIEWED, WITHIN_LIMIT, decide, refusals
from cuota.core.risk.facts import Facts
from cuota.core.risk.policy import Policy
from cuota.core.risk.review import Review
from support.properties.risk_cases import ANY_FACTS, FACTS, policies
from support.properties.steady import STEADY

NOW = datetime(2026, 11, 24, 9, 0, tzinfo=UTC)
RANK = ("declined", "referred", "approved")
ANSWERS = st.sampled_from(["", "unavailable", "approved", "declined"])
BETTER = {
    "paid_installments": +1, "late_installments": -1, "overdue_installments": -1, "outstanding": -1, "declined_orders": -1,
    "days_known": +1, "disputes": -1,
}  # fmt: skip


@st.composite
def referring(draw: st.DrawFn) -> Policy:
    """Return a policy that refers a band of scores to a person."""
    policy = draw(policies())
    threshold = max(1, policy.score.threshold)
    widest = min(threshold, 300)
    below = draw(st.just(widest) | st.integers(1, widest))
    return replace(policy, score=replace(policy.score, threshold=threshold, refer_from=threshold - below))


def of_referral(known: Facts, policy: Policy) -> Review:
    return Review(UUID(int=1), decide(known, policy), "America/New_York", NOW, NOW)


@STEADY
@given(FACTS, referring(), st.sampled_from(["", "unavailable", "approved"]), st.data())
def test_more_evidence_of_good_history_never_leads_to_a_worse_outcome(
    known: Facts, policy: Policy, review: str, data: st.DataObject
) -> None:
    known = replace(known, review=review)  # type: ignore[arg-type]
    for name, way in BETTER.items():
        value = getattr(known.history, name) or 0
        better = value + data.draw(st.integers(0, 60)) if way > 0 else data.draw(st.integers(0, value))
        improved = replace(known, history=replace(known.history, **{name: better}))
        before, after = decide(known, policy), decide(improved, policy)
        assert RANK.index(after.outcome) >= RANK.index(before.outcome)
        known = improved


@STEADY
@given(FACTS | ANY_FACTS, referring())
def test_an_order_is_referred_exactly_in_the_band_and_if_no_rule_refuses_it(
    known: Facts, policy: Policy
) -> None:
    known = replace(known, steer="")
    made, refer_from = decide(known, policy), policy.score.refer_from
    assert refer_from is not None
    inside = refer_from <= made.score < policy.score.threshold and not refusals(known, policy)
    assert made.referred == inside
    assert not (made.referred and made.approved)


@STEADY
@given(FACTS, referring())
def test_a_decline_after_a_referral_has_its_facts_and_reasons_and_is_what_decide_says(
    known: Facts, policy: Policy
) -> None:
    review = of_referral(known, policy)
    if not review.decision.referred:
        return
    declined = review.declined()
    assert declined == decide(replace(known, review="declined"), policy)
    assert (declined.approved, declined.referred) == (False, False)
    assert declined.reasons == review.decision.reasons
    assert declined.reasons
    assert set(declined.reasons) <= set(SENTENCES)


@STEADY
@given(FACTS, referring())
def test_an_approval_of_a_person_lowers_the_score_and_overrules_no_rule(known: Facts, policy: Policy) -> None:
    made = decide(replace(known, review="approved"), policy)
    assert policy.score.refer_from is not None
    assert made.approved == (made.score >= policy.score.refer_from and not refusals(known, policy))
    assert not made.referred
    if made.approved and made.score < policy.score.threshold:
        assert made.reasons == (REVIEWED, WITHIN_LIMIT)
    if not made.approved:
        assert made.reasons
        assert set(made.reasons) <= set(SENTENCES)


@STEADY
@given(FACTS | ANY_FACTS, ANSWERS, policies() | referring())
def test_what_a_referral_or_its_decision_stored_makes_it_again_through_json_text(
    known: Facts, review: str, policy: Policy
) -> None:
    known = replace(known, review=review)  # type: ignore[arg-type]
    made = decide(known, policy)
    again = Facts.of_inputs(json.loads(json.dumps(made.inputs)))
    assert again == known
    assert decide(again, policy) == made
    assert made.reasons


@STEADY
@given(FACTS | ANY_FACTS, ANSWERS, policies())
def test_a_policy_that_does_not_say_so_refers_nobody(known: Facts, review: str, policy: Policy) -> None:
    known = replace(known, steer="", review=review)  # type: ignore[arg-type]
    assert policy.score.refer_from is None
    assert not decide(known, policy).referred


@STEADY
@given(FACTS | ANY_FACTS, policies() | referring())
def test_the_sandboxs_test_name_refers_whatever_else_is_known_and_then_the_answer_decides(
    known: Facts, policy: Policy
) -> None:
    steered = replace(known, steer="refer")
    outcomes = {
        review: decide(replace(steered, review=review), policy).outcome  # type: ignore[arg-type]
        for review in ("", "unavailable", "approved", "declined")
    }
    assert outcomes == {
        "": "referred",
        "unavailable": "declined",
        "approved": "approved",
        "declined": "declined",
    }
    review = of_referral(steered, policy)
    assert review.declined() == decide(replace(steered, review="declined"), policy)


def test_these_examples_are_approved_declined_and_referred_often() -> None:
    met: Counter[str] = Counter()

    @settings(STEADY, max_examples=500)
    @given(FACTS, referring())
    def look(known: Facts, policy: Policy) -> None:
        met[decide(known, policy).outcome] += 1

    look()
    assert min(met[each] for each in RANK) > 20, met
