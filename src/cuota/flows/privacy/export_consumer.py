"""Exports all stored data about a person, for a person who requests their own data."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any
from uuid import UUID

from cuota.core.operator.mask import without_token
from cuota.db.privacy import erasure, ownership, person
from cuota.flows.context import Context, utc_now
from cuota.flows.dispute.evidence import statements
from cuota.flows.plan.change_plan import sealed_for
from cuota.flows.plan.read_messages import open_text
from cuota.flows.risk.block_consumer import reason_of_block
from cuota.rails import inbox

FORMAT = "cuota-consumer-export/1"
ABOUT = (
    "Everything that this service stores about the owner of this phone number. Amounts are whole cents, times are UTC. "
    "orders: orders in which the number was confirmed by a code. orders_naming_this_number: orders for which a shop gave the "
    "number, but nobody confirmed it; their contents are left out, because they may belong to somebody else. orders_of_others: "
    "orders of somebody else whose checkout this person opened as well, with the rows about this person only. If the shop gave another "
    "number for an order, the shop's data about its customer is left out of that order. Hashes and tokens "
    "are also left out, because nothing can be read from them."
)


async def export_consumer(context: Context, phone: str) -> dict[str, Any]:
    """Return all data as JSON values, read in one transaction. Amounts are cents, times are UTC."""
    consumer_id = context.vault.consumer_id(phone)
    async with erasure.patient(context.pool) as connection:
        theirs = await ownership.find(connection, consumer_id, phone)
        about = await person.read_person(connection, consumer_id, phone)
        for block in about["consumer_blocks"]:
            block["reason"] = reason_of_block(context, UUID(block["block_id"]), _bytes_of(block["reason"]))
        orders = [
            _with_texts(context, await _with_statements(context, order))
            for order in await person.read_orders(connection, theirs, consumer_id, phone)
        ]
        parts = [
            _with_messages(context, part) for part in await person.read_parts(connection, theirs, consumer_id)
        ]
        recipients = [phone, *await erasure.mails(connection, consumer_id)]
        received = [
            {"channel": each.channel, "to": each.recipient, "subject": each.subject, "text": each.text,
             "at": each.created_at.isoformat()}
            for to in recipients for each in await inbox.look(connection, to=to, limit=inbox.KEPT)
        ]  # fmt: skip
    named = [
        {"merchant_id": str(merchant_id), "order_id": str(order_id)}
        for orders_of in (theirs.orders, theirs.named)
        for merchant_id, order_ids in orders_of.items()
        for order_id in order_ids
        if order_id not in theirs.proved
    ]
    return {
        "format": FORMAT,
        "about": ABOUT,
        "exported_at": utc_now().isoformat(),
        "phone": phone,
        "consumer_id": str(consumer_id),
        "found": bool(orders or named or parts or received or any(about.values())),
        **about,
        "orders": orders,
        "orders_naming_this_number": named,
        "orders_of_others": parts,
        "sandbox_inbox": received,
    }


def _with_texts(context: Context, order: dict[str, Any]) -> dict[str, Any]:
    """Replace encrypted columns with their texts: messages as they were sent, and why the plan was changed."""
    _with_messages(context, order)
    for change in order["plan_changes"]:
        sealed, bound_to = _bytes_of(change["reason"]), sealed_for(UUID(order["order_id"]), change["number"])
        change["reason"] = context.vault.decrypt(sealed, bound_to) if sealed else None
    return order


def _with_messages(context: Context, order: dict[str, Any]) -> dict[str, Any]:
    """Replace encrypted messages with their texts."""
    for message in order["messages"]:
        sent = open_text(context, UUID(message["message_id"]), _bytes_of(message["said"]))
        message["said"] = asdict(replace(sent, text=without_token(sent.text))) if sent else None
    return order


def _bytes_of(text: str | None) -> bytes | None:
    """Return the bytes of a column from its JSON text."""
    return None if text is None else bytes.fromhex(text.removeprefix("\\x"))


async def _with_statements(context: Context, order: dict[str, Any]) -> dict[str, Any]:
    """Add the statements and the names of the files to each dispute."""
    merchant_id = UUID(order["merchant_id"])
    for dispute in order["disputes"]:
        written = await statements(context, merchant_id, UUID(dispute["dispute_id"]))
        dispute["statements"] = [
            {
                "party": each.party,
                "text": each.text,
                "at": each.at.isoformat(),
                "files": [file.name for file in each.files],
            }
            for each in written
        ]
    return order
