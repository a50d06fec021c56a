"""Code that the tests of reviews share: answers of the operator, and what is stored about a review."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any
from uuid import UUID

from cuota import config
from cuota.core.order.order import Order, Status
from cuota.core.risk.policy import load_policy
from cuota.flows.plan.send_messages import send_messages
from cuota.flows.risk import answer_review
from cuota.flows.risk.answer_review import Reviewer
from support.makers import Running, complete
from support.own_service import Own, opened_own
from support.phones import phone_number

ANA = Reviewer(None, "Ana Silva <ana@example.com>")
BEN = Reviewer(None, "Ben Okafor <ben@example.com>")
REASON = "the address is on file"
# Under the standard policy a new consumer's order of 150.00 gets 596 points.
_STANDARD = resources.files("cuota.policies").joinpath("standard.toml").read_text()
_POLICY = _STANDARD.replace(load_policy(_STANDARD).version, "tests-refer", 1)


def referring(threshold: int, refer_from: int) -> str:
    """Return the standard policy with another threshold and a band that is referred to a person."""
    lines = [line for line in _POLICY.split("\n") if not line.startswith("threshold")]
    at = lines.index("[score]") + 1
    return "\n".join([*lines[:at], f"threshold = {threshold}", f"refer_from = {refer_from}", *lines[at:]])


@asynccontextmanager
async def opened_referring(
    settings: config.Settings, where: dict[str, Any], folder: Path
) -> AsyncIterator[Own]:
    """Start a service whose policy refers a new consumer's orders of more than a few dollars."""
    file = folder / "refer.toml"
    file.write_text(referring(600, 500))
    async with opened_own(replace(settings, policy=file), where) as own:
        yield own


async def buy(own: Own, order: dict[str, Any], phone: str) -> Order:
    """Take the order's checkout up to the payment button, and press the button."""
    return await complete(own.service, own.merchant.merchant_id, order, phone=phone)


async def referred(own: Own, amount: str = "150.00", phone: str | None = None) -> tuple[dict[str, Any], str]:
    """Return an order that waits for a person, and its consumer's number."""
    phone, order = phone or phone_number(), await own.merchant.create(amount)
    pressed = await buy(own, order, phone)
    assert (pressed.status, pressed.review) == (Status.CREATED, "waiting")
    return order, phone


async def decided(own: Own) -> list[dict[str, Any]]:
    """Return all decisions, earliest first."""
    async with own.owner() as owner:
        return [dict(row) for row in await owner.fetch("SELECT * FROM decisions ORDER BY decided_at")]


async def approve(service: Running, order: dict[str, Any], by: Reviewer = ANA, reason: str = REASON) -> Order:
    """Approve the review of an order, as the operator's page does."""
    return await answer_review.approve(service.context, *ids_of(order), by, reason)


async def decline(service: Running, order: dict[str, Any], by: Reviewer = ANA, reason: str = REASON) -> Order:
    """Decline the review of an order, as the operator's page does."""
    return await answer_review.decline(service.context, *ids_of(order), by, reason)


def ids_of(order: dict[str, Any]) -> tuple[UUID, UUID]:
    """Return the merchant's id and the order's id, from the address of the checkout."""
    merchant = (
        str(order.get("redirectUrl") or order["checkoutUrl"]).partition("/checkout/")[2].partition("?")[0]
    )
    return UUID(merchant), UUID(order["orderId"])


async def stored(service: Running, order: dict[str, Any], table: str = "reviews") -> dict[str, Any]:
    """Return the only row of an order in a table."""
    [row] = await service.context.pool.fetch(f"SELECT * FROM {table} WHERE order_id = $1", ids_of(order)[1])
    return dict(row)


async def texts_to(service: Running, phone: str) -> list[str]:
    """Send all messages that are due. Return the text messages to this number, without one-time codes, earliest first."""
    # Messages of other tests may be queued before.
    while await send_messages(service.context):
        pass
    sql = "SELECT text FROM message_simulator.inbox WHERE channel = 'text' AND recipient = $1 ORDER BY number"
    found = [row["text"] for row in await service.context.pool.fetch(sql, phone)]
    return [text for text in found if "We never ask you for it" not in text]
