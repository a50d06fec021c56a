"""The steps of the checkout: each a form that works without script, post-redirect-get."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.checkout.card import BadCard, read_card
from cuota.core.checkout.ending import Charging, Lapsed
from cuota.core.checkout.start import Display
from cuota.core.consumer import typed_number
from cuota.core.order.order import Final, Status
from cuota.flows.checkout.identify_consumer import check_code, give_details, give_shipping, send_code
from cuota.flows.checkout.leave_checkout import leave_checkout
from cuota.flows.checkout.recognize_consumer import pay_again
from cuota.flows.checkout.submit_checkout import submit_checkout
from cuota.flows.checkout.take_step import Checkout, Forgotten, Problem
from cuota.web.pages.checkout import again as again_page
from cuota.web.pages.checkout import screens
from cuota.web.pages.checkout.details import read_details, read_shipping
from cuota.web.pages.checkout.known_browser import browser_of, token_of
from cuota.web.pages.checkout.prefill import order_phone
from cuota.web.pages.checkout.session import (
    FRAMED,
    Stop,
    base_path,
    checkout_of,
    form_of,
    framed_secret,
    ids_of,
    page_address,
    see_other,
    set_secret,
    start_again,
    unknown,
)
from cuota.web.service import service_of

POSTED = ("again", "forget", "phone", "code", "resend", "details", "shipping", "pay", "leave")
CheckoutStep = Callable[[Request, Checkout, str, dict[str, str]], Awaitable[Response]]


def _address(checkout: Checkout, secret: str, step: str = "", said: str = "") -> str:
    """Each step has an address of its own, so that the browser's Back button goes back one step."""
    given = {"step": step, "said": said}
    return page_address(checkout, secret, **{name: text for name, text in given.items() if text})


async def show(request: Request) -> Response:
    """Where this checkout stands, or an earlier step by `?step=`."""
    try:
        checkout, secret = await checkout_of(request)
    except Stop as stop:
        return stop.response
    wanted = request.query_params.get("step")
    return await screens.screen(request, checkout, secret, wanted, said=request.query_params.get("said"))


async def elsewhere(request: Request) -> Response:
    """GET where a step is posted to: a reload, a bookmark, a prefetch. It changes nothing, and leads to the page."""
    try:
        merchant_id, order_id = ids_of(request)
    except Stop as stop:
        return stop.response
    if request.path_params["step"] not in POSTED:
        return unknown(request)
    framed = framed_secret(request)
    query = f"?{urlencode({FRAMED: framed})}" if framed else ""
    return see_other(f"{base_path(merchant_id, order_id)}{query}")


def _step(needs: str) -> Callable[[CheckoutStep], Callable[[Request], Awaitable[Response]]]:
    """A posted step: this browser's own form, and not before the steps that it `needs`."""

    def wrap(step: CheckoutStep) -> Callable[[Request], Awaitable[Response]]:
        @wraps(step)
        async def run(request: Request) -> Response:
            try:
                checkout, secret = await checkout_of(request)
                form = await form_of(request, secret)
                if not screens.reached(checkout, needs):
                    notice = "This step comes later."
                    return await screens.screen(request, checkout, secret, status=409, notice=notice)
                return await step(request, checkout, secret, form)
            except Stop as stop:
                return stop.response
            except Forgotten:
                text = "This checkout was ended. Nothing was charged. Open the payment again from the shop."
                return start_again(request, text)
            except (Final, Charging, Lapsed):
                # It went another way meanwhile, in another tab or by the clock: show where it stands.
                return see_other(_address(checkout, secret))

        return run

    return wrap


@_step("phone")
async def phone(request: Request, checkout: Checkout, secret: str, form: dict[str, str]) -> Response:
    """A code to this number. Without a field for it, to the one that the order names: the page showed only its end."""
    named = None if "phone" in form else order_phone(checkout)
    number = named or form.get("phone", "")
    if checkout.verified and typed_number(number) == checkout.session.phone:
        # The consumer went back, looked, and goes on: what was proved stays proved.
        return see_other(_address(checkout, secret, "details"))
    try:
        await send_code(service_of(request).context, checkout, number, browser_of(request))
    except Problem as wrong:
        if named:
            wrong = wrong.as_notice()
        values = None if named else form
        return await screens.screen(request, checkout, secret, "phone", problem=wrong, values=values)
    return see_other(_address(checkout, secret, "code"))


