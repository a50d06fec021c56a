"""One held payout, with the button that releases it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.dates import day
from cuota.core.operator.role import OperatorAction
from cuota.core.payout.arrival import day_at_bank
from cuota.core.payout.calendar import next_business_day
from cuota.db.payout import holds, operator_list
from cuota.db.payout.holds import Holds, Release
from cuota.db.payout.operator_list import ListedPayout
from cuota.flows.merchant.manage_merchants import BadMerchant
from cuota.flows.operator.log_action import OperatorNote, logged, tell_merchant
from cuota.flows.payout.release_payout import NOT_HELD, release_payout
from cuota.web.pages.checkout.session import Stop, see_other
from cuota.web.pages.desk.view import when
from cuota.web.pages.operator.acting import acted
from cuota.web.pages.operator.merchant.view import hold_words
from cuota.web.pages.operator.parts import section
from cuota.web.pages.operator.payouts import PAYOUTS, state_of
from cuota.web.pages.operator.view import common, failed
from cuota.web.pages.operator.visit import PATH, OperatorDesk, allowed, id_in_path, missing
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of


async def _find(request: Request) -> ListedPayout:
    """Return the payout in the path. Raises Stop with the 404 page."""
    ids = id_in_path(request, "merchant_id"), id_in_path(request, "payout_id")
    found = await operator_list.read_one(service_of(request).context.pool, *ids)
    if found is None:
        raise Stop(missing(request))
    return found


@allowed(OperatorAction.READ_MONEY)
async def payout(request: Request, desk: OperatorDesk) -> Response:
    """Show one payout. While it is held, show the reason of the hold and the effect of a release."""
    return await _page(request, desk, await _find(request))


async def _page(
    request: Request, desk: OperatorDesk, found: ListedPayout, errors: dict[str, str] | None = None
) -> Response:
    context = service_of(request).context
    held = await holds.read(context.pool, found.merchant_id)
    now = context.now()
    would = await holds.would(context.pool, found.merchant_id, found.payout_id, now)
    waits = found.held_at is not None and held.unapproved_since is None and would is not Release.REFUSED
    shown: PageContext = {
        **common(request, desk, f"Payout {found.number} of {found.merchant}", here=PAYOUTS),
        "sections": [section(pairs=_facts(found), links=_links(found))],
        "address": f"{PAYOUTS}/{found.merchant_id}/{found.payout_id}",
        "why": _why(found, held, would),
        "can_release": waits and desk.may(OperatorAction.RELEASE_PAYOUTS),
        "amount": money.shown(found.amount, found.currency),
        "merchant": found.merchant,
        "last4": found.last4,
        "given_back": would is Release.GIVEN_BACK,
        "arrival": day(next_business_day(day_at_bank(now)), year=True),
        "values": {},
    }
    if errors:
        return page(request, "operator/held_payout.html", failed(shown, errors, desk.form), status=400)
    return page(request, "operator/held_payout.html", shown)


def _facts(found: ListedPayout) -> list[tuple[str, object]]:
    pairs: list[tuple[str, object]] = [
        ("Status", state_of(found)[0]),
        ("Amount", money.shown(found.amount, found.currency)),
        ("Bank account", f"ends in {found.last4}"),
        ("Closed", when(found.closed_at)),
    ]
    if found.held_at is not None:
        return [*pairs, ("Held since", when(found.held_at))]
    return [*pairs, ("Arrival", day(found.arrival_date, year=True))]


def _links(found: ListedPayout) -> list[tuple[str, str]]:
    return [
        (f"{PATH}/merchants/{found.merchant_id}", "The merchant"),
        (f"{PAYOUTS}?status=held", "To release"),
    ]


def _why(found: ListedPayout, held: Holds, would: Release) -> str:
    """Return a text that says why the payout is held, and whether the merchant's later payouts are held too."""
    if found.held_at is None:
        return "This payout is not held."
    words, merchant = hold_words(held), found.merchant
    if held.unapproved_since is not None:
        return f"The payouts of {merchant} are {words}. They can be released when the merchant is approved."
    if would is Release.REFUSED:
        return (
            f"The account that ends in {found.last4} was not accepted, so nothing is paid to it. When {merchant} has another account in"
            " force, a release returns the amount to the merchant's balance, and the next payout pays the amount to that account."
        )
    if words:
        return f"The payouts of {merchant} are {words}."
    return f"The hold of {merchant} has ended. Later payouts are sent automatically; this payout waits for its release."


@allowed(OperatorAction.READ_MONEY, OperatorAction.RELEASE_PAYOUTS)
async def release(request: Request, desk: OperatorDesk) -> Response:
    """Release the payout, with a reason and a fresh code. A second click changes nothing, and has no entry in the log."""
    found, context, done = await _find(request), service_of(request).context, Release.RELEASED

    async def act(reason: str) -> None:
        nonlocal done
        if found.held_at is None:
            raise BadMerchant(NOT_HELD)
        after = {"payout": str(found.number), "amount": money.text_of(found.amount)}
        note = OperatorNote("payout.release", found.merchant, reason, found.merchant_id, after=after)
        ids = found.merchant_id, found.payout_id
        done = await logged(context, desk.actor, note, lambda context: release_payout(context, *ids))
        await tell_merchant(context, found.merchant_id, note)

    if errors := await acted(request, desk, act):
        return await _page(request, desk, await _find(request), errors)
    said = "given-back" if done is Release.GIVEN_BACK else "released"
    return see_other(f"{PAYOUTS}?status=held&said={said}")
