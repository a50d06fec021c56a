"""The page of a plan whose card is being charged.

If the consumer must confirm the charge, the page leads to the card's bank.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.checkout.card import card_name
from cuota.core.plan.collection import outdated
from cuota.db.plan import charges
from cuota.db.plan.accounts import PlanDetail
from cuota.db.plan.charges import PendingCharge
from cuota.flows.plan.collect_installments import give_up_collection, look_at_collection
from cuota.flows.plan.manage_plan import find_plan
from cuota.web.pages.account.view import amount
from cuota.web.pages.account.visit import Known, of_plan, onward_of, plan_path
from cuota.web.pages.checkout.charging import confirm_lead, confirm_texts, goes_by_itself
from cuota.web.pages.checkout.session import see_other
from cuota.web.pages.render import PageContext
from cuota.web.service import service_of

# The values of `said` right after a button that charges a card was pressed.
ASKED = frozenset({"asked", "card-busy"})
# The value of `said` after the consumer canceled a charge.
GAVE_UP = "gave-up"
_WORKING = "We are asking your bank for a payment. Nothing is charged twice. This page shows the result."
_PAUSED = (
    "This payment began before the dispute. If your bank has it, this page shows the result."
    " Otherwise it is not made."
)


async def charging(request: Request, known: Known, detail: PlanDetail) -> PageContext | Response:
    """Ask the card rail about the charge in progress.

    A charge that waits for the consumer to confirm it is canceled if a void, refund or dispute has changed its payment. Return the
    values for the plan's page, or a redirect to that page if the charge has ended.
    """
    context, shown = service_of(request).context, detail.shown
    ids = (shown.order.merchant_id, shown.order.order_id)
    pending = await charges.pending(context.pool, *ids)
    late = pending is not None and outdated(shown.order, shown.plan, pending.charge)
    if pending is not None and late:
        await give_up_collection(context, *ids, pending)
    bank = await look_at_collection(context, *ids, pending) if pending else None
    if pending is not None and bank is not None:
        card = card_name(pending.charge.card_brand, pending.charge.card_last4)
        texts = [confirm_lead(card), *confirm_texts(amount(shown, pending.charge.amount))]
        said = request.query_params.get("said")
        goes = said in ASKED and goes_by_itself(pending, context.now())
        return {
            "title": "Confirm a payment with your bank",
            "texts": texts,
            "busy": True,
            "bank": bank,
            "goes": goes,
        }
    if pending is not None and await charges.pending(context.pool, *ids) is None:
        said = await _ended(request, known, detail, pending, late=late)
        return see_other(plan_path(detail, said, onward_of(request)))
    text = _WORKING if shown.order.paused_at is None else _PAUSED
    return {"title": "A payment is being made right now", "texts": [text], "busy": True, "bank": None}


async def _ended(
    request: Request, known: Known, detail: PlanDetail, pending: PendingCharge, *, late: bool
) -> str:
    """Return the value of `said` for a charge that has ended. `late`: its payment had changed before."""
    context, ids = service_of(request).context, (detail.shown.order.merchant_id, detail.shown.order.order_id)
    after = await find_plan(context, known.consumer_id, *ids) or detail
    if after.shown.plan[pending.charge.installment - 1].paid:
        return "paid"
    if await charges.never_sent(context.pool, *ids, pending.charge.charge_id) is not None:
        return "unsent"
    if late:
        return "changed" if after.shown.order.paused_at is None else "paused"
    return "declined"


@of_plan
async def another_card(request: Request, known: Known, detail: PlanDetail) -> Response:
    """Cancel a charge that waits for a confirmation at the card's bank, and show the form for another card."""
    context, ids = service_of(request).context, (detail.shown.order.merchant_id, detail.shown.order.order_id)
    pending = await charges.pending(context.pool, *ids)
    if pending is None:
        return see_other(plan_path(detail))
    await give_up_collection(context, *ids, pending)
    after = await find_plan(context, known.consumer_id, *ids) or detail
    if after.shown.order.charging is not None:
        return see_other(plan_path(detail, "busy"))
    # The charge may have been paid at that moment.
    if after.shown.plan[pending.charge.installment - 1].paid:
        return see_other(plan_path(detail, "paid"))
    return see_other(f"{plan_path(detail)}/card?said={GAVE_UP}")
