"""A consumer answers a text: STOP ends texts to the number, START brings them back, HELP is answered.

One-time codes are sent all the same: the person at the page asks for each of them. Notices go on by mail.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from cuota.core.checkout.text_answer import TextAnswer, read_answer, reply
from cuota.core.message import Message
from cuota.db.checkout import codes, text_choices
from cuota.flows.context import Context, utc_now

# Two programs that answer each other end here.
REPLIES_AN_HOUR = 10


async def answer_text(context: Context, key: str, phone: str, text: str, said_at: datetime) -> TextAnswer:
    """Note what was answered, and reply; the same `key` again is the same answer. Raises RailUnavailable."""
    answer = read_answer(text)
    if answer in {TextAnswer.STOP, TextAnswer.START}:
        stopped = answer is TextAnswer.STOP
        await text_choices.note(context.pool, number_hash(context, phone), said_at, stopped=stopped)
    settings = context.settings
    account = f"{settings.public_url}/account"
    said = reply(answer, settings.brand_name, settings.creditor, account, settings.help_url)
    if said is not None and await _may_reply(context, phone):
        once = UUID(bytes=context.vault.hash("text-reply", key)[:16], version=4)
        subject = f"{settings.brand_name}: your answer"
        await context.rails.message.send(Message(once, phone, None, settings.brand_name, subject, said))
    return answer


def number_hash(context: Context, phone: str) -> bytes:
    """By what a number's choice is kept."""
    return context.vault.hash("text-choice", phone)


async def is_stopped(context: Context, phone: str) -> bool:
    """Whether the owner of a number wants no texts."""
    return await text_choices.is_stopped(context.pool, number_hash(context, phone))


async def _may_reply(context: Context, phone: str) -> bool:
    counted = [(context.vault.hash("text-replies", phone), REPLIES_AN_HOUR)]
    return not await codes.count(context.pool, counted, utc_now())
