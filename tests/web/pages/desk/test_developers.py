"""The merchant's credentials in the dashboard: their scopes, replacing secrets, and the entries in the audit log."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from cuota.core.credential import TOKEN_SCOPES, Scope
from cuota.core.desk.role import Role
from cuota.flows.merchant import manage_credentials as manage
from cuota.flows.merchant.manage_merchants import revoke_merchant
from support.makers import Merchant
from support.pages.staff import Staff

PATH = "/desk/developers"


async def added(staff: Staff, scope: Scope) -> dict[str, str]:
    """Add a credential in the dashboard, and return the data on the next page."""
    await staff.open(PATH)
    page = await staff.press(
        "developers", do="add", name="warehouse", scope=scope, reason="for the warehouse"
    )
    assert page.heading == "New secret"
    assert page.answer.headers["cache-control"] == "no-store"
    text = page.answer.text
    return {
        name: text.partition(f"<dt>{name}</dt><dd><code>")[2].partition("<")[0]
        for name in ("client_id", "client_secret")
    }


async def token_of(staff: Staff, client: dict[str, str]) -> httpx.Response:
    body = {**client, "audience": staff.service.settings.audience, "grant_type": "client_credentials"}
    return await staff.http.post("/oauth/token", json=body)


async def statuses(staff: Staff, token: str, order: dict[str, Any]) -> dict[str, int]:
    """Return the status of one call of each kind."""
    headers = {"Authorization": f"Bearer {token}"}
    path, body = f"/order/{order['orderId']}", {"amount": "1.00", "merchantReference": f"m-{token[-8:]}"}
    found = {"read": (await staff.http.get(path, headers=headers)).status_code}
    for move in ("capture", "void", "refund"):
        answer = await staff.http.post(f"{path}/{move}", json=body, headers=headers)
        found[move] = answer.status_code
        if answer.status_code == 403:
            assert answer.json()["code"] == "insufficient_scope"
            assert answer.headers["www-authenticate"] == 'Bearer error="insufficient_scope"'
    answer = await staff.http.post("/webhook-endpoints", json={"url": "x"}, headers=headers)
    return {**found, "endpoint": answer.status_code}


@pytest.mark.parametrize(
    ("scope", "allowed"),
    [
        (Scope.READ, set()), (Scope.CAPTURE, {"capture"}), (Scope.REFUND, {"refund"}),
        (Scope.FULL, {"capture", "void", "refund", "endpoint"}),
    ],
)  # fmt: skip
async def test_a_credential_may_do_exactly_what_its_scope_says(
    staff: Staff, scope: Scope, allowed: set[str]
) -> None:
    order = await staff.shop.approved()
    await staff.shop.move(order, "capture", "50.00")
    await staff.enter()
    answer = await token_of(staff, await added(staff, scope))
    assert answer.json()["scope"] == TOKEN_SCOPES[scope]
    found = await statuses(staff, answer.json()["access_token"], order)
    assert found["read"] == 200
    assert {name for name, status in found.items() if status != 403} - {"read"} == allowed


async def test_a_secret_is_shown_once_and_the_log_names_the_person_and_the_reason(staff: Staff) -> None:
    await staff.enter()
    client = await added(staff, Scope.READ)
    page = await staff.open(PATH)
    assert client["client_id"] in page.text
    assert client["client_secret"] not in page.text
    page = await staff.open("/desk/audit?action=keys.")
    assert "for the warehouse" in page.text
    assert client["client_secret"] not in page.text


async def test_a_replaced_secret_still_works_until_it_is_ended(staff: Staff) -> None:
    await staff.enter()
    old = await added(staff, Scope.READ)
    await staff.open(PATH)
    change = {"client_id": old["client_id"], "reason": "every quarter"}
    page = await staff.press("developers", do="replace", **change)
    secret = page.answer.text.partition("<dt>client_secret</dt><dd><code>")[2].partition("<")[0]
    new = {**old, "client_secret": secret}
    assert [(await token_of(staff, each)).status_code for each in (old, new)] == [200, 200]
    await staff.open(PATH)
    page = await staff.press("developers", do="replace", **change)
    assert (page.status, "at most two secrets work" in page.text) == (400, True)
    page = await staff.press("developers", do="end", **change)
    assert "The change is done" in page.text
    assert [(await token_of(staff, each)).status_code for each in (old, new)] == [401, 200]


async def test_a_lost_new_secret_is_replaced_and_the_old_one_still_works(staff: Staff) -> None:
    await staff.enter()
    old = await added(staff, Scope.READ)
    change = {"client_id": old["client_id"], "reason": "the page was closed"}
    for do in ("replace", "again"):
        await staff.open(PATH)
        assert (await staff.press("developers", do=do, **change)).heading == "New secret"
    assert (await token_of(staff, old)).status_code == 200


async def test_a_revoked_credential_stops_working_and_the_last_full_one_cannot_be_revoked(
    staff: Staff,
) -> None:
    await staff.enter()
    client = await added(staff, Scope.FULL)
    await staff.open(PATH)
    await staff.press("developers", do="revoke", client_id=staff.shop.client_id, reason="leaked")
    assert (await token_of(staff, client)).status_code == 200
    await staff.open(PATH)
    page = await staff.press("developers", do="revoke", client_id=client["client_id"], reason="x")
    assert (page.status, "the last credential" in page.text) == (400, True)
    assert (await token_of(staff, client)).status_code == 200


@pytest.mark.parametrize("kind", ["signing", "webhook"])
async def test_the_signing_and_the_webhook_secret_are_replaced_once_at_a_time(
    staff: Staff, kind: str
) -> None:
    await staff.enter()
    for do, status in (
        ("replace-secret", 200),
        ("replace-secret", 400),
        ("again-secret", 200),
        ("end-secret", 200),
        ("end-secret", 400),
    ):
        await staff.open(PATH)
        page = await staff.press("developers", do=do, kind=kind, reason="every quarter")
        assert page.status == status, do


@pytest.mark.parametrize(
    "wrong",
    [{"reason": " "}, {"name": ""}, {"name": "x" * 101}, {"scope": "king"}, {"do": "dance"}, {"do": "replace", "client_id": "client_x"}],
)  # fmt: skip
async def test_a_wrong_form_changes_nothing(staff: Staff, wrong: dict[str, str]) -> None:
    await staff.enter()
    await staff.open(PATH)
    before = await manage.live_credentials(staff.service.context, staff.shop.merchant_id)
    right = {"do": "add", "name": "warehouse", "scope": "read", "reason": "new"}
    assert (await staff.press("developers", **{**right, **wrong})).status == 400
    assert await manage.live_credentials(staff.service.context, staff.shop.merchant_id) == before


async def test_another_merchants_credential_cannot_be_revoked(staff: Staff, auto_merchant: Merchant) -> None:
    await staff.enter()
    await staff.open(PATH)
    page = await staff.press("developers", do="revoke", client_id=auto_merchant.client_id, reason="x")
    assert page.status == 400
    assert len(await manage.live_credentials(staff.service.context, auto_merchant.merchant_id)) == 1


async def test_a_support_person_sees_no_keys(staff: Staff) -> None:
    await staff.enter(Role.SUPPORT)
    assert PATH not in staff.page.seen.links
    assert (await staff.open(PATH)).status == 403


async def test_a_change_of_a_key_requires_a_fresh_code(staff: Staff) -> None:
    person = await staff.invited("keys@shop.example", Role.DEVELOPER)
    await staff.sign_in(person)
    await staff.service.context.pool.execute(
        "UPDATE desk_sessions SET proved_at = now() - interval '6 minutes' WHERE merchant_id = $1",
        staff.shop.merchant_id,
    )
    await staff.open(PATH)
    page = await staff.press("developers", do="add", name="warehouse", scope="read", reason="new")
    assert (page.status, "Enter the code of your authenticator app" in page.text) == (400, True)


async def test_if_two_people_revoke_at_once_one_credential_with_all_scopes_is_left(staff: Staff) -> None:
    context, merchant_id = staff.service.context, staff.shop.merchant_id
    await manage.add_credential(context, merchant_id, "second", Scope.FULL)
    live = await manage.live_credentials(context, merchant_id)
    results = await asyncio.gather(
        *(manage.revoke_credential(context, each) for each in live), return_exceptions=True
    )
    assert sorted(type(each).__name__ for each in results) == ["BadMerchant", "NoneType"]
    assert len(await manage.live_credentials(context, merchant_id)) == 1


async def test_a_merchant_that_the_operator_revoked_cannot_add_a_credential(staff: Staff) -> None:
    await staff.enter()
    await revoke_merchant(staff.service.context, str(staff.shop.merchant_id))
    await staff.open(PATH)
    page = await staff.press("developers", do="add", name="back door", scope="full", reason="x")
    assert (page.status, "Ask your provider" in page.text) == (400, True)
    assert await manage.live_credentials(staff.service.context, staff.shop.merchant_id) == []


async def test_a_form_without_a_code_does_not_count_as_a_wrong_code(staff: Staff) -> None:
    person = await staff.invited("empty@shop.example", Role.DEVELOPER)
    await staff.sign_in(person)
    pool, merchant_id = staff.service.context.pool, staff.shop.merchant_id
    await pool.execute(
        "UPDATE desk_sessions SET proved_at = now() - interval '6 minutes' WHERE merchant_id = $1",
        merchant_id,
    )
    for _ in range(6):
        await staff.open(PATH)
        page = await staff.press("developers", do="add", name="warehouse", scope="read", reason="new")
        assert "Enter the code of your authenticator app" in page.text
    (row,) = await pool.fetch("SELECT factor_tries FROM desk_people WHERE person_id = $1", person.person_id)
    assert row["factor_tries"] == 0


async def test_a_second_click_adds_no_second_credential(staff: Staff) -> None:
    await staff.enter()
    await staff.open(PATH)
    action, held = staff.page.form("developers")
    form = {**held, "do": "add", "name": "warehouse", "scope": Scope.READ, "reason": "new"}
    answers = await asyncio.gather(*(staff.http.post(action, data=form) for _ in range(3)))
    assert sorted(each.status_code for each in answers) == [200, 400, 400]
    assert (
        "There is a credential named warehouse already"
        in max(answers, key=lambda each: each.status_code).text
    )
    live = await manage.live_credentials(staff.service.context, staff.shop.merchant_id)
    assert [each.name for each in live].count("warehouse") == 1


async def test_who_adds_and_revokes_credentials_again_and_again_is_refused_at_a_limit(staff: Staff) -> None:
    context, merchant_id = staff.service.context, staff.shop.merchant_id
    # The merchant's first credential counts, too.
    for number in range(manage.MOST_ADDED - 1):
        client_id, _ = await manage.add_credential(context, merchant_id, f"n{number}", Scope.READ)
        await manage.revoke_credential(context, await manage.find_credential(context, merchant_id, client_id))
    await staff.enter()
    await staff.open(PATH)
    page = await staff.press("developers", do="add", name="one more", scope=Scope.READ, reason="new")
    assert f"{manage.MOST_ADDED} credentials were added in the last 24 hours" in page.text
    assert len(await manage.live_credentials(context, merchant_id)) == 1
