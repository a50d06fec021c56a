"""Compares policies: the recent decisions of each version and their results, and the differences of two texts."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from cuota.core.risk.policy import Policy
from cuota.db.risk.decisions import Became
from cuota.flows.context import Context
from cuota.flows.risk.review_decisions import DecisionTally, last_of_each

_AT_ONCE = 200


@dataclass(slots=True)
class PolicyRecord:
    """The decisions of one version of the policy. Each order counts once, by its last decision."""

    version: str
    first: datetime
    last: datetime
    approved: DecisionTally = field(default_factory=DecisionTally)
    declined: DecisionTally = field(default_factory=DecisionTally)

    def add(self, became: Became) -> None:
        """Add one order."""
        self.first = min(self.first, became.made.decided_at)
        self.last = max(self.last, became.made.decided_at)
        (self.approved if became.made.approved else self.declined).add(became)

    @property
    def approval_percent(self) -> int:
        """The share of orders that were approved, in percent, rounded down."""
        return 100 * self.approved.orders // (self.approved.orders + self.declined.orders)


async def policy_records(context: Context, since: datetime, until: datetime) -> list[PolicyRecord]:
    """Return the decisions of each version from `since` (included) to `until` (excluded), the latest version first."""
    records: dict[str, PolicyRecord] = {}
    found: Collection[Became] = await last_of_each(context, since, until, None)
    for number, became in enumerate(found):
        if number % _AT_ONCE == 0:
            # A page of the dashboard runs this while the service answers other requests.
            await asyncio.sleep(0)
        version, at = became.made.policy_version, became.made.decided_at
        records.setdefault(version, PolicyRecord(version, at, at)).add(became)
    return sorted(records.values(), key=lambda each: each.last, reverse=True)


def policy_changes(now: Policy, other: Policy) -> list[str]:
    """Return the lines of `other` that differ from the current policy, as a diff with three lines around each change."""
    return list(
        difflib.unified_diff(
            now.text.splitlines(), other.text.splitlines(), now.version, other.version, lineterm=""
        )
    )
