"""The handlers of the checkout's steps. Each step is a form that works without scripts, and is answered with a redirect."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.checkout.card import BadCard
from cuota.core.checkout.ending import Charging, Lapsed, UnderReview
from cuota.core.checkout.start import Display
from cuota.core.consumer import typed_number
from cuota.core.order.order import Final, Order, Status
from cuota.core.privacy.erasure import Forgotten
from cuota.core.risk.review import ReviewState
from cuota.core.typed_text import typed_digits
from cuota.db.checkout.loaded import Checkout
from cuota.db.plan import charges
from cuota.flows.checkout.identify_consumer import check_code, give_details, give_shipping, send_code
from cuota.flows.checkout.leave_checkout import leave_checkout
from cuota.flows.checkout.recognize_consumer import pay_again
from cuota.flows.checkout.submit_checkout import give_up_charge, submit_checkout
from cuota.flows.checkout.take_step import Problem, consumer_day, load
from cuota.web.pages.card_entry import card_token
from cuota.web.pages.checkout import again as again_page
from cuota.web.pages.checkout import screens
from cuota.web.pages.checkout.charging import ASKED
from cuota.web.pages.checkout.details import read_details, read_shipping
from cuota.web.pages.checkout.known_browser import browser_of, token_of
from cuota.web.pages.checkout.prefill import order_phone
from cuota.web.pages.checkout.session import (
    FRAMED,
    Stop,
    base_path,
    checkout_form,
    checkout_of,
    framed_secret,
    ids_of,
    page_address,
    see_other,
    set_secret,
    start_again,
    unknown,
)
from cuota.web.service import service_of

POSTED = ("again", "forget", "phone", "code", "resend", "details", "shipping", "pay", "another-card", "leave")
# The steps that have a page.
SHOWN = ("phone", "code", "details", "shipping", "pay")
CheckoutStep = Callable[[Request, Checkout, str, dict[str, str]], Awaitable[Response]]


def _address(checkout: Checkout, secret: str, step: str = "", said: str = "") -> str:
    """Return the address of a step. Each step has its own address, so that the browser's Back button goes back one step."""
    query = {"step": step, "said": said}
    return page_address(checkout, secret, **{name: text for name, text in query.items() if text})


def _card_failed(order: Order) -> bool:
    """Return whether the card failed: after the pay button, the order is still open and does not wait for a person."""
    return order.status is Status.CREATED and order.review is not ReviewState.WAITING


def _back(request: Request, checkout: Checkout, secret: str) -> str:
    """Return the full address of the checkout's page, for the way back from a confirmation at the card's bank."""
    return f"{service_of(request).settings.public_url}{_address(checkout, secret)}"


async def show(request: Request) -> Response:
    """Show the current step of this checkout, or the earlier step that `?step=` names."""
    try:
        checkout, secret = await checkout_of(request)
    except Stop as stop:
        return stop.response
    wanted = request.query_params.get("step")
    return await screens.screen(request, checkout, secret, wanted, said=request.query_params.get("said"))


async def elsewhere(request: Request) -> Response:
    """Redirect a GET of a form's address (a reload, Back, a bookmark, a prefetch) to the page of the step. It changes nothing."""
    try:
        merchant_id, order_id = ids_of(request)
    except Stop as stop:
        return stop.response
    step = request.path_params["step"]
    if step not in POSTED:
        return unknown(request)
    query = {FRAMED: framed_secret(request), "step": step if step in SHOWN else None}
    given = urlencode({name: value for name, value in query.items() if value})
    return see_other(f"{base_path(merchant_id, order_id)}{'?' if given else ''}{given}")


