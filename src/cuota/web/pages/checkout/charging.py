"""The pages of a checkout whose card is being charged: confirm the payment at the card's bank, or wait for its answer."""

from __future__ import annotations

from datetime import datetime, timedelta
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.checkout.card import card_name
from cuota.db.checkout.loaded import Checkout
from cuota.db.plan import charges
from cuota.db.plan.charges import PendingCharge
from cuota.flows.charge_card import CONFIRM_WITHIN
from cuota.flows.checkout.submit_checkout import look_at_charge
from cuota.web.pages.checkout.results import working
from cuota.web.pages.checkout.session import page_address, see_other
from cuota.web.pages.checkout.view import common, place_of
from cuota.web.pages.render import page
from cuota.web.service import service_of

# The value of `said` right after the button that pays was pressed.
ASKED = "asked"
# The page goes to the bank automatically only within this many seconds after the button. A consumer who opens the page
# later may want to do something else.
_JUST_NOW = timedelta(seconds=30)


async def charging(request: Request, checkout: Checkout, secret: str, said: str | None) -> Response:
    """Ask the card rail about the charge, and return the page for its answer."""
    context, order = service_of(request).context, checkout.order
    ids = (order.merchant_id, order.order_id)
    pending = await charges.pending(context.pool, *ids)
    # Anybody with the link can open a checkout. Only the consumer who pays may see the charge and act on it.
    if pending is None or not checkout.is_payer:
        return working(request, checkout, secret)
    bank = await look_at_charge(context, *ids, pending)
    if bank is not None:
        return _confirm(request, checkout, secret, pending, bank, said)
    if await charges.pending(context.pool, *ids) is None:
        return see_other(page_address(checkout, secret))  # the answer is recorded: show the result
    return working(request, checkout, secret)


def _confirm(
    request: Request, checkout: Checkout, secret: str, pending: PendingCharge, bank: str, said: str | None
) -> Response:
    charge = pending.charge
    amount, card = (
        money.shown(charge.amount, charge.currency),
        card_name(charge.card_brand, charge.card_last4),
    )
    context = common(request, checkout, secret, title="Confirm with your bank", lead=confirm_lead(card))
    goes = said == ASKED and goes_by_itself(pending, service_of(request).context.now())
    context |= {"bank": bank, "texts": confirm_texts(amount), "goes": goes}
    response = page(request, "confirm.html", context, place=place_of(checkout))
    if goes:
        go_to(response, bank)
    return response


def confirm_lead(card: str) -> str:
    """Return the first sentence for a consumer who must confirm a payment."""
    return f"The bank of your {card} asks you to confirm this payment."


def confirm_texts(amount: str) -> list[str]:
    """Return the text about the next step, for a consumer who must confirm a payment."""
    minutes = int(CONFIRM_WITHIN.total_seconds() // 60)
    return [
        f"Confirm the payment of {amount} at your bank. Then you come back here automatically.",
        "Nothing is charged before you confirm, and nothing is charged twice.",
        f"If you do not confirm it within {minutes} minutes, the payment is canceled.",
    ]


def goes_by_itself(pending: PendingCharge, now: datetime) -> bool:
    """Return whether the button that pays was pressed a moment ago."""
    return now - pending.asked_at < _JUST_NOW


def go_to(response: Response, bank: str) -> None:
    """Make the page go to the bank automatically.

    The policy `form-action` would block a redirect to the bank after a form.
    """
    if bank.isascii() and bank.isprintable() and " " not in bank and urlsplit(bank).hostname:
        response.headers["Refresh"] = f"1; url={bank}"
