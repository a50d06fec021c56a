"""The pages on which a consumer disputes an order, follows the dispute, adds to it, appeals and withdraws it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.dispute.dispute import Dispute, DisputeKind, DisputeParty, DisputeReason
from cuota.core.dispute.evidence import EvidenceFile
from cuota.core.dispute.evidence_file import check_files
from cuota.core.refusal import Code, Refused
from cuota.core.typed_text import typed_digits
from cuota.db.plan.accounts import PlanDetail
from cuota.flows.context import Context
from cuota.flows.dispute.answer_dispute import add_statement, appeal_dispute, withdraw_dispute
from cuota.flows.dispute.ask_consumer import OrderDisputes, disputes_of_order
from cuota.flows.dispute.evidence import read_file, statements, was_sent
from cuota.flows.dispute.open_dispute import open_dispute
from cuota.web.ids import guid
from cuota.web.pages.account.dispute_view import REASONS, dispute_path, dispute_values, told
from cuota.web.pages.account.limited import counted, with_status
from cuota.web.pages.account.view import amount, common
from cuota.web.pages.account.visit import Known, missing, of_plan, of_plan_with_files, plan_path
from cuota.web.pages.checkout.session import see_other
from cuota.web.pages.download import download
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

Errors = dict[str, str]
# The form field for each refusal code. Other refusals are shown above the form.
_FIELD_OF = {Code.BAD_FILE: "files", Code.VALIDATION_FAILED: "text", Code.DISPUTE_NOT_POSSIBLE: "amount"}
_Act = Callable[[Context, PlanDetail, Dispute, str, list[EvidenceFile]], Awaitable[object]]


@of_plan
async def new(request: Request, known: Known, detail: PlanDetail) -> Response:
    """Show the form of a new dispute."""
    found = await _of(request, detail)
    if (own := _own_open(found)) is not None:
        return see_other(dispute_path(detail, own, "open"))
    return _form(request, known, detail, found, {"amount": money.text_of(found.disputable)}, {})


async def _of(request: Request, detail: PlanDetail) -> OrderDisputes:
    order = detail.shown.order
    return await disputes_of_order(service_of(request).context, order.merchant_id, order.order_id)


def _own_open(found: OrderDisputes) -> Dispute | None:
    is_open = (each for each in found.disputes if each.is_open and each.kind is DisputeKind.DISPUTE)
    return next(is_open, None)


def _form(
    request: Request,
    known: Known,
    detail: PlanDetail,
    found: OrderDisputes,
    values: dict[str, str],
    errors: Errors,
    notice: str | None = None,
) -> Response:
    shop = detail.shown.merchant
    lead = f"About your order at {shop}. It often helps to write to {shop} first."
    context: PageContext = {
        **common(request, known.visit.secret, "Report a problem", lead, known),
        "address": plan_path(detail),
        "most": amount(detail.shown, found.disputable) if found.disputable else None,
        "reasons": [(reason.value, words) for reason, words in REASONS.items()],
        "shop": shop,
        "values": values,
        "errors": errors,
        "notice": notice,
        "files_again": bool(known.files),
    }
    return page(request, "account/dispute_new.html", context, status=400 if errors or notice else 200)


@of_plan_with_files
async def create(request: Request, known: Known, detail: PlanDetail) -> Response:
    """Open the dispute. A second click on the same form redirects to the dispute that the first click opened."""
    order, context, form = detail.shown.order, service_of(request).context, known.form
    found = await _of(request, detail)
    if (own := _own_open(found)) is not None:
        return see_other(dispute_path(detail, own, "open"))
    errors: Errors = {}
    reason = form.get("reason", "")
    if reason not in set(REASONS):
        errors["reason"] = "Choose what went wrong."
    cents = 0
    try:
        cents = money.typed_cents(typed_digits(form.get("amount", "")))
    except money.BadAmount:
        errors["amount"] = "Enter an amount, such as 40.00."
    if not form.get("text", ""):
        errors["text"] = "Write what happened."
    if errors:
        return _form(request, known, detail, found, form, errors)
    try:
        files = await asyncio.to_thread(check_files, known.files)
        async with counted(context, detail):
            opened = await open_dispute(
                context,
                order.merchant_id,
                order.order_id,
                DisputeReason(reason),
                cents,
                form["text"],
                files,
            )
    except Refused as refused:
        found = await _of(request, detail)
        if (own := _own_open(found)) is not None:
            return see_other(dispute_path(detail, own, "open"))
        errors, notice = _words_of(refused)
        return with_status(_form(request, known, detail, found, form, errors, notice), refused)
    return see_other(dispute_path(detail, opened, "opened"))


def _words_of(refused: Refused) -> tuple[Errors, str | None]:
    field = _FIELD_OF.get(refused.code)
    return ({field: refused.message}, None) if field else ({}, refused.message)


async def _find(request: Request, detail: PlanDetail) -> Dispute | None:
    try:
        dispute_id = guid(request.path_params["dispute_id"])
    except Refused:
        return None
    found = await _of(request, detail)
    return next((each for each in found.disputes if each.dispute_id == dispute_id), None)


async def _show(
    request: Request, known: Known, detail: PlanDetail, dispute: Dispute, refused: Refused | None = None
) -> Response:
    context = service_of(request).context
    written = await statements(context, detail.shown.order.merchant_id, dispute.dispute_id)
    errors, notice = _words_of(refused) if refused is not None else ({}, None)
    title = "Your dispute" if dispute.kind is DisputeKind.DISPUTE else "A payment that your bank took back"
    values: PageContext = {
        **common(request, known.visit.secret, title, None, known),
        "address": plan_path(detail),
        "shop": detail.shown.merchant,
        **dispute_values(detail, dispute, written, context.now()),
        "values": known.form,
        "errors": errors,
        "notice": notice,
        "files_again": bool(known.files),
    }
    if refused is None and (said := told(request.query_params.get("said", ""), detail, dispute)):
        values |= {"notice": said, "notice_tone": "done"}
    return page(request, "account/dispute.html", values, status=400 if refused is not None else 200)


@of_plan
async def show(request: Request, known: Known, detail: PlanDetail) -> Response:
    """Show a dispute: its state, the next step, all statements, and the consumer's possible actions."""
    dispute = await _find(request, detail)
    return missing(request) if dispute is None else await _show(request, known, detail, dispute)


