"""The section about queues on the system's page: the waiting work of the background jobs, and its age."""

from __future__ import annotations

from datetime import timedelta

from cuota.db.cluster.living import LivingNodes
from cuota.db.operator.queues import Queue, queues
from cuota.flows.context import Context
from cuota.web.pages.operator.parts import cell, state, table
from cuota.web.pages.render import PageContext

_MINUTE = timedelta(minutes=1)
# The queues: the name, the waiting work, and the age from which the oldest entry is marked. Jobs look every second or every few
# seconds.
SHOWN = {
    "events": ("Events to put into the merchants' feeds", _MINUTE),
    "webhooks": ("Webhooks due now", 5 * _MINUTE),
    "messages": ("Messages to consumers due now", 5 * _MINUTE),
    "orders": ("Orders with an installment, a reminder or a deadline due now", 5 * _MINUTE),
    "card_refunds": ("Refunds to cards due now", 10 * _MINUTE),
    "card_events": ("Events of card processors to apply", 5 * _MINUTE),
    "disputes": ("Disputes with a deadline that is over, or a reminder due now", 5 * _MINUTE),
    "chargeback_answers": ("Answers to chargebacks that the card processor does not have", 60 * _MINUTE),
    "batches": ("Merchants whose cutoff has passed", 5 * _MINUTE),
    "payouts": ("Payouts to send, or to ask the bank about", 60 * _MINUTE),
    "settlement": ("Movements without a settlement line", 5 * _MINUTE),
    "search": ("Orders not yet in the dashboards' search", 5 * _MINUTE),
}


async def queue_section(context: Context, every: LivingNodes) -> PageContext:
    """Return the section with every queue."""
    found = await queues(every, context.now())
    columns = [
        cell("Queue"), cell("State"), cell("Waiting", amount=True, wide=True), cell("The oldest waits", amount=True),
        cell("Check after", amount=True, wide=True),
    ]  # fmt: skip
    rows = [_row(context, found[name], *words) for name, words in SHOWN.items()]
    made = table("Queues", columns, rows, "")
    words = (
        "Due entries that no process has claimed yet. Entries that wait for a later retry are not counted, except answers to"
        " chargebacks, because the card network has a deadline. While the background"
        " jobs run, the oldest entry waits for only a few seconds."
    )
    made["texts"] = [words]
    return made


def _row(context: Context, queue: Queue, label: str, worth_a_look: timedelta) -> list[PageContext]:
    age = context.now() - queue.since if queue.since else timedelta(0)
    if queue.name == "payouts" and context.rails.bank is None:
        judged = state("No bank rail", "off")
    elif age > worth_a_look:
        judged = state("Look at this", "bad")
    else:
        judged = state("Moves", "wait") if queue.waiting else state("Empty", "done")
    return [
        cell(label),
        judged,
        cell(f"{queue.waiting:,}", amount=True, wide=True),
        cell(shown_age(age) if queue.since else "none", amount=True),
        cell(shown_age(worth_a_look), amount=True, wide=True),
    ]


def shown_age(age: timedelta) -> str:
    """Format how long an entry has waited: `40 seconds`, `12 minutes`, `3 hours`, `2 days`."""
    seconds = max(0, int(age.total_seconds()))
    for size, word in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            count = seconds // size
            return f"{count:,} {word}{'' if count == 1 else 's'}"
    return f"{seconds} second{'' if seconds == 1 else 's'}"
