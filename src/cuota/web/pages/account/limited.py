"""The answer to a consumer who reached the rate limit for payments and card changes. It says when they can continue."""

from __future__ import annotations

from datetime import timedelta
from math import ceil

from starlette.requests import Request
from starlette.responses import Response

from cuota.db.plan.accounts import PlanDetail
from cuota.flows.plan.limit_asks import Asker, Limited
from cuota.web.pages.account.view import when
from cuota.web.pages.account.visit import Known
from cuota.web.server.client_address import client_address
from cuota.web.service import service_of


def asker_of(request: Request, known: Known) -> Asker:
    """Return the consumer's phone number and network address, which the rate limit counts."""
    return Asker(known.visit.session.phone or "", client_address(request))


def limited_words(detail: PlanDetail, limited: Limited) -> str:
    """Return the text that the page shows."""
    # Round up to the next full minute, so that the action is allowed at the minute that the text names.
    again = when(limited.again_at + timedelta(minutes=1), detail.shown.zone)
    return (
        f"{limited.notice} Nothing was charged, and your card was not changed. You can go on from {again}. "
        "Payments on their dates are made as planned."
    )


def refused(page: Response, request: Request, limited: Limited) -> Response:
    """Turn the page into a 429 answer with a Retry-After header."""
    page.status_code = 429
    wait = (limited.again_at - service_of(request).context.now()).total_seconds()
    page.headers["Retry-After"] = str(max(1, ceil(wait)))
    return page
