"""Webhook endpoints in the merchant's dashboard: add, edit, pause, replace the secret, remove, test; and the audit log."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from cuota.core.desk.role import Role
from cuota.db.webhook import endpoints
from cuota.db.webhook.endpoints import Endpoint
from support.api.receiver import receiving
from support.makers import Merchant
from support.pages.staff import Staff
from support.pages.visitor import Page
from support.sending import deliver

URL = "https://shop.example/hooks"


async def held(staff: Staff) -> list[Endpoint]:
    return await endpoints.read_all(staff.service.context.pool, staff.shop.merchant_id)


async def add(staff: Staff, url: str = URL, **more: str) -> Page:
    await staff.open("/desk/webhooks")
    return await staff.press("endpoints", **{"url": url, "description": "stock", "reason": "new", **more})


async def change(staff: Staff, do: str, **more: str) -> Page:
    """Press a button on the page of the merchant's only endpoint."""
    (one,) = await held(staff)
    await staff.open(f"/desk/endpoints/{one.endpoint_id}")
    return await staff.press_in(
        "edit" if do == "edit" else "manage", **{"do": do, "reason": "why not", **more}
    )


def secret_of(page: Page) -> str:
    return page.answer.text.partition("<dt>Secret</dt><dd><code>")[2].partition("<")[0]


async def entries(staff: Staff, action: str) -> str:
    return (await staff.open(f"/desk/audit?action={action}")).text


async def test_an_endpoint_is_added_and_its_secret_is_shown_once(staff: Staff) -> None:
    await staff.enter(Role.DEVELOPER)
    page = await add(staff)
    assert page.heading == "New secret"
    assert page.answer.headers["cache-control"] == "no-store"
    secret = secret_of(page)
    assert secret.startswith("whsec_")
    (one,) = await held(staff)
    assert (one.url, one.description, one.state) == (URL, "stock", "active")
    page = await staff.open(page.link("I have copied"))
    assert URL in page.text
    assert secret not in page.answer.text


async def test_a_second_click_adds_no_second_endpoint(staff: Staff) -> None:
    await staff.enter()
    await staff.open("/desk/webhooks")
    action, fields = staff.page.form("endpoints")
    form = {**fields, "url": URL, "reason": "new"}
    answers = await asyncio.gather(*(staff.http.post(action, data=form) for _ in range(3)))
    assert sorted(each.status_code for each in answers) == [200, 400, 400]
    assert "Your first click already" in max(answers, key=lambda each: each.status_code).text
    assert len(await held(staff)) == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"url": ""}, "The address must be an absolute http or https address"),
        ({"url": "http://10.0.0.1/hook"}, "must be a public address"),
        ({"url": "https://user@shop.example/"}, "without a user name"),
        ({"url": "https://shop.example/" + "x" * 2048}, "at most 2048 characters"),
        ({"description": "x" * 201}, "at most 200"),
        ({"reason": "  "}, "Say why"),
        ({"once": "no-id"}, "This form is too old"),
    ],
)
async def test_a_wrong_form_adds_nothing_and_keeps_the_typed_values(
    staff: Staff, wrong: dict[str, str], words: str
) -> None:
    await staff.enter()
    page = await add(staff, **wrong)
    assert (page.status, words in page.text) == (400, True)
    assert await held(staff) == []
    _, fields = page.form("endpoints")
    assert fields["url"] == wrong.get("url", URL)


async def test_the_fifty_first_endpoint_is_refused_with_an_explanation(staff: Staff) -> None:
    for number in range(50):
        made = await staff.shop.http.post("/webhook-endpoints", json={"url": f"{URL}/{number}"})
        assert made.status_code == 200
    await staff.enter()
    page = await add(staff)
    assert (page.status, "There are 50 endpoints already" in page.text) == (400, True)


async def test_an_edit_is_in_the_audit_log_with_the_values_before_and_after(staff: Staff) -> None:
    await staff.enter()
    await add(staff)
    page = await change(staff, "edit", url=f"{URL}/v2", reason="moved")
    assert "The endpoint was changed" in page.text
    (one,) = await held(staff)
    assert one.url == f"{URL}/v2"
    text = await entries(staff, "webhooks.")
    assert f"url: {URL} → {URL}/v2" in text
    assert "Reason: moved" in text


async def test_an_endpoint_is_paused_and_resumed(staff: Staff) -> None:
    await staff.enter()
    await add(staff)
    page = await change(staff, "pause")
    assert "While the endpoint is paused, its events wait" in page.text
    assert (await held(staff))[0].state == "paused"
    await change(staff, "resume")
    assert (await held(staff))[0].state == "active"
    text = await entries(staff, "webhooks.")
    assert "state: active → paused" in text
    assert "state: paused → active" in text


async def test_a_secret_is_replaced_once_at_a_time_and_the_receiver_always_gets_a_signature_that_it_knows(
    staff: Staff,
) -> None:
    async with receiving() as receiver:
        await staff.enter()
        first = secret_of(await add(staff, receiver.url))
        second = secret_of(await change(staff, "replace"))
        page = await change(staff, "replace")
        assert (page.status, "at most two secrets are valid" in page.text) == (400, True)
        third = secret_of(await change(staff, "again"))
        await staff.shop.approved()
        await deliver(staff.shop)
        headers, _ = receiver.got[0]
        assert len(headers["webhook-signature"].split()) == 2
        assert len({first, second, third}) == 3
        page = await change(staff, "end")
        assert "The endpoint was changed" in page.text
        page = await change(staff, "end")
        assert (page.status, "Only one secret is valid" in page.text) == (400, True)
    text = await entries(staff, "webhooks.")
    for action in ("webhooks.add", "webhooks.rotate", "webhooks.rotate-lost", "webhooks.end-old"):
        assert action in text
    for secret in (first, second, third):
        assert secret not in text


