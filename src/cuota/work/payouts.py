"""The job that sends payouts to the bank, and looks up their results."""

from __future__ import annotations

from cuota.db.apart import apart
from cuota.flows.context import Context
from cuota.flows.payout.change_bank_account import resume_payouts
from cuota.flows.payout.send_payouts import send_payouts


async def settle_payouts(context: Context) -> int:
    """Send or look up all due payouts.

    Let paused payouts continue if their merchant has a new account. Return how many there were.
    """
    resumed = 0
    # Most payouts are not paused, so they do not wait for those that are.
    with apart("resumption of payouts"):
        resumed = await resume_payouts(context)
    return resumed + await send_payouts(context)
