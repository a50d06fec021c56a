"""`cuota rails`: each card rail, its charges of the last day, and what its processor has reported."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from cuota.commands.common import Add, require_database, run, show
from cuota.core import money
from cuota.core.instant import timestamp
from cuota.db.plan.rail_reports import NotableEvent, RailReport, read_notable, read_reports
from cuota.flows.context import Context

MOST_SHOWN = 50


def rails(options: argparse.Namespace) -> int:
    """`cuota rails`: exit 1 if the events of a loaded rail could not be fetched, so that a monitor notices."""
    require_database()
    loaded, active, reports, notable = run(_read)
    facts = [
        _facts(name, report, active=name == active, loaded=name in loaded) for name, report in reports.items()
    ]
    lines = [line for fact in facts for line in _lines(fact)]
    if notable:
        lines += ["", "Reported by the processors, newest first:"]
        lines += [_line(event) for event in notable]
    show(options, {"rails": facts, "events": [_event(event) for event in notable]}, lines)
    return 1 if any(fact["loaded"] and fact["fetchProblem"] for fact in facts) else 0


async def _read(context: Context) -> tuple[set[str], str, dict[str, RailReport], list[NotableEvent]]:
    cards = context.rails.card
    active = cards.active.name
    found = await read_reports(context.pool, context.now() - timedelta(days=1), active, set(cards.by_name))
    reports = {name: found[name] for name in sorted(found, key=lambda name: (name != active, name))}
    return set(cards.by_name), active, reports, await read_notable(context.pool, MOST_SHOWN)


def _time(at: datetime | None) -> str | None:
    return timestamp(at) if at else None


def _facts(name: str, report: RailReport, *, active: bool, loaded: bool) -> dict[str, Any]:
    return {
        "rail": name,
        "active": active,
        "loaded": loaded,
        "chargesOfLastDay": {
            "approved": report.approved,
            "declined": report.declined,
            "withoutAnswer": report.pending,
        },
        "openDisputes": report.disputes,
        "eventsToApply": report.waiting,
        "lastEventAt": _time(report.last_event_at),
        "eventsFetchedAt": _time(report.fetched_at),
        "fetchProblem": report.fetch_problem,
    }


def _lines(fact: dict[str, Any]) -> list[str]:
    use = "takes new cards" if fact["active"] else "pays earlier plans"
    if not fact["loaded"]:
        use = "NOT LOADED: name it in CUOTA_CARD_RAILS_KEPT while plans still use its cards"
    counts = fact["chargesOfLastDay"]
    lines = [
        f"{fact['rail']}: {use}",
        (
            f"  charges of the last day: {counts['approved']} approved, {counts['declined']} declined,"
            f" {counts['withoutAnswer']} without an answer yet"
        ),
        (
            f"  open disputes: {fact['openDisputes']}; events to apply: {fact['eventsToApply']};"
            f" last event: {fact['lastEventAt'] or 'none'}"
        ),
    ]
    if fact["fetchProblem"]:
        lines.append(f"  its events could not be fetched: {fact['fetchProblem']}")
    else:
        lines.append(f"  events fetched: {fact['eventsFetchedAt'] or 'not yet'}")
    return lines


def _event(event: NotableEvent) -> dict[str, Any]:
    amount = None if event.amount is None else money.text_of(event.amount)
    return {
        "rail": event.rail,
        "kind": event.kind,
        "at": timestamp(event.at),
        "merchantId": str(event.merchant_id),
        "orderId": str(event.order_id),
        "amount": amount,
        **{name: value for name, value in asdict(event).items() if name in {"reason", "reference", "status"}},
    }


def _line(event: NotableEvent) -> str:
    facts = _event(event)
    shown = [
        facts[name] for name in ("at", "rail", "kind", "amount", "orderId", "reference", "status", "reason")
    ]
    return "  " + "  ".join(str(value) for value in shown if value is not None)


def register(add: Add) -> None:
    """Add the command."""
    add("rails", rails, "show each card rail, its charges and what its processor has reported")
