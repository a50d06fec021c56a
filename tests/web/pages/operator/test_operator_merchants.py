"""How the operator adds merchants, sets their terms, and invites the first owner of a merchant's team."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from cuota.core.desk.role import Role
from cuota.core.payout.bank_account import read_bank_details
from cuota.core.sandbox import TEST_ACCOUNTS, TEST_ROUTING
from cuota.db.desk import people
from cuota.db.merchant import merchants
from cuota.db.payout import terms
from cuota.flows.payout.change_bank_account import cancel_change, change_bank_account
from support.makers import Merchant
from support.pages.operator_staff import OperatorStaff


def fields_of(operator: OperatorStaff) -> dict[str, str]:
    """Return the facts of a page that shows credentials, by their labels."""
    text = operator.page.answer.text
    pairs = (each.split("</dt>") for each in text.split("<dt>")[1:])
    return {label: rest.partition("<bdi>")[2].partition("</bdi>")[0] for label, rest in pairs}


async def test_a_new_merchants_credentials_work_and_are_shown_once(operator: OperatorStaff) -> None:
    name = f"Bakery {uuid4().hex[:8]}"
    await operator.enter()
    await operator.open("/operator/merchants/new")
    page = await operator.press(
        "merchants", name=name, minimum="5.00", maximum="900.00", reason="contract 12"
    )
    assert (page.heading, page.answer.headers["cache-control"]) == (f"Credentials of {name}", "no-store")
    shown = fields_of(operator)
    body = {
        "client_id": shown["client_id"], "client_secret": shown["client_secret"],
        "audience": shown["audience"], "grant_type": "client_credentials",
    }  # fmt: skip
    assert (await operator.http.post("/oauth/token", json=body)).status_code == 200
    page = await operator.open(f"/operator/merchants/{shown['Merchant id']}")
    assert shown["client_secret"] not in page.text
    found = await merchants.read(operator.service.context.pool, UUID(shown["Merchant id"]))
    assert found is not None
    assert (found.name, found.minimum, found.maximum) == (name, 500, 90_000)
    assert name in (await operator.open("/operator/log?action=merchant.")).text


async def test_a_second_click_adds_no_second_merchant(operator: OperatorStaff) -> None:
    await operator.enter()
    await operator.open("/operator/merchants/new")
    action, held = operator.page.form("merchants")
    form = {**held, "name": f"Twice {uuid4().hex[:8]}", "reason": "contract"}
    statuses = [(await operator.http.post(action, data=form)).status_code for _ in range(2)]
    assert statuses == [200, 400]


@pytest.mark.parametrize(
    "wrong", [{"name": ""}, {"name": "x" * 101}, {"minimum": "0"}, {"maximum": "1e9"}, {"reason": ""}]
)
async def test_a_wrong_merchant_is_refused(operator: OperatorStaff, wrong: dict[str, str]) -> None:
    await operator.enter()
    await operator.open("/operator/merchants/new")
    right = {"name": f"Shop {uuid4().hex[:8]}", "reason": "contract"}
    assert (await operator.press("merchants", **{**right, **wrong})).status == 400


async def test_new_terms_make_a_new_version_and_empty_fields_keep_their_values(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    await operator.enter()
    end = str(merchant.merchant_id)
    for form in (
        {"percent": "5.9", "fixed": "0.30"},
        {"reserve": "10", "reserve_days": "90", "payout": "weekly"},
    ):
        await operator.open(f"/operator/merchants/{end}")
        page = await operator.press(end, do="terms", reason="contract", **form)
        assert "The new version of the terms is saved" in page.text
    first, second = await terms.read_all(operator.service.context.pool, merchant.merchant_id)
    assert (first.percent, first.fixed, first.reserve) == (590, 30, 0)
    assert (second.percent, second.fixed, second.reserve, second.reserve_days) == (590, 30, 1000, 90)
    assert second.payout == "weekly"


@pytest.mark.parametrize(
    "wrong",
    [{"percent": "101"}, {"percent": "-1"}, {"fixed": "x"}, {"fixed": "-0.30"}, {"reserve": "5"}, {"reserve_days": "9999999999"}],
)  # fmt: skip
async def test_wrong_terms_are_refused_and_change_nothing(
    operator: OperatorStaff, merchant: Merchant, wrong: dict[str, str]
) -> None:
    await operator.enter()
    end = str(merchant.merchant_id)
    await operator.open(f"/operator/merchants/{end}")
    assert (await operator.press(end, do="terms", reason="contract", **wrong)).status == 400
    assert await terms.read_all(operator.service.context.pool, merchant.merchant_id) == []


async def test_the_first_owner_of_a_merchants_team_is_invited(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    email = f"owner-{uuid4().hex[:8]}@shop.example"
    await operator.enter()
    await operator.open(f"/operator/merchants/{merchant.merchant_id}/owner")
    page = await operator.press("owner", name="Ana Silva", email=email, reason="contract")
    assert "The invitation is on its way" in page.text
    team = await people.team(operator.service.context.pool, merchant.merchant_id)
    assert [(each.email, each.role) for each in team] == [(email, Role.OWNER)]
    await operator.open(f"/operator/merchants/{merchant.merchant_id}/owner")
    page = await operator.press("owner", name="Ana Silva", email=email, reason="contract")
    assert (page.status, "already in the team" in page.text) == (400, True)


async def click_twice(
    operator: OperatorStaff, merchant: Merchant, changes: dict[str, str], then: int
) -> None:
    """Send a form of the merchant's page twice from the same page. The second answer has the status `then`."""
    await operator.enter()
    end = str(merchant.merchant_id)
    await operator.open(f"/operator/merchants/{end}")
    action, held = operator.page.form(end)
    for status in (303, then):
        answer = await operator.http.post(action, data={**held, **changes, "reason": "twice"})
        assert answer.status_code == status


