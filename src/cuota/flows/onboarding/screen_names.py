"""Screens the names of merchants. The rail is called outside of any transaction."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from uuid import UUID

from cuota.core.onboarding.screening import Finding, FindingState, ScreenedName, SubjectKind, retry_at
from cuota.db.onboarding import screenings
from cuota.flows.context import Context
from cuota.flows.onboarding.change_checklist import changing
from cuota.flows.onboarding.read_checklist import read_checklist
from cuota.flows.onboarding.sealed_details import names_hash, subject_hash
from cuota.flows.operator.log_action import OperatorActor
from cuota.rails.bounded import SECONDS
from cuota.rails.screening.protocol import NameKind, ScreeningMatch, ScreeningRequest
from cuota.rails.screening.rails import BoundedScreeningRail
from cuota.rails.unavailable import RailUnavailable

BATCH = 20
AT_ONCE = 4
NO_SCREENING_RAIL = "No screening rail is configured (CUOTA_SCREENING_RAIL): names are not screened."
SERVICE = OperatorActor(None, job="screening of names")
# An owner's name is a person's name. All other names are company names.
_KINDS = {SubjectKind.OWNER: NameKind.PERSON}
# Even the slowest rail finishes the names of one merchant before the lease of its claim ends.
assert screenings.LEASE.total_seconds() > 12 / AT_ONCE * SECONDS
log = logging.getLogger("cuota.work")


async def screen_due_names(context: Context) -> int:
    """Screen the merchants whose names have changed or are due again. Return how many were claimed; 0 if no rail is set."""
    if context.rails.screening is None:
        return 0
    claimed = await screenings.claim(context.pool, context.now(), BATCH)
    for due in claimed:
        try:
            await screen_merchant(context, due.merchant_id, due.tries)
        except Exception:
            # A merchant that fails must not delay the others. Its lease ends, and the job retries it.
            log.exception("screening failed", extra={"facts": {"merchantId": str(due.merchant_id)}})
    return len(claimed)


async def screen_merchant(
    context: Context, merchant_id: UUID, tries: int = 1, actor: OperatorActor = SERVICE
) -> str | None:
    """Screen all names of a merchant now. Return None, or the reason why the rail did not answer; then the job retries.

    If the rail reports an entry again, the earlier decision about this entry and name still counts.
    """
    rail = context.rails.screening
    if rail is None:
        return NO_SCREENING_RAIL
    subjects = (await read_checklist(context, merchant_id)).subjects
    if not subjects:
        await screenings.nothing(context.pool, merchant_id)
        return None
    try:
        found = await _ask(rail, subjects)
    except RailUnavailable as problem:
        text = str(problem)[:200]
        await screenings.failed(context.pool, merchant_id, retry_at(tries, context.now()), text)
        return text
    now, names = context.now(), names_hash(context.vault, subjects)
    assert names is not None
    async with changing(context, merchant_id, actor) as (session, before):
        for subject, match in found:
            finding = _finding(context, subject, match)
            await screenings.add(session, merchant_id, finding)
        # If a name has changed in the meantime, the new name is screened at once.
        next_at = (
            now + timedelta(days=context.settings.screening_days) if before.facts.names == names else now
        )
        await screenings.done(session, merchant_id, names, rail.name, now, next_at)
    return None


async def _ask(
    rail: BoundedScreeningRail, subjects: tuple[ScreenedName, ...]
) -> list[tuple[ScreenedName, ScreeningMatch]]:
    places = asyncio.Semaphore(AT_ONCE)

    async def one(subject: ScreenedName) -> list[ScreeningMatch]:
        asked = ScreeningRequest(_KINDS.get(subject.kind, NameKind.COMPANY), subject.name, subject.born)
        async with places:
            return await rail.screen(asked)

    # This waits for all answers, so that no call is still running afterward.
    answers = await asyncio.gather(*map(one, subjects), return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return [
        (subject, match)
        for subject, matches in zip(subjects, answers, strict=True)
        if not isinstance(matches, BaseException)
        for match in matches
    ]


def _finding(context: Context, subject: ScreenedName, match: ScreeningMatch) -> Finding:
    return Finding(
        context.new_id(), subject_hash(context.vault, subject), subject.kind, subject.owner_id, match.list_name, match.entry,
        match.listed_name, match.detail, match.score, context.now(), FindingState.OPEN, None, None, None,
    )  # fmt: skip
