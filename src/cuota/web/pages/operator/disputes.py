"""The disputes of all merchants: the statements of both sides, and the operator's decision."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.dispute.dispute import Dispute, DisputeKind, DisputeParty, DisputeStatus
from cuota.core.operator.role import OperatorAction
from cuota.core.refusal import Code, Refused
from cuota.db.dispute import operator_list
from cuota.db.dispute.operator_list import ListedDispute
from cuota.flows.desk.change_team import BadTeam
from cuota.flows.dispute.answer_dispute import decide_dispute
from cuota.flows.dispute.evidence import Statement, read_file
from cuota.flows.dispute.find_dispute import merchant_of_dispute
from cuota.flows.dispute.show_dispute import ShownDispute, show_dispute
from cuota.flows.operator.change_operators import reason_of
from cuota.flows.operator.log_action import OperatorNote, log_action
from cuota.flows.operator.tell_dispute import tell_dispute
from cuota.web.pages.checkout.session import Stop, see_other
from cuota.web.pages.desk.dispute_view import REASONS, payment_rows, size_words
from cuota.web.pages.desk.view import day_of, when
from cuota.web.pages.download import download
from cuota.web.pages.operator.parts import ListPage, cell, section, state, table
from cuota.web.pages.operator.view import common, failed
from cuota.web.pages.operator.visit import PATH, OperatorDesk, allowed, id_in_path, missing, prove
from cuota.web.pages.render import PageContext, page
from cuota.web.problem import status_of
from cuota.web.service import service_of

A_PAGE = 50
_DISPUTES = f"{PATH}/disputes"
_DECIDABLE = frozenset({DisputeStatus.UNDER_REVIEW, DisputeStatus.APPEALED})
_WORDS = {
    DisputeStatus.OPEN: ("Merchant answers", "wait"),
    DisputeStatus.UNDER_REVIEW: ("To decide", "bad"),
    DisputeStatus.APPEALED: ("Appealed", "bad"),
    DisputeStatus.WON: ("For the merchant", "done"),
    DisputeStatus.LOST: ("For the consumer", "done"),
    DisputeStatus.CLOSED: ("Closed", "off"),
}
_PARTIES = {
    DisputeParty.CONSUMER: "The consumer",
    DisputeParty.MERCHANT: "The merchant",
    DisputeParty.OPERATOR: "The operator",
    DisputeParty.NETWORK: "The card network",
}
_TO_DECIDE = "decide"
_VIEWS = {"": "All", _TO_DECIDE: "To decide", "open": "Merchant answers", "closed": "Closed"}
_EMPTY = {
    "": "No dispute yet. A dispute of a consumer or a card network appears here.",
    _TO_DECIDE: "No dispute waits for your decision.",
    "open": "No dispute waits for a merchant's answer.",
    "closed": "No dispute is closed.",
}


def waits_for_operator(dispute: Dispute) -> bool:
    """Return whether the operator decides now. A card network decides its own chargebacks."""
    return dispute.kind is DisputeKind.DISPUTE and dispute.status in _DECIDABLE


@allowed(OperatorAction.READ_DISPUTES)
async def disputes(request: Request, desk: OperatorDesk) -> Response:
    """List disputes, 50 on a page: all disputes with the newest first, or those to decide with the oldest first."""
    view = request.query_params.get("view", "")
    view = view if view in _VIEWS else ""
    at = ListPage.of(request, _DISPUTES, view=view)
    if view == _TO_DECIDE:
        found = await operator_list.to_decide(desk.every, A_PAGE + 1, at.after)
    else:
        status = DisputeStatus(view) if view else None
        found = await operator_list.listed(desk.every, status, A_PAGE + 1, at.after)
    links = at.links(found, A_PAGE, lambda each: (each.dispute.opened_at, each.dispute.dispute_id))
    columns = [
        cell("Reason"), cell("Merchant", wide=True), cell("Opened", wide=True), cell("Status"), cell("Amount", amount=True),
    ]  # fmt: skip
    empty = _EMPTY[view]
    shown: PageContext = {
        **common(request, desk, "Disputes", here=_DISPUTES),
        "tabs": [
            {
                "address": f"{_DISPUTES}?view={value}" if value else _DISPUTES,
                "label": label,
                "here": value == view,
            }
            for value, label in _VIEWS.items()
        ],
        "sections": [table("", columns, map(_row, found[:A_PAGE]), empty, links)],
    }
    return page(request, "operator/page.html", shown)


def _row(each: ListedDispute) -> list[PageContext]:
    one = each.dispute
    kind = "chargeback" if one.kind is DisputeKind.CHARGEBACK else ""
    word, mark = _WORDS[one.status]
    return [
        cell(REASONS[one.reason], f"{_DISPUTES}/{one.dispute_id}", more=kind),
        cell(each.merchant, wide=True),
        cell(day_of(one.opened_at), wide=True),
        state("Card network" if kind and one.status in _DECIDABLE else word, "wait" if kind and mark == "bad" else mark),
        cell(money.shown(one.amount, each.currency), amount=True),
    ]  # fmt: skip


async def _find(request: Request) -> tuple[UUID, ShownDispute]:
    """Return the merchant's id and the dispute in the path. Raises Stop with the 404 page."""
    dispute_id, context = id_in_path(request, "dispute_id"), service_of(request).context
    try:
        merchant_id = await merchant_of_dispute(context, dispute_id)
        return merchant_id, await show_dispute(context, merchant_id, dispute_id)
    except Refused as refused:
        if refused.code is not Code.DISPUTE_NOT_FOUND:
            raise
        raise Stop(missing(request)) from None


