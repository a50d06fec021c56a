"""The sandbox in the merchant's dashboard: its clock, its test cards and accounts, and its inbox. Production has no such page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.desk.role import Action
from cuota.core.instant import BadInstant, TargetInstant, read_instant, timestamp
from cuota.core.sandbox import (
    APPROVED_SURNAME,
    CODE,
    DECLINED_SURNAME,
    REFERRED_SURNAME,
    TEST_ACCOUNTS,
    TEST_CARDS,
    TEST_ROUTING,
    ahead_of_real,
    scheduled,
)
from cuota.db.sandbox import clock
from cuota.flows.desk.record import AuditNote, record
from cuota.flows.sandbox.move_time import CannotMoveTime
from cuota.web.pages import inbox
from cuota.web.pages.checkout.session import see_other
from cuota.web.pages.desk.view import common, when
from cuota.web.pages.desk.visit import PATH, Desk, allowed, missing
from cuota.web.pages.render import PageContext, page
from cuota.web.service import service_of

_SANDBOX = f"{PATH}/sandbox"
# While the clock is being moved, the page loads itself again after so many seconds.
AGAIN_SECONDS = 2
_SPANS = (("1h", "1 hour"), ("1d", "1 day"), ("1w", "1 week"))
_NEXT = "next"
SandboxPage = Callable[[Request], Awaitable[Response]]


def _only_in_the_sandbox(handler: SandboxPage) -> SandboxPage:
    @wraps(handler)
    async def run(request: Request) -> Response:
        return await handler(request) if service_of(request).settings.sandbox else missing(request)

    return run


@_only_in_the_sandbox
@allowed(Action.USE_SANDBOX)
async def show(request: Request, desk: Desk) -> Response:
    """Show the clock and what is due next."""
    return await _shown(request, desk)


@_only_in_the_sandbox
@allowed(Action.USE_SANDBOX)
async def advance(request: Request, desk: Desk) -> Response:
    """Move the clock forward, for every merchant of the sandbox."""
    service, asked = service_of(request), desk.form.get("by", "")
    if asked not in {*dict(_SPANS), _NEXT}:
        return await _shown(request, desk, "Choose how far the clock is moved.")
    if service.mover is None:
        return await _shown(request, desk, "This process cannot move the clock. Use cuota time advance.")
    target = await _target(request, asked)
    if target is None:
        return await _shown(request, desk, "Nothing is scheduled, so the clock was not moved.")
    before = service.context.now()
    try:
        there = await service.mover.start(target)
    except (CannotMoveTime, BadInstant) as problem:
        return await _shown(request, desk, str(problem))
    subject = f"Clock at {timestamp(before)}, moved by {dict(_SPANS).get(asked, 'what is due next')}"
    await record(service.context, desk.merchant_id, desk.actor, AuditNote("sandbox.advance", subject))
    return see_other(f"{_SANDBOX}?said=moved" if there else _SANDBOX)


async def _target(request: Request, asked: str) -> TargetInstant | None:
    if asked in dict(_SPANS):
        return read_instant(asked)
    context = service_of(request).context
    waiting = await clock.next_of_each(context.pool, context.now(), context.settings.write_off_days)
    return TargetInstant(timestamp(waiting[0].at), instant=waiting[0].at) if waiting else None


async def _shown(request: Request, desk: Desk, problem: str | None = None) -> Response:
    context = service_of(request).context
    seen = await clock.read(context.pool)
    waiting = await clock.next_of_each(context.pool, seen.now, context.settings.write_off_days)
    shown: PageContext = {
        **common(request, desk, "Sandbox", here=_SANDBOX),
        "address": _SANDBOX,
        "inbox": inbox.PATH,
        "now": when(seen.now),
        "ahead": ahead_of_real(seen.ahead),
        "moving": seen.moving,
        "again": AGAIN_SECONDS,
        "spans": [
            *((value, label, "small second") for value, label in _SPANS),
            *([(_NEXT, "Until what is due next", "small")] if waiting else []),
        ],
        "next": [{"at": when(each.at), "what": scheduled(each.table, each.rows)} for each in waiting],
        "cards": TEST_CARDS,
        "accounts": TEST_ACCOUNTS,
        "routing": TEST_ROUTING,
        "code": CODE,
        "declined": DECLINED_SURNAME,
        "approved": APPROVED_SURNAME,
        "referred": REFERRED_SURNAME,
    }
    if problem is not None:
        shown |= {"notice": problem, "notice_tone": "error"}
    response = page(request, "desk/sandbox.html", shown, status=200 if problem is None else 400)
    if seen.moving:
        response.headers["Refresh"] = f"{AGAIN_SECONDS}; url={_SANDBOX}"
    return response
