"""The onboarding for the merchant's owners and admins: missing items, rejected items with the reason, and the forms."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.desk.role import Action
from cuota.core.merchant import Onboarding
from cuota.core.onboarding.checklist import DECIDABLE, Item, ItemState
from cuota.db.onboarding import onboardings
from cuota.flows.desk.record import AuditNote, record
from cuota.flows.onboarding.change_checklist import Hand
from cuota.flows.onboarding.read_checklist import OpenedOnboarding, read_checklist
from cuota.web.pages.desk.bank import BANK
from cuota.web.pages.desk.onboarding import business as business_page
from cuota.web.pages.desk.onboarding import documents as documents_page
from cuota.web.pages.desk.onboarding import owners as owners_page
from cuota.web.pages.desk.onboarding.checklist_rows import item_row
from cuota.web.pages.desk.onboarding.place import OnboardingHandler, OnboardingPlace
from cuota.web.pages.desk.view import common
from cuota.web.pages.desk.visit import PATH, Desk, allowed, allowed_with_files, missing
from cuota.web.pages.download import download
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

ROOT = f"{PATH}/onboarding"
_STANDING = {
    Onboarding.NONE: "Your payment provider does not require an approval. Your provider still checks the data that you enter here.",
    Onboarding.OPEN: "Your account is not approved yet. Until then, real orders are refused and payouts are held.",
    Onboarding.APPROVED: "Your account is approved. Your provider checks a changed item again, and your shop stays open in the meantime.",
}
# Each person who may fill in the onboarding may also change the bank account (core/desk/role.py).
_PAGES = {
    Item.BUSINESS: f"{ROOT}/business",
    Item.OWNERS: f"{ROOT}/owners",
    Item.DOCUMENTS: f"{ROOT}/documents",
    Item.BANK: BANK,
}


async def _nothing_to_prove() -> dict[str, str]:
    """Return no error: no second factor is needed, because the merchant's own data changes no access and moves no money."""
    return {}


def _place(request: Request, desk: Desk) -> OnboardingPlace:
    def frame(title: str, lead: str) -> PageContext:
        return common(request, desk, title, here=ROOT, lead=lead)

    return OnboardingPlace(
        ROOT, desk.merchant_id, desk.form, desk.files, theirs=True, asks_code=False, frame=frame,
        prove=_nothing_to_prove, hand=partial(Hand, desk.actor), missing=partial(missing, request),
    )  # fmt: skip


def _page(handler: OnboardingHandler) -> Callable[[Request], Awaitable[Response]]:
    @allowed(Action.FILL_ONBOARDING)
    async def run(request: Request, desk: Desk) -> Response:
        return await handler(request, _place(request, desk))

    return run


@allowed(Action.FILL_ONBOARDING)
async def checklist(request: Request, desk: Desk) -> Response:
    """Show the five items and the next step."""
    context = service_of(request).context
    found = await read_checklist(context, desk.merchant_id)
    standing = await onboardings.standing(context.pool, desk.merchant_id)
    shown: PageContext = {
        **common(request, desk, "Your business", here=ROOT, lead=_STANDING[standing]),
        # The first line of the page already says whether the account is approved.
        "standing": None,
        "items": [_row(each, found) for each in Item],
    }
    return page(request, "desk/onboarding.html", shown)


def _row(item: Item, found: OpenedOnboarding) -> PageContext:
    """Return an item.

    The merchant does not see the findings of the screening, because a sanctioned person must not be warned.
    """
    one = found.checklist[item]
    row = item_row(one, _PAGES.get(item, ""), names=False)
    account = found.facts.account
    if item is Item.BANK and account is not None and not row["more"]:
        row["more"] = f"the account that ends in {account.last4}"
    if item in DECIDABLE or one.state is ItemState.MISSING:
        return row
    words = (
        "the names of the business and its owners are compared with lists of sanctioned people and companies"
    )
    hidden = one.state is ItemState.REJECTED
    state = {"word": "To check", "kind": "wait"} if hidden else row["state"]
    return {**row, "state": state, "more": words}


business = _page(business_page.show)
save_business = _page(business_page.save)
owners = _page(owners_page.listed)
add_owner = _page(owners_page.add)
owner = _page(owners_page.one)
change_owner = _page(owners_page.change_one)
documents = _page(documents_page.listed)
ask_remove = _page(documents_page.ask_remove)
remove_document = _page(documents_page.remove)


@allowed_with_files(Action.FILL_ONBOARDING)
async def add_documents(request: Request, desk: Desk) -> Response:
    """Store the files."""
    return await documents_page.add(request, _place(request, desk))


@allowed(Action.FILL_ONBOARDING)
async def document(request: Request, desk: Desk) -> Response:
    """Download a document. The audit log records the person who downloads it."""
    found = await documents_page.find(request, _place(request, desk))
    if request.method != "HEAD":
        subject = f"Document {request.path_params['document_id']}"
        note = AuditNote("onboarding.document.read", subject)
        await record(service_of(request).context, desk.merchant_id, desk.actor, note)
    return download(found)
