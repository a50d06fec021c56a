"""The answers to a consumer who reached a rate limit, for payments and card changes or for statements in disputes.

The answers contain the time at which the consumer can continue.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from math import ceil

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.refusal import Code, Refused
from cuota.db.plan.accounts import PlanDetail
from cuota.flows.context import Context
from cuota.flows.dispute.limit_statements import TooManyStatements, count_statement, give_back_statement
from cuota.flows.plan.limit_asks import Asker, Limited
from cuota.web.pages.account.view import when
from cuota.web.pages.account.visit import Known
from cuota.web.server.client_address import client_address
from cuota.web.service import service_of


def asker_of(request: Request, known: Known) -> Asker:
    """Return the consumer's phone number and network address, which the rate limit counts."""
    return Asker(known.visit.session.phone or "", client_address(request))


def limited_words(detail: PlanDetail, limited: Limited) -> str:
    """Return the text that tells the consumer when to try again."""
    # Round up to the next full minute, so that the action is allowed at the minute that the text names.
    again = when(limited.again_at + timedelta(minutes=1), detail.shown.zone)
    return (
        f"{limited.notice} Nothing was charged, and your card was not changed. You can try again at {again}. "
        "Scheduled payments are made as planned."
    )


def refused(page: Response, request: Request, limited: Limited) -> Response:
    """Turn the page into a 429 answer with a Retry-After header."""
    page.status_code = 429
    wait = (limited.again_at - service_of(request).context.now()).total_seconds()
    page.headers["Retry-After"] = str(max(1, ceil(wait)))
    return page


@asynccontextmanager
async def counted(context: Context, detail: PlanDetail) -> AsyncIterator[None]:
    """Count a statement of the consumer in a dispute, unless it is refused. Raises Refused(rate_limited)."""
    order_id = detail.shown.order.order_id
    try:
        counted_at = await count_statement(context, order_id)
    except TooManyStatements as limited:
        again = when(limited.again_at + timedelta(minutes=1), detail.shown.zone)
        message = (
            "You have sent a lot about this order in a short time. This was not sent. You can try again at "
        )
        wait = max(1, ceil((limited.again_at - context.now()).total_seconds()))
        raise Refused(Code.RATE_LIMITED, f"{message}{again}.", retry_after=wait) from None
    try:
        yield
    except Refused:
        await give_back_statement(context, order_id, counted_at)
        raise


def with_status(page: Response, refused: Refused) -> Response:
    """Turn the page into a 429 answer with a Retry-After header, if the refusal is the rate limit."""
    if refused.code is Code.RATE_LIMITED:
        page.status_code = 429
        page.headers["Retry-After"] = str(refused.retry_after)
    return page
