"""Every statement on a merchant's rows names the merchant, so that it cannot touch another merchant's rows."""

from __future__ import annotations

import re
from functools import cache

import pytest

from support.db.statements import FOLDER, every_statement, statements

# Statements that name no merchant, each with the reason.
ALLOWED = {
    "due._OLDEST": "a plain read that finds the orders that are due first; each change then names one merchant",
    "due._MERCHANTS": "a plain read that finds the merchants with due orders; each change then names one merchant",
    "charges._MERCHANTS_DUE": "a plain read that finds the merchants with card refunds that are due; each claim then names one merchant",
    "virtual_cards._MERCHANTS_TOLD": "a plain read that finds the merchants with virtual cards whose limit fell; each change then names one merchant",
    "virtual_cards._MERCHANTS_HIDDEN": "a plain read that finds the merchants with virtual cards that must be hidden; each change then names one merchant",
    "operator_figures._AGING": "the operator's sum of overdue amounts, over all merchants",
    "operator_figures._WAITING": "the operator's count of waiting webhooks, of all merchants",
    "operator_figures._PARKED": "the operator's count of webhooks that were parked lately, of all merchants",
    "operator_figures._TO_DECIDE": "the operator's count of disputes that wait for a decision, of all merchants",
    "reviews._ANSWERED": "the operator's list of reviews that ended, of all merchants",
    "reviews._COUNT": "the operator's count of waiting reviews, of all merchants",
    **dict.fromkeys(
        (f"queues.{name}" for name in ("_EVENTS", "_WEBHOOKS", "_MESSAGES", "_ORDERS", "_CARD_REFUNDS", "_CARD_EVENTS", "_PAYOUTS", "_DISPUTES", "_ANSWERS", "_BATCHES", "_SETTLEMENT", "_SEARCH")),
        "the operator's count of waiting entries in a queue, of all merchants",
    ),
    "lanes._LANES": "a plain read that finds the receivers' queues of all merchants; each claim then names one merchant",
    "lanes._REMOVED": "a plain read that finds the queues of removed endpoints, of all merchants; each parking then names one merchant",
    "lanes._MERCHANTS_PENDING": "a plain read that finds the merchants with pending deliveries, on a Citus cluster",
    "recalculate._MERCHANTS_OF_SHARDS": "finds every merchant on a Citus cluster, for the operator's check",
    "across._MERCHANTS": "finds every merchant for background jobs, if a node of a Citus cluster is down",
    "accounts._PAGE": "the places of a consumer's plans at all merchants: each table is joined by the plan's merchant",
    "accounts._LATE": "a consumer's overdue payments at all merchants: each table is joined by the plan's merchant",
    "accounts._PLANS": "a consumer's own plans at all merchants: each table is joined by the plan's merchant",
    "claims._CLAIMERS": "a plain read that finds the merchants whose deliveries are claimed by workers",
    "claims._OF_WORKER": "a plain read that finds the merchants whose deliveries are claimed by one worker",
    "events._WAITING": "a plain read that finds the merchants with events to publish",
    "charges._PLACE": "the operator's command has only the refund's id; the change then names the merchant",
    "charges._FAILED_SUM": "the operator's sum of refunds that cards refused, of all merchants",
    "charges._FAILED": "the operator's list of refunds that cards refused, of all merchants",
    "card_events._MERCHANTS_DUE": "a plain read that finds the merchants with due events of card processors; each claim then names one merchant",
    "write_offs._MERCHANTS_DUE": "a plain read that finds the merchants with installments that must be written off; each write-off then names one merchant",
    "messages._MERCHANTS_WITH_TEXTS": "a plain read that finds the merchants with due texts; each claim then names one merchant",
    "messages._MERCHANTS_WITH_MAILS": "a plain read that finds the merchants with due mails; each claim then names one merchant",
    "lines._MERCHANTS_BEHIND": "a plain read that finds the merchants with movements without a settlement line; each insert then names one merchant",
    "batches._MERCHANTS_DUE": "a plain read that finds the merchants with batches whose cutoff has passed; each close then names one merchant",
    "sessions._MERCHANTS_WITH_MAIL": "a plain read that finds the merchants with sign-in links to mail; each claim then names one merchant",
    "sessions._OLD_SESSIONS": "a plain read that finds the merchants with ended sessions; each deletion then names one merchant",
    "api_requests._MERCHANTS": "a plain read that finds the merchants with people in their dashboard; each statement then names one merchant",
    "notices._MERCHANTS_WITH_NOTICES": "a plain read that finds the merchants with due mails to their own people; each claim then names one merchant",
    "notices._MERCHANTS_WITH_OLD": "a plain read that finds the merchants with mails that were sent long ago; each deletion then names one merchant",
    "sessions._OLD_LINKS": "a plain read that finds the merchants with ended sign-in links; each deletion then names one merchant",
    "terms._BEHIND": "a plain read that finds the merchants with orders whose search terms are not written yet; each insert then names one merchant",
    "people._BY_EMAIL": "a person who signs in to a dashboard enters an e-mail address and no merchant",
    "losses._LOSSES": "the operator's losses over all merchants",
    "losses._MERCHANT_LOSSES": "the operator's losses over all merchants, for amounts that belong to no order",
    "shared_signals._SHARED": "the operator's list of shared signals, of all merchants",
    "books._BALANCES": "the operator's trial balance over all merchants",
    "books._MERCHANT_BALANCES": "the operator's trial balance over all merchants, for amounts that belong to no order",
    "settlements._MERCHANTS": "finds every merchant whose money has settlement lines, for the operator's check; the later reads name each merchant",
    "sending._MERCHANTS_DUE": "finds the merchants with payouts to send",
    "sending._MERCHANTS_ASKED": "finds the merchants with payouts to look up",
    "queued._READ": "finds the payouts of a bank file or a report, of all merchants",
    "disputes._MERCHANTS_DUE": "finds the merchants with due disputes",
    "disputes._ANYWHERE": "the operator's commands have only the dispute's id",
    "sending._WAITING": "the operator's count of payouts that wait for a bank rail, of all merchants",
    "outgoing._MERCHANTS_DUE": "finds the merchants with answers to chargebacks; each claim then names one merchant",
    "operator_list._DISPUTES": "the operator's list of disputes, of all merchants",
    "operator_list._PAYOUTS": "the operator's list of payouts, of all merchants",
    "operator_list._UNPAID": "the operator's list of payouts that are not paid, of all merchants",
    "operator_list._TROUBLED": "the operator's list of payouts to look at, of all merchants",
    "operator_list._TROUBLES": "the operator's count of payouts to look at, of all merchants",
    "operator_list._HELD": "the operator's list of payouts to release, of all merchants",
    "operator_list._COUNT_HELD": "the operator's count of payouts to release, of all merchants",
    "onboardings._COUNT_TO_CHECK": "the operator's count of merchants with an item to check",
    "onboardings._COUNT_OPEN": "the operator's count of merchants that wait for their approval",
    "screenings._MERCHANTS_DUE": "a plain read that finds the merchants with names to screen; each claim then names one merchant",
    "merchant_list._SHOWN": "the operator's list of all merchants",
    "merchant_list._BY_NAME": "the operator's list of all merchants, by name",
    "merchant_list._NEWEST": "the operator's list of all merchants, newest first",
    "merchant_list._COUNT": "the operator's count of all merchants",
    "merchant_list._TO_CHECK": "finds which merchants in the operator's list have an item to check",
    "operator_list._TO_DECIDE": "the operator's list of disputes to decide, of all merchants",
    "operator_list._PAUSED": "the operator's list of merchants whose payouts are paused",
    "bank_accounts._MERCHANTS": "finds every merchant, at a start of the sandbox; each statement then names one merchant",
    "bank_accounts._HAVING": "finds the merchants that have a bank account, at a start of the sandbox",
    "bank_accounts._PAUSED": "finds the merchants whose payouts may continue; each change then names one merchant",
    "history._READ_PAST": "a consumer's history at all merchants, for the operator's page about the consumer",
    "consumer_messages._PAGE": "the operator's list of the messages to one consumer: each table is joined by the order's merchant",
    "history._READ": "a consumer's history at all merchants, by the consumer's id",
    "history._PAST": "the history of one consumer at all merchants, by the consumer's id",
    "history._FORGET": "deletes every merchant's signals that are older than all windows",
    "decisions._BY_ID": "finds one decision by its id, for the operator",
    "story._FIND": "finds the orders that the operator names by a merchant's reference",
    "decisions._WHOSE": "finds the merchant of an order that the operator names by its id alone",
    "rail_figures._CHARGES": "the operator's count of charges by card rail, of all merchants",
    "rail_figures._PENDING": "the operator's count of charges without an answer, of all merchants",
    "rail_figures._LAST": "the time of each rail's last event, of all merchants",
    "rail_figures._WAITING": "the operator's count of events that are not applied yet, of all merchants",
    "rail_figures._DISPUTES": "the operator's list of open disputes, of all merchants",
    "rail_figures._MONEY_BACK": "the operator's list of refunds to look at, of all merchants",
    "rail_figures._REFUND_EVENTS": "the operator's command has only the event's id; the change then names the merchant",
    "recalculate._MERCHANTS": "finds every merchant that has rows; the later reads name each merchant",
    "merchants._TAKEN": "finds out whether another merchant has a name",
    "merchants._ALL": "the operator's list of all merchants",
    "merchants._REVOKED": "the operator's list of all merchants, with their states",
    "merchants._BY_NAME": "finds the merchant id by its unique name",
    "merchants._BY_CLIENT": "finds a credential before its merchant is known",
    "hanging_receivers._HANGING": "finds the hanging receivers of all merchants, at the start of an advance",
    "clock._NEXT": "finds the earliest due time of all merchants, for the sandbox's clock",
    "clock._PAID": "lists the work for all merchants' consumers at an instant of the sandbox's clock",
    "clock._HAS_ORDERS": "finds out whether any merchant has an order: if so, the sandbox's clock does not go back",
    "clock._DUE": "counts the due work of all merchants at an instant of the sandbox's clock",
    "idempotency._FORGET": "deletes the responses of all merchants that are a day old",
    "checkouts._OLD": "finds the merchants with browsers that are a month old; each deletion then names one merchant",
    "ownership._FOUND": "a consumer's orders at all merchants, by the consumer's id",
    "erasure._OTHER_BROWSERS": "deletes a consumer's browsers at all merchants",
    "erasure._MAILS": "a consumer's own mail addresses, by the consumer's id",
    "retention._MERCHANTS_WITH_ORDERS": "finds the merchants with orders that may have reached the end of their retention period; each statement then names one",
    "retention._MERCHANTS_WITH_MESSAGES": "finds the merchants with messages that have reached the end of their retention period; each statement then names one",
    "retention._MERCHANTS_WITH_ATTEMPTS": "finds the merchants with delivery attempts that have reached the end of their retention period; each statement then names one",
    "retention._MERCHANTS_WITH_UNSAVED_FILES": "finds the merchants with files whose statement in a dispute was never saved; each statement then names one",
    "retention._MERCHANTS_WITH_LEFT": "finds the merchants with old deliveries whose attempts an earlier release may have deleted; each statement then names one",
    "retention._WITH_PLANS": "finds the consumers who have a plan at any merchant",
}  # fmt: skip
_TABLE = re.compile(r"CREATE (?:UNLOGGED )?TABLE (\w+) \((.*?)\n\)", re.DOTALL)
_KEY = re.compile(r"PRIMARY KEY \((\w+)|(\w+)[ ][^\n]*PRIMARY KEY")


