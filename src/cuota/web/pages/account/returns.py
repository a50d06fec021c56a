"""The page on which a consumer reports that the goods were sent back."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.refusal import Code, Refused
from cuota.db.plan.accounts import PlanDetail
from cuota.flows.dispute.notice_return import MOST_CARRIER, MOST_TRACKING, notice_return
from cuota.web.pages.account.view import common
from cuota.web.pages.account.visit import Known, of_plan, plan_path
from cuota.web.pages.checkout.session import see_other
from cuota.web.pages.render import page
from cuota.web.service import service_of


@of_plan
async def show(request: Request, known: Known, detail: PlanDetail) -> Response:
    """Show the form."""
    return _form(request, known, detail, {}, None)


def _form(
    request: Request, known: Known, detail: PlanDetail, errors: dict[str, str], notice: str | None
) -> Response:
    lead = f"Tell {detail.shown.merchant} how. If your next payment is due within 21 days, it waits for the refund, for 21 days at most."
    context = {
        **common(request, known.visit.secret, "I sent it back", lead, known),
        "address": plan_path(detail),
        "values": known.form,
        "errors": errors,
        "notice": notice,
        "most_carrier": MOST_CARRIER,
        "most_tracking": MOST_TRACKING,
    }
    return page(request, "account/return.html", context, status=400 if errors or notice else 200)


@of_plan
async def notice(request: Request, known: Known, detail: PlanDetail) -> Response:
    """Store the notice. A second click on the same form changes nothing."""
    order, form = detail.shown.order, known.form
    try:
        await notice_return(
            service_of(request).context,
            order.merchant_id,
            order.order_id,
            form.get("carrier", ""),
            form.get("tracking", ""),
        )
    except Refused as refused:
        if refused.code is Code.VALIDATION_FAILED:
            return _form(request, known, detail, {each.field: each.message for each in refused.errors}, None)
        return _form(request, known, detail, {}, refused.message)
    return see_other(plan_path(detail, "sent-back"))
