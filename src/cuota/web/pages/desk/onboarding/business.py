"""The page for entering a business."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.onboarding.business import BUSINESS_WORDS, Business, read_business
from cuota.flows.context import Context
from cuota.flows.onboarding.change_business import change_business
from cuota.flows.onboarding.change_checklist import Hand
from cuota.flows.onboarding.read_checklist import read_checklist
from cuota.web.pages.checkout.session import see_other
from cuota.web.pages.desk.onboarding.doing import done
from cuota.web.pages.desk.onboarding.place import OnboardingPlace
from cuota.web.pages.render import page
from cuota.web.service import service_of

_LEAD = "Enter the business as it is registered with the state and the tax office."


async def show(request: Request, place: OnboardingPlace) -> Response:
    """Show the form with the stored data."""
    return await _page(request, place)


async def _page(request: Request, place: OnboardingPlace, errors: dict[str, str] | None = None) -> Response:
    facts = (await read_checklist(service_of(request).context, place.merchant_id)).facts
    values = _values(facts.business) if facts.business else {}
    # If another person has changed the business, the next attempt is based on the new data, which the person now sees.
    shown = place.shown("Business", _LEAD, values, errors, seen=str(facts.version), types=_types())
    return page(request, "onboarding/business.html", shown, status=400 if errors else 200)


def _types() -> list[dict[str, str]]:
    return [{"value": "", "label": "Choose"}] + [
        {"value": each.value, "label": label} for each, label in BUSINESS_WORDS.items()
    ]


def _values(business: Business) -> dict[str, str]:
    at = business.address
    return {
        "legal_name": business.legal_name, "trading_name": business.trading_name, "ein": business.ein,
        "type": business.type.value, "website": business.website, "sells": business.sells,
        "address_line1": at.line1, "address_line2": at.line2, "city": at.city, "state": at.state, "postcode": at.postcode,
    }  # fmt: skip


async def save(request: Request, place: OnboardingPlace) -> Response:
    """Save the business. If a field is wrong, the page shows all errors and keeps all typed values."""
    context: Context = service_of(request).context
    seen = place.form.get("seen", "")

    async def change(hand: Hand) -> None:
        business = read_business(place.form)
        version = int(seen) if seen.isascii() and seen.isdigit() and len(seen) < 10 else -1
        await change_business(context, place.merchant_id, hand, business, version)

    if errors := await done(place, change):
        return await _page(request, place, errors)
    return see_other(f"{place.root}?said=saved")
