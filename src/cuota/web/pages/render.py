"""Rendering pages: Jinja2 with autoescape, and the headers that keep a page to itself."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from cuota.core.checkout import card
from cuota.core.refusal import Refused
from cuota.web.pages.assets import BRAND_CSS, LOGO
from cuota.web.problem import headers_of, status_of
from cuota.web.service import service_of

DEFAULT_ACCENT = "#0B6E63"
PageContext = dict[str, object]
# What the script of a card form says, in the server's own words.
CARD_WORDS = {
    "empty": card.NO_NUMBER,
    "number": card.WRONG_NUMBER,
    "expiry": card.WRONG_EXPIRY,
    "expired": card.EXPIRED,
    "cvc": card.wrong_cvc(None),
    "rules": json.dumps(card.card_rules()),
}


@lru_cache(maxsize=2)
def _templates(*, framed: bool) -> jinja2.Environment:
    folder = Path(__file__).resolve().parent / "templates"
    loader = jinja2.FileSystemLoader(folder)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, auto_reload=False
    )
    # Browsers refuse the attribute in another site's frame, aloud; there page.js moves the focus.
    environment.globals["autofocus"] = "data-autofocus" if framed else "autofocus"
    environment.globals["card_words"] = CARD_WORDS
    return environment


def brand(request: Request) -> PageContext:
    """The operator's name, logo and color."""
    settings = service_of(request).settings
    return {
        "name": settings.brand_name,
        "logo": f"/static/{LOGO}" if settings.brand_logo else None,
        "stylesheet": f"/static/{BRAND_CSS}" if settings.brand_accent != DEFAULT_ACCENT else None,
    }


def links(request: Request) -> list[PageContext]:
    """The operator's own pages, at the foot of every page."""
    settings = service_of(request).settings
    named = (("Help", settings.help_url), ("Privacy", settings.privacy_url), ("Terms", settings.terms_url))
    return [{"label": label, "url": url} for label, url in named if url]


@dataclass(frozen=True, slots=True)
class FramePolicy:
    """Where a page may be shown: in a frame of these origins, or in a window that another page opened and talks to."""

    ancestors: tuple[str, ...] = ()
    opened: bool = False


ALONE = FramePolicy()


def page(
    request: Request,
    template: str,
    context: PageContext,
    *,
    status: int = 200,
    place: FramePolicy = ALONE,
) -> Response:
    """Render; a form may lead to this service only."""
    templates = _templates(framed=bool(place.ancestors))
    html = templates.get_template(template).render(brand=brand(request), links=links(request), **context)
    ancestors = " ".join(place.ancestors) or "'none'"
    policy = (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
        f"form-action 'self'; base-uri 'none'; frame-ancestors {ancestors}"
    )
    headers = {
        "Content-Security-Policy": policy,
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        # Anything stricter would cut a popup off from the page that opened it.
        "Cross-Origin-Opener-Policy": "unsafe-none" if place.opened else "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    }
    if not place.ancestors:
        # It can name no origins: where frame-ancestors does, it would refuse them.
        headers["X-Frame-Options"] = "DENY"
    return HTMLResponse(html, status, headers)


# A page without a form, which tells nothing: what a frame shows when the checkout itself cannot be read.
_FRAMED = FramePolicy(("https:", "http://localhost:*", "http://127.0.0.1:*"))
_LARGE = "This form is too large", "It could not be read, and nothing was changed. Go back and try again."


@dataclass(frozen=True, slots=True)
class PageForm:
    """A refusal where a person is looking: a page in place of the API's error body.

    `nowhere` and `ours` are headline and text for a page that does not exist and for a failure of the service. `home` is
    the address and label of the link that leads on from each page with a problem, where the page names no other.
    """

    nowhere: tuple[str, str]
    ours: tuple[str, str]
    home: tuple[str, str] | None = None

    def answer(self, request: Request, refused: Refused) -> Response:
        """Answer with a page."""
        status = status_of(refused)
        known = self.nowhere if status in {404, 405} else _LARGE if status == 413 else self.ours
        response = problem(request, status, *known)
        response.headers.update(headers_of(refused))
        return response

    def not_begun(self, request: Request, refused: Refused) -> Response:
        """Answer with the same page."""
        return self.answer(request, refused)

    def page_kind(self, request: Request) -> Hashable | None:
        """The page in a frame has headers of its own."""
        return "k" in request.query_params


CHECKOUT_ERRORS = PageForm(
    nowhere=("There is no such page", "Open the payment again from the shop. Nothing was changed."),
    ours=(
        "We cannot answer right now",
        "Please look again in a moment. Your order is kept, and nothing is charged twice.",
    ),
)
ACCOUNT_ERRORS = PageForm(
    nowhere=(
        "There is no such page",
        "Perhaps the address was cut off when it was copied. Nothing was changed.",
    ),
    ours=(
        "We cannot answer right now",
        "Please look again in a moment. Your plans are as they were, and nothing is charged twice.",
    ),
    home=("/account", "See your plans"),
)


def problem(
    request: Request,
    status: int,
    headline: str,
    text: str,
    *,
    back: tuple[str | None, str] | None = None,
    told: PageContext | None = None,
    place: FramePolicy | None = None,
) -> Response:
    """A page that says what is wrong and what can be done; `back` is an address and its label.

    `told` is what the merchant's page hears of it.
    """
    if place is None:
        place = _FRAMED if "k" in request.query_params else ALONE
    if back is None and isinstance(errors := request.scope["route"].area.errors, PageForm):
        back = errors.home
    context: PageContext = {
        "page": {"title": headline, "lead": None, "step": None, "steps": 4},
        "merchant": None,
        "sandbox": service_of(request).settings.sandbox,
        "headline": headline,
        "text": text,
        # A link that is over stays over; what broke, or a page left open for too long, may work now.
        "advice": back is None and status != 410,
        "again": status == 403 or status >= 500,
        "return_url": back[0] if back else None,
        "return_label": back[1] if back else None,
        "pay": told,
    }
    return page(request, "problem.html", context, status=status, place=place)