async def test_a_second_click_books_a_correction_once_and_adds_no_second_version_of_the_terms(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    await click_twice(operator, merchant, {"do": "adjust", "amount": "7.00"}, 400)
    await click_twice(operator, merchant, {"do": "terms", "percent": "5.9"}, 303)
    pool = operator.service.context.pool
    rows = await pool.fetch(
        "SELECT amount FROM merchant_transfers WHERE merchant_id = $1", merchant.merchant_id
    )
    assert [row["amount"] for row in rows] == [700]
    assert len(await terms.read_all(pool, merchant.merchant_id)) == 1


async def test_a_refused_change_is_not_logged_as_done(operator: OperatorStaff, merchant: Merchant) -> None:
    await operator.enter()
    end = str(merchant.merchant_id)
    await operator.open(f"/operator/merchants/{end}")
    page = await operator.press(end, do="limits", minimum="500.00", maximum="5.00", reason="typo")
    assert page.status == 400
    page = await operator.open(f"/operator/log?about={end}")
    assert "merchant.limits.refused" in page.text
    pool = operator.service.context.pool
    assert not await pool.fetch("SELECT 1 FROM audit_log WHERE merchant_id = $1", merchant.merchant_id)


async def test_a_second_click_that_changes_nothing_is_not_logged(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    await click_twice(operator, merchant, {"do": "limits", "minimum": "5.00", "maximum": "1500.00"}, 303)
    await click_twice(operator, merchant, {"do": "revoke"}, 400)
    pool = operator.service.context.pool
    for table, about in (("operator_log", "about"), ("audit_log", "merchant_id")):
        rows = await pool.fetch(
            f"SELECT action FROM {table} WHERE {about} = $1 ORDER BY entry_id", merchant.merchant_id
        )
        assert [row["action"] for row in rows] == ["merchant.limits", "merchant.revoke"]


async def test_the_page_names_the_account_in_force_and_a_change_that_waits_but_none_that_was_withdrawn(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    context, merchant_id = merchant.service.context, merchant.merchant_id
    await operator.enter()
    first, other = (read_bank_details(TEST_ROUTING, each.number) for each in TEST_ACCOUNTS[:2])
    await change_bank_account(context, merchant_id, other)
    page = await operator.open(f"/operator/merchants/{merchant_id}")
    assert f"ends in {first.last4}, from" in page.text
    assert f"the one that ends in {other.last4}" in page.text
    await cancel_change(context, merchant_id)
    page = await operator.open(f"/operator/merchants/{merchant_id}")
    assert f"ends in {first.last4}" in page.text
    assert other.last4 not in page.text