def _step(
    needs: str, *, ends: bool = False
) -> Callable[[CheckoutStep], Callable[[Request], Awaitable[Response]]]:
    """Make a handler for the form of a step. It checks the session and the form, and that the step `needs` is reached.

    While the merchant may make no new orders, only a step that `ends` the checkout is possible.
    """

    def wrap(step: CheckoutStep) -> Callable[[Request], Awaitable[Response]]:
        @wraps(step)
        async def run(request: Request) -> Response:
            try:
                checkout, secret, form = await checkout_form(request)
                stopped = not ends and screens.is_stopped(request, checkout)
                if stopped or not screens.reached(checkout, needs):
                    status, notice = (None, None) if stopped else (409, "This step comes later.")
                    return await screens.screen(request, checkout, secret, status=status, notice=notice)
                return await step(request, checkout, secret, form)
            except Stop as stop:
                return stop.response
            except Forgotten:
                text = "This checkout was ended. Nothing was charged. Open the payment again from the shop."
                return start_again(request, text)
            except Charging:
                # There is no answer yet, or the consumer must confirm the charge at the card's bank.
                response = see_other(_address(checkout, secret, said=ASKED))
                again_page.remember_later(request, response, checkout)
                return response
            except (Final, Lapsed, UnderReview):
                # The order changed meanwhile, in another tab or because its time ran out. Show its current state.
                return see_other(_address(checkout, secret))

        return run

    return wrap


@_step("phone")
async def phone(request: Request, checkout: Checkout, secret: str, form: dict[str, str]) -> Response:
    """Send a one-time code to the typed phone number.

    If the form has no phone field, send the code to the order's number. The page showed only the last digits of that
    number.
    """
    order_number = None if "phone" in form else order_phone(checkout)
    number = order_number or typed_digits(form.get("phone", ""))
    if checkout.verified and typed_number(number) == checkout.session.phone:
        # The consumer went back to this step and continues. The number is already verified.
        return see_other(_address(checkout, secret, "details"))
    try:
        await send_code(service_of(request).context, checkout, number, browser_of(request))
    except Problem as wrong:
        if order_number:
            wrong = wrong.as_notice()
        values = None if order_number else form
        return await screens.screen(request, checkout, secret, "phone", problem=wrong, values=values)
    return see_other(_address(checkout, secret, "code"))


@_step("code")
async def resend(request: Request, checkout: Checkout, secret: str, form: dict[str, str]) -> Response:
    """Send another code to the same number."""
    del form
    try:
        context, number = service_of(request).context, checkout.session.phone or ""
        await send_code(context, checkout, number, browser_of(request))
    except Problem as wrong:
        return await screens.screen(request, checkout, secret, "code", problem=wrong.as_notice())
    return see_other(_address(checkout, secret, "code", "resent"))


@_step("code")
async def code(request: Request, checkout: Checkout, secret: str, form: dict[str, str]) -> Response:
    """Check the typed code, and give the browser a new session secret."""
    if checkout.verified:
        return see_other(_address(checkout, secret))
    try:
        new_secret = await check_code(service_of(request).context, checkout, form.get("code", ""))
    except Problem as wrong:
        return await screens.screen(request, checkout, secret, "code", problem=wrong)
    response = see_other(_address(checkout, new_secret, "details"))
    if checkout.display is not Display.IFRAME:
        set_secret(request, response, checkout.order.order_id, new_secret)
    return response


@_step("details")
async def details(request: Request, checkout: Checkout, secret: str, form: dict[str, str]) -> Response:
    """Save the consumer's details."""
    try:
        profile = read_details(form)
        await give_details(service_of(request).context, checkout, profile)
    except Problem as wrong:
        return await screens.screen(request, checkout, secret, "details", problem=wrong, values=form)
    following = "shipping" if checkout.express and not checkout.session.shipping else "pay"
    return see_other(_address(checkout, secret, following))


@_step("shipping")
async def shipping(request: Request, checkout: Checkout, secret: str, form: dict[str, str]) -> Response:
    """Save the shipping address of an express order."""
    try:
        await give_shipping(service_of(request).context, checkout, read_shipping(form))
    except Problem as wrong:
        return await screens.screen(request, checkout, secret, "shipping", problem=wrong, values=form)
    return see_other(_address(checkout, secret, "pay"))


