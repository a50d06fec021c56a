"""The job that sends payouts to the bank, and asks what became of them."""

from __future__ import annotations

from cuota.flows.context import Context
from cuota.flows.payout.change_bank_account import resume_payouts
from cuota.flows.payout.send_payouts import send_payouts


async def settle_payouts(context: Context) -> int:
    """Send or look up all due payouts, and let paused ones continue whose merchant has a new account. Return how many."""
    return await resume_payouts(context) + await send_payouts(context)
