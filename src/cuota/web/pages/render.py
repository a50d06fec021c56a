"""Renders pages from Jinja2 templates, with automatic escaping and with headers that isolate a page from other sites."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from operator import itemgetter
from pathlib import Path

import jinja2
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from cuota.core.checkout import card
from cuota.core.consumer import STATES
from cuota.core.refusal import Refused
from cuota.web.pages.assets import BRAND_CSS, LOGO
from cuota.web.problem import headers_of, status_of
from cuota.web.service import service_of

DEFAULT_ACCENT = "#0B6E63"
PageContext = dict[str, object]
# The error messages and rules for the script of the card form. They come from the server's checks, so that both give
# the same errors.
CARD_WORDS = {
    "empty": card.NO_NUMBER,
    "number": card.WRONG_NUMBER,
    "expiry": card.WRONG_EXPIRY,
    "expired": card.EXPIRED,
    "cvc": card.wrong_cvc(None),
    "rules": json.dumps(card.card_rules()),
}


@lru_cache(maxsize=len(STATES) + 1)
def _options(selected: str) -> Markup:
    lines = [
        Markup('\n            <option value="{}"{}>{}</option>').format(
            code, Markup(" selected") if code == selected else "", name
        )
        for code, name in sorted(STATES.items(), key=itemgetter(1))
    ]
    return Markup().join(lines)


def state_options(selected: object) -> Markup:
    """Return the options of a list of states, rendered once for each state that may be selected."""
    return _options(selected if isinstance(selected, str) and selected in STATES else "")


@lru_cache(maxsize=2)
def _templates(*, framed: bool) -> jinja2.Environment:
    folder = Path(__file__).resolve().parent / "templates"
    loader = jinja2.FileSystemLoader(folder)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, auto_reload=False
    )
    # In a frame on another site, browsers refuse `autofocus` and log an error. There page.js sets the focus.
    environment.globals["autofocus"] = "data-autofocus" if framed else "autofocus"
    environment.globals["card_words"] = CARD_WORDS
    environment.globals["state_options"] = state_options
    return environment


def brand(request: Request) -> PageContext:
    """Return the template values for the operator's brand: name, logo and style sheet."""
    settings = service_of(request).settings
    return {
        "name": settings.brand_name,
        "logo": f"/static/{LOGO}" if settings.brand_logo else None,
        "stylesheet": f"/static/{BRAND_CSS}" if settings.brand_accent != DEFAULT_ACCENT else None,
    }


def links(request: Request) -> list[PageContext]:
    """Return the links to the operator's own pages, which every page shows at the bottom."""
    settings = service_of(request).settings
    named = (("Help", settings.help_url), ("Privacy", settings.privacy_url), ("Terms", settings.terms_url))
    return [{"label": label, "url": url} for label, url in named if url]


