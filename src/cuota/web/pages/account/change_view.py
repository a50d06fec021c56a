"""The agreed changes of a plan, as the account page shows them to the consumer."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from cuota.core.dates import day
from cuota.core.plan.change import ChangeKind, PlanChange
from cuota.db.plan.accounts import PlanDetail
from cuota.web.pages.account.view import day_there, when
from cuota.web.pages.render import PageContext


def changes_of(detail: PlanDetail) -> list[PageContext]:
    """Return the changes of a plan, the latest last. Each has its text as it was agreed, with its hash."""
    zone = detail.shown.zone
    return [
        {
            "number": change.number,
            "day": day_there(change.changed_at, zone, year=True),
            "said": change.said,
            "paragraphs": [each.split("\n") for each in change.text.split("\n\n")],
            "hash": change.text_hash,
            "told": when(change.told_at, zone) if change.told_at else None,
        }
        for change in detail.changes
    ]


def pause_words(detail: PlanDetail, now: datetime) -> list[str]:
    """Return the sentence that says until when the payments pause, if the plan is in an agreed pause."""
    zone = ZoneInfo(detail.shown.zone)
    pauses = [change for change in detail.changes if change.kind is ChangeKind.PAUSED]
    if not pauses or (last := _last_day(pauses[-1], zone)) < now.astimezone(zone).date():
        return []
    return [f"Your payments pause until {day(last)}, as agreed with you. You can still pay early."]


def _last_day(change: PlanChange, zone: ZoneInfo) -> date:
    return change.changed_at.astimezone(zone).date() + timedelta(days=change.days - 1)
