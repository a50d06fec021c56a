"""What a merchant's own people set: order amounts, capture, reading of requests, brand, address for notices.

Each change and its entry in the audit log are one transaction. Every process sees a change within FRESH_SECONDS
(`flows/merchant/authenticate.py`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from uuid import UUID

import asyncpg

from cuota.core import money
from cuota.core.desk.notice import StaffNoticeKind
from cuota.core.desk.person import read_email
from cuota.core.logo import BadLogo, Logo, read_logo
from cuota.core.merchant import BodyProfile, Merchant
from cuota.core.shown_name import ConfusingName, is_id, shown_name
from cuota.db.desk import notices
from cuota.db.desk.notices import StaffNotice
from cuota.db.merchant import logos, merchants
from cuota.db.pool import Connection
from cuota.flows.context import Context, utc_now
from cuota.flows.desk.bad_change import BadChange
from cuota.flows.desk.record import AuditNote, Cause, record

LONGEST_NAME = 100
NAME_TAKEN = "Another merchant has this name. Choose a name that consumers cannot confuse with it."
_To = Callable[[Merchant], Merchant]


async def set_amounts(
    context: Context, merchant_id: UUID, low: int | None, high: int | None, cause: Cause
) -> None:
    """Set the smallest and the largest order amount (cents), within the operator's limits. None: the operator's limit.

    The limits apply to orders created from now on. Raises BadChange.
    """

    def to(held: Merchant) -> Merchant:
        for name, cents in (("minimum", low), ("maximum", high)):
            if cents is not None and not held.minimum <= cents <= held.maximum:
                least, most = (money.shown(each, held.currency) for each in (held.minimum, held.maximum))
                raise BadChange(f"Your payment provider allows {least} to {most}.", name)
        if low is not None and high is not None and low > high:
            raise BadChange("The largest amount must be at least the smallest.", "maximum")
        return replace(held, own=replace(held.own, minimum=low, maximum=high))

    await _changed(context, merchant_id, to, "settings.amounts", cause)


async def set_capture(context: Context, merchant_id: UUID, cause: Cause, *, defer: bool) -> None:
    """Set whether an order is captured when the merchant says so (`defer`), or when it is approved. Applies to new orders."""
    await _changed(
        context, merchant_id, lambda held: replace(held, defer_funds_capture=defer), "settings.capture", cause
    )


async def set_profile(context: Context, merchant_id: UUID, profile: BodyProfile, cause: Cause) -> None:
    """Set how request bodies with an order are read."""
    await _changed(
        context, merchant_id, lambda held: replace(held, profile=profile), "settings.profile", cause
    )


async def set_brand(
    context: Context, merchant_id: UUID, name: str, email: str, url: str | None, cause: Cause
) -> None:
    """Set the name that consumers see, and where they can ask questions. Empty texts remove a value.

    `url` is checked already. Raises BadChange.
    """
    try:
        shown = shown_name(name, LONGEST_NAME)
    except ConfusingName as wrong:
        raise BadChange(str(wrong), "display_name") from None
    if is_id(shown):
        raise BadChange("Enter a name that is not an id.", "display_name")

    def to(held: Merchant) -> Merchant:
        own = replace(
            held.own,
            display_name=shown or None,
            support_email=_email(email, "support_email"),
            support_url=url,
        )
        return replace(held, own=own)

    try:
        await _changed(context, merchant_id, to, "settings.brand", cause)
    except asyncpg.UniqueViolationError:
        raise BadChange(NAME_TAKEN, "display_name") from None


async def set_notify_email(context: Context, merchant_id: UUID, email: str, cause: Cause) -> None:
    """Set the address to which notices about the account go, besides the owners. An empty text removes it. Raises BadChange.

    The earlier address gets an e-mail about the change.
    """
    checked = _email(email, "notify_email")

    def to(held: Merchant) -> Merchant:
        return replace(held, own=replace(held.own, notify_email=checked))

    await _changed(context, merchant_id, to, "settings.notices", cause)


async def set_logo(context: Context, merchant_id: UUID, content: bytes, cause: Cause) -> None:
    """Set the logo that the checkout shows. Raises BadChange if the file cannot be a logo."""
    try:
        logo = read_logo(content)
    except BadLogo as bad:
        raise BadChange(str(bad), "files") from None
    await _keep_logo(context, merchant_id, logo, cause)


async def remove_logo(context: Context, merchant_id: UUID, cause: Cause) -> None:
    """Remove the logo."""
    await _keep_logo(context, merchant_id, None, cause)


async def _keep_logo(context: Context, merchant_id: UUID, logo: Logo | None, cause: Cause) -> None:
    def to(held: Merchant) -> Merchant:
        return replace(held, own=replace(held.own, logo=logo.digest if logo else None))

    async def also(session: Connection) -> None:
        await logos.keep_only(session, merchant_id, logo)

    await _changed(context, merchant_id, to, "settings.logo", cause, also)


def _email(typed: str, name: str) -> str | None:
    if not typed.strip():
        return None
    checked = read_email(typed)
    if checked is None:
        raise BadChange("Enter an e-mail address, such as help@shop.example.", name)
    return checked


async def _changed(
    context: Context,
    merchant_id: UUID,
    to: _To,
    action: str,
    cause: Cause,
    also: Callable[[Connection], Awaitable[None]] | None = None,
) -> None:
    """Read, change and write under the lock of the merchant's row. A call that changes nothing writes no entry."""
    async with context.pool.session() as session, session.transaction():
        held = await merchants.lock(session, merchant_id)
        assert held is not None, "a person of its team is signed in"
        changed = to(held)
        if changed == held:
            return
        name = changed.own.display_name
        if name and name != held.own.display_name and await merchants.is_taken(session, merchant_id, name):
            raise BadChange(NAME_TAKEN, "display_name")
        await merchants.set_own(session, changed)
        if also is not None:
            await also(session)
        before, after = _facts(held), _facts(changed)
        differ = [key for key in after if before[key] != after[key]]
        note = AuditNote(
            action, "Settings", cause.reason,
            before={key: before[key] for key in differ}, after={key: after[key] for key in differ},
        )  # fmt: skip
        await record(context, merchant_id, cause.actor, note, session)
        if held.own.notify_email and changed.own.notify_email != held.own.notify_email:
            await _tell_earlier(context, session, held, changed, cause)


async def _tell_earlier(
    context: Context, session: Connection, held: Merchant, changed: Merchant, cause: Cause
) -> None:
    """Queue an e-mail to the earlier address for notices, because a thief would change the address first."""
    facts = {
        "who": cause.actor.words,
        "place": cause.actor.address,
        "before": held.own.notify_email,
        "email": changed.own.notify_email,
    }
    email = held.own.notify_email or ""
    kind = StaffNoticeKind.NOTIFY_CHANGED
    notice = StaffNotice(context.new_id(), kind, email, facts, utc_now(), 0)
    await notices.add(session, held.merchant_id, notice)


def _facts(merchant: Merchant) -> dict[str, str]:
    """Return the settings for the audit log."""
    own = merchant.own
    amounts = {
        name: "as the provider's" if cents is None else money.text_of(cents)
        for name, cents in (("smallestAmount", own.minimum), ("largestAmount", own.maximum))
    }
    texts = {
        "displayName": own.display_name,
        "supportEmail": own.support_email,
        "supportUrl": own.support_url,
        "noticesTo": own.notify_email,
        "logo": own.logo,
    }
    return {
        **amounts,
        "deferFundsCapture": "yes" if merchant.defer_funds_capture else "no",
        "profile": merchant.profile.value,
        **{name: text or "none" for name, text in texts.items()},
    }
