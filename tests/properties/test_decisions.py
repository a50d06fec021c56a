"""Every decision under every valid policy is repeatable, never punishes a better history, and gives correct reasons."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, fields, replace
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from cuota.core.risk.adverse import SENTENCES
from cuota.core.risk.decision import (
    APPROVAL_CODES,
    DECLINE_CODES,
    GOOD_HISTORY,
    KNOWN_TO_MERCHANT,
    MOST_REASONS,
    WITHIN_LIMIT,
    Decision,
    decide,
    refusals,
    score_parts,
)
from cuota.core.risk.facts import Approvals, Facts, History, Velocity
from cuota.core.risk.policy import BadPolicy, Policy, load_policy
from support.properties.risk_cases import ANY_FACTS, APPROVALS, FACTS, POINTS, mutations, policies
from support.properties.steady import STEADY


def _said(made: Decision) -> tuple[object, ...]:
    return made.approved, made.reasons, made.score, made.limit


def _no_worse(before: Facts, after: Facts, policy: Policy) -> None:
    """Assert that neither the score nor the limit falls, and that an approval stays an approval."""
    old, new = decide(before, policy), decide(after, policy)
    assert new.score >= old.score
    assert new.limit >= old.limit
    assert new.approved or not old.approved


@STEADY
@given(FACTS | ANY_FACTS, policies())
def test_the_stored_facts_of_a_decision_give_the_same_decision_again(known: Facts, policy: Policy) -> None:
    made = decide(known, policy)
    again = Facts.of_inputs(json.loads(json.dumps(made.inputs)))
    assert again == known
    assert decide(again, policy) == made


@STEADY
@given(ANY_FACTS, policies())
def test_every_valid_policy_decides_all_possible_facts(known: Facts, policy: Policy) -> None:
    made = decide(known, policy)
    assert made.reasons
    assert set(made.reasons) <= set(APPROVAL_CODES if made.approved else DECLINE_CODES)


BETTER_HISTORY = {
    "paid_installments": +1, "late_installments": -1, "overdue_installments": -1, "outstanding": -1, "declined_orders": -1,
    "days_known": +1, "disputes": -1,
}  # fmt: skip


@STEADY
@given(FACTS, policies(), st.data())
def test_more_evidence_of_good_history_never_turns_an_approval_into_a_decline(
    known: Facts, policy: Policy, data: st.DataObject
) -> None:
    for name, way in BETTER_HISTORY.items():
        value = getattr(known.history, name) or 0
        better = value + data.draw(st.integers(0, 60)) if way > 0 else data.draw(st.integers(0, value))
        improved = replace(known, history=replace(known.history, **{name: better}))
        _no_worse(known, improved, policy)
        known = data.draw(st.sampled_from([known, improved]))


@STEADY
@given(FACTS, policies(), st.data())
def test_a_smaller_amount_less_velocity_or_fewer_mismatches_never_turn_an_approval_into_a_decline(
    known: Facts, policy: Policy, data: st.DataObject
) -> None:
    _no_worse(known, replace(known, amount=data.draw(st.integers(0, known.amount))), policy)
    for name, seen in asdict(known.velocity).items():
        fewer = replace(known.velocity, **{name: data.draw(st.integers(0, seen))})
        _no_worse(known, replace(known, velocity=fewer), policy)
    for name in asdict(known.mismatches):
        _no_worse(known, replace(known, mismatches=replace(known.mismatches, **{name: False})), policy)


@STEADY
@given(FACTS, policies(), APPROVALS, POINTS, POINTS)
def test_more_points_from_the_merchant_s_data_never_turn_an_approval_into_a_decline(
    known: Facts, policy: Policy, given: Approvals, one: int, other: int
) -> None:
    low, high = (
        replace(known, approvals=replace(given, mode="on", points=points)) for points in sorted((one, other))
    )
    _no_worse(low, high, policy)
    assert decide(high, policy).score - decide(low, policy).score <= 2 * policy.approvals_most


@STEADY
@given(FACTS, policies(), APPROVALS, st.sampled_from(["off", "trial"]))
def test_the_merchant_s_data_does_not_change_a_decision_in_the_modes_off_and_trial(
    known: Facts, policy: Policy, given: Approvals, mode: str
) -> None:
    told = replace(known, approvals=replace(given, mode=mode))  # type: ignore[arg-type]
    assert _said(decide(told, policy)) == _said(decide(replace(known, approvals=None), policy))


@STEADY
@given(ANY_FACTS | FACTS, policies())
def test_the_sandbox_s_test_names_decide_whatever_the_other_facts_are(known: Facts, policy: Policy) -> None:
    yes, no = decide(replace(known, steer="approve"), policy), decide(replace(known, steer="decline"), policy)
    assert (yes.approved, yes.reasons) == (True, ("sandbox_approve_requested",))
    assert (no.approved, no.reasons) == (False, ("sandbox_decline_requested",))


@STEADY
@given(FACTS, policies())
def test_a_decline_names_at_most_four_explained_reasons_and_an_approval_always_names_the_limit(
    known: Facts, policy: Policy
) -> None:
    made = decide(known, policy)
    assert len(set(made.reasons)) == len(made.reasons)
    if made.approved:
        assert made.reasons[-1] == WITHIN_LIMIT
    else:
        assert 1 <= len(made.reasons) <= MOST_REASONS
        assert set(made.reasons) <= set(SENTENCES)


def _decisive(known: Facts, policy: Policy) -> set[str]:
    """Return the decisive findings. A finding is decisive if it refuses the order by itself, or if, together with some
    of the other findings, it turns an approval into a decline. Every combination is tried."""
    refused, parts = refusals(known, policy), score_parts(known, policy)
    best = sum(part.most for part in parts)
    costs = [part for part in parts if part.missing and part.code not in refused]
    found = set(refused)
    for part in costs:
        others = [other.missing for other in costs if other is not part]
        left = (
            best - sum(choice) for size in range(len(others) + 1) for choice in combinations(others, size)
        )
        if any(score >= policy.score.threshold > score - part.missing for score in left):
            found.add(part.code)
    return found


@STEADY
@given(FACTS, policies())
def test_a_decline_names_only_decisive_reasons_and_all_of_them_up_to_four(
    known: Facts, policy: Policy
) -> None:
    made = decide(known, policy)
    if made.approved:
        return
    decisive = _decisive(known, policy)
    assert set(made.reasons) <= decisive
    assert len(made.reasons) == min(len(decisive), MOST_REASONS)
    costs = {part.code: part.missing for part in score_parts(known, policy)}
    first = len([code for code in made.reasons if code in refusals(known, policy)])
    weights = [costs[code] for code in made.reasons[first:]]
    assert weights == sorted(weights, reverse=True)


def _history(**better: int) -> Callable[[Facts], Facts]:
    return lambda known: replace(known, history=replace(known.history, **better))


def _velocity(name: str) -> Callable[[Facts], Facts]:
    return lambda known: replace(known, velocity=replace(known.velocity, **{name: 0}))


def _mismatch(name: str) -> Callable[[Facts], Facts]:
    return lambda known: replace(known, mismatches=replace(known.mismatches, **{name: False}))


# For each reason of a decline, a change of the facts that removes the reason.
CURES: dict[str, Callable[[Facts], Facts]] = {
    "overdue_payments": _history(overdue_installments=0),
    "over_limit": lambda known: replace(known, amount=1, history=replace(known.history, outstanding=0)),
    "disputed_payments": _history(disputes=0),
    "late_payments": _history(late_installments=0),
    "recently_declined": _history(declined_orders=0),
    "high_amount": lambda known: replace(known, amount=0),
    "few_payments_yet": _history(paid_installments=100),
    "known_for_short_time": _history(days_known=100 * 30),
    "merchant_information": lambda known: replace(known, approvals=None),
    **{f"velocity_{field.name}": _velocity(field.name) for field in fields(Velocity)},
    "other_surname": _mismatch("surname"),
    "other_phone": _mismatch("order_phone"),
    "other_billing_state": _mismatch("billing_state"),
    "other_shipping_state": _mismatch("shipping_state"),
}


@STEADY
@given(FACTS, policies())
def test_a_consumer_who_removes_the_named_reasons_is_approved(known: Facts, policy: Policy) -> None:
    made = decide(known, policy)
    # A decline names at most four reasons. After these are removed, the next decline may name further ones.
    while not made.approved:
        for code in made.reasons:
            known = CURES[code](known)
        again = decide(known, policy)
        assert again.approved or len(made.reasons) == MOST_REASONS
        assert not set(again.reasons) & set(made.reasons)
        made = again


@STEADY
@given(FACTS, policies())
def test_an_approval_becomes_a_decline_without_the_good_history_or_data_that_it_names(
    known: Facts, policy: Policy
) -> None:
    made = decide(known, policy)
    if not made.approved:
        return
    without = known
    if GOOD_HISTORY in made.reasons:
        without = _history(paid_installments=0)(without)
        without = replace(without, history=replace(without.history, days_known=None))
    if KNOWN_TO_MERCHANT in made.reasons:
        without = replace(without, approvals=None)
    assert decide(without, policy).approved == (made.reasons == (WITHIN_LIMIT,))


def _loaded(text: str) -> Policy | BadPolicy:
    try:
        return load_policy(text)
    except BadPolicy as refused:
        return refused


@STEADY
@given(mutations())
def test_a_policy_with_a_changed_number_loads_or_is_refused_with_its_line(text: str) -> None:
    loaded = _loaded(text)
    if isinstance(loaded, Policy):
        assert (
            loaded.limit(History()) <= loaded.limit(History(paid_installments=100)) <= loaded.exposure.ceiling
        )
        return
    assert str(loaded).startswith(f"line {loaded.line}: ")
    # The line has a key with a value: it is not a comment, a header or empty.
    assert re.match(r"\w+ = .", text.split("\n")[loaded.line - 1])


def test_the_random_examples_contain_approvals_and_declines_for_many_reasons() -> None:
    met: Counter[str] = Counter()

    @settings(STEADY, max_examples=500)
    @given(FACTS, policies())
    def look(known: Facts, policy: Policy) -> None:
        made = decide(known, policy)
        met.update((str(made.approved), *made.reasons))

    look()
    assert met.keys() >= {"overdue_payments", "over_limit", "late_payments", WITHIN_LIMIT, GOOD_HISTORY}
    assert min(met["True"], met["False"]) > 125