@allowed(OperatorAction.READ_DISPUTES)
async def dispute(request: Request, desk: OperatorDesk) -> Response:
    """Show one dispute, with the decision if it waits for the operator."""
    return _page(request, desk, *await _find(request))


def _page(
    request: Request,
    desk: OperatorDesk,
    merchant_id: UUID,
    shown: ShownDispute,
    errors: dict[str, str] | None = None,
    status: int = 400,
) -> Response:
    found, one = shown.found, shown.found.dispute
    amount = money.shown(one.amount, found.currency)
    facts = [
        *payment_rows(found.payment),
        ("Reason", REASONS[one.reason]),
        ("Amount", amount),
        ("Withheld from the merchant", money.shown(one.withheld, found.currency)),
        ("Opened", when(one.opened_at)),
        ("Now", _next(one)),
    ]
    links = [
        (f"{PATH}/orders/{found.order_id}", "The order"),
        (f"{PATH}/merchants/{merchant_id}", "The merchant"),
    ]
    may_decide = desk.may(OperatorAction.DECIDE_DISPUTES)
    values: PageContext = {
        **common(request, desk, f"Dispute about order {found.merchant_reference}", here=_DISPUTES),
        "sections": [section(pairs=facts, links=links)],
        # The statements may contain names and addresses, so only people who decide disputes may read them.
        "statements": list(_statements(one, shown.statements)) if may_decide else [],
        "address": f"{_DISPUTES}/{one.dispute_id}",
        "amount": amount,
        "seen": one.status.value,
        "can_decide": may_decide and waits_for_operator(one),
    }
    if errors:
        return page(request, "operator/dispute.html", failed(values, errors, desk.form), status=status)
    return page(request, "operator/dispute.html", values)


def _next(one: Dispute) -> str:
    """Return a text with the next step of the dispute, or with its result."""
    if one.status is DisputeStatus.CLOSED:
        return f"ended: {one.outcome}"
    if one.status is DisputeStatus.OPEN:
        return f"the merchant must answer by {when(one.respond_by)}"
    if waits_for_operator(one):
        return "waits for your decision"
    if one.kind is DisputeKind.CHARGEBACK:
        return "waits for the card network"
    until = f", who can appeal until {when(one.appeal_by)}" if one.appeal_by and not one.final else ""
    side = "consumer" if one.status is DisputeStatus.WON else "merchant"
    return f"decided against the {side}{until}"


def _statements(one: Dispute, written: Iterable[Statement]) -> Iterable[PageContext]:
    for each in written:
        address = f"{_DISPUTES}/{one.dispute_id}/files/{each.evidence_id}"
        yield {
            "who": _PARTIES[each.party],
            "at": when(each.at),
            "paragraphs": (each.text or "").splitlines(),
            "files": [
                {"name": file.name, "size": size_words(file.size), "address": f"{address}/{file.number}"}
                for file in each.files
            ],
        }


@allowed(OperatorAction.READ_DISPUTES, OperatorAction.DECIDE_DISPUTES)
async def decide(request: Request, desk: OperatorDesk) -> Response:
    """Decide for one side, with a reason for the log. A second click changes nothing."""
    merchant_id, shown = await _find(request)
    one, context, side = shown.found.dispute, service_of(request).context, desk.form.get("for", "")
    if side not in {DisputeParty.CONSUMER, DisputeParty.MERCHANT}:
        return _page(request, desk, merchant_id, shown, {"": "Choose the consumer or the merchant."})
    if desk.form.get("seen") != one.status:
        # This happens after a second click, if the side that lost has already appealed. A decision on an appeal is final.
        text = (
            "This dispute has changed since you opened the page. Look at it as it is now, and decide again."
        )
        return _page(request, desk, merchant_id, shown, {"": text}, 409)
    if errors := await prove(request, desk):
        return _page(request, desk, merchant_id, shown, errors)
    try:
        reason = reason_of(desk.form.get("reason", ""))
    except BadTeam as bad:
        return _page(request, desk, merchant_id, shown, {bad.name: str(bad)})
    amount = money.shown(one.amount, shown.found.currency)
    note = OperatorNote("dispute.decide", f"Dispute about {amount}, for the {side}", reason, one.dispute_id)
    await log_action(context, desk.actor, note)
    try:
        await decide_dispute(context, merchant_id, one.dispute_id, for_consumer=side == DisputeParty.CONSUMER)
    except Refused as refused:
        if refused.code is Code.UNAVAILABLE:
            raise
        refusal = OperatorNote("dispute.decide.refused", note.subject, refused.message, one.dispute_id)
        await log_action(context, desk.actor, refusal)
        return _page(request, desk, *await _find(request), {"": refused.message}, status_of(refused))
    await tell_dispute(context, merchant_id, note.action, one.dispute_id, **{"for": side})
    return see_other(f"{_DISPUTES}/{one.dispute_id}?said=decided")


@allowed(OperatorAction.READ_DISPUTES, OperatorAction.DECIDE_DISPUTES)
async def file(request: Request, desk: OperatorDesk) -> Response:
    """Download a file that a side has sent. A browser never shows the file as a page of this service."""
    del desk
    merchant_id, shown = await _find(request)
    evidence_id, number = id_in_path(request, "evidence_id"), request.path_params["number"]
    if number not in {"1", "2", "3", "4", "5"}:
        return missing(request)
    ids = merchant_id, shown.found.dispute.dispute_id
    found = await read_file(service_of(request).context, *ids, evidence_id, int(number))
    if found is None:
        return missing(request)
    return download(found[1])
