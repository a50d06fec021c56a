"""Disputes in the merchant's dashboard: list, read, accept, send evidence, appeal. The flows are those of the API."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.desk.role import Action
from cuota.core.desk.sort import DISPUTE_SORT_WORDS, Sort, read_sort
from cuota.core.dispute.dispute import Dispute, DisputeParty, DisputeStatus
from cuota.core.dispute.evidence import EvidenceFile
from cuota.core.dispute.evidence_file import check_files
from cuota.core.refusal import Code, Refused
from cuota.db.desk import sorted_lists
from cuota.flows.context import Context
from cuota.flows.desk.record import AuditNote, record
from cuota.flows.dispute.answer_dispute import (
    accept_dispute,
    accepted_before,
    appeal_dispute,
    submit_evidence,
)
from cuota.flows.dispute.evidence import read_file
from cuota.flows.dispute.show_dispute import ShownDispute, show_dispute
from cuota.web.ids import guid
from cuota.web.pages.checkout.session import Stop, see_other
from cuota.web.pages.desk.dispute_view import (
    ANSWERABLE,
    DISPUTES,
    REASONS,
    can_appeal,
    dispute_state,
    facts_of,
    next_words,
    statement_rows,
)
from cuota.web.pages.desk.team import prove
from cuota.web.pages.desk.view import common, day_of, sort_options
from cuota.web.pages.desk.visit import PATH, Desk, allowed, allowed_with_files, id_in_path, missing
from cuota.web.pages.download import download
from cuota.web.pages.render import PageContext, page
from cuota.web.problem import status_of
from cuota.web.service import service_of

A_PAGE = 50
VIEWS: dict[str, tuple[str, tuple[DisputeStatus, ...]]] = {
    "": ("All disputes", ()),
    "open": ("To answer", (DisputeStatus.OPEN,)),
    "going": ("Not closed", tuple(each for each in DisputeStatus if each is not DisputeStatus.CLOSED)),
    "closed": ("Closed", (DisputeStatus.CLOSED,)),
}
_FIELD_OF = {Code.BAD_FILE: "files", Code.VALIDATION_FAILED: "text"}
WriteAnswer = Callable[[Context, UUID, UUID, str, list[EvidenceFile]], Awaitable[object]]


@allowed(Action.READ_DISPUTES)
async def disputes(request: Request, desk: Desk) -> Response:
    """List the disputes, newest first."""
    view = request.query_params.get("view", "")
    view = view if view in VIEWS else ""
    sort = read_sort(request.query_params.get("sort", ""), DISPUTE_SORT_WORDS)
    try:
        after = guid(request.query_params.get("after", ""))
    except Refused:
        after = None
    pool = service_of(request).context.pool
    found = await sorted_lists.disputes(pool, desk.merchant_id, sort, after, VIEWS[view][1], A_PAGE + 1)
    shown = found[:A_PAGE]
    query = (f"view={view}&" if view else "") + (f"sort={sort}&" if sort is not Sort.NEWEST else "")
    values: PageContext = {
        **common(request, desk, "Disputes", here=DISPUTES),
        "views": [{"value": value, "label": label} for value, (label, _) in VIEWS.items()],
        "view": view,
        "sorts": sort_options(DISPUTE_SORT_WORDS),
        "sort": sort.value,
        "most": sorted_lists.MOST_SORTED
        if await sorted_lists.leaves_out_disputes(pool, desk.merchant_id, sort, VIEWS[view][1])
        else None,
        "rows": [
            {
                "address": f"{DISPUTES}/{each.dispute.dispute_id}",
                "reason": REASONS[each.dispute.reason],
                "kind": each.dispute.kind.value,
                "state": dispute_state(each.dispute),
                "opened": day_of(each.dispute.opened_at),
                "until": day_of(each.dispute.respond_by) if each.dispute.status is DisputeStatus.OPEN else "",
                "amount": money.shown(each.dispute.amount),
            }
            for each in shown
        ],
        "next": f"{DISPUTES}?{query}after={shown[-1].dispute.dispute_id}" if len(found) > A_PAGE else None,
        "later": after is not None,
    }
    return page(request, "desk/disputes.html", values)


async def _find(request: Request, desk: Desk) -> ShownDispute:
    """Return the dispute in the path. Raises Stop with the 404 page."""
    dispute_id = id_in_path(request, "dispute_id")
    try:
        return await show_dispute(service_of(request).context, desk.merchant_id, dispute_id)
    except Refused as refused:
        if refused.code is not Code.DISPUTE_NOT_FOUND:
            raise
        raise Stop(missing(request)) from None


@allowed(Action.READ_DISPUTES)
async def dispute(request: Request, desk: Desk) -> Response:
    """Show one dispute: the next step, the statements, and the merchant's possible actions."""
    return _page(request, desk, await _find(request, desk))


def _page(
    request: Request,
    desk: Desk,
    shown: ShownDispute,
    errors: dict[str, str] | None = None,
    notice: str | None = None,
    status: int = 200,
) -> Response:
    found, one = shown.found, shown.found.dispute
    may = desk.may(Action.ANSWER_DISPUTES)
    now = service_of(request).context.now()
    answerable = may and one.status in ANSWERABLE
    values: PageContext = {
        **common(request, desk, f"Dispute about order {found.merchant_reference}", here=DISPUTES),
        "address": f"{DISPUTES}/{one.dispute_id}",
        "order": f"{PATH}/orders/{found.order_id}",
        "state": dispute_state(one),
        "next": next_words(one, now),
        "facts": facts_of(one, found.currency, found.payment),
        "statements": statement_rows(one, shown.statements),
        "amount": money.shown(one.amount, found.currency),
        "can_answer": answerable and not one.is_late(now),
        # A merchant may give the money back at any time before the decision.
        "can_accept": answerable,
        "asks_code": _steps_up(request, one) and not desk.fresh,
        "can_appeal": may and can_appeal(one, now),
        "values": desk.form,
        "files_again": bool(desk.files),
    }
    if errors or notice:
        values |= {"errors": errors or {}, "notice": notice, "notice_tone": "error"}
    return page(request, "desk/dispute.html", values, status=status)


