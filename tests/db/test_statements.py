"""Every statement on a merchant's rows names the merchant, so that it cannot touch another merchant's rows."""

from __future__ import annotations

import re

import pytest

from support.db.statements import FOLDER, every_statement, statements

# Statements that name no merchant, each with the reason.
ALLOWED = {
    "orders.MERCHANTS_DUE": "a plain read that finds the merchants that have something due; claiming names each",
    "charges._MERCHANTS_DUE": "the same, for card refunds",
    "virtual_cards._MERCHANTS_TOLD": "the same, for virtual cards whose limit fell",
    "virtual_cards._MERCHANTS_HIDDEN": "the same, for virtual cards that were shown long enough",
    "operator_figures._AGING": "the operator's sum of what is overdue, over all merchants",
    "operator_figures._WAITING": "the operator's count of webhooks that wait",
    "operator_figures._TO_DECIDE": "the operator's count of disputes that wait",
    "reviews._ANSWERED": "the operator's list of reviews that ended, of all merchants",
    "reviews._COUNT": "the operator's count of reviews that wait",
    **dict.fromkeys(
        (f"queues.{name}" for name in ("_EVENTS", "_WEBHOOKS", "_MESSAGES", "_ORDERS", "_CARD_REFUNDS", "_CARD_EVENTS", "_PAYOUTS", "_SETTLEMENT", "_SEARCH")),
        "the operator's count of what waits in a queue, of all merchants",
    ),
    "deliveries._LANES": "the same, for receivers' queues",
    "deliveries._MERCHANTS_PENDING": "the same, for merchants with pending deliveries, on a Citus cluster",
    "recalculate._MERCHANTS_OF_SHARDS": "the operator's check finds every merchant, on a Citus cluster",
    "across._MERCHANTS": "background jobs find every merchant, if a node of a Citus cluster is down",
    "accounts._PLANS": "a consumer's own plans at all merchants: each table is joined by the plan's merchant",
    "claims._CLAIMERS": "the same, for what workers have under way",
    "claims._OF_WORKER": "the same, of one worker",
    "events._WAITING": "the same, for what is to be published",
    "charges._FAILED": "the operator's list of money that cards refused, of all merchants",
    "card_events._MERCHANTS_DUE": "the same, for what card processors reported",
    "write_offs._MERCHANTS_DUE": "the same, for installments that are to be written off",
    "messages._MERCHANTS_DUE": "the same, for messages",
    "lines._MERCHANTS_BEHIND": "the same, for movements without a settlement line",
    "batches._MERCHANTS_DUE": "the same, for batches whose cutoff has come",
    "sessions._MERCHANTS_WITH_MAIL": "the same, for sign-in links that are to be mailed",
    "sessions._OLD_SESSIONS": "the same, for sessions and links that have ended",
    "api_requests._MERCHANTS": "finds the merchants whose dashboard has people; each is then named",
    "notices._MERCHANTS_WITH_NOTICES": "the same, for mails to merchants' own people",
    "notices._MERCHANTS_WITH_OLD": "the same, for mails that were sent long ago",
    "sessions._OLD_LINKS": "the same, for sessions and links that have ended",
    "terms._BEHIND": "the same, for orders whose search terms are not written yet",
    "people._BY_EMAIL": "a person who signs in to a dashboard names an address and no merchant",
    "losses._LOSSES": "the operator's losses over all merchants",
    "losses._MERCHANT_LOSSES": "the same, for amounts that belong to no order",
    "shared_signals._SHARED": "the operator's list of shared signals, of all merchants",
    "books._BALANCES": "the operator's trial balance over all merchants",
    "books._MERCHANT_BALANCES": "the same, for amounts that belong to no order",
    "settlements._MERCHANTS": "the operator's check finds every merchant whose money has lines; the reads that follow name each",
    "sending._MERCHANTS_DUE": "finds the merchants with payouts to send",
    "disputes._MERCHANTS_DUE": "finds the merchants with due disputes",
    "disputes._ANYWHERE": "the operator's commands have only the dispute's id",
    "sending._WAITING": "the operator's count of payouts that wait for a bank rail, of all merchants",
    "outgoing._MERCHANTS_DUE": "finds the merchants with answers to chargebacks; each claim then names one merchant",
    "operator_list._PAYOUTS": "the operator's list of payouts, of all merchants or of one",
    "operator_list._TROUBLED": "the operator's list of payouts to look at, of all merchants",
    "operator_list._TROUBLES": "the same, counted",
    "operator_list._HELD": "the operator's list of payouts to release, of all merchants",
    "operator_list._COUNT_HELD": "the same, counted",
    "onboardings._COUNT_TO_CHECK": "the operator's count of merchants with something to check",
    "onboardings._COUNT_OPEN": "the operator's count of merchants that wait for their approval",
    "screenings._MERCHANTS_DUE": "finds the merchants whose names are to be screened; claiming names each",
    "merchant_list._SHOWN": "the operator's list of all merchants",
    "merchant_list._BY_NAME": "the same, by name",
    "merchant_list._NEWEST": "the same, the newest first",
    "merchant_list._COUNT": "the same, counted",
    "merchant_list._TO_CHECK": "the same: about which of them something is to be checked",
    "operator_list._TO_DECIDE": "the operator's list of disputes to decide, of all merchants",
    "operator_list._PAUSED": "the operator's list of merchants whose payouts are paused",
    "bank_accounts._MERCHANTS": "a start of the sandbox finds every merchant; each is then named",
    "bank_accounts._HAVING": "finds the merchants that have a bank account, at a start of the sandbox",
    "bank_accounts._PAUSED": "finds the merchants whose payouts may continue; each is then named",
    "history._READ_PAST": "the same, for the operator's page about the consumer",
    "consumer_messages._PAGE": "the operator's list of the messages to one consumer: each table is joined by the order's merchant",
    "history._READ": "a consumer's past at all merchants, by the consumer's id",
    "history._PAST": "the same",
    "history._FORGET": "deletes every merchant's signals that are older than all windows",
    "decisions._BY_ID": "finds one decision by its id, for the operator",
    "story._FIND": "finds the orders that the operator names by a merchant's reference",
    "decisions._WHOSE": "finds the merchant of an order that the operator names by its id alone",
    "rail_figures._CHARGES": "the operator's count of charges by card rail, of all merchants",
    "rail_figures._PENDING": "the operator's count of charges without an answer, of all merchants",
    "rail_figures._LAST": "the time of each rail's last event, of all merchants",
    "rail_figures._WAITING": "the operator's count of events to apply, of all merchants",
    "rail_figures._DISPUTES": "the operator's list of open disputes, of all merchants",
    "rail_figures._MONEY_BACK": "the operator's list of refunds to look at, of all merchants",
    "recalculate._MERCHANTS": "finds every merchant that has rows; the reads that follow name each",
    "merchants._TAKEN": "whether another merchant has a name",
    "merchants._ALL": "the operator's list of all merchants",
    "merchants._BY_NAME": "finds the merchant id by its unique name",
    "merchants._BY_CLIENT": "finds a credential before its merchant is known",
    "hanging_receivers._HANGING": "finds the hanging receivers of all merchants, at the start of an advance",
    "clock._NEXT": "finds the earliest due time of all merchants, for the sandbox's clock",
    "clock._PAID": "lists the work for all merchants' consumers at an instant of the sandbox's clock",
    "clock._HAS_ORDERS": "the sandbox's clock goes back only if no merchant has an order",
    "clock._DUE": "counts what is due of all merchants at an instant of the sandbox's clock",
    "idempotency._FORGET": "drops every merchant's answers of a day ago",
    "checkouts._OLD": "finds the merchants that have browsers of a month ago; each is then named",
    "erasure._ORDERS": "a consumer's orders at all merchants, by the consumer's id",
    "erasure._OTHER_BROWSERS": "deletes a consumer's browsers at all merchants",
    "erasure._MAILS": "a consumer's own mail addresses, by the consumer's id",
    "retention._MERCHANTS_WITH_ORDERS": "finds the merchants that have orders past a term; each is then named",
    "retention._MERCHANTS_WITH_MESSAGES": "finds the merchants that have messages past a term; each is then named",
    "retention._MERCHANTS_WITH_ATTEMPTS": "finds the merchants that have delivery attempts past a term; each is then named",
    "retention._WITH_PLANS": "finds the consumers that have a plan at any merchant",
}  # fmt: skip
_TABLE = re.compile(r"CREATE (?:UNLOGGED )?TABLE (\w+) \((.*?)\n\)", re.DOTALL)
_KEY = re.compile(r"PRIMARY KEY \((\w+)|(\w+)[ ][^\n]*PRIMARY KEY")


def merchants_tables() -> set[str]:
    """Return the tables whose primary key begins with merchant_id, from the migrations."""
    found = set()
    for file in sorted((FOLDER / "migrations").glob("*.sql")):
        for name, body in _TABLE.findall(file.read_text()):
            key = _KEY.search(body)
            if key and "merchant_id" in key.groups():
                found.add(name)
    return found


def touched(sql: str) -> set[str]:
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
