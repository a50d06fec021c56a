"""Carries out the steps of the demo's history: through the API, on the checkout's pages, and as the consumer and the operator."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import httpx

from cuota.client import Client, Dispute, RequestRefused, Unavailable, cents
from cuota.commands.checkout_walker import CannotWalk, walk
from cuota.commands.history.plan import HistoryAct, Purchase, Step
from cuota.core.dispute.dispute import DisputeReason
from cuota.core.payout.bank_account import read_bank_details
from cuota.core.refusal import Refused
from cuota.core.sandbox import TEST_ACCOUNTS, TEST_ROUTING
from cuota.flows.context import Context
from cuota.flows.dispute.answer_dispute import decide_dispute
from cuota.flows.dispute.notice_return import notice_return
from cuota.flows.dispute.open_dispute import open_dispute
from cuota.flows.payout.change_bank_account import change_bank_account
from cuota.flows.payout.change_terms import TermsChange, change_terms

CARRIER = "UPS"
# The demo merchant's fee for a capture: 5.90 % in basis points, and 30 cents.
PERCENT, FIXED = 590, 30


@dataclass
class Doer:
    """Carries out the steps one at a time.

    `shop` is the address of the merchant's shop, `told` its address for webhooks, if there is one. `a_moment` moves the clock by
    MOMENT (command.py). `orders` are the ids by the merchant's reference. `lost` is true if the service stopped answering.
    """

    context: Context
    pay: Client
    merchant_id: UUID
    shop: str
    told: str | None
    a_moment: Callable[[], Coroutine[Any, Any, None]]
    orders: dict[str, str] = field(default_factory=dict)
    done: Counter[HistoryAct] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)
    lost: bool = False

    async def do(self, step: Step) -> None:
        """Carry out a step. If the service refuses it, record that and continue, as a person would."""
        try:
            await self._do(step)
        except (Unavailable, httpx.HTTPError):
            self.lost = True
        except (Refused, RequestRefused, CannotWalk) as problem:
            self.refused.append(f"{step.at:%Y-%m-%d %H:%M} {step.act.value} {step.reference}: {problem}")
        else:
            self.done[step.act] += 1

    async def _do(self, step: Step) -> None:
        if step.act is HistoryAct.BUY and step.purchase is not None:
            loop = asyncio.get_running_loop()

            def a_moment() -> None:
                asyncio.run_coroutine_threadsafe(self.a_moment(), loop).result()

            made = await asyncio.to_thread(self._buy, step.reference, step.purchase, a_moment)
            self.orders[step.reference] = made
        elif step.act is HistoryAct.BANK:
            details = read_bank_details(TEST_ROUTING, TEST_ACCOUNTS[step.amount].number)
            await change_bank_account(self.context, self.merchant_id, details)
        elif step.act is HistoryAct.TERMS:
            await change_terms(self.context, str(self.merchant_id), TermsChange(percent=PERCENT, fixed=FIXED))
        elif step.act in {
            HistoryAct.DISPUTE,
            HistoryAct.RETURN,
            HistoryAct.FOR_MERCHANT,
            HistoryAct.FOR_CONSUMER,
        }:
            await self._for_others(step, UUID(self._order(step)))
        else:
            await asyncio.to_thread(self._as_merchant, step, self._order(step))

    def _order(self, step: Step) -> str:
        if step.reference not in self.orders:
            raise CannotWalk("There is no such order.")
        return self.orders[step.reference]

    def _buy(self, reference: str, bought: Purchase, a_moment: Callable[[], None]) -> str:
        """Make the order as the shop does, and complete its checkout as the shopper does. Return the order's id."""
        who = bought.who
        told = {} if self.told is None else {"statusCallbackUrl": self.told}
        made = self.pay.create_order(
            {
                "amount": cents(bought.amount),
                "shippingAmount": cents(bought.shipping),
                "merchantReference": reference,
                "description": f"Order {reference}",
                "consumer": who.consumer,
                "billing": who.address,
                "shipping": who.address,
                "items": [
                    {"name": each.name, "sku": each.sku, "quantity": count, "price": cents(each.price)}
                    for each, count in bought.goods
                ],
                "merchant": {
                    "redirectConfirmUrl": f"{self.shop}/",
                    "redirectCancelUrl": f"{self.shop}/cart",
                    **told,
                },
            },
            idempotency_key=f"history-{reference}",
        )
        if bought.ending != "left":
            walk(made.redirect_url, bought.ending, a_moment, **who.typed)
        return made.order_id

    def _as_merchant(self, step: Step, order_id: str) -> None:
        reference, amount = f"{step.reference}-{step.act.value}-{step.at:%m%d}", cents(step.amount)
        match step.act:
            case HistoryAct.CAPTURE:
                self.pay.capture(order_id, amount, reference)
            case HistoryAct.VOID:
                self.pay.void(order_id, amount, reference)
            case HistoryAct.REFUND:
                self.pay.refund(order_id, amount, reference)
            case HistoryAct.ACCEPT:
                self.pay.accept_dispute(self._dispute(order_id).dispute_id)
            case HistoryAct.EVIDENCE:
                receipt = f"Delivered and signed for. Order {step.reference}.\n".encode()
                files = [("delivery.txt", receipt)]
                dispute_id = self._dispute(order_id).dispute_id
                self.pay.submit_evidence(dispute_id, step.text, files, idempotency_key=f"history-{reference}")

    async def _for_others(self, step: Step, order_id: UUID) -> None:
        """Act for the consumer, who does this on the account page, or for the operator."""
        ids = self.context, self.merchant_id
        if step.act is HistoryAct.DISPUTE:
            reason, text = step.text.split("|")
            await open_dispute(*ids, order_id, DisputeReason(reason), step.amount, text)
        elif step.act is HistoryAct.RETURN:
            await notice_return(*ids, order_id, CARRIER, step.text)
        else:
            found = await asyncio.to_thread(self._dispute, str(order_id))
            for_consumer = step.act is HistoryAct.FOR_CONSUMER
            await decide_dispute(*ids, UUID(found.dispute_id), for_consumer=for_consumer)

    def _dispute(self, order_id: str) -> Dispute:
        """Return the newest dispute of an order. Raises CannotWalk if there is none."""
        for found in self.pay.disputes(order_id=order_id):
            return found
        raise CannotWalk("The order has no dispute.")
