"""`cuota verify` finds rows that only the owner of the database could write, and that no other row contradicts by an amount."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cuota.db.verify.recalculate import verify
from cuota.flows.dispute.close_disputes import settle_due_disputes
from support.db.busy_merchant import a_busy_merchant
from support.db.settled import settled
from support.disputes import captured, charged_back, decided, disputed
from support.own_service import Own

NOBODY = "00000000-0000-7000-0000-000000000001"


def copied(table: str, **changed: str) -> str:
    """Return an INSERT of a copy of some row with other values."""
    values = ", ".join(f"'{name}', '{value}'" for name, value in changed.items())
    return f"""INSERT INTO {table} SELECT (json_populate_record(t, json_build_object({values}))).* FROM {table} t LIMIT 1"""


LAST_CAPTURE = "(order_id, sequence) = (SELECT order_id, sequence FROM events WHERE type = 'capture.completed' ORDER BY order_id DESC LIMIT 1)"
# Each with the beginning of the row that is named.
PLANTED = {
    "a settled capture that the merchant was told was refused": (
        ("UPDATE events SET type = 'capture.rejected', success = false WHERE type = 'capture.completed' AND amount = 10000",),
        "movements capture",
    ),
    "a capture whose event reports another reference": (
        (f"UPDATE events SET reference = 'another', amount = 0 WHERE {LAST_CAPTURE}",), "movements capture"
    ),
    "a success that is told as a failure": (("UPDATE events SET success = NOT success WHERE type = 'order.approved'",), "events"),
    "an approval that is told as a decline": (
        ("UPDATE events SET type = 'order.declined', success = false WHERE type = 'order.approved'",), "events"
    ),
    "an opened dispute without its event": (
        ("UPDATE events SET type = 'dispute.submitted' WHERE type = 'dispute.opened'",), "disputes"
    ),
    "a closed dispute without its event": (
        ("UPDATE events SET type = 'dispute.submitted' WHERE type = 'dispute.closed'",), "disputes"
    ),
    "a lost dispute that was won": (("UPDATE disputes SET outcome = 'won' WHERE outcome = 'lost'",), "disputes"),
    "a withdrawn dispute that was lost": (("UPDATE disputes SET outcome = 'lost' WHERE outcome = 'won'",), "disputes"),
    "a dispute that never ends": (("UPDATE disputes SET due_at = NULL WHERE kind = 'dispute' AND status = 'open'",), "disputes"),
    "a dispute that ends years later": (
        ("UPDATE disputes SET due_at = due_at + interval '9 years' WHERE kind = 'dispute' AND status = 'open'",), "disputes"
    ),
    "a payout that the bank is never asked to send": (("UPDATE payouts SET try_at = NULL WHERE number = 1",), "payouts 1"),
    "a plan of another consumer": (("UPDATE plans SET consumer_id = gen_random_uuid()",), "plans.consumer_id"),
    "a refund to a card for no order": ((copied("card_refunds", order_id=NOBODY),), "card_refunds"),
    "a charge for no order": ((copied("charges", order_id=NOBODY),), "charges"),
    "a movement of no order": ((copied("movements", order_id=NOBODY),), "movements"),
    "a dispute about no order": ((copied("disputes", order_id=NOBODY, dispute_id=NOBODY),), "disputes"),
    "a plan of no order": ((copied("plans", order_id=NOBODY),), "plans"),
    "an installment of no order": ((copied("installments", order_id=NOBODY),), "installments"),
    "a decision about no order": ((copied("decisions", order_id=NOBODY, decision_id=NOBODY),), "decisions"),
    "an event about nothing": (
        (copied("events", order_id=NOBODY), f"INSERT INTO outbox SELECT merchant_id, order_id, sequence FROM events WHERE order_id = '{NOBODY}'"),
        "events",
    ),
    "a position of the feed without an event": (
        (
            f"INSERT INTO feed SELECT merchant_id, last_position + 1, '{NOBODY}', 1 FROM feeds WHERE last_position > 3",
            "UPDATE feeds SET last_position = last_position + 1 WHERE last_position > 3",
        ),
        "events 1",
    ),
    "a feed that ends before its number": (("UPDATE feeds SET last_position = last_position + 1 WHERE last_position > 3",), "feed"),
    "a row of the outbox without an event": (
        (f"INSERT INTO outbox SELECT merchant_id, '{NOBODY}', 1 FROM feeds WHERE last_position > 3",), "events 1"
    ),
    "an order that was removed from every table": (
        tuple(f"DELETE FROM {table} WHERE order_id = '{{created}}'" for table in ("orders", "order_details", "events", "feed")),
        "feed",
    ),
}  # fmt: skip


async def a_merchant_with_everything(own: Own) -> str:
    """Make payouts, refunds, disputes that are open, won and lost, and a chargeback. Return the id of an order without money."""
    merchant = await a_busy_merchant(own)
    for for_consumer in (True, False):
        dispute = await disputed(own.merchant, await captured(own.merchant), 3000)
        await decided(own.merchant, dispute, for_consumer=for_consumer)
    own.service.clock.ahead += timedelta(days=11)
    assert await settle_due_disputes(own.context) == 2
    await disputed(own.merchant, await captured(own.merchant), 4000)
    await charged_back(own.merchant, await captured(own.merchant), 2500)
    returned = await captured(own.merchant)
    assert (await own.merchant.move(returned, "refund", "90.00")).status_code == 200
    created = await own.merchant.create("55.00")
    await settled(own.context, merchant)
    return str(created["orderId"])


@pytest.mark.parametrize("what", PLANTED)
async def test_a_planted_row_is_found_and_named(own: Own, what: str) -> None:
    statements, named = PLANTED[what]
    created = await a_merchant_with_everything(own)
    assert (await verify(own.context.pool)).disagreements == []
    async with own.owner() as owner:
        await owner.execute("SET session_replication_role = replica")
        for statement in statements:
            tag = await owner.execute(statement.format(created=created))
            assert not tag.endswith(" 0"), f"{statement} altered nothing: {tag}"
    found = (await verify(own.context.pool)).disagreements
    assert any(each.row.startswith(named) for each in found), found


async def test_the_last_approval_of_an_early_release_says_nothing_about_the_consumer(own: Own) -> None:
    """During its upgrade, an early release approved the second try of an order, and stored no consumer with the decision."""
    await own.merchant.approved()
    async with own.owner() as owner:
        await owner.execute("SET session_replication_role = replica")
        await owner.execute("UPDATE decisions SET consumer_id = NULL")
        first = {"decision_id": NOBODY, "consumer_id": NOBODY, "decided_at": "2020-01-01T00:00:00Z"}
        await owner.execute(copied("decisions", **first))
    found = (await verify(own.context.pool)).disagreements
    assert [each.row for each in found] == ["decisions"], found
