"""Requests for a second person: movements of money above a limit, which one person requests and another person approves."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.desk.role import Action
from cuota.core.order.movement import MovementRequest
from cuota.core.refusal import Code, Refused
from cuota.db.desk import approvals
from cuota.db.desk.approvals import Approval
from cuota.flows.desk.approve_move import ACTION_OF, CannotApprove, decide_approval
from cuota.flows.desk.record import AuditNote, record
from cuota.web.pages.checkout.session import Stop, see_other
from cuota.web.pages.desk.move import MOVES
from cuota.web.pages.desk.preview import preview_values
from cuota.web.pages.desk.team import prove
from cuota.web.pages.desk.view import common, when
from cuota.web.pages.desk.visit import PATH, Desk, allowed, id_in_path, missing
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

MOST_SHOWN = 100
_APPROVALS = f"{PATH}/approvals"
_STATES = {"waiting": ("Waiting", "wait"), "approved": ("Approved", "done"), "rejected": ("Rejected", "off")}


@allowed(Action.READ_ORDERS)
async def listed(request: Request, desk: Desk) -> Response:
    """List the requests that wait, then the newest of those that are decided."""
    found = await approvals.newest(service_of(request).context.pool, desk.merchant_id, MOST_SHOWN)
    shown: PageContext = {
        **common(
            request,
            desk,
            "Approvals",
            here=_APPROVALS,
            lead="Movements of money that a second person approves.",
        ),
        "rows": [
            {
                "address": f"{_APPROVALS}/{each.approval_id}",
                "what": f"{each.kind.capitalize()} {money.shown(each.amount)}",
                "asker": each.asker,
                "at": when(each.asked_at),
                "state": _state(each),
            }
            for each in found
        ],
    }
    return page(request, "desk/approvals.html", shown)


def _state(each: Approval) -> PageContext:
    word, kind = _STATES[each.state]
    return {"word": word, "kind": kind}


async def _find(request: Request, desk: Desk) -> Approval:
    """Return the request in the path. Raises Stop with the 404 page."""
    approval_id = id_in_path(request, "approval_id")
    found = await approvals.read(service_of(request).context.pool, desk.merchant_id, approval_id)
    if found is None:
        raise Stop(missing(request))
    return found


@allowed(Action.READ_ORDERS)
async def approval(request: Request, desk: Desk) -> Response:
    """Show one request with the movement that it would make."""
    return await _page(request, desk, await _find(request, desk))


async def _page(
    request: Request, desk: Desk, found: Approval, errors: dict[str, str] | None = None
) -> Response:
    own = found.asked_by == desk.visit.person.person_id
    may = desk.may(ACTION_OF[found.kind])
    seen, problem = None, ""
    if found.state != "rejected":
        try:
            seen = await MOVES[found.kind].look(
                service_of(request).context, desk.merchant_id, found.order_id, _asked(found)
            )
        except Refused as refused:
            if refused.code is Code.UNAVAILABLE:
                raise
            # An approved movement that was made is found by its reference.
            problem = "" if _was_made(refused) else refused.message
    undone = found.state == "approved" and seen is not None
    shown: PageContext = {
        **common(request, desk, f"{found.kind.capitalize()} {money.shown(found.amount)}", here=_APPROVALS),
        "state": _state(found),
        "facts": [
            ("Asked by", found.asker),
            ("Asked", when(found.asked_at)),
            ("Reason", found.reason),
            *([("Decided by", found.decider)] if found.decider else []),
            *([("Decided", when(found.decided_at))] if found.decided_at else []),
        ],
        "order": f"{PATH}/orders/{found.order_id}",
        "address": f"{_APPROVALS}/{found.approval_id}",
        "label": f"{found.kind.capitalize()} {money.shown(found.amount)}",
        "kind": found.kind.value,
        "preview": preview_values(seen) if seen else None,
        "problem": problem,
        "own": own,
        "can_approve": may and not own and found.state == "waiting" and seen is not None,
        "can_reject": (may or own) and found.state == "waiting",
        "can_finish": may and undone,
        "asks_code": not desk.fresh,
    }
    if errors:
        named = {name: text for name, text in errors.items() if name}
        shown |= {"errors": named, "notice": errors.get(""), "notice_tone": "error"}
    return page(request, "desk/approval.html", shown, status=400 if errors else 200)


def _was_made(refused: Refused) -> bool:
    """Return whether the movement was refused because it was made before, with the same amount."""
    original = refused.facts.get("original")
    return (
        refused.code is Code.DUPLICATE_REFERENCE
        and isinstance(original, dict)
        and bool(original["sameRequest"])
    )


async def _made_before(request: Request, desk: Desk, found: Approval) -> bool:
    """Return whether the movement was made, for example by an earlier click."""
    ids = desk.merchant_id, found.order_id, _asked(found)
    try:
        await MOVES[found.kind].look(service_of(request).context, *ids)
    except Refused as refused:
        return _was_made(refused)
    return False


def _asked(found: Approval) -> MovementRequest:
    return MovementRequest(found.kind, found.reference, found.amount)


@allowed(Action.READ_ORDERS)
async def decide(request: Request, desk: Desk) -> Response:
    """Approve a request and move the money, reject it, or finish a movement that was approved but not made."""
    found, do = await _find(request, desk), desk.form.get("do", "")
    own, may = found.asked_by == desk.visit.person.person_id, desk.may(ACTION_OF[found.kind])
    if do not in {"approve", "reject", "finish"} or not (may or (own and do == "reject")):
        return await _page(
            request, desk, found, {"": "Your role does not include this. Nothing was changed."}
        )
    if errors := await prove(request, desk):
        return await _page(request, desk, found, errors)
    try:
        if do != "finish":
            ids = service_of(request).context, desk.merchant_id, desk.actor
            await decide_approval(*ids, found, approve=do == "approve")
    except CannotApprove as refused:
        return await _page(request, desk, await _find(request, desk), {"": str(refused)})
    if do == "reject":
        return see_other(f"{_APPROVALS}/{found.approval_id}?said=rejected")
    found = await _find(request, desk)
    if do == "finish" and found.state == "approved" and not await _made_before(request, desk, found):
        text = f"{found.kind.capitalize()} {money.shown(found.amount)}, reference {found.reference}, approved by {found.decider}"
        note = AuditNote(f"order.{found.kind}.finished", text, found.reason, found.order_id)
        await record(service_of(request).context, desk.merchant_id, desk.actor, note)
    return await _apply(request, desk, found)


async def _apply(request: Request, desk: Desk, found: Approval) -> Response:
    """Make an approved movement. Its reference ensures that the movement happens only once, even if it is requested again."""
    context = service_of(request).context
    if found.state != "approved":
        return await _page(request, desk, found, {"": "This request was not approved. Nothing was changed."})
    try:
        await MOVES[found.kind].apply(context, desk.merchant_id, found.order_id, _asked(found))
    except Refused as refused:
        if refused.code is Code.UNAVAILABLE:
            raise
        if not _was_made(refused):
            # The order has changed since the approval. The approval ends, so that nobody makes the movement later without asking again.
            await approvals.refused(context.pool, desk.merchant_id, found.approval_id)
            text = f"{found.kind.capitalize()} {money.shown(found.amount)} was refused: {refused.message}"
            note = AuditNote(f"order.{found.kind}.refused", text, found.reason, found.order_id)
            await record(context, desk.merchant_id, desk.actor, note)
            return await _page(request, desk, await _find(request, desk), {"": refused.message})
    return see_other(f"{PATH}/orders/{found.order_id}?said={MOVES[found.kind].said}")
