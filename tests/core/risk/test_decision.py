"""core/risk/decision: the decisions of the standard policy and their reasons. Each reason has an effect on the
decision."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations

import pytest

from cuota.core.risk.decision import ScorePart, decide, principal_reasons, refusals, score_parts
from cuota.core.risk.facts import Facts, History, Mismatches, Velocity
from cuota.core.risk.policy import Counted
from support.core.risk_values import ALL_MISMATCHES, GOOD, STANDARD, facts, on, standard_but

NEW_LIMIT = 200_000


def _outcome(known: Facts) -> tuple[bool, tuple[str, ...]]:
    made = decide(known, STANDARD)
    return made.approved, made.reasons


@pytest.mark.parametrize("amount", [100, 10_000, NEW_LIMIT])
def test_an_ordinary_first_order_is_approved_up_to_the_limit_of_a_new_consumer(amount: int) -> None:
    assert _outcome(facts(amount)) == (True, ("within_limit",))


def test_an_order_one_cent_over_the_limit_is_declined_and_the_record_has_the_limit() -> None:
    made = decide(facts(NEW_LIMIT + 1), STANDARD)
    assert (made.approved, made.reasons, made.limit) == (False, ("over_limit",), NEW_LIMIT)


def test_the_amount_already_owed_counts_towards_the_limit() -> None:
    assert _outcome(facts(10_000, History(outstanding=NEW_LIMIT - 10_000)))[0]
    assert _outcome(facts(10_000, History(outstanding=NEW_LIMIT - 9_999))) == (False, ("over_limit",))


def test_a_consumer_who_has_paid_more_has_a_higher_limit_and_the_approval_names_this_reason() -> None:
    assert _outcome(facts(400_000, GOOD)) == (True, ("good_history", "within_limit"))
    assert _outcome(facts(400_000, replace(GOOD, late_installments=1))) == (False, ("over_limit",))


def test_an_overdue_installment_declines_even_the_best_consumer() -> None:
    assert _outcome(facts(history=replace(GOOD, overdue_installments=1))) == (False, ("overdue_payments",))


def test_one_dispute_costs_points_and_a_second_declines() -> None:
    assert _outcome(facts(history=replace(GOOD, disputes=1)))[0]
    assert _outcome(facts(history=replace(GOOD, disputes=2))) == (False, ("disputed_payments",))


@pytest.mark.parametrize(("kind", "most"), [("phone", 40), ("card", 40), ("address", 60), ("device", 40)])
def test_the_last_order_that_a_window_allows_is_approved_and_the_next_is_not(kind: str, most: int) -> None:
    assert _outcome(facts(velocity=Velocity(**{kind: most - 1})))[0]
    assert _outcome(facts(velocity=Velocity(**{kind: most}))) == (False, (f"velocity_{kind}",))


@pytest.mark.parametrize("kind", ["order_phone", "billing_state", "shipping_state", "surname"])
def test_a_single_mismatch_never_declines_a_new_consumer(kind: str) -> None:
    assert _outcome(facts(NEW_LIMIT, mismatches=Mismatches(**{kind: True})))[0]


def test_all_mismatches_together_decline_a_large_first_order_but_not_that_of_a_known_consumer() -> None:
    assert _outcome(facts(NEW_LIMIT, mismatches=ALL_MISMATCHES)) == (
        False,
        ("few_payments_yet", "high_amount", "known_for_short_time", "other_surname"),
    )
    assert _outcome(facts(NEW_LIMIT, GOOD, mismatches=ALL_MISMATCHES)) == (
        True,
        ("good_history", "within_limit"),
    )


def test_the_score_is_the_sum_of_its_parts() -> None:
    known = facts(
        50_000,
        History(5, 12, 2, 1, 40_000, 3, 95, 1),
        mismatches=Mismatches(order_phone=True),
        approvals=on(17),
    )
    assert {part.name: part.points for part in score_parts(known, STANDARD)} == {
        "base": 600, "paid_installments": 60, "months_known": 9, "late_installments": -50, "overdue_installments": -60,
        "declined_orders": -30, "disputes": -80, "amount": -12, "order_phone": -15, "billing_state": 0,
        "shipping_state": 0, "surname": 0, "approvals": 17,
    }  # fmt: skip
    assert decide(known, STANDARD).score == 439


def test_refusing_reasons_are_listed_first_and_there_are_at_most_four_reasons() -> None:
    history = History(overdue_installments=2, outstanding=NEW_LIMIT, late_installments=6, disputes=2)
    assert _outcome(facts(100, history, Velocity(phone=99, card=99), ALL_MISMATCHES)) == (
        False,
        ("overdue_payments", "over_limit", "velocity_phone", "velocity_card"),
    )


def test_missing_points_that_did_not_decide_are_not_listed_as_a_reason() -> None:
    # An approval may miss at most 100 points of the best score. Together with 101 or more other missing points, one
    # point never decides; together with exactly 100, it does.
    small = [ScorePart("small", -1, 0, "small"), ScorePart("nothing", 0, 0, "nothing")]
    large = [ScorePart("more", -101, 0, "more"), ScorePart("most", 0, 150, "most")]
    assert principal_reasons((), [*large, *small], 100) == ("most", "more")
    exact = ScorePart("exact", -100, 0, "exact")
    assert principal_reasons((), [*large, exact, *small], 100) == ("most", "more", "exact", "small")


def test_the_reasons_are_exactly_the_findings_that_can_be_decisive_together_with_some_of_the_others() -> None:
    for slack in range(12):
        parts = [ScorePart(str(cost), -cost, 0, str(cost)) for cost in (1, 2, 4, 7)]
        decisive = {
            part.code
            for part in parts
            for size in range(len(parts))
            for others in combinations([other for other in parts if other is not part], size)
            if sum(other.missing for other in others) <= slack < sum(each.missing for each in (*others, part))
        }
        assert set(principal_reasons((), parts, slack)) == decisive


@pytest.mark.parametrize(
    ("code", "known"),
    [
        ("late_payments", facts(1, History(late_installments=1))),
        ("overdue_payments", facts(1, History(overdue_installments=1))),
        ("recently_declined", facts(1, History(declined_orders=1))),
        ("disputed_payments", facts(1, History(disputes=1))),
        ("high_amount", facts(NEW_LIMIT)),
        ("other_phone", facts(1, mismatches=Mismatches(order_phone=True))),
        ("other_billing_state", facts(1, mismatches=Mismatches(billing_state=True))),
        ("other_shipping_state", facts(1, mismatches=Mismatches(shipping_state=True))),
        ("other_surname", facts(1, mismatches=Mismatches(surname=True))),
        ("merchant_information", facts(1, approvals=on(-1))),
    ],
)
def test_each_finding_that_costs_points_has_its_own_reason_code(code: str, known: Facts) -> None:
    nothing = Counted(0, 0)
    # With this policy, an order that loses a single point is declined, and the merchant's data adds no point.
    score = replace(STANDARD.score, base=500, paid_installments=nothing, months_known=nothing)
    strict = replace(STANDARD, score=score)
    assert decide(facts(1), strict).approved
    declined = decide(known, strict)
    assert (declined.approved, declined.reasons) == (False, (code,))


def test_an_order_is_approved_at_the_threshold_score_and_not_below_it() -> None:
    known = facts(NEW_LIMIT)
    assert decide(known, standard_but(threshold=540)).approved
    declined = decide(known, standard_but(threshold=541))
    assert (declined.approved, declined.score) == (False, 540)
    assert declined.reasons == ("few_payments_yet", "high_amount", "known_for_short_time")


def test_the_merchant_s_data_can_lead_to_an_approval_only_in_the_mode_on() -> None:
    doubtful = facts(NEW_LIMIT, mismatches=ALL_MISMATCHES)
    carried = replace(doubtful, approvals=on(50))
    assert _outcome(carried) == (True, ("known_to_merchant", "within_limit"))
    assert carried.approvals is not None
    for mode in ("off", "trial"):
        assert _outcome(replace(carried, approvals=replace(carried.approvals, mode=mode))) == _outcome(
            doubtful
        )


def test_the_points_of_the_merchant_s_data_are_limited_by_the_policy() -> None:
    assert decide(facts(approvals=on(10_000)), STANDARD).score == 597 + 60
    assert decide(facts(approvals=on(-10_000)), STANDARD).score == 597 - 60


def test_a_decline_because_of_the_merchant_s_data_names_that_reason() -> None:
    against = facts(NEW_LIMIT, mismatches=Mismatches(surname=True), approvals=on(-60))
    assert "merchant_information" in _outcome(against)[1]
    assert _outcome(replace(against, approvals=None))[0]


def test_if_the_merchant_s_data_leaves_one_point_missing_every_missing_point_is_a_reason() -> None:
    known = facts(100, History(disputes=1), mismatches=Mismatches(order_phone=True), approvals=on(34))
    declined = decide(known, standard_but(threshold=540))
    assert (declined.approved, declined.score) == (False, 539)
    assert declined.reasons == (
        "few_payments_yet",
        "disputed_payments",
        "known_for_short_time",
        "other_phone",
    )


def test_an_approval_despite_bad_data_of_the_merchant_names_the_good_history() -> None:
    known = facts(NEW_LIMIT, GOOD, mismatches=Mismatches(surname=True), approvals=on(-60))
    assert _outcome(known) == (True, ("good_history", "within_limit"))


def test_an_order_above_the_limit_loses_no_more_points_than_an_order_of_exactly_the_limit() -> None:
    assert decide(facts(10 * NEW_LIMIT), STANDARD).score == decide(facts(NEW_LIMIT), STANDARD).score == 540


def test_an_approval_that_needs_history_and_merchant_data_names_both() -> None:
    history = History(paid_installments=3, days_known=60, late_installments=6)
    known = facts(10_000, history, mismatches=Mismatches(billing_state=True), approvals=on(60))
    assert _outcome(known) == (True, ("known_to_merchant", "good_history", "within_limit"))
    assert not _outcome(replace(known, approvals=None))[0]


@pytest.mark.parametrize("amount", [1, 10_000, 10**11])
def test_the_sandbox_approves_its_test_surname_whatever_the_amount_is(amount: int) -> None:
    assert _outcome(facts(amount, steer="approve")) == (True, ("sandbox_approve_requested",))


def test_the_sandbox_declines_its_test_surname() -> None:
    assert _outcome(facts(history=GOOD, steer="decline")) == (False, ("sandbox_decline_requested",))


def test_a_decision_names_its_policy_and_stores_the_facts_to_repeat_it() -> None:
    known = facts(12_345, GOOD, approvals=on(5))
    made = decide(known, STANDARD)
    assert made.policy_version == STANDARD.version
    stored = json.loads(json.dumps(made.inputs))
    assert decide(Facts.of_inputs(stored), STANDARD) == made


def test_a_consumer_known_for_less_than_a_month_gets_no_points_for_that() -> None:
    month = {
        days: decide(facts(history=History(days_known=days)), STANDARD).score for days in (0, 29, 30, 59, 60)
    }
    assert month == {0: 597, 29: 597, 30: 600, 59: 600, 60: 603}


def test_the_refusing_findings_are_those_of_the_given_policy() -> None:
    patient = replace(STANDARD, refuse_overdue=2, refuse_disputes=3)
    known = facts(history=replace(GOOD, overdue_installments=1, disputes=2))
    assert refusals(known, STANDARD) == ("overdue_payments", "disputed_payments")
    assert refusals(known, patient) == ()
