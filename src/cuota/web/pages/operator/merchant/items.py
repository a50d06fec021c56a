"""One item of a merchant's checklist: its data, and the form that accepts or rejects it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.merchant import Merchant, Onboarding
from cuota.core.onboarding.checklist import (
    DECIDABLE,
    ITEM_WORDS,
    STATE_WORDS,
    ChecklistItem,
    Item,
    ItemState,
)
from cuota.core.operator.role import OperatorAction
from cuota.db.onboarding import onboardings
from cuota.flows.desk.change_team import BadTeam
from cuota.flows.onboarding.decide_item import decide_item
from cuota.flows.onboarding.read_checklist import OpenedOnboarding, read_checklist
from cuota.flows.operator.log_action import OperatorNote, log_action
from cuota.web.pages.checkout.session import Stop, see_other
from cuota.web.pages.desk.onboarding.checklist_rows import decided_words
from cuota.web.pages.operator.acting import acted
from cuota.web.pages.operator.merchant.listing import MERCHANTS
from cuota.web.pages.operator.merchant.onboarding import root_of
from cuota.web.pages.operator.merchant.sections import item_sections
from cuota.web.pages.operator.merchant.view import merchant_in_path
from cuota.web.pages.operator.view import common, failed
from cuota.web.pages.operator.visit import OperatorDesk, allowed, missing
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

_DECIDES = (OperatorAction.READ_MERCHANTS, OperatorAction.DECIDE_ONBOARDING)
# The addresses of the pages for entering these items.
_FORMS = {Item.BUSINESS: "business", Item.OWNERS: "owners", Item.DOCUMENTS: "documents"}


async def _find(request: Request) -> tuple[Merchant, Item]:
    """Return the merchant and the item in the path. Raises Stop with the 404 page."""
    found, name = await merchant_in_path(request), request.path_params["item"]
    if name not in set(Item):
        raise Stop(missing(request))
    return found, Item(name)


@allowed(OperatorAction.READ_MERCHANTS)
async def item(request: Request, desk: OperatorDesk) -> Response:
    """Show one item."""
    return await item_page(request, desk, *await _find(request))


async def item_page(
    request: Request,
    desk: OperatorDesk,
    found: Merchant,
    which: Item,
    errors: dict[str, str] | None = None,
    *,
    revealed: bool = False,
) -> Response:
    """Return the page of an item, with masked names unless they are `revealed`."""
    context = service_of(request).context
    opened = await read_checklist(context, found.merchant_id)
    one, decides = opened.checklist[which], desk.may(OperatorAction.DECIDE_ONBOARDING)
    root = root_of(found)
    shown: PageContext = {
        **common(request, desk, f"{ITEM_WORDS[which]}, {found.name}", here=MERCHANTS),
        "sections": item_sections(context, opened, which, root, decides=decides, revealed=revealed),
        "root_address": root,
        "address": f"{root}/items/{which}",
        "state": dict(zip(("word", "kind"), STATE_WORDS[one.state], strict=True)),
        "said_before": one.missing or decided_words(one, names=True),
        "fill": f"{root}/{_FORMS[which]}" if decides and which in _FORMS else "",
        "can_decide": decides and which in DECIDABLE and one.state is not ItemState.MISSING,
        "can_screen": decides and which is Item.SCREENING and bool(opened.subjects),
        "can_reveal": decides and which is Item.OWNERS and bool(opened.facts.owners) and not revealed,
        "seen": one.about,
        "ends": found.onboarding is Onboarding.APPROVED,
        "approves": _would_approve(found, opened, one),
        "values": {},
    }
    if errors:
        return page(request, "operator/item.html", failed(shown, errors, desk.form), status=400)
    return page(request, "operator/item.html", shown)


def _would_approve(found: Merchant, opened: OpenedOnboarding, one: ChecklistItem) -> bool:
    """Return whether accepting this item approves the merchant, because all other items are accepted."""
    others = (each for each in opened.checklist.items if each.item is not one.item)
    return found.onboarding is not Onboarding.APPROVED and all(
        each.state is ItemState.ACCEPTED for each in others
    )


@allowed(*_DECIDES)
async def decide(request: Request, desk: OperatorDesk) -> Response:
    """Accept or reject the item in the version that the person saw."""
    found, which = await _find(request)
    context, do = service_of(request).context, desk.form.get("do", "")

    async def act(reason: str) -> None:
        if do not in {"accept", "reject"}:
            raise BadTeam("Choose what to do.")
        seen = desk.form.get("seen", "")
        await decide_item(context, found, desk.actor, which, seen, reason, accepted=do == "accept")

    if errors := await acted(request, desk, act):
        return await item_page(request, desk, found, which, errors)
    now = await onboardings.standing(context.pool, found.merchant_id)
    approved = now is Onboarding.APPROVED and found.onboarding is not Onboarding.APPROVED
    said = "approved" if approved else f"{do}ed"
    return see_other(f"{root_of(found)}?said={said}")


@allowed(*_DECIDES)
async def reveal(request: Request, desk: OperatorDesk) -> Response:
    """Show the owners' names and dates of birth once. The log records the person and the reason."""
    found = await merchant_in_path(request)

    async def act(reason: str) -> None:
        note = OperatorNote("onboarding.reveal", found.name, reason, found.merchant_id)
        await log_action(service_of(request).context, desk.actor, note)

    errors = await acted(request, desk, act)
    return await item_page(request, desk, found, Item.OWNERS, errors, revealed=not errors)
