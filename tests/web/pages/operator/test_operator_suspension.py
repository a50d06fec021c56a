"""The page that suspends and resumes a merchant, with or without its payouts."""

from __future__ import annotations

from uuid import uuid4

import pytest

from cuota.core.operator.role import OPERATOR_MAY, OperatorAction, OperatorRole
from cuota.db.payout import holds
from cuota.flows.context import Context
from support.makers import Merchant, order_body
from support.onboarding import stored
from support.pages.operator_staff import OperatorStaff
from support.payouts import make_payout, payout_row


@pytest.fixture
def context(merchant: Merchant) -> Context:
    return merchant.service.context


def page_of(merchant: Merchant, more: str = "") -> str:
    return f"/operator/merchants/{merchant.merchant_id}{more}"


async def logged(merchant: Merchant, table: str = "operator_log", column: str = "about") -> list[str]:
    pool = merchant.service.context.pool
    rows = await pool.fetch(
        f"SELECT action FROM {table} WHERE {column} = $1 ORDER BY entry_id", merchant.merchant_id
    )
    return [row["action"] for row in rows]


async def test_a_merchant_is_suspended_and_resumed_with_a_reason_and_both_logs_say_so(
    operator: OperatorStaff, merchant: Merchant, context: Context
) -> None:
    await operator.enter(OperatorRole.RISK)
    page = await operator.open(page_of(merchant))
    page = await operator.open(page.link("Suspend"))
    assert "Captures, voids, refunds, plans, disputes, webhooks and the dashboard" in page.text
    assert (await operator.press("suspension", do="suspend", reason="")).status == 400
    assert not (await stored(context, merchant.merchant_id)).suspended
    page = await operator.press("suspension", do="suspend", reason="complaints of shoppers")
    assert "suspended since" in page.text
    assert (await stored(context, merchant.merchant_id)).suspended
    assert await holds.read(context.pool, merchant.merchant_id) == holds.Holds()
    page = await operator.open(page.link("Resume"))
    page = await operator.press("suspension", do="resume", reason="answered all")
    assert "takes orders again" in page.text
    assert not (await stored(context, merchant.merchant_id)).suspended
    assert await logged(merchant) == ["merchant.suspend", "merchant.resume"]
    assert await logged(merchant, "audit_log", "merchant_id") == ["merchant.suspend", "merchant.resume"]


async def test_the_reason_of_a_suspension_is_in_the_operators_log_only(
    operator: OperatorStaff, merchant: Merchant, context: Context
) -> None:
    await operator.enter(OperatorRole.RISK)
    await operator.open(page_of(merchant, "/suspension"))
    await operator.press("suspension", do="suspend", reason="the police asked")
    (row,) = await context.pool.fetch(
        "SELECT t::text AS row FROM audit_log t WHERE merchant_id = $1", merchant.merchant_id
    )
    assert "police" not in row["row"]


async def test_a_suspension_that_holds_payouts_says_how_many_and_stops_them(
    operator: OperatorStaff, merchant: Merchant, context: Context
) -> None:
    payout_id = await make_payout(context, merchant.merchant_id)
    await operator.enter(OperatorRole.OWNER)
    page = await operator.open(page_of(merchant, "/suspension"))
    assert "1 payout, $123.45 together" in page.text
    await operator.press("suspension", do="suspend", hold="yes", reason="fraud")
    assert (await payout_row(context, payout_id))["held_at"] is not None
    page = await operator.open(page_of(merchant, "/suspension"))
    assert "by the operator" in page.text
    await operator.press("suspension", do="resume", reason="no fraud")
    assert (await holds.read(context.pool, merchant.merchant_id)).held_since is None
    # Held payouts wait for their release.
    assert (await payout_row(context, payout_id))["released_at"] is None


async def test_a_suspended_merchants_payouts_can_be_held_later(
    operator: OperatorStaff, merchant: Merchant, context: Context
) -> None:
    await operator.enter(OperatorRole.RISK)
    for do in ("suspend", "hold"):
        await operator.open(page_of(merchant, "/suspension"))
        assert (await operator.press("suspension", do=do, reason="fraud")).status == 200
    assert (await holds.read(context.pool, merchant.merchant_id)).held_since is not None
    page = await operator.open(page_of(merchant, "/suspension"))
    assert "Hold the payouts too" not in page.text


async def test_a_hold_of_payouts_does_not_suspend_a_merchant_that_was_resumed_meanwhile(
    operator: OperatorStaff, merchant: Merchant, context: Context
) -> None:
    await operator.enter(OperatorRole.RISK)
    await operator.open(page_of(merchant, "/suspension"))
    await operator.press("suspension", do="suspend", reason="fraud")
    await operator.open(page_of(merchant, "/suspension"))
    action, held = operator.page.form("suspension")
    await operator.press("suspension", do="resume", reason="no fraud")
    answer = await operator.http.post(action, data={**held, "do": "hold", "reason": "late"})
    assert answer.status_code == 400
    assert "was resumed meanwhile" in answer.text
    assert (await merchant.http.post("/order", json=order_body())).status_code == 200


@pytest.mark.parametrize("do", ["suspend", "resume"])
async def test_a_second_click_changes_nothing_and_says_so(
    operator: OperatorStaff, merchant: Merchant, do: str
) -> None:
    await operator.enter(OperatorRole.RISK)
    await operator.open(page_of(merchant, "/suspension"))
    if do == "resume":
        await operator.press("suspension", do="suspend", reason="fraud")
        await operator.open(page_of(merchant, "/suspension"))
    action, held = operator.page.form("suspension")
    form = {**held, "do": do, "reason": "twice"}
    statuses = [(await operator.http.post(action, data=form)).status_code for _ in range(2)]
    assert statuses == [303, 400]
    assert (await logged(merchant, "audit_log", "merchant_id")).count(f"merchant.{do}") == 1
    assert (await logged(merchant))[-1] == f"merchant.{do}"
    assert (await logged(merchant)).count(f"merchant.{do}") == 1


async def test_an_unknown_button_is_refused_and_the_typed_reason_stays(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    await operator.enter(OperatorRole.RISK)
    await operator.open(page_of(merchant, "/suspension"))
    page = await operator.press("suspension", do="delete", reason="typed before")
    assert page.status == 400
    assert page.form("suspension")[1]["reason"] == "typed before"
    assert await logged(merchant) == []


async def test_a_suspension_needs_a_fresh_code(
    operator: OperatorStaff, merchant: Merchant, context: Context
) -> None:
    person = await operator.invited(f"risk-{uuid4().hex[:8]}@operator.example", OperatorRole.RISK)
    await operator.sign_in(person)
    await context.pool.execute("UPDATE operator_sessions SET proved_at = now() - interval '6 minutes'")
    await operator.open(page_of(merchant, "/suspension"))
    page = await operator.press("suspension", do="suspend", reason="fraud")
    assert "Enter the code of your authenticator app" in page.text
    assert not (await stored(context, merchant.merchant_id)).suspended


@pytest.mark.parametrize("role", list(OperatorRole))
async def test_only_a_role_with_the_right_to_suspend_sees_the_button(
    operator: OperatorStaff, merchant: Merchant, role: OperatorRole
) -> None:
    await operator.enter(role)
    page = await operator.open(page_of(merchant))
    may = OperatorAction.SUSPEND_MERCHANTS in OPERATOR_MAY[role]
    assert (page_of(merchant, "/suspension") in page.seen.links) is may
