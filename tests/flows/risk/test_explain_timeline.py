"""`cuota explain order` shows movements and changes of the plan by time; `explain plan` shows days in the plan's time zone."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from cuota.core.plan.hardship import PausePlan
from cuota.flows.plan.change_plan import agree_on_change, preview_change
from cuota.flows.risk.explain_order import explain_order, explain_plan
from support.disputes import charged_back, network_decides
from support.own_service import Own


@pytest.fixture
async def order_id(own: Own) -> UUID:
    """An approved order of $100.00, of which $60.00 are captured."""
    order = await own.merchant.approved()
    assert (await own.merchant.move(order, "capture", "60.00", "CAP-1")).status_code == 200
    return UUID(order["orderId"])


async def test_the_timeline_shows_amount_and_reference_of_each_movement(own: Own, order_id: UUID) -> None:
    order = {"orderId": str(order_id)}
    assert (await own.merchant.move(order, "refund", "10.00", "REF-1")).status_code == 200
    assert (await own.merchant.move(order, "void", "40.00", "VOID-1")).status_code == 200
    told = await explain_order(own.context, order_id)
    shown = [line.split("  ")[2] for line in told.lines if line.startswith("  20")]
    assert shown[-3:] == [
        "capture.completed of $60.00 (reference CAP-1)",
        "refund.completed of $10.00 (reference REF-1)",
        "void.completed of $40.00 (reference VOID-1)",
    ]
    newest = told.facts["events"][-1]
    assert (newest["amount"], newest["reference"]) == ("40.00", "VOID-1")


async def test_the_timeline_shows_changes_of_the_plan(own: Own, order_id: UUID) -> None:
    ids, request = (own.merchant.merchant_id, order_id), PausePlan(14)
    mark = (await preview_change(own.context, *ids, request)).found.before.mark
    await agree_on_change(own.context, *ids, request, by="Ada", reason="lost the job", mark=mark)
    told = await explain_order(own.context, order_id)
    assert any(line.endswith("  change 1 of the plan (paused), by Ada") for line in told.lines)
    assert [each["kind"] for each in told.facts["changes"]] == ["paused"]


async def test_at_the_same_time_the_creation_stands_before_the_decision_and_the_result_after_it(
    own: Own, order_id: UUID
) -> None:
    at = datetime(2026, 11, 26, 12, 0, tzinfo=UTC)
    async with own.owner() as owner:
        await owner.execute("SET session_replication_role = replica")
        for table, column in (
            ("events", "created_at"),
            ("decisions", "decided_at"),
            ("charges", "created_at"),
        ):
            await owner.execute(f"UPDATE {table} SET {column} = $1", at)
    told = await explain_order(own.context, order_id)
    shown = [line.split("  ")[2] for line in told.lines if line.startswith("  20")]
    assert shown == [
        "order.created",
        "decided: approved",
        "visa 4242 for installment 1, $25.00: paid",
        "order.approved",
        "capture.completed of $60.00 (reference CAP-1)",
    ]


async def test_the_day_of_the_agreement_is_in_the_time_zone_of_the_plan(own: Own, order_id: UUID) -> None:
    async with own.owner() as owner:
        await owner.execute("SET session_replication_role = replica")
        await owner.execute(
            "UPDATE plans SET agreed_at = '2026-11-27 03:00+00', time_zone = 'America/New_York'"
        )
    told = await explain_plan(own.context, order_id)
    assert "agreed to on Thu, Nov 26, 2026." in told.lines[0]


async def test_the_plan_says_that_a_card_that_lost_a_chargeback_is_not_charged_any_more(
    own: Own, order_id: UUID
) -> None:
    order = {"orderId": str(order_id)}
    assert any("the card will be charged on" in line for line in await plan_lines(own, order_id))
    dispute = await charged_back(own.merchant, order, 2500)
    await network_decides(own.merchant, order, dispute, for_consumer=True)
    lines = await plan_lines(own, order_id)
    assert not any("the card will be charged on" in line for line in lines)
    asked = [line for line in lines if line.endswith("the consumer must give another card.")]
    assert len(asked) == 3


async def plan_lines(own: Own, order_id: UUID) -> list[str]:
    return (await explain_plan(own.context, order_id)).lines
