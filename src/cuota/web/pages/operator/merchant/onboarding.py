"""The onboarding of a merchant: the checklist, and the forms with which the operator can fill it in for the merchant."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.merchant import Merchant, Onboarding
from cuota.core.onboarding.checklist import ITEM_WORDS, STATE_WORDS, ChecklistItem, Item
from cuota.core.operator.role import OperatorAction
from cuota.flows.onboarding.change_checklist import Hand
from cuota.flows.onboarding.read_checklist import read_checklist
from cuota.flows.operator.change_operators import reason_of
from cuota.flows.operator.log_action import OperatorNote, log_action
from cuota.web.pages.desk.onboarding import business as business_page
from cuota.web.pages.desk.onboarding import documents as documents_page
from cuota.web.pages.desk.onboarding import owners as owners_page
from cuota.web.pages.desk.onboarding.checklist_rows import decided_words
from cuota.web.pages.desk.onboarding.place import OnboardingHandler, OnboardingPlace
from cuota.web.pages.download import download
from cuota.web.pages.operator.merchant.listing import MERCHANTS
from cuota.web.pages.operator.merchant.view import merchant_address, merchant_in_path
from cuota.web.pages.operator.parts import cell, section, state, table
from cuota.web.pages.operator.view import common
from cuota.web.pages.operator.visit import OperatorDesk, allowed, allowed_with_files, missing, prove
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

_MAY_FILL = (OperatorAction.READ_MERCHANTS, OperatorAction.DECIDE_ONBOARDING)
_STANDING = {
    Onboarding.NONE: "No approval is required. The merchant takes orders and is paid.",
    Onboarding.OPEN: "Not approved: production refuses orders, and payouts are held until every item is accepted.",
    Onboarding.APPROVED: "Approved. A rejected item ends the approval.",
}


def root_of(found: Merchant) -> str:
    """Return the address of a merchant's checklist."""
    return f"{merchant_address(found)}/onboarding"


@allowed(OperatorAction.READ_MERCHANTS)
async def checklist(request: Request, desk: OperatorDesk) -> Response:
    """Show the five items with their states, their decisions, and who decided when."""
    found, context = await merchant_in_path(request), service_of(request).context
    opened = await read_checklist(context, found.merchant_id)
    rows = [_row(opened.checklist[item], f"{root_of(found)}/items/{item}") for item in Item]
    lead = _STANDING[found.onboarding]
    shown: PageContext = {
        **common(request, desk, f"Onboarding of {found.name}", here=MERCHANTS, lead=lead),
        "sections": [
            table("", [cell("What"), cell("Status")], rows, ""),
            section(links=[(merchant_address(found), "Back to the merchant")]),
        ],
    }
    return page(request, "operator/page.html", shown)


def _row(each: ChecklistItem, address: str) -> list[PageContext]:
    more = each.missing or decided_words(each, names=True)
    return [cell(ITEM_WORDS[each.item], address, more=more), state(*STATE_WORDS[each.state])]


def _place(request: Request, desk: OperatorDesk, found: Merchant) -> OnboardingPlace:
    def frame(title: str, lead: str) -> PageContext:
        return common(request, desk, f"{title}, {found.name}", here=MERCHANTS, lead=lead)

    def hand() -> Hand:
        return Hand(desk.actor, reason_of(desk.form.get("reason", "")))

    return OnboardingPlace(
        root_of(found), found.merchant_id, desk.form, desk.files, theirs=False, asks_code=not desk.fresh, frame=frame,
        prove=partial(prove, request, desk), hand=hand, missing=partial(missing, request),
    )  # fmt: skip


def _page(handler: OnboardingHandler) -> Callable[[Request], Awaitable[Response]]:
    @allowed(*_MAY_FILL)
    async def run(request: Request, desk: OperatorDesk) -> Response:
        return await handler(request, _place(request, desk, await merchant_in_path(request)))

    return run


business = _page(business_page.show)
save_business = _page(business_page.save)
owners = _page(owners_page.listed)
add_owner = _page(owners_page.add)
owner = _page(owners_page.one)
change_owner = _page(owners_page.change_one)
documents = _page(documents_page.listed)
ask_remove = _page(documents_page.ask_remove)
remove_document = _page(documents_page.remove)


@allowed_with_files(merchant_in_path, *_MAY_FILL)
async def add_documents(request: Request, desk: OperatorDesk) -> Response:
    """Store the files."""
    return await documents_page.add(request, _place(request, desk, await merchant_in_path(request)))


@allowed(*_MAY_FILL)
async def document(request: Request, desk: OperatorDesk) -> Response:
    """Download a document. The log records who downloaded it."""
    found = await merchant_in_path(request)
    file = await documents_page.find(request, _place(request, desk, found))
    if request.method != "HEAD":
        subject = f"{found.name}, document {request.path_params['document_id']}"
        note = OperatorNote("onboarding.document.read", subject, "", found.merchant_id)
        await log_action(service_of(request).context, desk.actor, note)
    return download(file)