@cache
def merchants_tables() -> frozenset[str]:
    """Return the tables whose primary key begins with merchant_id, from the migrations."""
    found = set()
    for file in sorted((FOLDER / "migrations").glob("*.sql")):
        for name, body in _TABLE.findall(file.read_text()):
            key = _KEY.search(body)
            if key and "merchant_id" in key.groups():
                found.add(name)
    return frozenset(found)


def touched(sql: str) -> frozenset[str]:
    return merchants_tables() & set(re.findall(r"(?:FROM|JOIN|INTO|UPDATE)\s+(\w+)", sql))


def test_the_test_finds_the_tables_and_the_statements() -> None:
    assert {
        "merchants",
        "orders",
        "transfers",
        "movements",
        "idempotency_keys",
        "checkout_sessions",
    } <= merchants_tables()
    assert "consumers" not in merchants_tables()
    assert {"orders.FOR_CAPTURE", "charges._CLAIM", "save_orders.4"} <= {
        name for name, _ in every_statement()
    }


@pytest.mark.parametrize(
    ("name", "sql"), [pair for pair in every_statement() if touched(pair[1])], ids=lambda value: value[:40]
)
def test_a_statement_on_a_merchants_rows_names_the_merchant(name: str, sql: str) -> None:
    given = re.search(r"merchant_id\s*=\s*\$\d|\(merchant_id,|VALUES\s*\(\$1|SELECT\s+\$1::uuid", sql)
    assert given or name in ALLOWED, (
        f"{name} touches {', '.join(sorted(touched(sql)))} and names no merchant_id: add `merchant_id = $1` to its "
        "WHERE, so that another merchant's rows are not there for it. If it truly reads over all merchants, add it to "
        "ALLOWED in tests/db/test_statements.py with the reason."
    )


def test_every_exception_still_has_its_statement() -> None:
    stale = set(ALLOWED) - {name for name, _ in statements()}
    assert not stale, f"Remove {', '.join(sorted(stale))} from ALLOWED: there is no such statement any more."
