"""core/order/card_refund: how the rail's answer to a card refund is recorded."""

from __future__ import annotations

from uuid import UUID

from cuota.core.ledger import Account
from cuota.core.order.card_refund import settle_card_refund
from cuota.core.order.job import CardRefund, JobState, Settled
from support.core.values import NOW, approved, charge_id, held

ASKED = CardRefund(UUID(int=60), charge_id(1), 2600)


def test_after_a_card_refund_succeeds_its_amount_is_no_longer_owed_to_the_consumer() -> None:
    outcome = settle_card_refund(approved(), ASKED, None, NOW)
    assert held(outcome.transfers) == {Account.CONSUMER_REFUND_DUE: 2600, Account.CARD_CLEARING: -2600}
    assert {transfer.cause for transfer in outcome.transfers} == {ASKED.card_refund_id}
    assert outcome.card_refunds_settled == (Settled(ASKED.card_refund_id, JobState.SUCCEEDED),)


def test_after_a_card_refund_fails_its_amount_is_still_owed_to_the_consumer() -> None:
    outcome = settle_card_refund(approved(), ASKED, "card_closed", NOW)
    assert outcome.transfers == ()
    assert outcome.card_refunds_settled == (Settled(ASKED.card_refund_id, JobState.FAILED, "card_closed"),)


def test_the_answer_to_a_card_refund_changes_no_total_of_the_order() -> None:
    order = approved(captured=10_000, refunded=10_000)
    assert settle_card_refund(order, ASKED, None, NOW).order == order
