"""The settings of a merchant in its dashboard: order amounts, capture, reading requests, brand, and the address for notices."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.desk.role import Action
from cuota.core.logo import MOST_LOGO_BYTES
from cuota.core.merchant import BodyProfile, Merchant
from cuota.db.merchant import merchants
from cuota.flows.context import Context
from cuota.flows.desk.bad_change import BadChange
from cuota.flows.desk.record import Cause
from cuota.flows.merchant import change_settings as flows
from cuota.web.addresses import BadAddress, read_address
from cuota.web.pages.checkout.session import see_other
from cuota.web.pages.desk.changes import proved_cause
from cuota.web.pages.desk.view import common, failed
from cuota.web.pages.desk.visit import PATH, Desk, allowed, allowed_with_files
from cuota.web.pages.logos import logo_address
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

SETTINGS = f"{PATH}/settings"
_PROFILES = {BodyProfile.STRICT: "Strictly", BodyProfile.LENIENT: "Leniently"}
_CAPTURES = {"approved": "When it is approved", "later": "When you capture it"}


@allowed(Action.READ_SETTINGS)
async def show(request: Request, desk: Desk) -> Response:
    """Show the settings."""
    return await _page(request, desk)


async def _page(request: Request, desk: Desk, errors: dict[str, str] | None = None) -> Response:
    found = await merchants.read(service_of(request).context.pool, desk.merchant_id)
    assert found is not None
    own = found.own
    shown: PageContext = {
        **common(request, desk, "Settings", here=SETTINGS),
        "address": SETTINGS,
        "name": found.name,
        "limits": [money.shown(each, found.currency) for each in (found.minimum, found.maximum)],
        "in_force": [money.shown(each, found.currency) for each in (found.lowest, found.highest)],
        "ignored": _ignored(found),
        "captures": [{"value": value, "label": label} for value, label in _CAPTURES.items()],
        "profiles": [{"value": each.value, "label": label} for each, label in _PROFILES.items()],
        "logo": logo_address(found.merchant_id, own.logo) if own.logo else None,
        "logo_kib": MOST_LOGO_BYTES // 1024,
        "may_change": desk.may(Action.CHANGE_SETTINGS),
        "asks_code": not desk.fresh,
        "values": {
            "minimum": money.text_of(own.minimum) if own.minimum is not None else "",
            "maximum": money.text_of(own.maximum) if own.maximum is not None else "",
            "capture": "later" if found.defer_funds_capture else "approved",
            "profile": found.profile.value,
            "display_name": own.display_name or "",
            "support_email": own.support_email or "",
            "support_url": own.support_url or "",
            "notify_email": own.notify_email or "",
        },
    }
    if errors:
        return page(request, "desk/settings.html", failed(shown, errors, desk.form), status=400)
    return page(request, "desk/settings.html", shown)


def _ignored(found: Merchant) -> list[str]:
    """Return the merchant's own limits that do not count, because the operator's limits no longer allow them."""
    own = ((found.own.minimum, found.lowest), (found.own.maximum, found.highest))
    return [money.shown(mine, found.currency) for mine, used in own if mine is not None and mine != used]


@allowed(Action.READ_SETTINGS, Action.CHANGE_SETTINGS)
async def change(request: Request, desk: Desk) -> Response:
    """Change one group of settings. Each change needs a reason and a fresh code."""
    act = _ACTS.get(desk.form.get("do", ""))
    try:
        if act is None:
            raise BadChange("Choose what to change.")  # noqa: TRY301 - one place answers every refusal
        await act(request, desk, await proved_cause(request, desk))
    except BadChange as bad:
        return await _page(request, desk, {bad.name: str(bad)})
    return see_other(f"{SETTINGS}?said=settings")


@allowed_with_files(Action.READ_SETTINGS, Action.CHANGE_SETTINGS)
async def change_logo(request: Request, desk: Desk) -> Response:
    """Set or remove the logo."""
    try:
        cause = await proved_cause(request, desk)
        if desk.form.get("do") == "remove-logo":
            await flows.remove_logo(_context(request), desk.merchant_id, cause)
        else:
            content = desk.files[0][1] if desk.files else b""
            await flows.set_logo(_context(request), desk.merchant_id, content, cause)
    except BadChange as bad:
        return await _page(request, desk, {bad.name: str(bad)})
    return see_other(f"{SETTINGS}?said=settings")


def _context(request: Request) -> Context:
    return service_of(request).context


def _cents(desk: Desk, name: str) -> int | None:
    """Return the amount in a field, in cents; None if it is empty. Raises BadChange."""
    typed = desk.form.get(name, "").strip()
    if not typed:
        return None
    try:
        return money.typed_cents(typed)
    except money.BadAmount:
        raise BadChange("Enter an amount such as 100.00, or leave the field empty.", name) from None


async def _amounts(request: Request, desk: Desk, cause: Cause) -> None:
    low, high = _cents(desk, "minimum"), _cents(desk, "maximum")
    await flows.set_amounts(_context(request), desk.merchant_id, low, high, cause)


async def _capture(request: Request, desk: Desk, cause: Cause) -> None:
    asked = desk.form.get("capture", "")
    if asked not in _CAPTURES:
        raise BadChange("Choose when an order is captured.", "capture")
    await flows.set_capture(_context(request), desk.merchant_id, cause, defer=asked == "later")


async def _profile(request: Request, desk: Desk, cause: Cause) -> None:
    asked = desk.form.get("profile", "")
    if asked not in set(BodyProfile):
        raise BadChange("Choose how requests are read.", "profile")
    await flows.set_profile(_context(request), desk.merchant_id, BodyProfile(asked), cause)


async def _brand(request: Request, desk: Desk, cause: Cause) -> None:
    form, url = desk.form, None
    if typed := form.get("support_url", ""):
        try:
            url = read_address(typed, https_only=not service_of(request).settings.sandbox)
        except BadAddress as bad:
            raise BadChange(f"The address {bad}.", "support_url") from None
    given = form.get("display_name", ""), form.get("support_email", ""), url
    await flows.set_brand(_context(request), desk.merchant_id, *given, cause)


async def _notices(request: Request, desk: Desk, cause: Cause) -> None:
    await flows.set_notify_email(
        _context(request), desk.merchant_id, desk.form.get("notify_email", ""), cause
    )


_ACTS: dict[str, Callable[[Request, Desk, Cause], Awaitable[None]]] = {
    "amounts": _amounts,
    "capture": _capture,
    "profile": _profile,
    "brand": _brand,
    "notices": _notices,
}
