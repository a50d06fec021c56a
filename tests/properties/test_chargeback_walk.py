"""Random chargebacks, refunds and disputes of one order, on the pure decisions: after each step the claims fit the payments and the
ledger, and in the end nobody has paid a cent twice."""

from __future__ import annotations

import random

import pytest

from cuota.core.installment import owed, room
from cuota.core.ledger import Account, balance
from support.core.chargeback_model import ChargebackModel, ask_the_card, dispute, network_decides, withheld_of

WALKS, STEPS = 150, 12


def claims_fit(model: ChargebackModel) -> None:
    order, withheld = model.order, withheld_of(model)
    for item in model.plan:
        assert min(item.amount, item.fee) >= 0
        assert item.charge_id is None or withheld[item.charge_id] <= item.amount
    assert order.charged_back == sum(withheld.values())
    assert order.disputed == (model.mine.withheld if model.mine else 0)
    assert order.disputed <= min(order.refundable, room(model.plan, model.claims.taken_back)[0])
    assert min(order.captured, order.refunded, order.voided, order.capturable, order.refundable) >= 0
    assert sum(item.amount for item in model.plan) == order.amount - order.voided - order.refunded


def ledger_fits(model: ChargebackModel) -> None:
    order, opened, lost = model.order, model.chargebacks(), model.chargebacks(lost=True)
    held = order.disputed + order.charged_back
    on_card = sum(each.left for each in model.refunds.values() if each.state == "succeeded")
    expected = {
        Account.CONSUMER_RECEIVABLE: sum(item.total for item in owed(model.plan)),
        Account.CONSUMER_REFUND_DUE: -sum(
            each.left for each in model.refunds.values() if each.state in {"pending", "failed"}
        ),
        Account.MERCHANT_PAYABLE: order.refunded - order.captured + held,
        Account.DISPUTES_WITHHELD: -held,
        Account.CHARGEBACKS: sum(each.amount for each in opened),
        Account.CARD_CLEARING: sum(model.paid.values())
        - on_card
        - sum(each.amount for each in (*opened, *lost)),
    }
    assert {account: balance(model.ledger, account) for account in expected} == expected


def closed(model: ChargebackModel, chance: random.Random) -> None:
    """Close everything that is open, and ask the card for each waiting refund."""
    while model.chargebacks():
        network_decides(model, chance)
        claims_fit(model)
    if model.mine:
        dispute(model, chance)
    for _ in range(3):
        ask_the_card(model, chance)
    claims_fit(model)
    ledger_fits(model)


def unavoidable(model: ChargebackModel) -> int:
    """The cents that banks and refunds returned beyond what the card had paid."""
    beyond = 0
    for charge_id, paid in model.paid.items():
        by_bank = sum(each.amount for each in model.chargebacks(lost=True) if each.charge_id == charge_id)
        by_refund = sum(each.left for each in model.refunds.values() if each.charge_id == charge_id)
        beyond += max(0, by_bank + by_refund - paid)
    return beyond


@pytest.mark.parametrize("seed", range(4))
def test_chargebacks_and_refunds_of_a_payment_never_take_a_cent_twice(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(WALKS):
        model = ChargebackModel.begun(
            chance.choice([20, 40, 40]), chance.choice([1, 2]), chance.choice([0, 8])
        )
        for _ in range(STEPS):
            model.step(chance)
            claims_fit(model)
            ledger_fits(model)
        closed(model, chance)
        assert model.order.charged_back == model.order.disputed == model.order.open_disputes == 0
        loss = model.posted("chargeback_loss") - model.posted("refund_charged_back")
        assert loss == unavoidable(model)