@_step("pay")
async def pay(request: Request, checkout: Checkout, secret: str, form: dict[str, str]) -> Response:
    """Submit the checkout after the pay button. The form has the processor's token of the card."""
    context = service_of(request).context
    errors: dict[str, str] = {}
    token = ""
    try:
        token = await card_token(context, form, consumer_day(context, checkout))
    except BadCard as bad:
        errors = bad.errors
    # Keep these values if the page is shown again. The consent counts only for the agreement text that has this hash.
    values = {name: form.get(name, "") for name in ("card_expiry", "agree", "agreement_hash")}
    if form.get("agree") != "yes":
        errors["agree"] = screens.NOT_AGREED
    if errors:
        return await screens.screen(request, checkout, secret, "pay", problem=Problem(errors), values=values)
    agreed, back = form.get("agreement_hash", ""), _back(request, checkout, secret)
    try:
        # During an upgrade, a machine of the previous release may have made the page.
        shown = form.get("details_hash")
        order = await submit_checkout(context, checkout, token, agreed, back, shown_details=shown)
    except Problem as wrong:
        return await screens.screen(request, checkout, secret, "pay", problem=wrong, values=values)
    declined = ("pay", "declined") if _card_failed(order) else ()
    response = see_other(_address(checkout, secret, *declined))
    await again_page.remember(request, response, checkout, order)
    return response


@_step("phone")
async def again(request: Request, checkout: Checkout, secret: str, form: dict[str, str]) -> Response:
    """Pay with the card of the consumer's latest plan, in a remembered browser, with one click."""
    context, token = service_of(request).context, token_of(request)
    try:
        agreed, back = form.get("agreement_hash", ""), _back(request, checkout, secret)
        paid_checkout, order = await pay_again(context, checkout, token, agreed, back)
    except Problem as wrong:
        shown = await again_page.refused(request, checkout, secret, wrong)
        return shown or await screens.screen(
            request, checkout, secret, "phone", problem=Problem(notice=wrong.notice)
        )
    response = see_other(_address(checkout, secret, said="declined" if _card_failed(order) else ""))
    await again_page.remember(request, response, paid_checkout, order)
    return response


@_step("pay")
async def another_card(request: Request, checkout: Checkout, secret: str, form: dict[str, str]) -> Response:
    """Cancel a charge that waits for a confirmation at the card's bank, so that another card can pay. Only its payer can."""
    del form
    context, ids = service_of(request).context, (checkout.order.merchant_id, checkout.order.order_id)
    pending = await charges.pending(context.pool, *ids)
    # The form may have arrived slowly, and meanwhile another person may pay. So the payer is read again, after the charge.
    latest = await load(context, *ids, secret)
    charging = latest.order.charging if latest is not None and latest.is_payer else None
    if pending is not None and charging == pending.charge.charge_id:
        await give_up_charge(context, *ids, pending)
    # If the charge was meanwhile paid or declined, the page shows this result.
    return see_other(_address(checkout, secret, "pay", "gave-up"))


@_step("phone")
async def forget(request: Request, checkout: Checkout, secret: str, form: dict[str, str]) -> Response:
    """Forget this browser after "Not you?". From now on, every checkout in it asks for a phone number."""
    del form
    response = see_other(_address(checkout, secret))
    await again_page.forget(request, response)
    return response


@_step("phone", ends=True)
async def leave(request: Request, checkout: Checkout, secret: str, form: dict[str, str]) -> Response:
    """Cancel the checkout: set the order to Abandoned, and show the page that leads back to the shop."""
    del form
    order = checkout.order
    context = service_of(request).context
    await leave_checkout(context, order.merchant_id, order.order_id)
    # The next page notifies the merchant's page if that is still open, and otherwise leads back to the merchant.
    return see_other(_address(checkout, secret, said="left"))
