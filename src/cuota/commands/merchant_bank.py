"""`cuota merchant bank`: show, set and change the bank account to which a merchant is paid."""

from __future__ import annotations

import argparse

from cuota.commands.common import changes, run, show
from cuota.commands.parsers import Add
from cuota.core.expected_failure import WrongUsage
from cuota.core.instant import timestamp
from cuota.core.merchant import Merchant
from cuota.core.onboarding.checklist import ItemDecision
from cuota.core.payout.bank_account import BadBankAccount, BankAccount, BankDetails, read_bank_details
from cuota.flows.context import Context
from cuota.flows.merchant.manage_merchants import BadMerchant, find_merchant
from cuota.flows.onboarding.entered_again import rejected_before
from cuota.flows.payout.change_bank_account import (
    BankStanding,
    cancel_change,
    change_bank_account,
    read_standing,
)


def merchant_bank(options: argparse.Namespace) -> int:
    """`cuota merchant bank`."""
    details = _details(options)

    async def flow(context: Context) -> tuple[Merchant, BankStanding, ItemDecision | None]:
        merchant = await find_merchant(context, options.merchant)
        if details is not None:
            await change_bank_account(context, merchant.merchant_id, details)
        if options.cancel and await cancel_change(context, merchant.merchant_id) is None:
            raise BadMerchant(
                f"Nothing was canceled: {merchant.name} has no change that has yet to take effect."
            )
        standing = await read_standing(context, merchant.merchant_id)
        newest = standing.pending or standing.in_force
        rejection = await rejected_before(context.pool, context.vault, merchant.merchant_id, newest)
        return merchant, standing, rejection

    async def before(context: Context) -> dict[str, str]:
        merchant = await find_merchant(context, options.merchant)
        known = await read_standing(context, merchant.merchant_id)
        accounts = {"account": known.in_force, "pendingAccount": known.pending}
        return {name: f"****{each.last4}" for name, each in accounts.items() if each is not None}

    changed = details is not None or options.cancel
    given = {"account": f"****{details.last4}"} if details is not None else {"pendingAccount": "none"}
    note = changes("merchant.bank", options.merchant, "", **given) if changed else None
    merchant, standing, rejection = run(flow, note, merchant=options.merchant, before=before)
    facts = {
        "merchantId": str(merchant.merchant_id),
        "inForce": _facts(standing.in_force),
        "pending": _facts(standing.pending),
        "earlier": [_facts(each) for each in standing.earlier],
        "rejectedBefore": None
        if rejection is None
        else {"at": timestamp(rejection.decided_at), "reason": rejection.reason},
        "payoutsPausedSince": None if standing.paused_since is None else timestamp(standing.paused_since),
    }
    lines = _lines(merchant, standing)
    if rejection is not None:
        lines.append(
            f"The newest account was entered again: its numbers were rejected at {timestamp(rejection.decided_at)}: {rejection.reason}"
        )
    show(options, facts, lines)
    return 0


def _details(options: argparse.Namespace) -> BankDetails | None:
    """Return the given numbers, or None. Raises WrongUsage, and BadMerchant for numbers that are not valid."""
    given = options.routing is not None, options.account is not None
    if options.cancel and any(given):
        raise WrongUsage("Nothing was changed. Give either --cancel or --routing and --account, not both.")
    if not any(given):
        return None
    if not all(given):
        raise WrongUsage("Nothing was changed. Give both --routing and --account.")
    try:
        return read_bank_details(options.routing, options.account)
    except BadBankAccount as bad:
        raise BadMerchant(f"Nothing was changed. {bad}") from None


def _facts(each: BankAccount | None) -> dict[str, str] | None:
    if each is None or each.effective_at is None:
        return None
    return {
        "accountId": str(each.account_id),
        "last4": each.last4,
        "effectiveAt": timestamp(each.effective_at),
    }


def _lines(merchant: Merchant, standing: BankStanding) -> list[str]:
    if standing.in_force is None:
        lines = [
            f"{merchant.name} has no bank account and is not paid. Add one with --routing N --account N."
        ]
    else:
        lines = [f"{merchant.name} is paid to {_words(standing.in_force)}."]
    if standing.pending is not None:
        lines.append(f"A change is pending: to {_words(standing.pending)}. To cancel it, add --cancel.")
    lines += [f"Earlier: {_words(each)}." for each in standing.earlier]
    if standing.paused_since is not None:
        since = timestamp(standing.paused_since)
        lines.append(
            f"Payouts have been paused since {since}, because one came back. They continue when another account takes effect."
        )
    return lines


def _words(each: BankAccount) -> str:
    assert each.effective_at is not None
    return f"the account ending in {each.last4}, from {timestamp(each.effective_at)}"


def register(add: Add) -> None:
    """Register `cuota merchant bank`."""
    parser = add("bank", merchant_bank, "show or change the bank account to which a merchant is paid")
    parser.add_argument("merchant", metavar="NAME_OR_ID")
    parser.add_argument("--routing", metavar="N", help="the routing number of a US bank: 9 digits")
    parser.add_argument(
        "--account",
        metavar="N",
        help="the account number. The first account is used at once, a change after 3 days",
    )
    parser.add_argument("--cancel", action="store_true", help="cancel a change that has not taken effect yet")
