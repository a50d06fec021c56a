"""The checkout session in the browser: a cookie with the session secret, and a CSRF token in every form.

In a frame on the merchant's page, browsers do not keep Cuota's cookies. There the session secret is the query parameter `k`
of the pages' addresses.
"""

from __future__ import annotations

import hmac
import re
import secrets
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from uuid import UUID

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from cuota.core.checkout.start import Display
from cuota.core.refusal import Refused
from cuota.db.checkout.loaded import Checkout
from cuota.db.row_security import narrow
from cuota.flows.checkout.take_step import load
from cuota.web.body import MOST_SMALL_BYTES, media_type, read_bytes
from cuota.web.cookies import cookie_of, names_of
from cuota.web.ids import guid
from cuota.web.pages.render import problem
from cuota.web.service import service_of

HOURS = 24
# A browser that opened more checkouts in these hours would send heads that are too large for the server.
MOST_CHECKOUTS = 20
# A proxy accepts only a few kilobytes of head. The next checkout deletes the rest.
_DELETED_AT_ONCE = 10
DEVICE = "device"
DEVICE_SECONDS = 365 * 24 * 3600
_LONGEST_WORD = 64
FRAMED = "k"
_NAMED = re.compile(r"checkout-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


class Stop(Exception):
    """Ends a handler early. `response` is the page to answer with."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


def base_path(merchant_id: UUID, order_id: UUID) -> str:
    """Return the path of a checkout's pages. The two ids alone give no access, because access needs the session secret."""
    return f"/checkout/{merchant_id}/{order_id}"


def _cookie_name(request: Request, name: str) -> str:
    # The prefix binds the cookie to this exact host. Browsers allow the prefix only with https.
    return f"{'__Host-' if service_of(request).settings.secure else ''}{name}"


def kept_secret(request: Request, name: str) -> str | None:
    """Return the secret in the cookie of this name, or None."""
    return cookie_of(request, _cookie_name(request, name))


def keep_secret(request: Request, response: Response, name: str, secret: str, seconds: int) -> None:
    """Set a cookie with a secret for this many seconds. With 0 seconds, delete the cookie."""
    secure = service_of(request).settings.secure
    response.set_cookie(
        _cookie_name(request, name), secret,
        max_age=seconds, path="/", secure=secure, httponly=True, samesite="lax",
    )  # fmt: skip


def secret_of(request: Request, order_id: UUID) -> str | None:
    """Return this browser's session secret for an order, or None."""
    return kept_secret(request, f"checkout-{order_id}")


def device_of(request: Request) -> str:
    """Return this browser's device id, or a new one. The risk decision uses the id; it gives no access."""
    device = kept_secret(request, DEVICE)
    return device if device and len(device) <= _LONGEST_WORD else secrets.token_urlsafe(32)


def keep_device(request: Request, response: Response, device: str) -> None:
    """Set the cookie with the browser's device id, for a year from now."""
    keep_secret(request, response, DEVICE, device, DEVICE_SECONDS)


def framed_secret(request: Request) -> str | None:
    """Return the session secret in the address of a page in a frame, or None."""
    return request.query_params.get(FRAMED)


def page_address(checkout: Checkout, secret: str, **query: str) -> str:
    """Return the address of the checkout's page for this browser, with these query parameters."""
    framed = {FRAMED: secret} if checkout.display is Display.IFRAME else {}
    address = base_path(checkout.order.merchant_id, checkout.order.order_id)
    encoded = urlencode({**query, **framed})
    return f"{address}?{encoded}" if encoded else address


def set_secret(request: Request, response: Response, order_id: UUID, secret: str) -> None:
    """Set the cookie with the session secret for an order, and delete the oldest of too many such cookies."""
    name = f"checkout-{order_id}"
    for old in _too_many(request, name):
        keep_secret(request, response, old, "", 0)
    keep_secret(request, response, name, secret, HOURS * 3600)


def _too_many(request: Request, name: str) -> list[str]:
    """Return the names of the cookies to delete, so that the newest checkouts and the one of this name are left."""
    prefix = _cookie_name(request, "")
    given = {each.removeprefix(prefix) for each in names_of(request) if each.startswith(prefix)}
    # The ids of orders are ordered by time.
    others = sorted(each for each in given if _NAMED.fullmatch(each) and each != name)
    return others[: 1 - MOST_CHECKOUTS][:_DELETED_AT_ONCE]


def in_frame(request: Request) -> bool:
    """Return whether the browser shows this page in a frame.

    The result is True if the browser sends no Sec-Fetch-Dest header.
    """
    return request.headers.get("sec-fetch-dest", "iframe") == "iframe"


def csrf_of(request: Request, secret: str) -> str:
    """Return the CSRF token for the forms of this session."""
    return service_of(request).context.vault.hash("csrf", secret).hex()


def see_other(address: str) -> Response:
    """Return a 303 redirect, which the browser follows with GET. This is the answer to every form (post-redirect-get)."""
    return RedirectResponse(address, 303, {"Cache-Control": "no-store"})


def ids_of(request: Request) -> tuple[UUID, UUID]:
    """Return the merchant id and the order id in the path. Raises Stop with the page for an invalid link."""
    try:
        return guid(request.path_params["merchant_id"]), guid(request.path_params["order_id"])
    except Refused:
        raise Stop(unknown(request)) from None


def unknown(request: Request) -> Response:
    """Return the page for an invalid link: truncated, forged, or from another environment."""
    text = "The link may have been cut off when it was copied. No payment was made."
    return problem(request, 404, "This payment link is not valid", text)


def start_again(request: Request, text: str) -> Response:
    """Return the page for a browser that has no session, or no longer has one. It shows nothing about the order."""
    return problem(request, 404, "Start again from the shop", text)


async def checkout_form(request: Request) -> tuple[Checkout, str, dict[str, str]]:
    """Return this browser's checkout, its session secret, and the fields of the form. Raises Stop.

    The checkout is read after the form, which may arrive slowly: meanwhile the session may have ended, or the merchant may have been
    suspended.
    """
    _, order_id = ids_of(request)
    secret = framed_secret(request) or secret_of(request, order_id)
    form, foreign = await own_form(request, secret, "checkout page") if secret else ({}, None)
    checkout, used = await checkout_of(request)
    if foreign is not None:
        raise Stop(foreign)
    return checkout, used, form


async def checkout_of(request: Request) -> tuple[Checkout, str]:
    """Return this browser's checkout and its session secret. Raises Stop with `start_again` if there is no session."""
    merchant_id, order_id = ids_of(request)
    framed = framed_secret(request)
    secret = framed or secret_of(request, order_id)
    context = service_of(request).context
    narrow(merchant_id)
    found = await load(context, merchant_id, order_id, secret) if secret else None
    # A secret in an address is valid only inside a frame, because addresses can leak (history, logs, screenshots).
    if found is not None and (found.display is Display.IFRAME) != (framed is not None and in_frame(request)):
        found = None
    if found is None or secret is None:
        text = (
            "This page belongs to another browser, or was open for too long. Open the payment again from the shop."
            " If you then see this page again, your browser blocks cookies: allow them for this site."
        )
        raise Stop(start_again(request, text))
    request.scope["merchant_id"] = merchant_id
    return found, secret


def is_foreign(request: Request) -> bool:
    """Return whether the browser reports that another site's page sent this form.

    `Origin: null` proves nothing. Browsers send it with Cuota's own forms, whose pages have the referrer policy
    `no-referrer`, and also with forms in sandboxed frames of other sites. `Sec-Fetch-Site` distinguishes the two cases.
    The CSRF token always does.
    """
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        return True
    public = urlsplit(service_of(request).settings.public_url)
    own = {_bare(f"{public.scheme}://{public.netloc}")}
    own |= {f"{scheme}://{_host(request)}" for scheme in ("http", "https")}
    return any(_bare(origin) not in own and origin != "null" for origin in request.headers.getlist("origin"))


def _host(request: Request) -> str:
    """Return the host and port to which the browser sent the request. A page of another site cannot fake this header."""
    return request.headers.get("host", "").lower().removesuffix(":443").removesuffix(":80")


def _bare(origin: str) -> str:
    """Normalize an origin as browsers do: lower case, and without the default port of its scheme."""
    scheme, _, host = origin.lower().partition("://")
    return f"{scheme}://{host.removesuffix({'https': ':443', 'http': ':80'}.get(scheme, ':'))}"


async def form_of(request: Request, secret: str, place: str) -> dict[str, str]:
    """Return the fields of a form, after checking that this browser's own page sent the form.

    Raises Stop with an error page for any other form. `place` names the expected page in that error.
    """
    kind, _ = media_type(request)
    body = await read_bytes(request, MOST_SMALL_BYTES)
    fields: dict[str, Any] = {}
    if kind == "application/x-www-form-urlencoded":
        try:
            fields = parse_qs(
                body.decode("ascii"), keep_blank_values=True, max_num_fields=50, errors="strict"
            )
        except ValueError:
            fields = {}
    values = {name: texts[-1].strip() for name, texts in fields.items() if "\0" not in texts[-1]}
    require_own(request, secret, place, values)
    return values


async def own_form(request: Request, secret: str, place: str) -> tuple[dict[str, str], Response | None]:
    """Return the fields of a form as `form_of` does, and no fields for a request without a form.

    The second value is the error page for a form that another page sent, or None.
    """
    if request.method != "POST":
        return {}, None
    try:
        return await form_of(request, secret, place), None
    except Stop as stop:
        return {}, stop.response


def require_own(request: Request, secret: str, place: str, values: dict[str, str]) -> None:
    """Raise Stop unless this browser's own page sent the form with these fields."""
    if is_foreign(request) or not hmac.compare_digest(
        values.get("csrf", "").encode(), csrf_of(request, secret).encode()
    ):
        text = f"This form did not come from your own {place}. Nothing was changed. Open the page again."
        raise Stop(problem(request, 403, "This form cannot be used", text))
