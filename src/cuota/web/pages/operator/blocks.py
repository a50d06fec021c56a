"""Blocks a consumer, and ends a block. Both need a reason and a fresh code."""

from __future__ import annotations

from datetime import date, datetime
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.consumer import Consumer
from cuota.core.operator.role import OperatorAction
from cuota.core.risk.block import BlockKind, block_until
from cuota.flows.context import Context
from cuota.flows.desk.change_team import BadTeam
from cuota.flows.operator.change_operators import reason_of
from cuota.flows.operator.log_action import OperatorNote, logged
from cuota.flows.risk.block_consumer import Blocked, CannotBlock, block_consumer, unblock_consumer
from cuota.web.pages.checkout.session import see_other
from cuota.web.pages.operator.block_view import meanwhile_words
from cuota.web.pages.operator.consumers import CONSUMERS, consumer_page, find_consumer
from cuota.web.pages.operator.visit import OperatorDesk, allowed, prove
from cuota.web.service import service_of


@allowed(OperatorAction.READ_CONSUMERS, OperatorAction.BLOCK_CONSUMERS)
async def change(request: Request, desk: OperatorDesk) -> Response:
    """Block the consumer, or end the block. A second click changes nothing, and the page says so."""
    found = await find_consumer(request)
    try:
        reason = reason_of(desk.form.get("reason", ""))
        if errors := await prove(request, desk):
            return await consumer_page(request, desk, found, errors, form="block")
        if desk.form.get("do") == "unblock":
            await _unblock(service_of(request).context, desk, found.consumer_id, reason)
            return see_other(f"{CONSUMERS}/{found.consumer_id}?said=unblocked")
        done = await _block(service_of(request).context, desk, found, reason)
    except (BadTeam, CannotBlock) as bad:
        field = bad.name if isinstance(bad, BadTeam) else bad.field
        return await consumer_page(request, desk, found, {field: str(bad)}, form="block")
    if done.meanwhile:
        return await consumer_page(request, desk, found, notice=meanwhile_words(done.meanwhile))
    return see_other(f"{CONSUMERS}/{found.consumer_id}?said=blocked")


async def _block(context: Context, desk: OperatorDesk, found: Consumer, reason: str) -> Blocked:
    kind, until = desk.form.get("kind", ""), _until(desk.form.get("until", ""))
    if kind not in set(BlockKind):
        raise CannotBlock("Choose the kind. It determines the text that a declined consumer reads.", "kind")

    async def act(context: Context) -> Blocked:
        return await block_consumer(
            context, found.consumer_id, BlockKind(kind), reason, until, by=desk.actor.words
        )

    after = {"kind": kind, "until": until.isoformat() if until else None}
    note = OperatorNote(
        "consumer.block", f"Consumer {found.consumer_id}", reason, found.consumer_id, after=after
    )
    return await logged(context, desk.actor, note, act)


async def _unblock(context: Context, desk: OperatorDesk, consumer_id: UUID, reason: str) -> None:
    async def act(context: Context) -> None:
        await unblock_consumer(context, consumer_id, by=desk.actor.words)

    note = OperatorNote("consumer.unblock", f"Consumer {consumer_id}", reason, consumer_id)
    await logged(context, desk.actor, note, act)


def _until(text: str) -> datetime | None:
    """Return the beginning of the day on which a block ends, or None if no day was entered. Raises CannotBlock."""
    if not text.strip():
        return None
    try:
        day = date.fromisoformat(text.strip())
    except ValueError:
        raise CannotBlock("Enter a day, such as 2026-12-05, or leave the field empty.", "until") from None
    if not 2000 <= day.year <= 2200:
        raise CannotBlock("Enter a day, such as 2026-12-05, or leave the field empty.", "until")
    return block_until(day)
