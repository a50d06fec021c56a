"""Makes the files for a bank and records the bank's reports (`cuota bank`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from uuid import UUID

from cuota.core.payout.bank_report import Reported
from cuota.db.payout import holds, queued
from cuota.db.payout.queued import QueuedPayout
from cuota.flows.context import Context
from cuota.rails.bank.file_books import QueuedPayment
from cuota.rails.bank.files import FileBankRail


@dataclass(frozen=True, slots=True)
class MadeFiles:
    """The result of one `cuota bank make`: the numbers of the files, how many payments were stopped, and those that stay in the queue."""

    numbers: list[int]
    stopped: int
    unreadable: list[QueuedPayment]


async def make_files(context: Context, rail: FileBankRail, effective: date) -> MadeFiles:
    """Write all due files.

    A payment is stopped if its merchant's payouts are held by now, or if the operator has rejected its account. No bank has seen it,
    so it leaves the queue, and its payout is held until a person releases it. A worker that looks the payout up between these two steps
    also sees the hold, and sends nothing (`send_payouts`). A payment to an account that was replaced by now is stopped, too: a worker
    gives its amount back, and the next payout pays it.

    The payments of a file that a killed command did not write are checked like all others. A payment that this process cannot decrypt
    stays in the queue, and the others go out.
    """
    now = context.now()
    in_queue = {each.payout_id: each for each in await rail.books.queued()}
    held: list[QueuedPayout] = []
    replaced: list[QueuedPayout] = []
    allowed: list[UUID] = []
    for each in await queued.read(context.pool, list(in_queue)):
        if await queued.must_wait(context.pool, each):
            held.append(each)
        elif await holds.gives_back(context.pool, each.merchant_id, each.payout_id, now):
            replaced.append(each)
        else:
            allowed.append(each.payout_id)
    unreadable = [in_queue[each] for each in allowed if not in_queue[each].readable]
    stops = [each.payout_id for each in (*held, *replaced)]
    await rail.books.put_back([*stops, *(each.payout_id for each in unreadable)])
    withdrawn = set(await rail.books.withdraw(stops))
    for each in held:
        if each.payout_id in withdrawn:
            await queued.hold(context.pool, each, now, rail.name)
    readable = [each for each in allowed if in_queue[each].readable]
    made = await rail.books.make(rail.format, now, effective, readable)
    # A payout is sent when its payment is in a file. A worker records that at once.
    given_back = [each.payout_id for each in replaced if each.payout_id in withdrawn]
    await queued.look_up(context.pool, [*(readable if made else []), *given_back], now, rail.name)
    return MadeFiles(made, len(withdrawn), unreadable)


async def record_report(
    context: Context, rail: FileBankRail, found: Sequence[Reported]
) -> tuple[int, int, list[Reported]]:
    """Record a bank's report. Return how many payments were paid, how many came back, and the entries that a person must look at.

    The payouts of the report are due at once, also if the service had already stopped to look them up.
    """
    paid = returned = 0
    unknown: list[Reported] = []
    known: list[UUID] = []
    for each in found:
        about = await rail.books.report(each, context.now())
        known += about
        if not about and await _is_foreign(rail, each):
            continue
        if not about:
            unknown.append(each)
        elif each.reason is None:
            paid += len(about)
        else:
            returned += len(about)
    await queued.look_up(context.pool, known, context.now(), rail.name)
    return paid, returned, unknown


async def _is_foreign(rail: FileBankRail, entry: Reported) -> bool:
    """Return whether this is an incoming payment of somebody else, whose reference only looks like a payout's."""
    if not entry.unclear or entry.payout_id is None:
        return False
    return await rail.books.find(entry.payout_id) is None
