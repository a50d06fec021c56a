"""Which screen a checkout is at, and what it shows."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.checkout import CARD_TRIES
from cuota.core.consumer import STATES, Address, Profile
from cuota.core.order import Status
from cuota.core.sandbox import TEST_CARDS
from cuota.flows.checkout import Checkout, Problem, known_consumer, preview_plan, propose
from cuota.web.pages import again
from cuota.web.pages.render import Page, page, problem
from cuota.web.pages.results import result, working
from cuota.web.pages.view import (
    cancel_origin,
    common,
    masked,
    payer_of,
    place_of,
    plan_of,
    shipping_lines,
    steps_of,
    told,
    way_back,
)
from cuota.web.service import service_of


def current(checkout: Checkout) -> str:
    """The furthest step that this browser may be at."""
    session = checkout.session
    if not checkout.verified:
        return "code" if session.code_hash else "phone"
    if not session.profile:
        return "details"
    return "shipping" if checkout.express and not session.shipping else "pay"


def reached(checkout: Checkout, step: str) -> bool:
    """Whether everything that comes before a step is done."""
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
    """The page for where the checkout stands; `wanted` an earlier step, `problem` what was wrong with a form."""
    ended = await _ended(request, checkout, secret)
    if ended is not None:
        return ended
    if wanted is None and problem is None and current(checkout) == "phone":
        offered = await again.offered(request, checkout, secret, notice)
        if offered is not None:
            return offered
    step = wanted if wanted in {"phone", "details", "shipping"} or problem else None
    step = step if step and reached(checkout, step) else current(checkout)
    shown = await _context(request, checkout, secret, step)
    shown["notice"] = notice or (problem.notice if problem else _said(request, checkout, said, step))
    if said == "resent" and step == "code":
        shown["notice_tone"] = "done"
    if problem and problem.errors:
        shown["errors"] = problem.errors
    if values:
        shown["values"] = values
    status = status or (400 if problem else 200)
    return page(
        request,
        f"{step}.html",
        shown,
        status=status,
        form_origins=cancel_origin(checkout),
        place=place_of(checkout),
    )


async def _ended(request: Request, checkout: Checkout, secret: str) -> Response | None:
    order = checkout.order
    if order.status is not Status.CREATED:
        return await result(request, checkout, secret)
    if order.charging is not None:
        return working(request, checkout, secret)
    if service_of(request).context.now() >= order.expires_at:
        back = way_back(checkout, success=False, expired=True), f"Back to {checkout.merchant.name}"
        text = "It was not completed in time, and nothing was charged. Start again from the shop."
        heard = told(checkout, "closed", "session_expired")
        place = place_of(checkout)
        return problem(request, 410, "This payment has expired", text, back=back, told=heard, place=place)
    return None


def _said(request: Request, checkout: Checkout, said: str | None, step: str) -> str | None:
    """What happened just before, in fixed words: the address carries only which."""
    order = checkout.order
    if order.card_failures and step == "pay":
        seconds = (order.expires_at - service_of(request).context.now()).total_seconds()
        minutes = max(1, int(seconds // 60))
        tries = CARD_TRIES - order.card_failures
        last = "one more card" if tries == 1 else "another card"
        kept = f"{minutes} minute{'s' if minutes > 1 else ''}"
        # Not only right after the button: the bank's word may have come while the consumer waited or was elsewhere.
        card = "This card" if said == "declined" else "Your last card"
        return f"{card} was declined by its bank. Try {last}: your order is kept for {kept}."
    if said == "resent" and step == "code":
        return f"A new code is on its way to {masked(checkout.session.phone)}."
    return None


async def _context(request: Request, checkout: Checkout, secret: str, step: str) -> Page:
    context = service_of(request).context
    session, currency = checkout.session, checkout.order.currency
    if step == "phone":
        lead = "Four payments, two weeks apart. First, confirm your phone number."
        shown = common(request, checkout, secret, title="Pay in four", lead=lead, step=step)
        return {**shown, "plan": plan_of(preview_plan(context, checkout), currency)}
    if step == "code":
        lead = f"We texted a code to {masked(session.phone)}, to make sure that it is you."
        shown = common(request, checkout, secret, title="Enter your code", lead=lead, step=step)
        return {
            **shown,
            "plan": plan_of(preview_plan(context, checkout), currency),
            "phone_masked": masked(session.phone),
            "sandbox_code": context.rails.message.shown_code,
        }
    if step == "details":
        lead = "So that we know who pays and where the card is billed."
        shown = common(request, checkout, secret, title="Your details", lead=lead, step=step)
        plan = plan_of(preview_plan(context, checkout), currency)
        return {
            **shown,
            "plan": plan,
            "states": sorted(STATES.items(), key=_name),
            "values": await _prefill(request, checkout),
        }
    if step == "shipping":
        lead = f"So that {checkout.merchant.name} knows where to send your order."
        return {
            **common(request, checkout, secret, title="Where to send it", lead=lead, step=step),
            "states": sorted(STATES.items(), key=_name),
            "values": _shipping_values(checkout),
        }
    assert session.profile is not None
    return _pay(request, checkout, secret, session.profile)


def _name(item: tuple[str, str]) -> str:
    return item[1]


def _pay(request: Request, checkout: Checkout, secret: str, profile: Profile) -> Page:
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
        "test_cards": test_cards(context.settings.card_rail),
        "pay_label": f"Pay {today} today",
    }


def test_cards(card_rail: str) -> list[tuple[str, str]]:
    """The sandbox's cards to try, number and meaning; none with a real rail."""
    if card_rail != "sandbox":
        return []
    return [(card.number, card.meaning.capitalize()) for card in TEST_CARDS]


def _shipping_values(checkout: Checkout) -> dict[str, str]:
    """What was typed before, what the shop said, or the billing address: the consumer looks at it either way."""
    session, given = checkout.session, checkout.document.shipping
    assert session.profile is not None
    if session.shipping is not None:
        name, place = session.shipping.name, session.shipping.address
    elif given.get("addressLine1") and checkout.document.consumer.get("phoneNumber") in {None, session.phone}:
        parts = ("addressLine1", "addressLine2", "city", "state", "postcode")
        name, place = session.profile.name, Address(*(given.get(part) or "" for part in parts))
    else:
        name, place = session.profile.name, session.profile.address
    return {
        "recipient": name, "address_line1": place.line1, "address_line2": place.line2, "city": place.city,
        "state": place.state.upper(), "postcode": place.postcode,
    }  # fmt: skip


async def _prefill(request: Request, checkout: Checkout) -> dict[str, str]:
    """What is known: typed here, from an earlier visit, or from the order, if it names no other number."""
    profile = checkout.session.profile
    if profile is None:
        known = await known_consumer(service_of(request).context, checkout)
        profile = known.profile if known else None
    if profile is not None:
        place = profile.address
        return {
            "given_names": profile.given_names, "surname": profile.surname, "email": profile.email,
            "address_line1": place.line1, "address_line2": place.line2, "city": place.city,
            "state": place.state, "postcode": place.postcode,
        }  # fmt: skip
    consumer, place_given = checkout.document.consumer, checkout.document.address
    if consumer.get("phoneNumber") not in {None, checkout.session.phone}:
        return {}
    given = {
        "given_names": consumer.get("givenNames"), "surname": consumer.get("surname"), "email": consumer.get("email"),
        "address_line1": place_given.get("addressLine1"), "address_line2": place_given.get("addressLine2"),
        "city": place_given.get("city"), "state": (place_given.get("state") or "").upper(),
        "postcode": place_given.get("postcode"),
    }  # fmt: skip
    return {name: value for name, value in given.items() if value}
