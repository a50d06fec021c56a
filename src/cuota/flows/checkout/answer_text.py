"""A consumer answers a text message: STOP ends messages to the number, START resumes them, HELP gets an explanation.

One-time codes are sent even after STOP, because the person at the page asks for each code. Other messages then go by
e-mail.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from cuota.core.checkout.text_answer import TextAnswer, read_answer, reply
from cuota.core.message import Message
from cuota.db.checkout import codes, text_choices
from cuota.flows.context import Context

# A limit on replies, so that two programs that answer each other stop.
REPLIES_AN_HOUR = 10


async def answer_text(context: Context, key: str, phone: str, text: str, said_at: datetime) -> TextAnswer:
    """Record the consumer's choice and reply. A repeated `key` gives the same reply. Raises RailUnavailable."""
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
    """Return the hash under which a number's choice is stored."""
    return context.vault.hash("text-choice", phone)


async def is_stopped(context: Context, phone: str) -> bool:
    """Return whether the owner of a number has stopped text messages."""
    return await text_choices.is_stopped(context.pool, number_hash(context, phone))


async def _may_reply(context: Context, phone: str) -> bool:
    counted = [(context.vault.hash("text-replies", phone), REPLIES_AN_HOUR)]
    return not await codes.count(context.pool, counted, context.real_now())
