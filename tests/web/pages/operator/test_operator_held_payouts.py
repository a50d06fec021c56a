"""Held payouts are counted, listed, and released once, with a reason, by a person with the right."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from cuota.core.merchant import Onboarding
from cuota.core.onboarding.checklist import Item
from cuota.core.operator.role import OPERATOR_MAY, OperatorAction, OperatorRole
from cuota.core.payout.bank_account import read_bank_details
from cuota.core.sandbox import TEST_ACCOUNTS, TEST_ROUTING
from cuota.db.onboarding import onboardings
from cuota.db.payout import holds
from cuota.db.payout.holds import HoldReason
from cuota.flows.context import Context
from cuota.flows.payout.change_bank_account import change_bank_account
from cuota.web.pages.operator import payouts
from support.makers import Merchant
from support.onboarding import decide, fill
from support.pages.operator_staff import OperatorStaff
from support.payouts import make_payout, payout_row


@pytest.fixture
def context(merchant: Merchant) -> Context:
    return merchant.service.context


async def held(merchant: Merchant, amount: int = 12_345, reason: HoldReason = HoldReason.OPERATOR) -> UUID:
    """Make a held payout."""
    context = merchant.service.context
    await holds.hold(context.pool, merchant.merchant_id, reason, context.now(), on=True)
    return await make_payout(context, merchant.merchant_id, amount)


def page_of(merchant: Merchant, payout_id: UUID) -> str:
    return f"/operator/payouts/{merchant.merchant_id}/{payout_id}"


async def logged(merchant: Merchant) -> list[tuple[str, str]]:
    rows = await merchant.service.context.pool.fetch(
        "SELECT action, reason FROM operator_log WHERE about = $1 ORDER BY entry_id", merchant.merchant_id
    )
    return [(row["action"], row["reason"]) for row in rows]


async def find(operator: OperatorStaff, address: str) -> bool:
    """Look for a link on all pages of payouts to release."""
    page = await operator.open("/operator/payouts?status=held")
    while address not in page.seen.links:
        if "Next page" not in page.text:
            return False
        page = await operator.open(page.link("Next page"))
    return True


async def test_a_held_payout_is_counted_listed_and_released(
    operator: OperatorStaff, merchant: Merchant, context: Context
) -> None:
    payout_id = await held(merchant)
    await operator.enter(OperatorRole.FINANCE)
    assert operator.page.link("Payouts to release") == "/operator/payouts?status=held"
    assert await find(operator, page_of(merchant, payout_id))
    page = await operator.open(page_of(merchant, payout_id))
    for text in ("Held since", "by the operator", "$123.45", "Nobody can stop the payment here after that"):
        assert text in page.text, text
    assert (await operator.press(str(payout_id), reason="")).status == 400
    page = await operator.press(str(payout_id), reason="the statement was checked")
    assert "The payout is released" in page.text
    row = await payout_row(context, payout_id)
    assert row["released_at"] is not None
    assert await logged(merchant) == [("payout.release", "the statement was checked")]
    assert not await find(operator, page_of(merchant, payout_id))
    (audit,) = await context.pool.fetch(
        "SELECT action, after FROM audit_log WHERE merchant_id = $1", merchant.merchant_id
    )
    assert audit["action"] == "payout.release"


async def test_a_second_click_changes_nothing(operator: OperatorStaff, merchant: Merchant) -> None:
    payout_id = await held(merchant)
    await operator.enter(OperatorRole.FINANCE)
    await operator.open(page_of(merchant, payout_id))
    action, form = operator.page.form(str(payout_id))
    answers = [await operator.http.post(action, data={**form, "reason": "checked"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [303, 400]
    assert "not held any more" in answers[1].text
    assert await logged(merchant) == [("payout.release", "checked")]
    page = await operator.open(page_of(merchant, payout_id))
    assert "This payout is not held" in page.text
    assert "Release $" not in page.text


async def test_a_payout_of_an_unapproved_merchant_has_no_button_and_cannot_be_released(
    operator: OperatorStaff, merchant: Merchant, context: Context
) -> None:
    other = await held(merchant)
    await operator.enter(OperatorRole.FINANCE)
    await operator.open(page_of(merchant, other))
    action, form = operator.page.form(str(other))
    payout_id = await held(merchant, reason=HoldReason.UNAPPROVED)
    page = await operator.open(page_of(merchant, payout_id))
    assert "They can be released when the merchant is approved" in page.text
    assert "Release $" not in page.text
    # This is the form of a page that was opened before.
    answer = await operator.http.post(action, data={**form, "reason": "checked"})
    assert answer.status_code == 400
    assert "not approved" in answer.text
    assert (await payout_row(context, other))["released_at"] is None


async def test_a_release_needs_a_fresh_code(
    operator: OperatorStaff, merchant: Merchant, context: Context
) -> None:
    payout_id = await held(merchant)
    person = await operator.invited(f"finance-{uuid4().hex[:8]}@operator.example", OperatorRole.FINANCE)
    await operator.sign_in(person)
    await context.pool.execute("UPDATE operator_sessions SET proved_at = now() - interval '6 minutes'")
    await operator.open(page_of(merchant, payout_id))
    page = await operator.press(str(payout_id), reason="checked")
    assert "Enter the code of your authenticator app" in page.text
    assert (await payout_row(context, payout_id))["released_at"] is None


@pytest.mark.parametrize("role", list(OperatorRole))
async def test_only_a_role_with_the_right_to_release_sees_the_button(
    operator: OperatorStaff, merchant: Merchant, role: OperatorRole
) -> None:
    payout_id = await held(merchant)
    await operator.enter(role)
    page = await operator.open(page_of(merchant, payout_id))
    reads = OperatorAction.READ_MONEY in OPERATOR_MAY[role]
    assert page.status == (200 if reads else 403)
    assert ("Release $123.45" in page.text) is (OperatorAction.RELEASE_PAYOUTS in OPERATOR_MAY[role])


async def test_another_merchants_payout_is_not_found(
    operator: OperatorStaff, merchant: Merchant, auto_merchant: Merchant
) -> None:
    payout_id = await held(merchant)
    await operator.enter()
    assert (await operator.open(page_of(auto_merchant, payout_id))).status == 404


async def test_the_list_of_payouts_to_release_has_pages_and_begins_with_the_longest_held(
    operator: OperatorStaff, merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payouts, "A_PAGE", 2)
    made = [page_of(merchant, await held(merchant, cents)) for cents in (101, 102, 103)]
    await operator.enter(OperatorRole.FINANCE)
    page = await operator.open("/operator/payouts?status=held")
    found = [link for link in page.seen.links if link in made]
    while "Next page" in page.text:
        page = await operator.open(page.link("Next page"))
        found += [link for link in page.seen.links if link in made]
    assert found == made


async def test_a_payout_for_an_account_that_was_replaced_goes_back_to_the_balance(
    operator: OperatorStaff, merchant: Merchant, context: Context
) -> None:
    payout_id = await held(merchant)
    await change_bank_account(
        context, merchant.merchant_id, read_bank_details(TEST_ROUTING, TEST_ACCOUNTS[1].number)
    )
    async with merchant.service.clock.moved(days=4):
        await operator.enter(OperatorRole.FINANCE)
        page = await operator.open(page_of(merchant, payout_id))
        assert "now has another account, so this payout is not sent to the bank" in page.text
        assert "the bank is asked at once" not in page.text
        page = await operator.press(str(payout_id), reason="the old account is closed")
        assert "The amount is back in the merchant's balance" in page.text
        assert (await payout_row(context, payout_id))["status"] == "returned"


async def test_a_payout_to_an_account_that_was_not_accepted_says_so_and_has_no_button(
    operator: OperatorStaff, merchant: Merchant, context: Context
) -> None:
    payout_id = await held(merchant)
    await fill(context, merchant.merchant_id)
    await decide(context, merchant.merchant_id, Item.BANK, accepted=False)
    await onboardings.set_standing(context.pool, merchant.merchant_id, Onboarding.APPROVED)
    await operator.enter(OperatorRole.FINANCE)
    page = await operator.open(page_of(merchant, payout_id))
    assert "was not accepted, so nothing is paid to it" in page.text
    assert "Release $" not in page.text
