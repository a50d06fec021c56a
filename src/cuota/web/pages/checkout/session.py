"""The browser's side of a checkout session: a cookie, and a word in every form that only this browser's pages know.

In a frame on the merchant's page browsers keep no cookie of ours: there the secret travels in the address, as `k`.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from uuid import UUID

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from cuota.core.checkout.start import Display
from cuota.core.refusal import Refused
from cuota.db.row_security import narrow
from cuota.flows.checkout.take_step import Checkout, load
from cuota.web.body import MOST_SMALL_BYTES, media_type, read_bytes
from cuota.web.cookies import cookie_of
from cuota.web.ids import guid
from cuota.web.pages.render import problem
from cuota.web.service import service_of

HOURS = 24
DEVICE = "device"
DEVICE_SECONDS = 365 * 24 * 3600
_LONGEST_WORD = 64
FRAMED = "k"


class Stop(Exception):
    """Carries the page to answer instead."""

    def __init__(self, response: Response) -> None:
        super().__init__()
        self.response = response


def base_path(merchant_id: UUID, order_id: UUID) -> str:
    """Where the pages of a checkout live. Neither id opens anything without the session."""
    return f"/checkout/{merchant_id}/{order_id}"


def _cookie_name(request: Request, name: str) -> str:
    # The prefix binds the cookie to this very host; browsers allow it on https only.
    return f"{'__Host-' if service_of(request).settings.secure else ''}{name}"


def kept_secret(request: Request, name: str) -> str | None:
    """The session secret that this browser holds by a name."""
    return cookie_of(request, _cookie_name(request, name))


def keep_secret(request: Request, response: Response, name: str, secret: str, seconds: int) -> None:
    """Hand the browser a session secret; with 0 seconds, it forgets the one it holds."""
    secure = service_of(request).settings.secure
    response.set_cookie(
        _cookie_name(request, name), secret,
        max_age=seconds, path="/", secure=secure, httponly=True, samesite="lax",
    )  # fmt: skip


def secret_of(request: Request, order_id: UUID) -> str | None:
    """The session secret that this browser holds for an order."""
    return kept_secret(request, f"checkout-{order_id}")


def device_of(request: Request) -> str:
    """The word by which this browser is known again, a new one where it has none. It opens nothing."""
    kept = kept_secret(request, DEVICE)
    return kept if kept and len(kept) <= _LONGEST_WORD else secrets.token_urlsafe(32)


def keep_device(request: Request, response: Response, device: str) -> None:
    """Have the browser keep its word for a year from now."""
    keep_secret(request, response, DEVICE, device, DEVICE_SECONDS)


def framed_secret(request: Request) -> str | None:
    """The session secret in the address of a page in a frame."""
    return request.query_params.get(FRAMED)


def page_address(checkout: Checkout, secret: str, **query: str) -> str:
    """The address of the checkout's page for this browser."""
    framed = {FRAMED: secret} if checkout.display is Display.IFRAME else {}
    address = base_path(checkout.order.merchant_id, checkout.order.order_id)
    given = urlencode({**query, **framed})
    return f"{address}?{given}" if given else address


def set_secret(request: Request, response: Response, order_id: UUID, secret: str) -> None:
    """Hand the browser its session secret for an order."""
    keep_secret(request, response, f"checkout-{order_id}", secret, HOURS * 3600)


def in_frame(request: Request) -> bool:
    """Whether the browser shows this in a frame; one that does not say so is believed."""
    return request.headers.get("sec-fetch-dest", "iframe") == "iframe"


def csrf_of(request: Request, secret: str) -> str:
    """The word for this session's forms."""
    return service_of(request).context.vault.hash("csrf", secret).hex()


def see_other(address: str) -> Response:
    """Post-redirect-get."""
    return RedirectResponse(address, 303, {"Cache-Control": "no-store"})


def ids_of(request: Request) -> tuple[UUID, UUID]:
    """Merchant and order of the path; raises Stop with the page for an unknown link."""
    try:
        return guid(request.path_params["merchant_id"]), guid(request.path_params["order_id"])
    except Refused:
        raise Stop(unknown(request)) from None


def unknown(request: Request) -> Response:
    """A link that leads nowhere: truncated, forged, or of another environment."""
    text = "Perhaps it was cut off when it was copied. No payment was made."
    return problem(request, 404, "This payment link is not valid", text)


def start_again(request: Request, text: str) -> Response:
    """The browser has no such checkout, or has it no more: a page that tells nothing of the order."""
    return problem(request, 404, "Start again from the shop", text)


async def checkout_of(request: Request) -> tuple[Checkout, str]:
    """The checkout of this browser and its secret; raises Stop with a page that tells nothing of the order."""
    merchant_id, order_id = ids_of(request)
    framed = framed_secret(request)
    secret = framed or secret_of(request, order_id)
    context = service_of(request).context
    narrow(merchant_id)
    found = await load(context, merchant_id, order_id, secret) if secret else None
    # A secret in an address is good in a frame only: such an address may be found lying about.
    if found is not None and (found.display is Display.IFRAME) != (framed is not None and in_frame(request)):
        found = None
    if found is None or secret is None:
        text = "This page belongs to another browser, or was open for too long. Open the payment again from the shop."
        raise Stop(start_again(request, text))
    request.scope["merchant_id"] = merchant_id
    return found, secret


def is_foreign(request: Request) -> bool:
    """Whether the browser says that another site's page sent this form.

    `Origin: null` says nothing either way: browsers send it with our own forms, whose pages have the referrer policy
    `no-referrer`, and so do sandboxed frames of others. `Sec-Fetch-Site` tells those apart, and the form's word always does.
    """
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        return True
    public = urlsplit(service_of(request).settings.public_url)
    own = {_bare(f"{public.scheme}://{public.netloc}")}
    own |= {f"{scheme}://{_host(request)}" for scheme in ("http", "https")}
    return any(_bare(origin) not in own and origin != "null" for origin in request.headers.getlist("origin"))


def _host(request: Request) -> str:
    """The host and port that the browser asked; no page can make another's browser say another."""
    return request.headers.get("host", "").lower().removesuffix(":443").removesuffix(":80")


def _bare(origin: str) -> str:
    """As browsers write an origin: lower case, without the port that its scheme has anyway."""
    scheme, _, host = origin.lower().partition("://")
    return f"{scheme}://{host.removesuffix({'https': ':443', 'http': ':80'}.get(scheme, ':'))}"


async def form_of(request: Request, secret: str, place: str = "checkout page") -> dict[str, str]:
    """The fields of a form that this browser's own page sent; raises Stop for any other. `place` names the page."""
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
    if is_foreign(request) or not hmac.compare_digest(
        values.get("csrf", "").encode(), csrf_of(request, secret).encode()
    ):
        text = f"This form did not come from your own {place}. Nothing was changed. Open the page again."
        raise Stop(problem(request, 403, "This form cannot be used", text))
    return values
