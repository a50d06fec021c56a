"""In words what happened and why: of a decision, of an order, of a plan. For an operator, with the numbers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from cuota.core import money
from cuota.core.dates import day
from cuota.core.installment import Installment
from cuota.core.instant import timestamp
from cuota.core.order.order import Status
from cuota.core.risk.approvals import read_fields
from cuota.core.risk.decision import Decision, score_parts
from cuota.core.risk.explanation import because, explain
from cuota.core.wire.script_json import for_scripts
from cuota.db.checkout import consumers
from cuota.db.order import story
from cuota.db.order.story import Charged, Story
from cuota.db.risk import decisions
from cuota.db.risk.decisions import Made
from cuota.flows.context import Context
from cuota.flows.order.find_order import NothingToExplain, order_id_of
from cuota.flows.plan.write_letter import write_letter
from cuota.flows.risk.review_decisions import Policies, ReplayedDecision, differences


@dataclass(frozen=True, slots=True)
class Explanation:
    """The same told twice: `facts` for a script, `lines` for a person."""

    facts: dict[str, Any]
    lines: list[str]


async def explain_decision(context: Context, decision_id: UUID) -> Explanation:
    """One decision. Raises NothingToExplain."""
    made = await decisions.read(context.pool, decision_id)
    if made is None:
        raise NothingToExplain(
            f"There is no decision {decision_id}. `cuota explain order ID` lists those of an order."
        )
    found = await _story(context, made.order_id)
    return await _decision(context, made, found)


async def explain_order(context: Context, named: str | UUID) -> Explanation:
    """What happened to an order, and every decision about it; by its id or reference. Raises NothingToExplain."""
    order_id = await order_id_of(context, named)
    found = await _story(context, order_id)
    order = found.order
    made = await decisions.read_of_order(context.pool, order.merchant_id, order_id)
    told = [await _decision(context, each, found) for each in made]
    amount = money.shown(order.amount, order.currency)
    lines = [
        f"Order {order_id} of {amount} at {found.merchant} (reference {found.reference}): {order.status}.",
        "",
    ]
    lines += _by_time(found, made)
    for each in told:
        lines += ["", *each.lines]
    facts = {
        **_order_facts(found),
        "events": [
            {"at": timestamp(each.at), "type": each.type, "success": each.success, "message": each.message}
            for each in found.told
        ],
        "charges": [_charge_facts(each) for each in found.charged],
        "decisions": [each.facts for each in told],
    }
    return Explanation(
        facts, lines if told else [*lines, "", "Nobody has decided about it: no consumer pressed the button."]
    )


async def explain_plan(context: Context, named: str | UUID) -> Explanation:
    """Each installment of an order's plan, and why there is one. Raises NothingToExplain."""
    order_id = await order_id_of(context, named)
    found = await _story(context, order_id)
    order = found.order
    if order.status is not Status.APPROVED:
        raise NothingToExplain(
            f"Order {order_id} has no plan: it is {order.status}. `cuota explain order` says why."
        )
    made = await decisions.read_of_order(context.pool, order.merchant_id, order_id)

    def cents(amount: int) -> str:
        return money.shown(amount, order.currency)

    agreed = f", agreed to on {day(found.agreed_at.date(), year=True)}" if found.agreed_at else ""
    owed = order.amount - order.voided - order.refunded
    lines = [
        f"Plan of order {order_id} at {found.merchant}{agreed}.",
        f"It sums to {cents(owed)}: {cents(order.amount)} ordered, less {cents(order.voided + order.refunded)} given back.",
        f"Fees for the plan: {cents(order.fee - order.fee_returned)}.",
        *(f"  {item.number}. {_installment(item, found)}" for item in found.plan),
    ]
    if made and made[-1].approved:
        why = "; ".join(because(code) for code in made[-1].reasons)
        lines.append(f"There is a plan because decision {made[-1].decision_id} approved it: {why}.")
    facts = {
        **_order_facts(found),
        "owed": money.text_of(owed),
        "installments": [_installment_facts(item) for item in found.plan],
        "decisionId": str(made[-1].decision_id) if made else None,
    }
    return Explanation(facts, lines)


