"""Changes the plan of a consumer in hardship, after a preview, with a reason and a fresh code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.dates import day
from cuota.core.installment import Installment
from cuota.core.operator.role import OperatorAction
from cuota.core.plan.change import ChangeKind, PlanChange
from cuota.core.plan.change_words import effect_rows
from cuota.core.plan.hardship import CannotChange, changeable, days_used, unpaid_fee
from cuota.db.plan.plan_changes import PlanToChange
from cuota.db.risk import decisions
from cuota.flows.context import Context
from cuota.flows.desk.change_team import BadTeam
from cuota.flows.operator.change_operators import reason_of
from cuota.flows.operator.log_action import logged
from cuota.flows.operator.note_change import note_of_change
from cuota.flows.plan.change_plan import (
    PlanPreview,
    agree_on_change,
    find_plan_to_change,
    preview_change,
    reason_of_change,
    waived_this_year,
)
from cuota.web.pages.checkout.session import Stop, see_other
from cuota.web.pages.desk.view import when
from cuota.web.pages.operator.hardship_form import defaults, fields_of, read_request
from cuota.web.pages.operator.parts import cell, section, state, table
from cuota.web.pages.operator.view import common, failed
from cuota.web.pages.operator.visit import PATH, OperatorDesk, allowed, id_in_path, missing, prove
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

_ORDERS = f"{PATH}/orders"
_STATES = {
    "paid": ("Paid", "done"),
    "scheduled": ("Scheduled", "wait"),
    "overdue": ("Overdue", "bad"),
    "written_off": ("Written off", "bad"),
    "cancelled": ("Canceled", "off"),
}
_KINDS = {
    ChangeKind.DATES_MOVED: "Dates moved",
    ChangeKind.PAUSED: "Paused",
    ChangeKind.SMALLER_PAYMENTS: "Smaller payments",
    ChangeKind.FEE_WAIVED: "Fee waived",
}


async def _find(request: Request) -> tuple[UUID, PlanToChange]:
    """Return the merchant and the plan of the order in the path. Raises Stop with the 404 page."""
    context, order_id = service_of(request).context, id_in_path(request, "order_id")
    merchant_id = await decisions.whose(context.pool, order_id)
    found = await find_plan_to_change(context, merchant_id, order_id) if merchant_id else None
    if merchant_id is None or found is None:
        raise Stop(missing(request))
    return merchant_id, found


@allowed(OperatorAction.READ_ORDERS, OperatorAction.CHANGE_PLANS)
async def hardship(request: Request, desk: OperatorDesk) -> Response:
    """Show a plan and its possible changes. With a request in the query, also show the changed plan."""
    merchant_id, found = await _find(request)
    return await _page(request, desk, merchant_id, found, dict(request.query_params))


@allowed(OperatorAction.READ_ORDERS, OperatorAction.CHANGE_PLANS)
async def change(request: Request, desk: OperatorDesk) -> Response:
    """Make the change that the page has shown. After a second click the plan is different, so nothing is changed."""
    merchant_id, found = await _find(request)
    try:
        reason = reason_of(desk.form.get("reason", ""))
    except BadTeam as bad:
        return await _page(request, desk, merchant_id, found, desk.form, {bad.name: str(bad)})
    if errors := await prove(request, desk):
        return await _page(request, desk, merchant_id, found, desk.form, errors)
    try:
        await _agree(service_of(request).context, desk, merchant_id, found, reason)
    except CannotChange as refused:
        # Read the plan again, because another person may have changed it.
        merchant_id, found = await _find(request)
        return await _page(request, desk, merchant_id, found, desk.form, {refused.field: str(refused)})
    return see_other(f"{_ORDERS}/{found.order.order_id}/hardship?said=plan-changed")


async def _agree(
    context: Context, desk: OperatorDesk, merchant_id: UUID, found: PlanToChange, reason: str
) -> None:
    """Log the change and make it. Raises CannotChange."""
    order_id, form = found.order.order_id, desk.form
    asked = read_request(form, found.before.plan)
    if asked is None:
        raise CannotChange("Choose what to change.")

    async def act(context: Context) -> PlanChange:
        return await agree_on_change(
            context,
            merchant_id,
            order_id,
            asked,
            by=desk.actor.words,
            reason=reason,
            mark=form.get("mark", ""),
        )

    shown = await preview_change(context, merchant_id, order_id, asked, form.get("mark", ""))
    await logged(context, desk.actor, note_of_change(shown, reason), act)


async def _page(
    request: Request,
    desk: OperatorDesk,
    merchant_id: UUID,
    found: PlanToChange,
    given: Mapping[str, str],
    errors: dict[str, str] | None = None,
) -> Response:
    context, before = service_of(request).context, found.before
    wrong, shown = dict(errors or {}), None
    try:
        asked = read_request(given, before.plan)
        if asked is not None:
            shown = await preview_change(context, merchant_id, before.order.order_id, asked)
    except CannotChange as refused:
        wrong.setdefault(refused.field, str(refused))
    address = f"{_ORDERS}/{before.order.order_id}"
    fee = unpaid_fee(before.plan)
    left, initial = changeable(before.plan), defaults(before.plan, fee)
    # The fields on the page: those of the four kinds of change, or below a preview those of the change.
    names = {"reason", "code"} if shown else {name for name in initial if left and (fee or name != "waive")}
    values: PageContext = {
        **common(request, desk, f"Hardship: order {before.about.reference}", here=_ORDERS),
        "sections": await _sections(context, found),
        "order_address": address,
        "address": f"{address}/hardship",
        "left": [{"number": item.number, "label": f"Payment {item.number}", "now": _due(item, before.order.currency)} for item in left],
        "can_waive": bool(fee),
        "preview": _preview(found, shown),
        "fields": fields_of(given),
        "mark": before.mark,
        "values": {**initial, **fields_of(given)},
    }  # fmt: skip
    if wrong:
        # An error whose field is not on the page becomes the page's notice.
        wrong = {name if name in names else "": text for name, text in wrong.items()}
        return page(request, "operator/hardship.html", failed(values, wrong, dict(given)), status=400)
    return page(request, "operator/hardship.html", values)


def _due(item: Installment, currency: str) -> str:
    return f"now {money.shown(item.total, currency)} on {day(item.due_on, year=True)}"


def _preview(found: PlanToChange, shown: PlanPreview | None) -> PageContext | None:
    if shown is None:
        return None
    rows = effect_rows(found.before.plan, shown.new.plan, found.order.currency)
    return {"rows": rows, "said": shown.said, "text": shown.text.splitlines(), "kind": _KINDS[shown.new.kind]}


async def _sections(context: Context, found: PlanToChange) -> list[PageContext]:
    before, policy = found.before, context.settings.hardship
    used = await waived_this_year(context, found.consumer_id)
    moved = days_used(before.earlier, ChangeKind.DATES_MOVED, ChangeKind.SMALLER_PAYMENTS)
    rules = [
        ("A payment may move", f"{policy.move_days} days in all, {moved} used"),
        ("The plan may pause", f"{policy.pause_days} days in all, {days_used(before.earlier, ChangeKind.PAUSED)} used"),
        ("Smaller payments", f"at most {policy.payments}, 7 to 31 days apart"),
        ("Fees waived", f"{money.shown(policy.fee_a_year)} for this consumer within 365 days, {money.shown(used)} used"),
    ]  # fmt: skip
    return [
        _plan(before.plan, before.order.currency),
        section("What the policy allows", pairs=rules),
        _history(context, before.order.order_id, before.earlier),
    ]


def _plan(plan: Sequence[Installment], currency: str) -> PageContext:
    columns = [cell("No."), cell("Day"), cell("State"), cell("Amount", amount=True)]
    rows = [
        [
            cell(item.number),
            cell(day(item.due_on, year=True)),
            state(*_STATES[item.state]),
            cell(money.shown(item.total, currency), amount=True),
        ]
        for item in plan
    ]
    return table("The plan now", columns, rows, "")


def _history(context: Context, order_id: UUID, changes: Sequence[PlanChange]) -> PageContext:
    rows = [
        [
            cell(f"{_KINDS[each.kind]}, {when(each.changed_at)}", more=_more(context, order_id, each)),
            state(f"Told {when(each.told_at)}", "done") if each.told_at else state("Not told yet", "wait"),
        ]
        for each in reversed(changes)
    ]
    empty = "None: the plan is as the consumer agreed to it."
    return table("Changes so far", [cell("Change"), cell("The consumer")], rows, empty)


def _more(context: Context, order_id: UUID, change: PlanChange) -> str:
    reason = reason_of_change(context, order_id, change) or "erased"
    return f"{change.said} By {change.changed_by}. Reason: {reason}"
