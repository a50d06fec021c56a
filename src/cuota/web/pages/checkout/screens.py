"""Decides which page of a checkout to show, and renders it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.checkout.ending import CARD_TRIES
from cuota.core.consumer import Profile
from cuota.core.merchant import may_sell
from cuota.core.order.order import Status
from cuota.core.risk.review import ReviewState
from cuota.db.checkout.loaded import Checkout
from cuota.flows.checkout.take_step import Problem, consumer_day, details_hash, preview_plan, propose
from cuota.web.pages.card_fields import card_form, policy_of
from cuota.web.pages.checkout import again
from cuota.web.pages.checkout.charging import charging
from cuota.web.pages.checkout.prefill import details_values, order_phone, phone_values, shipping_values
from cuota.web.pages.checkout.results import result
from cuota.web.pages.checkout.reviewing import answer_notice, reviewing
from cuota.web.pages.checkout.view import (
    common,
    expired_words,
    masked,
    payer_of,
    place_of,
    plan_of,
    shipping_lines,
    steps_of,
    told,
    way_back,
)
from cuota.web.pages.render import PageContext, page, problem
from cuota.web.service import service_of

NOT_AGREED = "Read the agreement and accept it to go on."


def current(checkout: Checkout) -> str:
    """Return the furthest step that this browser has reached."""
    session = checkout.session
    if not checkout.verified:
        return "code" if session.code_hash else "phone"
    if not session.profile:
        return "details"
    return "shipping" if checkout.express and not session.shipping else "pay"


def reached(checkout: Checkout, step: str) -> bool:
    """Return whether all steps before a step are done."""
    steps = steps_of(checkout)
    return step in steps and steps.index(step) <= steps.index(current(checkout))


async def screen(
    request: Request,
    checkout: Checkout,
    secret: str,
    wanted: str | None = None,
    *,
    problem: Problem | None = None,
    values: dict[str, str] | None = None,
    status: int | None = None,
    notice: str | None = None,
    said: str | None = None,
) -> Response:
    """Return the page for the current step or the result of the checkout.

    `wanted` is an earlier step to show instead. `problem` has the errors of a form, and `values` its typed values.
    `notice` is a text to show at the top. `said` is a key from the address; it selects a text about the last action.
    """
    ended = await _ended(request, checkout, secret, said)
    if ended is not None:
        return ended
    if wanted is None and problem is None and current(checkout) == "phone":
        offered = await again.offered(request, checkout, secret, notice)
        if offered is not None:
            return offered
    step = wanted if wanted and reached(checkout, wanted) else current(checkout)
    shown = await _context(request, checkout, secret, step)
    shown["notice"] = notice or (problem.notice if problem else _said(request, checkout, said, step))
    if said == "resent" and step == "code":
        shown["notice_tone"] = "done"
    elif shown["notice"] is None and (answered := answer_notice(checkout)) is not None:
        shown |= {"notice": answered, "notice_tone": "calm"}
    if problem and problem.errors:
        shown["errors"] = problem.errors
        if step == "phone":
            shown["known_phone"] = None  # show the field with the typed number, so that it can be corrected
    if values:
        shown["values"] = values
    status = status or (400 if problem else 200)
    return page(
        request,
        f"{step}.html",
        shown,
        status=status,
        place=place_of(checkout),
        allowed=policy_of(service_of(request).context.rails.card.fields()) if step == "pay" else None,
    )


async def _ended(request: Request, checkout: Checkout, secret: str, said: str | None) -> Response | None:
    order = checkout.order
    if order.status is not Status.CREATED:
        response = await result(request, checkout, secret, leaving=said == "left")
        await again.remember_after(request, response, checkout)
        return response
    if order.review is ReviewState.WAITING:
        return reviewing(request, checkout, secret)
    if order.charging is not None:
        return await charging(request, checkout, secret, said)
    if service_of(request).context.now() >= order.expires_at:
        back = way_back(checkout, success=False, expired=True), f"Back to {checkout.merchant.shown_name}"
        text = f"{expired_words(order)} Your cart is still in the shop: start again from there."
        message = told(checkout, "closed", "session_expired")
        place = place_of(checkout)
        return problem(request, 410, "This checkout expired", text, back=back, told=message, place=place)
    return _stopped(request, checkout) if is_stopped(request, checkout) else None


def is_stopped(request: Request, checkout: Checkout) -> bool:
    """Return whether the checkout must stop because its merchant may make no new orders, for example after a suspension."""
    order, sandbox = checkout.order, service_of(request).settings.sandbox
    waits = order.status is Status.CREATED and order.charging is None
    return waits and not may_sell(checkout.merchant, sandbox=sandbox)


def _stopped(request: Request, checkout: Checkout) -> Response:
    shop = checkout.merchant.shown_name
    back = way_back(checkout, success=False), f"Back to {shop}"
    text = f"{shop} cannot take payments in installments right now. Nothing was charged. Choose another way to pay in the shop."
    # The merchant's page must not open the same checkout again automatically.
    message, place = told(checkout, "closed", "closed_by_merchant"), place_of(checkout)
    headline = "This payment cannot continue"
    return problem(request, 403, headline, text, back=back, told=message, place=place)


def _said(request: Request, checkout: Checkout, said: str | None, step: str) -> str | None:
    """Return the text about the last action. `said` in the address only selects one of these fixed texts."""
    order = checkout.order
    if order.card_failures and step == "pay" and checkout.is_payer:
        seconds = (order.expires_at - service_of(request).context.now()).total_seconds()
        minutes = max(1, int(seconds // 60))
        tries = CARD_TRIES - order.card_failures
        last = "one more card" if tries == 1 else "another card"
        time_left = f"{minutes} minute{'s' if minutes > 1 else ''}"
        if said == "gave-up":
            return f"That payment was canceled, and nothing was charged. Use {last}: your order is kept for {time_left}."
        # Also show this later: the bank may have declined while the consumer waited or was on another page.
        card = "This card" if said == "declined" else "Your last card"
        return f"{card} was declined by its bank. Try {last}: your order is kept for {time_left}."
    if said == "resent" and step == "code":
        return f"A new code is on its way to {masked(checkout.session.phone)}."
    return None


async def _context(request: Request, checkout: Checkout, secret: str, step: str) -> PageContext:
    context = service_of(request).context
    session, currency = checkout.session, checkout.order.currency
    if step == "phone":
        lead = "Four payments, two weeks apart. First, confirm your phone number."
        shown = common(request, checkout, secret, title="Pay in four", lead=lead, step=step)
        # Anybody with the link can see this page, so it shows only the last two digits of the order's phone number.
        other = request.query_params.get("other") or phone_values(checkout)
        order_number = None if other else order_phone(checkout)
        return {
            **shown,
            "plan": plan_of(preview_plan(context, checkout), currency),
            "known_phone": order_number[-2:] if order_number else None,
            "confirmed": checkout.verified and session.phone == order_number,
            "values": phone_values(checkout),
        }
    if step == "code" and checkout.verified:
        lead = f"You have entered the code for {masked(session.phone)}."
        shown = common(request, checkout, secret, title="Your number is confirmed", lead=lead, step=step)
        return {**shown, "confirmed": True}
    if step == "code":
        lead = f"We texted a code to {masked(session.phone)}, to make sure that it is you."
        shown = common(request, checkout, secret, title="Enter your code", lead=lead, step=step)
        return {
            **shown,
            "plan": plan_of(preview_plan(context, checkout), currency),
            "confirmed": False,
            "phone_masked": masked(session.phone),
            "sandbox_code": context.rails.message.shown_code,
        }
    if step == "details":
        lead = "We need to know who pays and where the card is billed."
        shown = common(request, checkout, secret, title="Your details", lead=lead, step=step)
        plan = plan_of(preview_plan(context, checkout), currency)
        return {
            **shown,
            "plan": plan,
            "values": await details_values(request, checkout),
        }
    if step == "shipping":
        lead = f"{checkout.merchant.shown_name} needs to know where to send your order."
        return {
            **common(request, checkout, secret, title="Where to send your order", lead=lead, step=step),
            "values": shipping_values(checkout),
        }
    assert session.profile is not None
    return _pay(request, checkout, secret, session.profile)


def _pay(request: Request, checkout: Checkout, secret: str, profile: Profile) -> PageContext:
    context = service_of(request).context
    proposed = propose(context, checkout, profile)
    today = money.shown(proposed.plan[0].total, checkout.order.currency)
    lead = "You pay the first installment now, the rest from the same card."
    return {
        **common(request, checkout, secret, title="Review and pay", lead=lead, step="pay"),
        "plan": plan_of(proposed.plan, checkout.order.currency),
        "payer": payer_of(profile),
        "shipping": shipping_lines(checkout.session.shipping) if checkout.express else None,
        "agreement": {"text": list(proposed.agreement.paragraphs), "hash": proposed.agreement.hash},
        "details_hash": details_hash(checkout),
        "card": card_form(context, proposed.plan[0].total),
        "month": f"{consumer_day(context, checkout):%Y-%m}",
        "agree_words": NOT_AGREED,
        "pay_label": f"Pay {today} today",
    }
