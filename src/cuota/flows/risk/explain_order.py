"""`cuota explain`: explains a decision, an order or a plan to an operator, with all numbers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from cuota.core import money
from cuota.core.dates import day
from cuota.core.instant import timestamp
from cuota.core.order.order import Status
from cuota.core.plan.collection import needs_card
from cuota.core.risk.approvals import read_fields
from cuota.core.risk.decision import Decision, score_parts
from cuota.core.risk.explanation import because, explain
from cuota.core.wire.script_json import for_scripts
from cuota.db.checkout import consumers
from cuota.db.order import story
from cuota.db.order.story import Charged, Story
from cuota.db.plan import plan_changes, plans
from cuota.db.risk import decisions, reviews
from cuota.db.risk.decisions import Made
from cuota.db.risk.reviews import ReviewedOrder
from cuota.flows.context import Context
from cuota.flows.dispute.tell_disputes import tell_disputes
from cuota.flows.order.find_order import NothingToExplain, order_id_of
from cuota.flows.risk.review_decisions import Policies, ReplayedDecision, differences
from cuota.flows.risk.tell_change import change_facts, change_lines
from cuota.flows.risk.tell_installment import installment_facts, installment_line
from cuota.flows.risk.tell_review import review_facts
from cuota.flows.risk.tell_timeline import timeline
from cuota.flows.risk.write_letter import write_letter


@dataclass(frozen=True, slots=True)
class Explanation:
    """One explanation in two forms: `facts` is the JSON object for scripts, `lines` is the text for people."""

    facts: dict[str, Any]
    lines: list[str]


async def explain_decision(context: Context, decision_id: UUID) -> Explanation:
    """Explain one risk decision. Raises NothingToExplain if there is no decision with this id."""
    made = await decisions.read(context.pool, decision_id)
    if made is None:
        raise NothingToExplain(
            f"There is no decision {decision_id}. `cuota explain order ID` lists the decisions about an order."
        )
    found = await _story(context, made.order_id)
    return await _decision(context, made, found)


async def explain_order(context: Context, named: str | UUID) -> Explanation:
    """Explain what happened to an order, and every decision about it.

    `named` is the order's id or the merchant's reference. Raises NothingToExplain if `named` does not name exactly one order.
    """
    order_id = await order_id_of(context, named)
    found = await _story(context, order_id)
    order = found.order
    made = await decisions.read_of_order(context.pool, order.merchant_id, order_id)
    review = await reviews.read(context.pool, order.merchant_id, order_id)
    referral = [] if review is None else [await _decision(context, review.made, found)]
    explained = [*referral, *[await _decision(context, each, found) for each in made]]
    amount = money.shown(order.amount, order.currency)
    lines = [
        f"Order {order_id} of {amount} at {found.merchant} (reference {found.reference}): {order.status}.",
        "",
    ]
    changes = await plan_changes.of_order(context.pool, order.merchant_id, order_id)
    lines += timeline(found, made, review, changes)
    disputed = await tell_disputes(context, order.merchant_id, order_id, order.currency)
    lines += ["", *disputed.lines] if disputed.lines else []
    for each in explained:
        lines += ["", *each.lines]
    facts = {
        **_order_facts(found),
        "events": [
            {
                "at": timestamp(each.at),
                "type": each.type,
                "success": each.success,
                "message": each.message,
                "amount": money.text_of(each.amount),
                "reference": each.reference,
            }
            for each in found.told
        ],
        "changes": [change_facts(each) for each in changes],
        "charges": [_charge_facts(each) for each in found.charged],
        "review": None if review is None else review_facts(review),
        "decisions": [each.facts for each in explained[len(referral) :]],
        **disputed.facts,
    }
    return Explanation(
        facts,
        lines
        if explained
        else [*lines, "", "There is no decision about this order: no consumer has submitted the checkout."],
    )


async def explain_referral(context: Context, found: ReviewedOrder) -> Explanation:
    """Explain why an order was referred to a person: the facts at the time of the referral."""
    return await _decision(context, found.made, await _story(context, found.order.order_id))


async def explain_plan(context: Context, named: str | UUID) -> Explanation:
    """Explain each installment of an order's plan, and why the plan exists.

    `named` is the order's id or the merchant's reference. Raises NothingToExplain if `named` does not name exactly one order,
    or if the order has no plan.
    """
    order_id = await order_id_of(context, named)
    found = await _story(context, order_id)
    order = found.order
    if order.status is not Status.APPROVED:
        raise NothingToExplain(
            f"Order {order_id} has no plan: its status is {order.status}. `cuota explain order {order_id}` says why."
        )
    made = await decisions.read_of_order(context.pool, order.merchant_id, order_id)
    agreed_plan = await plans.read(context.pool, order.merchant_id, order_id)
    card_ended = agreed_plan is not None and (agreed_plan.ended or needs_card(found.plan))

    def cents(amount: int) -> str:
        return money.shown(amount, order.currency)

    agreed = f", agreed to on {day(found.agreed_at.date(), year=True)}" if found.agreed_at else ""
    owed = order.amount - order.voided - order.refunded
    lines = [
        f"Plan of order {order_id} at {found.merchant}{agreed}.",
        f"Total: {cents(owed)} ({cents(order.amount)} ordered, minus {cents(order.voided + order.refunded)} voided or refunded).",
        f"Fees for the plan: {cents(order.fee - order.fee_returned)}.",
        *(f"  {item.number}. {installment_line(item, found, needs_card=card_ended)}" for item in found.plan),
    ]
    changes = await plan_changes.of_order(context.pool, order.merchant_id, order_id)
    lines += [line for each in changes for line in change_lines(each)]
    if made and made[-1].approved:
        why = "; ".join(because(code) for code in made[-1].reasons)
        lines.append(f"Decision {made[-1].decision_id} approved this plan. Reasons: {why}.")
    facts = {
        **_order_facts(found),
        "owed": money.text_of(owed),
        "installments": [installment_facts(item) for item in found.plan],
        "changes": [change_facts(each) for each in changes],
        "decisionId": str(made[-1].decision_id) if made else None,
    }
    return Explanation(facts, lines)


async def letter_of(context: Context, decision_id: UUID) -> Explanation:
    """Return the letter that tells the consumer why the order was declined.

    Raises NothingToExplain if there is no such decision, or if the decision was an approval.
    """
    made = await decisions.read(context.pool, decision_id)
    if made is None or made.approved:
        why = "was an approval" if made else "does not exist"
        raise NothingToExplain(f"There is no letter: decision {decision_id} {why}.")
    found = await _story(context, made.order_id)
    consumer = await consumers.read(context.pool, made.consumer_id) if made.consumer_id else None
    paragraphs = write_letter(
        context.settings,
        name=consumer.profile.name if consumer and consumer.profile else "customer",
        merchant=found.merchant,
        # The date in the consumer's time zone. The letter that was sent has the same date.
        day=found.declined_on or made.decided_at.date(),
        amount=found.order.amount,
        currency=found.order.currency,
        reasons=made.reasons,
        limit=made.limit,
    )
    return Explanation(
        {"decisionId": str(decision_id), "letter": paragraphs}, "\n\n".join(paragraphs).split("\n")
    )


async def _story(context: Context, order_id: UUID) -> Story:
    merchant_id = await decisions.whose(context.pool, order_id)
    found = await story.read(context.pool, merchant_id, order_id) if merchant_id else None
    if found is None:
        raise NothingToExplain(f"There is no order {order_id}.")
    return found


async def _decision(context: Context, made: Made, found: Story) -> Explanation:
    again = await Policies(context).again(made)
    of_order = f"order {made.order_id} at {found.merchant}, {timestamp(made.decided_at)}:"
    lines = [
        f"Referral of {of_order}" if made.referred else f"Decision {made.decision_id} about {of_order}",
        f"{made.outcome.upper()} by policy {made.policy_version}.",
    ]
    facts: dict[str, Any] = {
        "decisionId": None if made.referred else str(made.decision_id),
        "orderId": str(made.order_id),
        "merchantId": str(made.merchant_id),
        "decidedAt": timestamp(made.decided_at),
        "approved": made.approved,
        "reasons": list(made.reasons),
        "policyVersion": made.policy_version,
        "score": made.score,
        "limit": None if made.limit is None else money.text_of(made.limit),
        "inputs": for_scripts(made.inputs),
        "unreadable": _unreadable(found, made),
    }
    if again.decision is None:
        lines += [f"Why: {because(code)}." for code in made.reasons]
        thing = "referral" if made.referred else "decision"
        return Explanation(
            {**facts, "again": None}, [*lines, f"This {thing} cannot be repeated: {again.why}."]
        )
    return Explanation(
        {**facts, **_again_facts(again, made)},
        [*lines, *_again_lines(again, again.decision, made, facts["unreadable"])],
    )


def _again_facts(again: ReplayedDecision, made: Made) -> dict[str, Any]:
    assert again.facts is not None
    assert again.policy is not None
    assert again.decision is not None
    parts = [part._asdict() for part in score_parts(again.facts, again.policy)]
    changed = differences(made, again.decision)
    same = difference_facts(changed)
    return {"threshold": again.policy.score.threshold, "parts": parts, "again": {"differences": same}}


def difference_facts(changed: dict[str, tuple[object, object]]) -> dict[str, dict[str, object]]:
    """Return each differing value as stored and as repeated now, for scripts."""
    return {
        name: {"stored": for_scripts(was, name), "again": for_scripts(now, name)}
        for name, (was, now) in changed.items()
    }


def difference_lines(changed: dict[str, tuple[object, object]]) -> list[str]:
    """Return each differing value as stored and as repeated now, for people."""
    values = difference_facts(changed)
    return [f"  {name}: stored {each['stored']}, now {each['again']}" for name, each in values.items()]


def _unreadable(found: Story, made: Made) -> list[str]:
    """Return the names of the merchant's data fields whose values could not be read.

    The list is empty if Advanced Approvals was off, because then the fields were not read at all.
    """
    if not found.additional or not made.inputs.get("approvals"):
        return []
    raw = json.loads(found.additional, parse_float=Decimal).get("fields") or {}
    return list(read_fields(raw, made.decided_at.date()).unreadable)


def _again_lines(again: ReplayedDecision, decision: Decision, made: Made, unreadable: list[str]) -> list[str]:
    assert again.facts is not None
    assert again.policy is not None
    lines = explain(decision, again.facts, again.policy, unreadable)
    changed, thing = differences(made, decision), "referral" if made.referred else "decision"
    if not changed:
        return [*lines, "", f"Repeating the {thing} from the stored facts gives the same result."]
    head = f"REPEATING THE {thing.upper()} FROM THE STORED FACTS GIVES A DIFFERENT RESULT:"
    return [*lines, "", head, *difference_lines(changed)]


def _order_facts(found: Story) -> dict[str, Any]:
    order = found.order
    return {
        "orderId": str(order.order_id),
        "merchantId": str(order.merchant_id),
        "merchant": found.merchant,
        "merchantReference": found.reference,
        "orderStatus": order.status.value,
        "amount": money.text_of(order.amount),
    }


def _charge_facts(each: Charged) -> dict[str, Any]:
    return {**for_scripts(asdict(each)), "chargeId": str(each.charge_id), "at": timestamp(each.at)}