@_step("code")
async def resend(request: Request, checkout: Checkout, secret: str, form: dict[str, str]) -> Response:
    """Another code to the same number."""
    del form
    try:
        context, number = service_of(request).context, checkout.session.phone or ""
        await send_code(context, checkout, number, browser_of(request))
    except Problem as wrong:
        return await screens.screen(request, checkout, secret, "code", problem=wrong.as_notice())
    return see_other(_address(checkout, secret, "code", "resent"))


@_step("code")
async def code(request: Request, checkout: Checkout, secret: str, form: dict[str, str]) -> Response:
    """The code that came."""
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
    """Who pays."""
    try:
        profile = read_details(form)
        await give_details(service_of(request).context, checkout, profile)
    except Problem as wrong:
        return await screens.screen(request, checkout, secret, "details", problem=wrong, values=form)
    following = "shipping" if checkout.express and not checkout.session.shipping else "pay"
    return see_other(_address(checkout, secret, following))


@_step("shipping")
async def shipping(request: Request, checkout: Checkout, secret: str, form: dict[str, str]) -> Response:
    """Where an express order is to be sent."""
    try:
        await give_shipping(service_of(request).context, checkout, read_shipping(form))
    except Problem as wrong:
        return await screens.screen(request, checkout, secret, "shipping", problem=wrong, values=form)
    return see_other(_address(checkout, secret, "pay"))


@_step("pay")
async def pay(request: Request, checkout: Checkout, secret: str, form: dict[str, str]) -> Response:
    """The button. The card is read, handed to the rail and forgotten."""
    errors: dict[str, str] = {}
    card = None
    try:
        today = service_of(request).context.now().date()
        card = read_card(
            form.get("card_number", ""), form.get("card_expiry", ""), form.get("card_cvc", ""), today
        )
    except BadCard as bad:
        errors = bad.errors
    # What is no secret is still there when the page is shown again; the consent, only under the text that it was given to.
    kept = {name: form.get(name, "") for name in ("card_expiry", "agree", "agreement_hash")}
    if form.get("agree") != "yes":
        errors["agree"] = screens.NOT_AGREED
    if errors or card is None:
        return await screens.screen(request, checkout, secret, "pay", problem=Problem(errors), values=kept)
    context = service_of(request).context
    try:
        order = await submit_checkout(context, checkout, card, form.get("agreement_hash", ""))
    except Problem as wrong:
        return await screens.screen(request, checkout, secret, "pay", problem=wrong, values=kept)
    declined = ("pay", "declined") if order.status is Status.CREATED else ()
    response = see_other(_address(checkout, secret, *declined))
    await again_page.remember(request, response, checkout, order)
    return response


@_step("phone")
async def again(request: Request, checkout: Checkout, secret: str, form: dict[str, str]) -> Response:
    """One press, in a browser that knows its consumer: the card of their latest plan pays."""
    context, token = service_of(request).context, token_of(request)
    try:
        theirs, order = await pay_again(context, checkout, token, form.get("agreement_hash", ""))
    except Problem as wrong:
        shown = await again_page.refused(request, checkout, secret, wrong)
        return shown or await screens.screen(
            request, checkout, secret, "phone", problem=Problem(notice=wrong.notice)
        )
    response = see_other(
        _address(checkout, secret, said="declined" if order.status is Status.CREATED else "")
    )
    await again_page.remember(request, response, theirs, order)
    return response


@_step("phone")
async def forget(request: Request, checkout: Checkout, secret: str, form: dict[str, str]) -> Response:
    """Not you: the browser is asked for a phone number, here and everywhere else."""
    del form
    response = see_other(_address(checkout, secret))
    await again_page.forget(request, response)
    return response


@_step("phone")
async def leave(request: Request, checkout: Checkout, secret: str, form: dict[str, str]) -> Response:
    """The quiet way back: the order is Abandoned, and the browser is at the shop again."""
    del form
    order = checkout.order
    context = service_of(request).context
    await leave_checkout(context, order.merchant_id, order.order_id)
    # That page tells the merchant's page where it is still open, and else leads back to the merchant.
    return see_other(_address(checkout, secret, said="left"))
