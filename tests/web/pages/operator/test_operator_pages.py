"""The operator's dashboard: people read orders, decide disputes, change merchants, and show or erase personal data."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from cuota.core.dates import day, month
from cuota.core.operator.role import OperatorRole
from cuota.core.order.id_bounds import BEYOND
from cuota.core.payout.arrival import day_at_bank
from cuota.db.merchant import credentials, merchants
from cuota.db.operator import operator_figures, operator_log
from cuota.db.operator.operator_figures import VerifyRun
from cuota.db.risk import decisions
from cuota.flows.context import utc_now
from support.disputes import captured, to_decide
from support.makers import PROFILE, Merchant
from support.pages.operator_staff import OperatorStaff
from support.pages.staff import Staff


async def logged(operator: OperatorStaff, about: UUID) -> list[str]:
    """Return the actions in the log about a subject, newest first."""
    found = await operator_log.page(operator.service.context.pool, BEYOND, 50, about=about)
    return [each.action for each in found]


async def test_in_the_evening_the_first_page_still_has_the_day_of_new_york(operator: OperatorStaff) -> None:
    await operator.enter(OperatorRole.READ_ONLY)
    clock = operator.service.clock
    # At three in the morning UTC it is the evening before in New York, in summer and in winter.
    evening = (clock.now() + timedelta(days=1)).replace(hour=3, minute=0)
    async with clock.moved(seconds=(evening - clock.now()).total_seconds()):
        page = await operator.open("/operator")
    assert f"{day(evening.date() - timedelta(days=1), year=True)}, all merchants" in page.text


async def test_an_order_is_found_by_its_reference_and_explained_in_words(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    reference = f"shoes-{uuid4().hex[:8]}"
    order = await captured(merchant, merchantReference=reference)
    await operator.enter(OperatorRole.READ_ONLY)
    await operator.open("/operator/orders")
    page = await operator.open(f"/operator/orders?q={reference}")
    assert page.heading == f"Order {order['orderId']}"
    assert "APPROVED by policy" in page.text
    assert "Plan of order" in page.text
    assert PROFILE.surname not in page.text


async def test_an_order_is_found_by_the_id_of_a_decision(operator: OperatorStaff, merchant: Merchant) -> None:
    order = await merchant.approved()
    order_id = UUID(order["orderId"])
    (made,) = await decisions.read_of_order(operator.service.context.pool, merchant.merchant_id, order_id)
    await operator.enter()
    page = await operator.open(f"/operator/orders?q={made.decision_id}")
    assert page.heading == f"Order {order_id}"


@pytest.mark.parametrize("asked", ["nothing", "%00", "a" * 300, "'; DROP TABLE orders", "٣"])
async def test_for_an_unknown_order_the_page_says_what_to_do(operator: OperatorStaff, asked: str) -> None:
    await operator.enter()
    page = await operator.open(f"/operator/orders?q={asked}")
    assert (page.status, "No order has this id or reference" in page.text) == (200, True)


async def test_an_owner_changes_a_merchants_limits_and_the_log_keeps_both_values(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    await operator.enter()
    await operator.open(f"/operator/merchants/{merchant.merchant_id}")
    end = str(merchant.merchant_id)
    page = await operator.press(end, do="limits", minimum="5.00", maximum="1500.00", reason="asked for it")
    assert "The change is saved" in page.text
    found = await merchants.read(operator.service.context.pool, merchant.merchant_id)
    assert found is not None
    assert (found.minimum, found.maximum) == (500, 150_000)
    page = await operator.open(f"/operator/log?about={end}")
    assert "maximum: 2000.00 → 1500.00" in page.text
    # A list says what is filtered, and a search in it stays in it.
    assert f"Only entries about {end}. Show all entries" in page.text
    assert f'name="about" value="{end}"' in page.answer.text
    assert "Only entries about" not in (await operator.open("/operator/log")).text


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"do": "limits", "minimum": "9.00", "maximum": "8.00", "reason": "x"}, "is above the maximum"),
        ({"do": "limits", "minimum": "ten", "maximum": "8.00", "reason": "x"}, "Enter an amount"),
        ({"do": "limits", "minimum": "1.00", "maximum": "8.00", "reason": ""}, "Say why"),
        ({"do": "adjust", "amount": "0.00", "reason": "x"}, "must not be zero"),
        ({"do": "dance", "reason": "x"}, "Choose what to change"),
    ],
)
async def test_a_wrong_change_of_a_merchant_is_refused_with_an_explanation(
    operator: OperatorStaff, merchant: Merchant, form: dict[str, str], said: str
) -> None:
    await operator.enter()
    await operator.open(f"/operator/merchants/{merchant.merchant_id}")
    page = await operator.press(str(merchant.merchant_id), **form)
    assert (page.status, said in page.text) == (400, True)


async def test_a_finance_person_can_correct_a_balance_but_not_change_a_limit(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    await operator.enter(OperatorRole.FINANCE)
    end = str(merchant.merchant_id)
    await operator.open(f"/operator/merchants/{end}")
    page = await operator.press(end, do="limits", minimum="1.00", maximum="2.00", reason="x")
    assert "Your role does not include this" in page.text
    await operator.open(f"/operator/merchants/{end}")
    page = await operator.press(end, do="adjust", amount="-5.00", reason="a fee of 2025")
    assert "The correction is booked" in page.text
    assert "-$5.00" in page.text
    assert await logged(operator, merchant.merchant_id) == ["money.adjust"]


async def test_revoked_credentials_stop_working(operator: OperatorStaff, auto_merchant: Merchant) -> None:
    await operator.enter()
    end = str(auto_merchant.merchant_id)
    await operator.open(f"/operator/merchants/{end}")
    page = await operator.press(end, do="revoke", reason="a leak")
    assert "revoked: the merchant cannot call the API" in page.text
    held = await credentials.read_of_merchant(operator.service.context.pool, auto_merchant.merchant_id)
    assert all(each.revoked_at for each in held)


async def test_a_person_who_signed_in_by_mail_needs_a_fresh_code_for_a_change(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    person = await operator.invited(f"late-{uuid4().hex[:8]}@operator.example", OperatorRole.OWNER)
    await operator.sign_in(person)
    pool = operator.service.context.pool
    await pool.execute("UPDATE operator_sessions SET proved_at = now() - interval '6 minutes'")
    end = str(merchant.merchant_id)
    await operator.open(f"/operator/merchants/{end}")
    page = await operator.press(end, do="adjust", amount="5.00", reason="sorry")
    assert "Enter the code of your authenticator app" in page.text
    assert await logged(operator, merchant.merchant_id) == []


async def test_other_limits_can_be_simulated_on_the_orders_of_the_last_days_without_changing_anything(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    await merchant.approved()
    await operator.enter(OperatorRole.RISK)
    page = await operator.open("/operator/risk")
    version = operator.service.context.policy.version
    assert version in page.text
    page = await operator.press("risk", threshold="9999", days="30")
    assert "Newly declined" in page.text
    page = await operator.open("/operator/risk")
    assert page.form("risk")[1]["threshold"] == str(operator.service.context.policy.score.threshold)


@pytest.mark.parametrize(
    "wrong", [{"threshold": "-1"}, {"threshold": "1e3"}, {"new": "0"}, {"ceiling": "x"}, {"days": "365"}]
)
async def test_wrong_limits_are_refused_beside_their_field(
    operator: OperatorStaff, wrong: dict[str, str]
) -> None:
    await operator.enter(OperatorRole.RISK)
    await operator.open("/operator/risk")
    assert (await operator.press("risk", **wrong)).status == 400


async def test_the_books_show_the_balance_of_all_accounts_and_the_last_check(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    await captured(merchant)
    context = operator.service.context
    await operator_figures.add_run(context.pool, context.new_id(), VerifyRun(utc_now(), 1234, 5678, 0))
    await operator.enter(OperatorRole.FINANCE)
    page = await operator.open("/operator/books")
    assert "1,234" in page.text
    page = await operator.open("/operator/books/balance")
    assert "Debits and credits are equal." in page.text


async def test_the_losses_are_listed_by_month_with_their_cause(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    await operator.enter(OperatorRole.OWNER)
    end = str(merchant.merchant_id)
    await operator.open(f"/operator/merchants/{end}")
    await operator.press(end, do="adjust", amount="5.00", reason="sorry")
    await operator.open("/operator/books")
    page = await operator.open(operator.page.link("Losses by month"))
    assert month(day_at_bank(operator.service.context.now())) in page.text
    assert "Corrections of merchants' balances" in page.text


async def test_the_system_page_shows_the_state_of_the_installation(operator: OperatorStaff) -> None:
    await operator.enter(OperatorRole.SUPPORT)
    page = await operator.open("/operator/system")
    assert operator.service.settings.public_url in page.text
    assert "Card rails" in page.text


async def test_each_list_links_to_its_entries(operator: OperatorStaff, merchant: Merchant) -> None:
    dispute = await to_decide(merchant)
    await operator.enter()
    wanted = {
        "/operator/merchants?q=" + merchant.name: f"/operator/merchants/{merchant.merchant_id}",
        "/operator/disputes": f"/operator/disputes/{dispute.dispute_id}",
        "/operator/payouts": "/operator/payouts?status=sent",
    }
    for path, link in wanted.items():
        assert link in (await operator.open(path)).seen.links, path


async def test_the_statements_in_a_dispute_are_hidden_from_people_who_may_not_decide_it(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    dispute = await to_decide(merchant)
    await operator.enter(OperatorRole.FINANCE)
    page = await operator.open(f"/operator/disputes/{dispute.dispute_id}")
    assert "$40.00" in page.text
    assert "Nothing came." not in page.text


async def test_the_merchant_s_audit_log_has_the_operator_s_changes_without_their_reasons(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    await operator.enter()
    end = str(merchant.merchant_id)
    await operator.open(f"/operator/merchants/{end}")
    await operator.press(end, do="limits", minimum="5.00", maximum="1500.00", reason="looks like fraud")
    staff = Staff(operator.http, merchant)
    await staff.enter()
    page = await staff.open("/desk/audit")
    assert "maximum: 2000.00 → 1500.00" in page.text
    assert "fraud" not in page.text