async def _refused(request: Request, desk: Desk, refused: Refused) -> Response:
    """Show the current dispute, with the reason for the refusal beside its field or at the top."""
    if refused.code is Code.UNAVAILABLE:
        raise refused
    field = _FIELD_OF.get(refused.code)
    errors, notice = ({field: refused.message}, None) if field else ({}, refused.message)
    return _page(request, desk, await _find(request, desk), errors, notice, status_of(refused))


async def _recorded(
    context: Context, desk: Desk, note: AuditNote, what: str, act: Callable[[], Awaitable[object]]
) -> None:
    """Write the entry of the audit log, and then act. A refusal of `what` gets an entry of its own, and is raised."""
    await record(context, desk.merchant_id, desk.actor, note)
    try:
        await act()
    except Refused as refused:
        if refused.code is not Code.UNAVAILABLE:
            text = f"{what} was refused: {refused.message}"
            told = replace(note, action=f"{note.action}.refused", subject=text)
            await record(context, desk.merchant_id, desk.actor, told)
        raise


@allowed(Action.READ_DISPUTES, Action.ANSWER_DISPUTES)
async def accept(request: Request, desk: Desk) -> Response:
    """Write the entry of the audit log, and then accept the dispute. A second click changes nothing, and has no entry."""
    context = service_of(request).context
    # A second click waits for the first one, and then finds the acceptance.
    async with context.lock(id_in_path(request, "dispute_id")):
        return await _accept(request, desk, context)


async def _accept(request: Request, desk: Desk, context: Context) -> Response:
    shown = await _find(request, desk)
    reason = desk.form.get("reason", "").strip()
    if not reason:
        error = {"reason": "Say why, in a few words. The audit log keeps the reason."}
        return _page(request, desk, shown, error, status=400)
    one = shown.found.dispute
    accepted = see_other(f"{DISPUTES}/{one.dispute_id}?said=accepted")
    if accepted_before(one):
        return accepted
    if _steps_up(request, one) and (errors := await prove(request, desk)):
        return _page(request, desk, shown, errors, status=400)
    amount = money.shown(one.amount, shown.found.currency)
    note = AuditNote("dispute.accept", f"Accepted a dispute about {amount}", reason, shown.found.order_id)
    act = partial(accept_dispute, context, desk.merchant_id, one.dispute_id)
    try:
        await _recorded(context, desk, note, f"Accepting a dispute about {amount}", act)
    except Refused as refused:
        return await _refused(request, desk, refused)
    return accepted


def _steps_up(request: Request, one: Dispute) -> bool:
    """Return whether an acceptance needs a fresh second factor, as a refund of the same amount does."""
    return one.amount > service_of(request).settings.desk_fresh_above


async def _written(request: Request, desk: Desk, act: WriteAnswer, action: str, said: str) -> Response:
    """Write the entry of the audit log, and then send the text and the files."""
    shown, context = await _find(request, desk), service_of(request).context
    one = shown.found.dispute
    try:
        files = await asyncio.to_thread(check_files, desk.files)
    except Refused as refused:
        return await _refused(request, desk, refused)
    count = "1 file" if len(files) == 1 else f"{len(files)} files"
    text = f"A text and {count} for dispute {one.dispute_id}"
    note = AuditNote(action, text, "", shown.found.order_id)
    send = partial(act, context, desk.merchant_id, one.dispute_id, desk.form.get("text", ""), files)
    try:
        await _recorded(context, desk, note, text, send)
    except Refused as refused:
        return await _refused(request, desk, refused)
    return see_other(f"{DISPUTES}/{one.dispute_id}?said={said}")


@allowed_with_files(Action.READ_DISPUTES, Action.ANSWER_DISPUTES)
async def evidence(request: Request, desk: Desk) -> Response:
    """Send a text and files. The merchant can send more until the dispute is decided."""
    return await _written(request, desk, submit_evidence, "dispute.evidence", "evidence")


@allowed_with_files(Action.READ_DISPUTES, Action.ANSWER_DISPUTES)
async def appeal(request: Request, desk: Desk) -> Response:
    """Appeal a decision for the consumer, once."""

    async def act(
        context: Context, merchant_id: UUID, dispute_id: UUID, text: str, files: list[EvidenceFile]
    ) -> object:
        return await appeal_dispute(context, merchant_id, dispute_id, DisputeParty.MERCHANT, text, files)

    return await _written(request, desk, act, "dispute.appeal", "appealed")


@allowed(Action.READ_DISPUTES)
async def file(request: Request, desk: Desk) -> Response:
    """Download a file that a side has sent. A browser never shows the file as a page of this service."""
    shown = await _find(request, desk)
    evidence_id, number = id_in_path(request, "evidence_id"), request.path_params["number"]
    if number not in {"1", "2", "3", "4", "5"}:
        return missing(request)
    ids = desk.merchant_id, shown.found.dispute.dispute_id
    found = await read_file(service_of(request).context, *ids, evidence_id, int(number))
    if found is None:
        return missing(request)
    return download(found[1])
