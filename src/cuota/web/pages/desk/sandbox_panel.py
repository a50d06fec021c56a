"""The page **Sandbox** of both dashboards: the clock, the forks, the test cards and accounts, and the inbox."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps

from starlette.requests import Request
from starlette.responses import Response

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
from cuota.db.sandbox import clock, forks
from cuota.db.sandbox.forks import Fork
from cuota.flows.afterwards import afterwards
from cuota.flows.sandbox.fork_sandbox import read_name
from cuota.flows.sandbox.move_time import CannotMoveTime
from cuota.web.pages import inbox
from cuota.web.pages.checkout.session import see_other
from cuota.web.pages.desk.view import when
from cuota.web.pages.render import PageContext, page
from cuota.web.server.standing import copying
from cuota.web.service import ClockMover, service_of

# While the clock is being moved, the page reloads after this many seconds.
AGAIN_SECONDS = 2
# Each fork is a copy of every table. `cuota time fork` has no such limit.
MOST_FORKS = 10
_SPANS = (("1h", "1 hour"), ("1d", "1 day"), ("1w", "1 week"))
_NEXT = "next"
SandboxPage = Callable[[Request], Awaitable[Response]]


class PanelProblem(Exception):
    """Nothing was changed. The text says why. `field` is the field of the form that is wrong, and `typed` its content."""

    def __init__(self, text: str, field: str = "", typed: str = "") -> None:
        super().__init__(text)
        self.field = field
        self.typed = typed


@dataclass(frozen=True, slots=True)
class Changed:
    """What a form changed: the action and its subject for the log, and the key of the text that the next page shows."""

    action: str
    subject: str
    said: str


def only_in_the_sandbox(missing: Callable[[Request], Response]) -> Callable[[SandboxPage], SandboxPage]:
    """Make a handler that answers with `missing` in production, whether or not the browser has a session."""

    def made(handler: SandboxPage) -> SandboxPage:
        @wraps(handler)
        async def run(request: Request) -> Response:
            return await handler(request) if service_of(request).settings.sandbox else missing(request)

        return run

    return made


async def page_of(
    request: Request, frame: PageContext, root: str, problem: PanelProblem | None = None
) -> Response:
    """Answer with the page. `frame` has the values of the dashboard's frame. `problem` is why a form changed nothing."""
    shown = {**frame, **await _panel(request, root, problem)}
    response = page(request, "desk/sandbox.html", shown, status=200 if problem is None else 400)
    if shown["moving"]:
        response.headers["Refresh"] = f"{AGAIN_SECONDS}; url={root}"
    return response


async def rewind_page(request: Request, frame: PageContext, root: str) -> Response:
    """Answer with the page that describes a rewind to the fork `name` and asks for a confirmation."""
    try:
        fork = await _found(request, request.query_params.get("name", ""))
    except PanelProblem as problem:
        return await page_of(request, frame, root, problem)
    return page(request, "desk/rewind.html", {**frame, "address": root, "fork": fork})


async def change_page(
    request: Request,
    form: dict[str, str],
    frame: PageContext,
    root: str,
    log: Callable[[Changed], Awaitable[None]],
) -> Response:
    """Carry out the form, record the change with `log`, and redirect to the page. If the form is wrong, show the error."""
    try:
        changed = await _change(request, form)
    except PanelProblem as problem:
        return await page_of(request, frame, root, problem)
    # After a rewind, the person may be unknown, and then the entry is not written.
    with afterwards(f"{changed.action} in the log of the dashboard"):
        await log(changed)
    return see_other(f"{root}?said={changed.said}" if changed.said else root)


