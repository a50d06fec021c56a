"""The common parts of one merchant's pages: the merchant in the path, a text about its state, and its facts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from starlette.requests import Request

from cuota.core import money
from cuota.core.merchant import Merchant, Onboarding
from cuota.core.onboarding.checklist import ItemState
from cuota.db.merchant import merchants
from cuota.db.payout import holds
from cuota.flows.context import Context
from cuota.flows.onboarding.read_checklist import OpenedOnboarding, read_checklist
from cuota.web.pages.checkout.session import Stop
from cuota.web.pages.desk.view import when
from cuota.web.pages.operator.merchant.listing import MERCHANTS
from cuota.web.pages.operator.parts import section
from cuota.web.pages.operator.visit import id_in_path, missing
from cuota.web.pages.render import PageContext
from cuota.web.service import service_of


async def merchant_in_path(request: Request) -> Merchant:
    """Return the merchant in the path. Raises Stop with the 404 page."""
    found = await merchants.read(service_of(request).context.pool, id_in_path(request, "merchant_id"))
    if found is None:
        raise Stop(missing(request))
    return found


def merchant_address(found: Merchant) -> str:
    """Return the address of a merchant's page."""
    return f"{MERCHANTS}/{found.merchant_id}"


async def standing(context: Context, found: Merchant, live: int) -> PageContext:
    """Return the section about the merchant's current permissions, with links to the possible actions."""
    since = await merchants.suspended_since(context.pool, found.merchant_id)
    opened = await read_checklist(context, found.merchant_id)
    address = merchant_address(found)
    links = [
        (f"{address}/onboarding", "Onboarding"),
        (f"/operator/log?about={found.merchant_id}", "What was changed"),
    ]
    pairs: list[tuple[str, object]] = [
        ("New orders", _orders(found, since, live, sandbox=context.settings.sandbox)),
        ("Onboarding", _onboarding(found, opened)),
    ]
    return section(pairs=pairs, links=links)


def _orders(found: Merchant, since: datetime | None, live: int, *, sandbox: bool) -> str:
    if not live:
        return "none: the credentials are revoked"
    if since is not None:
        return f"suspended since {when(since)}"
    if found.onboarding is Onboarding.OPEN:
        return (
            "accepted, because this is the sandbox" if sandbox else "refused until the merchant is approved"
        )
    return "accepted"


def _onboarding(found: Merchant, opened: OpenedOnboarding) -> str:
    """Return a text that says whether the merchant is approved, and which items the operator must check."""
    checklist = opened.checklist
    waits = sum(each.state is ItemState.TO_CHECK for each in checklist.items)
    done = sum(each.state is ItemState.ACCEPTED for each in checklist.items)
    words = {
        Onboarding.NONE: "not required for this merchant",
        Onboarding.OPEN: f"not approved: {done} of {len(checklist.items)} items are accepted",
        Onboarding.APPROVED: "approved",
    }[found.onboarding]
    # If a merchant has only a bank account, its onboarding has not begun.
    facts = opened.facts
    begun = found.onboarding is not Onboarding.NONE or facts.version or facts.owners or facts.documents
    return f"{words}, {waits} to check" if waits and begun else words


def facts_of(found: Merchant, live: int) -> Sequence[tuple[str, object]]:
    """Return the facts of a merchant, as (label, value)."""
    return [
        ("Merchant id", found.merchant_id),
        ("Smallest order", money.shown(found.minimum, found.currency)),
        ("Largest order", money.shown(found.maximum, found.currency)),
        ("Within these, the merchant takes", _own_limits(found)),
        ("Shown to consumers as", found.shown_name),
        ("Captured", "when the merchant says so" if found.defer_funds_capture else "when approved"),
        ("Web origins", ", ".join(found.origins) or "none"),
        ("API credentials", f"{live} in force" if live else "revoked: the merchant cannot call the API"),
    ]


def _own_limits(found: Merchant) -> str:
    own = money.shown(found.lowest, found.currency), money.shown(found.highest, found.currency)
    return f"{own[0]} to {own[1]}" if found.own.minimum or found.own.maximum else "all of them"


def hold_words(held: holds.Holds) -> str:
    """Return a text with the reason and the beginning of a hold of payouts; empty if payouts are not held."""
    if held.unapproved_since is not None:
        return f"held since {when(held.unapproved_since)}, because the merchant is not approved"
    if held.held_since is not None:
        return f"held since {when(held.held_since)} by the operator"
    return ""
