"""Describes a change of a plan in hardship: in words for an operator, and as facts for scripts."""

from __future__ import annotations

from typing import Any

from cuota.core import money
from cuota.core.instant import timestamp
from cuota.core.plan.change import PlanChange


def change_lines(change: PlanChange) -> list[str]:
    """Return a text with the change, its author, and the time of the message to the consumer."""
    told = f"told on {timestamp(change.told_at)}" if change.told_at else "the message is on its way"
    return [
        f"Change {change.number} ({change.kind.replace('_', ' ')}), {timestamp(change.changed_at)}, by {change.changed_by}:",
        f"  {change.said or 'its text was erased'} The consumer: {told}. SHA-256 {change.text_hash}.",
    ]


def change_facts(change: PlanChange) -> dict[str, Any]:
    """Return a change for scripts."""
    return {
        "number": change.number,
        "changeId": str(change.change_id),
        "kind": change.kind.value,
        "at": timestamp(change.changed_at),
        "by": change.changed_by,
        "days": change.days,
        "waived": money.text_of(change.waived),
        "payments": change.payments,
        "textHash": change.text_hash,
        "toldAt": timestamp(change.told_at) if change.told_at else None,
    }
