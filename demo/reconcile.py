"""The shop's deposits: lists its payouts, and checks one against the webhooks that the shop stored itself."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cuota.client import PayoutLine, verify_payout

from .money import from_json
from .payments import PaymentError
from .staff import for_staff
from .web import page, shop_of

STATES = {"created": "Closed", "sent": "On its way", "paid": "Arrived", "returned": "Came back"}


@dataclass(frozen=True)
class OrderInPayout:
    """The amounts that one order adds to a payout, in cents. Lines without an order are combined under an empty name."""

    name: str
    gross: int
    fee: int
    net: int


async def list_payouts(request: Request) -> Response:
    """List the payouts, newest first, and show the balance and the next payout."""
    payments = shop_of(request).payments
    try:
        balance, payouts = await payments.balance(), await payments.payouts()
    except PaymentError:
        return page(request, "payouts.html", status=503, balance=None, payouts=[], states=STATES)
    amounts = {payout.payout_id: from_json(payout.amount) for payout in payouts}
    return page(
        request,
        "payouts.html",
        balance=balance,
        available=from_json(balance.available + balance.pending),
        reserved=from_json(balance.reserved),
        payouts=payouts,
        amounts=amounts,
        states=STATES,
    )


async def show_payout(request: Request) -> Response:
    """Show one payout, grouped by order, and whether it matches the shop's own webhooks."""
    shop = shop_of(request)
    try:
        payout, lines, terms = await shop.payments.settlement(request.path_params["payout_id"])
    except PaymentError as error:
        raise HTTPException(503 if error.undecided else 404) from error
    verdict = verify_payout(payout, lines, shop.store.bodies(), terms)
    return page(
        request,
        "payout.html",
        payout=payout,
        amount=from_json(payout.amount),
        orders=_by_order(lines),
        verdict=verdict,
        sums=[from_json(each) for each in (verdict.gross, verdict.fees, verdict.net)],
        states=STATES,
    )


def _by_order(lines: list[PayoutLine]) -> list[OrderInPayout]:
    sums: dict[str, list[Decimal]] = defaultdict(lambda: [Decimal(0), Decimal(0)])
    for line in lines:
        of = sums[line.merchant_reference]
        of[0] += line.gross
        of[1] += line.fee
    return [
        OrderInPayout(name, from_json(gross), from_json(fee), from_json(gross + fee))
        for name, (gross, fee) in sums.items()
    ]


routes = [
    Route("/payouts", for_staff(list_payouts)),
    Route("/payouts/{payout_id}", for_staff(show_payout)),
]
