"""The pages for entering the owners of a business."""

from __future__ import annotations

from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.onboarding.owner import Owner, OwnerDetails, read_owner
from cuota.core.onboarding.problem import BadOnboarding
from cuota.core.operator.mask import masked_name
from cuota.core.payout.percent import percent_text
from cuota.core.refusal import Refused
from cuota.flows.context import Context
from cuota.flows.onboarding.change_checklist import Hand
from cuota.flows.onboarding.change_owners import add_owner, change_owner, remove_owner
from cuota.flows.onboarding.read_checklist import read_checklist
from cuota.web.ids import guid
from cuota.web.pages.checkout.session import Stop, see_other
from cuota.web.pages.desk.onboarding.doing import done
from cuota.web.pages.desk.onboarding.place import OnboardingPlace
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

_LEAD = "Everybody who owns 25 % or more, and at least one person who controls the business."
_OLD_FORM = "This form is too old. Open the page again. Nothing was changed."


def owner_row(each: Owner, root: str, *, theirs: bool) -> PageContext:
    """Return the values of one owner. The operator's people see a masked name and no date of birth."""
    details = each.details
    return {
        "name": details.name if theirs else masked_name(details.name),
        "born": details.born_text if theirs else "",
        "share": f"{percent_text(details.share)} %",
        "controlling": details.controlling,
        "address": f"{root}/owners/{each.owner_id}",
    }


async def listed(request: Request, place: OnboardingPlace) -> Response:
    """List the owners, with a form to add one."""
    return await _page(request, place)


async def _page(request: Request, place: OnboardingPlace, errors: dict[str, str] | None = None) -> Response:
    context = service_of(request).context
    found = (await read_checklist(context, place.merchant_id)).facts.owners
    rows = [owner_row(each, place.root, theirs=place.theirs) for each in found]
    owned = percent_text(sum(each.details.share for each in found))
    shown = place.shown(
        "Owners", _LEAD, {}, errors, owners=rows, owned=owned, once=str(context.new_id()), theirs=place.theirs
    )
    return page(request, "onboarding/owners.html", shown, status=400 if errors else 200)


async def add(request: Request, place: OnboardingPlace) -> Response:
    """Add an owner."""
    context = service_of(request).context

    async def change(hand: Hand) -> None:
        try:
            owner_id = guid(place.form.get("once", ""))
        except Refused:
            raise BadOnboarding.of(_OLD_FORM) from None
        details = read_owner(place.form, context.now().date())
        await add_owner(context, place.merchant_id, hand, owner_id, details)

    if errors := await done(place, change):
        return await _page(request, place, errors)
    return see_other(f"{place.root}/owners?said=saved")


async def _find(context: Context, request: Request, place: OnboardingPlace) -> Owner:
    """Return the owner in the path. Raises Stop with the 404 page."""
    owner_id: UUID = place.id_in_path(request, "owner_id")
    found = (await read_checklist(context, place.merchant_id)).facts.owners
    owner = next((each for each in found if each.owner_id == owner_id), None)
    if owner is None:
        raise Stop(place.missing())
    return owner


async def one(request: Request, place: OnboardingPlace) -> Response:
    """Show the form of one owner."""
    found = await _find(service_of(request).context, request, place)
    return _one_page(request, place, found)


def _one_page(
    request: Request, place: OnboardingPlace, found: Owner, errors: dict[str, str] | None = None
) -> Response:
    row = owner_row(found, place.root, theirs=place.theirs)
    values = {
        "share": percent_text(found.details.share), "controlling": "yes" if found.details.controlling else "",
        # The form of an operator is empty here, so that an unchanged name need not be shown.
        **({"name": found.details.name, "born": found.details.born_text} if place.theirs else {}),
    }  # fmt: skip
    shown = place.shown(
        str(row["name"]), "", values, errors, one=row, seen=str(found.version), theirs=place.theirs
    )
    if errors:
        # A browser sends nothing for an unchecked box.
        shown["values"] = {**values, "controlling": "", **place.form}
    return page(request, "onboarding/owner.html", shown, status=400 if errors else 200)


async def change_one(request: Request, place: OnboardingPlace) -> Response:
    """Change the data of an owner, or remove the owner."""
    context = service_of(request).context
    found = await _find(context, request, place)

    async def change(hand: Hand) -> None:
        if place.form.get("do") == "remove":
            await remove_owner(context, place.merchant_id, hand, found.owner_id)
            return
        seen = place.form.get("seen", "")
        version = int(seen) if seen.isascii() and seen.isdigit() and len(seen) < 10 else -1
        details = read_owner(_completed(place, found.details), context.now().date())
        await change_owner(context, place.merchant_id, hand, found.owner_id, details, version)

    if errors := await done(place, change):
        return _one_page(request, place, found, errors)
    removed = place.form.get("do") == "remove"
    return see_other(f"{place.root}/owners?said={'gone' if removed else 'saved'}")


def _completed(place: OnboardingPlace, known: OwnerDetails) -> dict[str, str]:
    """Return the form. In an operator's form, empty fields keep their stored values."""
    if place.theirs:
        return place.form
    kept = {"name": known.name, "born": known.born.isoformat()}
    return {**place.form, **{name: place.form.get(name) or text for name, text in kept.items()}}