async def _panel(request: Request, root: str, problem: PanelProblem | None) -> PageContext:
    context = service_of(request).context
    seen = await clock.read(context.pool)
    waiting = await clock.next_of_each(context.pool, seen.now, context.settings.write_off_days)
    shown: PageContext = {
        "address": root,
        "inbox": inbox.PATH,
        "now": when(seen.now),
        "ahead": ahead_of_real(seen.ahead),
        "moving": seen.moving,
        "again": AGAIN_SECONDS,
        "spans": [
            *((value, label, "small second") for value, label in _SPANS),
            *([(_NEXT, "Until the next due item", "small")] if waiting else []),
        ],
        "next": [{"at": when(each.at), "what": scheduled(each.table, each.rows)} for each in waiting],
        "forks": [_shown(fork) for fork in await forks.read_all(context.pool)],
        "cards": TEST_CARDS,
        "accounts": TEST_ACCOUNTS,
        "routing": TEST_ROUTING,
        "code": CODE,
        "declined": DECLINED_SURNAME,
        "approved": APPROVED_SURNAME,
        "referred": REFERRED_SURNAME,
    }
    if problem is not None and problem.field:
        shown |= {"errors": {problem.field: str(problem)}, "values": {problem.field: problem.typed}}
    elif problem is not None:
        shown |= {"notice": str(problem), "notice_tone": "error"}
    return shown


def _shown(fork: Fork) -> PageContext:
    return {"name": fork.name, "clock": when(fork.service_time), "taken": when(fork.taken_at)}


async def _change(request: Request, form: dict[str, str]) -> Changed:
    mover = service_of(request).mover
    if mover is None:
        raise PanelProblem("This process cannot move the clock. Use cuota time.")
    name = form.get("name", "").strip()[:100]
    try:
        match form.get("do", ""):
            case "fork":
                return await _fork(request, mover, name)
            case "rewind":
                await _found(request, name)
                with copying(request):
                    await mover.rewind(name)
                return Changed("sandbox.rewind", f"Back to the fork {name}", "rewound")
            case "forget":
                await _found(request, name)
                await mover.forget(name)
                return Changed("sandbox.forget", f"Fork {name}", "forgotten")
        return await _advance(request, mover, form.get("by", ""))
    except (CannotMoveTime, BadInstant) as problem:
        raise PanelProblem(str(problem)) from None


async def _found(request: Request, name: str) -> PageContext:
    for fork in await forks.read_all(service_of(request).context.pool):
        if fork.name == name:
            return _shown(fork)
    raise PanelProblem("There is no such fork. Perhaps somebody has deleted it.")


async def _fork(request: Request, mover: ClockMover, name: str) -> Changed:
    there = await forks.read_all(service_of(request).context.pool)
    wrong = ""
    if not name:
        wrong = "Enter a name for the fork, such as before-refund."
    elif any(fork.name == name for fork in there):
        wrong = f"There is already a fork {name}. Choose another name, or delete that fork."
    elif len(there) >= MOST_FORKS:
        wrong = f"There are {len(there)} forks. Delete one before you save another."
    else:
        try:
            read_name(name)
        except CannotMoveTime as problem:
            wrong = str(problem)
    if wrong:
        raise PanelProblem(wrong, "name", name)
    with copying(request):
        await mover.fork(name)
    return Changed("sandbox.fork", f"Fork {name}", "forked")


async def _advance(request: Request, mover: ClockMover, asked: str) -> Changed:
    """Move the clock forward, for every merchant of the sandbox."""
    if asked not in {*dict(_SPANS), _NEXT}:
        raise PanelProblem("Choose how far to move the clock.")
    context = service_of(request).context
    if asked in dict(_SPANS):
        target = read_instant(asked)
    else:
        waiting = await clock.next_of_each(context.pool, context.now(), context.settings.write_off_days)
        if not waiting:
            raise PanelProblem("Nothing is scheduled, so the clock was not moved.")
        target = TargetInstant(timestamp(waiting[0].at), instant=waiting[0].at)
    before = context.now()
    there = await mover.start(target)
    subject = (
        f"Clock at {timestamp(before)}, moved by {dict(_SPANS).get(asked, 'the time to the next due item')}"
    )
    return Changed("sandbox.advance", subject, "moved" if there else "")