async def letter_of(context: Context, decision_id: UUID) -> Explanation:
    """The letter that tells a consumer why. Raises NothingToExplain where the decision was an approval."""
    made = await decisions.read(context.pool, decision_id)
    if made is None or made.approved:
        word = "was an approval" if made else "is not there"
        raise NothingToExplain(f"There is no letter: decision {decision_id} {word}.")
    found = await _story(context, made.order_id)
    consumer = await consumers.read(context.pool, made.consumer_id) if made.consumer_id else None
    paragraphs = write_letter(
        context.settings,
        name=consumer.profile.name if consumer and consumer.profile else "customer",
        merchant=found.merchant,
        # The consumer's own day, as the letter that was sent has it.
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
    word = "APPROVED" if made.approved else "DECLINED"
    lines = [
        f"Decision {made.decision_id} about order {made.order_id} at {found.merchant}, {timestamp(made.decided_at)}:",
        f"{word} under policy {made.policy_version}.",
    ]
    facts: dict[str, Any] = {
        "decisionId": str(made.decision_id),
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
        return Explanation({**facts, "again": None}, [*lines, f"It cannot be made again: {again.why}."])
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
    """What is stored and what came out now, for scripts."""
    return {
        name: {"stored": for_scripts(was, name), "again": for_scripts(now, name)}
        for name, (was, now) in changed.items()
    }


def difference_lines(changed: dict[str, tuple[object, object]]) -> list[str]:
    """The same for people."""
    told = difference_facts(changed)
    return [f"  {name}: stored {each['stored']}, now {each['again']}" for name, each in told.items()]


def _unreadable(found: Story, made: Made) -> list[str]:
    """The names under which the shop said of its customer what nobody could read; none where nobody looked."""
    if not found.additional or not made.inputs.get("approvals"):
        return []
    raw = json.loads(found.additional, parse_float=Decimal).get("fields") or {}
    return list(read_fields(raw, made.decided_at.date()).unreadable)


def _again_lines(again: ReplayedDecision, decision: Decision, made: Made, unreadable: list[str]) -> list[str]:
    assert again.facts is not None
    assert again.policy is not None
    lines = explain(decision, again.facts, again.policy, unreadable)
    changed = differences(made, decision)
    if not changed:
        return [*lines, "", "Made again from what is stored, it comes out the same."]
    head = "MADE AGAIN FROM WHAT IS STORED, IT COMES OUT OTHERWISE:"
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


def _by_time(found: Story, made: list[Made]) -> list[str]:
    lines: list[tuple[datetime, str]] = [
        *((each.at, f"{each.type}{f': {each.message}' if each.message else ''}") for each in found.told),
        *((each.decided_at, f"decided: {'approved' if each.approved else 'declined'}") for each in made),
        *((each.at, _charge(each, found.order.currency)) for each in found.charged),
    ]
    return [f"  {timestamp(at)}  {text}" for at, text in sorted(lines, key=lambda line: line[0])]


def _charge(each: Charged, currency: str) -> str:
    said = {"succeeded": "paid", "failed": f"refused ({each.reason})", "pending": "was asked; no answer yet"}
    amount = money.shown(each.amount, currency)
    return f"{each.brand} {each.last4} for installment {each.installment}, {amount}: {said[each.state]}"


def _charge_facts(each: Charged) -> dict[str, Any]:
    told: dict[str, Any] = for_scripts(asdict(each))
    return {**told, "chargeId": str(each.charge_id), "at": timestamp(each.at)}


def _installment(item: Installment, found: Story) -> str:
    currency = found.order.currency
    text = f"{money.shown(item.total, currency)}, due {day(item.due_on, year=True)}: "
    paid = next((each for each in found.charged if each.charge_id == item.charge_id), None)
    if item.paid:
        card = f" by {paid.brand} {paid.last4} on {timestamp(paid.at)}" if paid else ""
        back = (
            f"; {money.shown(item.returned, currency)} of it went back to the card" if item.returned else ""
        )
        return f"{text}paid{card}{back}."
    if not item.total:
        return f"{text}canceled by a void or a refund."
    tries = "1 try" if item.failures == 1 else f"{item.failures} tries"
    failed = f"{tries} failed; " if item.failures else ""
    return f"{text}{failed}{f'the card is asked on {timestamp(item.charge_at)}' if item.charge_at else 'another card is needed'}."


def _installment_facts(item: Installment) -> dict[str, Any]:
    return {
        "number": item.number,
        "amount": money.text_of(item.total),
        "dueDate": item.due_on.isoformat(),
        "state": item.state,
        "failures": item.failures,
        "returned": money.text_of(item.returned),
        "chargeAt": timestamp(item.charge_at) if item.charge_at else None,
    }