async def _write(request: Request, known: Known, detail: PlanDetail, act: _Act, said: str) -> Response:
    dispute = await _find(request, detail)
    if dispute is None:
        return missing(request)
    context = service_of(request).context
    try:
        files = await asyncio.to_thread(check_files, known.files)
        sent = detail.shown.order.merchant_id, dispute.dispute_id, DisputeParty.CONSUMER
        if said == "added" and await was_sent(context, *sent, known.form.get("text", ""), files):
            return see_other(dispute_path(detail, dispute, said))
        async with counted(context, detail):
            await act(context, detail, dispute, known.form.get("text", ""), files)
    except Refused as refused:
        dispute = await _find(request, detail) or dispute
        return with_status(await _show(request, known, detail, dispute, refused), refused)
    return see_other(dispute_path(detail, dispute, said))


@of_plan_with_files
async def add(request: Request, known: Known, detail: PlanDetail) -> Response:
    """Add text and files to a dispute."""

    async def act(
        context: Context, detail: PlanDetail, dispute: Dispute, text: str, files: list[EvidenceFile]
    ) -> object:
        return await add_statement(context, detail.shown.order.merchant_id, dispute.dispute_id, text, files)

    return await _write(request, known, detail, act, "added")


@of_plan_with_files
async def appeal(request: Request, known: Known, detail: PlanDetail) -> Response:
    """Appeal a decision for the merchant, once."""

    async def act(
        context: Context, detail: PlanDetail, dispute: Dispute, text: str, files: list[EvidenceFile]
    ) -> object:
        ids = detail.shown.order.merchant_id, dispute.dispute_id
        return await appeal_dispute(context, *ids, DisputeParty.CONSUMER, text, files)

    return await _write(request, known, detail, act, "appealed")


@of_plan
async def withdraw(request: Request, known: Known, detail: PlanDetail) -> Response:
    """Withdraw a dispute. A second click changes nothing."""
    del known
    dispute = await _find(request, detail)
    if dispute is None or dispute.kind is not DisputeKind.DISPUTE:
        return missing(request)
    context = service_of(request).context
    await withdraw_dispute(context, detail.shown.order.merchant_id, dispute.dispute_id)
    return see_other(dispute_path(detail, dispute, "withdrawn"))


@of_plan
async def file(request: Request, known: Known, detail: PlanDetail) -> Response:
    """Download a file that the consumer or the operator has sent."""
    del known
    dispute = await _find(request, detail)
    try:
        evidence_id = guid(request.path_params["evidence_id"])
    except Refused:
        return missing(request)
    number = request.path_params["number"]
    if dispute is None or number not in {"1", "2", "3", "4", "5"}:
        return missing(request)
    context = service_of(request).context
    ids = detail.shown.order.merchant_id, dispute.dispute_id
    found = await read_file(context, *ids, evidence_id, int(number))
    if found is None or found[0] not in {DisputeParty.CONSUMER, DisputeParty.OPERATOR}:
        return missing(request)
    return download(found[1])
