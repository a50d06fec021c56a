"""`cuota rails`: each card rail with its numbers, and the reports of its processor that an operator must check.

`cuota rails settle` marks such a report about a refund.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from cuota.commands.common import changes, require_database, run, show
from cuota.commands.parsers import Add, add_reason, adder
from cuota.core import money
from cuota.core.order.order import LOOK_UP_AFTER
from cuota.db.plan import rail_figures
from cuota.db.plan.rail_figures import Figures, Noted
from cuota.flows.context import Context
from cuota.flows.plan.settle_refund_event import settle_refund_event

MOST_SHOWN = 1000
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class _Seen:
    """The data that the command shows. `roles` has active or kept for each rail's name."""

    roles: dict[str, str]
    figures: list[Figures]
    disputes: list[Noted]
    money_back: list[Noted]


def rails(options: argparse.Namespace) -> int:
    """`cuota rails`: exit 1 if an operator must check something, so that a nightly job notices."""
    require_database()
    seen = run(_read)
    noted = {"openDisputes": seen.disputes, "refunds": seen.money_back}
    facts: dict[str, Any] = {"rails": [_facts(each, seen.roles) for each in seen.figures]}
    facts |= {name: [_noted(each) for each in found] for name, found in noted.items()}
    lines = [line for each in seen.figures for line in _lines(each, seen.roles)]
    lines += [_sentence(each) for found in noted.values() for each in found]
    if not any(noted.values()):
        lines.append("No open disputes, no refunds made elsewhere, no refunds that failed later.")
    show(options, facts, lines)
    troubled = any(each.problem or each.waiting or not _role(each, seen.roles) for each in seen.figures)
    return 1 if troubled or any(noted.values()) else 0


def settle(options: argparse.Namespace) -> int:
    """`cuota rails settle`: mark a refund that the operator has dealt with."""
    require_database()
    note = changes("rails.settle", f"Event {options.event}", options.reason)
    settled = run(lambda context: settle_refund_event(context, options.event), note)
    line = f"Event {options.event} {'is settled' if settled else 'was settled before'}. `cuota rails` no longer lists it."
    show(options, {"event": options.event, "settledNow": settled}, [line])
    return 0


async def _read(context: Context) -> _Seen:
    cards, now = context.rails.card, context.now()
    active = cards.active.name
    found = await rail_figures.figures(context.pool, active, now - DAY, now - LOOK_UP_AFTER)
    roles = {name: "active" if name == active else "kept" for name in cards.by_name}
    shown = [
        found.get(name, Figures(name))
        for name in sorted({*found, *roles}, key=lambda name: (name != active, name))
    ]
    disputes = await rail_figures.open_disputes(context.pool, MOST_SHOWN)
    return _Seen(roles, shown, disputes, await rail_figures.money_back(context.pool, MOST_SHOWN))


def _role(each: Figures, roles: dict[str, str]) -> str | None:
    """Return active or kept. Return None for a rail that was used before and is no longer in any setting."""
    return roles.get(each.name)


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat(timespec="seconds")


def _facts(each: Figures, roles: dict[str, str]) -> dict[str, object]:
    return {
        "name": each.name,
        "role": _role(each, roles) or "not loaded",
        "chargesLastDay": each.charges,
        "declinedLastDay": each.declined,
        "chargesWithoutAnswer": each.waiting,
        "oldestWithoutAnswer": _time(each.waiting_since),
        "errorRate": round(each.waiting / max(each.charges, each.waiting), 4) if each.waiting else 0.0,
        "lastEventAt": _time(each.last_event_at),
        "eventsToApply": each.events_waiting,
        "reconciledUntil": _time(each.reconciled_until),
        "problem": each.problem,
    }


def _lines(each: Figures, roles: dict[str, str]) -> list[str]:
    role = _role(each, roles) or "not loaded: name it in CUOTA_CARD_RAILS_KEPT if plans still use it"
    lines = [
        f"{each.name} ({role})",
        f"  charges in the last day: {each.charges}, of which declined: {each.declined}",
        f"  charges without a final answer: {each.waiting}"
        + (f", the oldest since {_time(each.waiting_since)}" if each.waiting else ""),
        f"  last event received: {_time(each.last_event_at) or 'none yet'}; events to apply: {each.events_waiting}",
        f"  events fetched until: {_time(each.reconciled_until) or 'not yet'}",
    ]
    return lines + ([f"  the last fetch failed: {each.problem}"] if each.problem else [])


def _noted(each: Noted) -> dict[str, object]:
    return {
        "rail": each.rail,
        "merchantId": str(each.merchant_id),
        "orderId": str(each.order_id),
        "kind": each.kind,
        "at": _time(each.at),
        "amount": None if each.amount is None else money.text_of(each.amount),
        "reason": each.reason,
        "reference": each.reference,
        "status": each.status,
        "event": each.event_id,
    }


_WORDS = {"refund.elsewhere": "refund made elsewhere", "refund.failed": "refund that failed later"}


def _sentence(each: Noted) -> str:
    what = _WORDS.get(each.kind, "open dispute")
    told = [
        _time(each.at),
        each.amount and money.text_of(each.amount),
        each.reason,
        each.status,
        each.reference,
    ]
    if each.kind in _WORDS:
        told.append(f"event {each.event_id}")
    return f"{what}: order {each.order_id}, {each.rail}, {', '.join(str(part) for part in told if part)}"


def register(add: Add) -> None:
    """Register `cuota rails`."""
    parser = add("rails", rails, "show each card rail, its numbers, open disputes, and refunds to check")
    more = adder(parser.add_subparsers(metavar="COMMAND"))
    done = more("settle", settle, "mark a refund made elsewhere, or one that failed later, as dealt with")
    done.add_argument("event", metavar="EVENT", help="the event's id, as `cuota rails` shows it")
    add_reason(done, "what you did about the refund, for the log")