async def test_two_clicks_on_replace_make_one_new_secret(staff: Staff) -> None:
    await staff.enter()
    await add(staff)
    (one,) = await held(staff)
    await staff.open(f"/desk/endpoints/{one.endpoint_id}")
    action, fields = staff.form_named("manage")
    form = {**fields, "do": "replace", "reason": "leaked"}
    answers = await asyncio.gather(*(staff.http.post(action, data=form) for _ in range(2)))
    assert sorted(each.status_code for each in answers) == [200, 400]
    (now,) = await held(staff)
    assert now.old_secret == one.secret


async def test_a_removed_endpoint_no_longer_exists(staff: Staff) -> None:
    await staff.enter()
    await add(staff)
    (one,) = await held(staff)
    page = await change(staff, "remove")
    assert "The endpoint was removed" in page.text
    assert await held(staff) == []
    assert (await staff.open(f"/desk/endpoints/{one.endpoint_id}")).status == 404
    assert "state: active → deleted" in await entries(staff, "webhooks.")


@pytest.mark.parametrize(
    ("status", "words"), [(204, "Webhooks arrive"), (500, "Only a status from 200 to 299")]
)
async def test_the_page_shows_the_servers_response_to_a_test(staff: Staff, status: int, words: str) -> None:
    async with receiving() as receiver:
        receiver.status = status
        await staff.enter()
        await add(staff, receiver.url)
        (one,) = await held(staff)
        await staff.open(f"/desk/endpoints/{one.endpoint_id}")
        page = await staff.press(str(one.endpoint_id), do="test")
        assert (page.status, words in page.text) == (200, True)
        assert b"webhook.test" in receiver.got[0][1]
    page = await staff.press(str(one.endpoint_id), do="test")
    assert "No answer" in page.text
    assert "webhooks.test" in await entries(staff, "webhooks.")


async def test_the_page_of_an_endpoint_lists_only_its_own_failing_deliveries(staff: Staff) -> None:
    for path in ("a", "b"):
        await staff.shop.http.post("/webhook-endpoints", json={"url": f"http://127.0.0.1:9/{path}"})
    await staff.shop.approved()
    await deliver(staff.shop)
    first, _ = await held(staff)
    await staff.enter()
    page = await staff.open(f"/desk/endpoints/{first.endpoint_id}")
    every = await staff.open("/desk/webhooks")
    assert 0 < page.answer.text.count("Failed once") < every.answer.text.count("Failed once")


async def test_a_change_needs_a_fresh_code(staff: Staff) -> None:
    person = await staff.invited("hooks@shop.example", Role.DEVELOPER)
    await staff.sign_in(person)
    await staff.service.context.pool.execute(
        "UPDATE desk_sessions SET proved_at = now() - interval '6 minutes' WHERE merchant_id = $1",
        staff.shop.merchant_id,
    )
    page = await add(staff)
    assert (page.status, "Enter the code of your authenticator app" in page.text) == (400, True)
    assert await held(staff) == []


async def test_a_support_person_cannot_change_an_endpoint(staff: Staff) -> None:
    await staff.enter(Role.SUPPORT)
    csrf = staff.page.form("leave")[1]["csrf"]
    answer = await staff.http.post("/desk/endpoints", data={"csrf": csrf, "url": URL, "reason": "x"})
    assert answer.status_code == 403
    assert await held(staff) == []


async def test_a_change_by_the_api_is_in_the_audit_log_with_its_credential(
    staff: Staff, auto_merchant: Merchant
) -> None:
    http = staff.shop.http
    made = (await http.post("/webhook-endpoints", json={"url": URL, "description": "stock"})).json()
    path = f"/webhook-endpoints/{made['id']}"
    await http.patch(path, json={"url": f"{URL}/v2"})
    await http.patch(path, json={"url": f"{URL}/v2"})
    rotated = (await http.post(f"{path}/rotate-secret")).json()
    await http.post(f"{path}/replay", json={})
    await http.post("/events/replay", json={})
    await http.delete(path)
    await staff.enter()
    page = await staff.open("/desk/audit?action=webhooks.")
    text = page.text
    assert f"API credential first credential ({staff.shop.client_id}), api" in text
    assert "127.0.0.1" in text
    counts = {
        action: page.answer.text.count(f"<b>{action}</b>")
        for action in (
            "webhooks.add",
            "webhooks.change",
            "webhooks.rotate",
            "webhooks.replay",
            "webhooks.remove",
        )
    }
    # The second PATCH changed nothing.
    assert counts == {
        "webhooks.add": 1, "webhooks.change": 1, "webhooks.rotate": 1, "webhooks.replay": 2, "webhooks.remove": 1,
    }  # fmt: skip
    assert made["secret"] not in page.answer.text
    assert rotated["secret"] not in page.answer.text
    assert await _audited(auto_merchant) == 0


async def _audited(shop: Merchant) -> int:
    (row,) = await shop.service.context.pool.fetch(
        "SELECT count(*) AS count FROM audit_log WHERE merchant_id = $1", shop.merchant_id
    )
    return int(row["count"])


async def test_a_repeated_idempotency_key_makes_and_records_one_change(staff: Staff) -> None:
    body: dict[str, Any] = {"url": URL}
    headers = {"Idempotency-Key": str(uuid4())}
    for _ in range(2):
        answer = await staff.shop.http.post("/webhook-endpoints", json=body, headers=headers)
        assert answer.status_code == 200
    assert await _audited(staff.shop) == 1