@dataclass(frozen=True, slots=True)
class FramePolicy:
    """Where a page may be shown.

    `ancestors` are the origins that may show the page in a frame. `opened` is true if another page opens this page in a
    popup and exchanges messages with it.
    """

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
    allowed: Mapping[str, Sequence[str]] | None = None,
) -> Response:
    """Render a template. The page's security policy allows its forms to send to this service only.

    `allowed` are more sources, by directive of that policy, such as those of the card rail on a page with a card's fields.
    The script of passkeys asks this service for a challenge, and the script of downloads for a file.
    """
    if context.get("passkey_script") or context.get("download_script"):
        allowed = {**(allowed or {}), "connect-src": ["'self'"]}
    templates = _templates(framed=bool(place.ancestors))
    html = templates.get_template(template).render(
        brand=brand(request), links=links(request), posted=_is_posted(request, status), **context
    )
    headers = {
        "Content-Security-Policy": _policy(place, allowed or {}),
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        # A stricter value would disconnect a popup from the page that opened it.
        "Cross-Origin-Opener-Policy": "unsafe-none" if place.opened else "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    }
    if not place.ancestors:
        # This older header cannot name origins, so it would block the frames that frame-ancestors allows.
        headers["X-Frame-Options"] = "DENY"
    return HTMLResponse(html, status, headers)


def _is_posted(request: Request, status: int) -> bool:
    """Return whether this answers a form whose address is also that of a page (static/checkout.js then mends the history)."""
    if request.method != "POST" or status == HTTPStatus.NOT_FOUND:
        return False
    route, _ = request.app.routes.find("GET", request.scope["path"])
    return bool(route.is_known)


_SELF = {
    "default-src": ["'none'"], "style-src": ["'self'"], "script-src": ["'self'"], "img-src": ["'self'", "data:"],
    "form-action": ["'self'"], "base-uri": ["'none'"],
}  # fmt: skip


def _policy(place: FramePolicy, allowed: Mapping[str, Sequence[str]]) -> str:
    sources = {name: list(own) for name, own in _SELF.items()}
    for name, more in allowed.items():
        sources[name] = list(dict.fromkeys([*sources.get(name, []), *more]))
    sources["frame-ancestors"] = list(place.ancestors) or ["'none'"]
    return "; ".join(f"{name} {' '.join(words)}" for name, words in sources.items())


# The frame policy of error pages for a checkout in a frame. Such a page has no form and no data of the order.
_FRAMED = FramePolicy(("https:", "http://localhost:*", "http://127.0.0.1:*"))
# The frame policy of pages that belong to no merchant, such as the simulated bank's page. Any page may show them in a
# frame or a popup.
ANYWHERE = FramePolicy(_FRAMED.ancestors, opened=True)
_LARGE = "This form is too large", "It could not be read, and nothing was changed. Go back and try again."


@dataclass(frozen=True, slots=True)
class PageForm:
    """An error form for pages: it answers a refusal with an HTML page.

    `nowhere` has the headline and text for a page that does not exist, `ours` those for a failure of the service. `home` has
    the address and label of the link on each error page that has no other link.
    """

    nowhere: tuple[str, str]
    ours: tuple[str, str]
    home: tuple[str, str] | None = None

    def answer(self, request: Request, refused: Refused) -> Response:
        """Answer with an error page."""
        status = status_of(refused)
        words = self.nowhere if status in {404, 405} else _LARGE if status == 413 else self.ours
        response = problem(request, status, *words)
        response.headers.update(headers_of(refused))
        return response

    def not_begun(self, request: Request, refused: Refused) -> Response:
        """Answer with an error page, as `refused` does."""
        return self.answer(request, refused)

    def page_kind(self, request: Request) -> Hashable | None:
        """Return whether the page is in a frame.

        Pages in frames are a separate kind, because they have other headers.
        """
        return "k" in request.query_params


CHECKOUT_ERRORS = PageForm(
    nowhere=("There is no such page", "Open the payment again from the shop. Nothing was changed."),
    ours=(
        "We cannot answer right now",
        "Please try again in a moment. Your order is kept, and nothing is charged twice.",
    ),
)
ACCOUNT_ERRORS = PageForm(
    nowhere=(
        "There is no such page",
        "Perhaps the address was cut off when it was copied. Nothing was changed.",
    ),
    ours=(
        "We cannot answer right now",
        "Please try again in a moment. Your plans are as they were, and nothing is charged twice.",
    ),
    home=("/account", "See your plans"),
)

BANK_ERRORS = PageForm(
    nowhere=("There is no such page", "Go back to the page on which you paid. Nothing was changed."),
    ours=(
        "We cannot answer right now",
        "Please try again in a moment. Nothing is charged twice.",
    ),
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
    """Return an error page with the problem and the way to solve it.

    `back` is the address and label of a link. `told` is the message that the page posts to the merchant's page.
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
        # An expired link stays expired (410). After a failure (5xx) or with an old form (403), another attempt may
        # succeed.
        "advice": back is None and status != 410,
        "again": status == 403 or status >= 500,
        "return_url": back[0] if back else None,
        "return_label": back[1] if back else None,
        "pay": told,
    }
    return page(request, "problem.html", context, status=status, place=place)
