"""The login needs a number and a code, and lasts an hour. Before it, and to other people, the pages show nothing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

import pytest

from support.makers import Merchant, Running
from support.pages.consumer import Consumer


def session_of(consumer: Consumer) -> str | None:
    return consumer.http.cookies.get("account")


async def rows_of(service: Running) -> int:
    row = await service.context.pool.fetchrow("SELECT count(*) AS n FROM account_sessions")
    assert row is not None
    return int(row["n"])


async def test_a_number_and_its_code_open_the_list_of_plans(consumer: Consumer, shop: Merchant) -> None:
    await consumer.buy_at(shop)
    page = await consumer.open("/account")
    assert page.heading == "Your plans"
    page = await consumer.send("phone", phone=consumer.phone)
    assert (page.heading, page.answer.url.path) == ("Enter your code", "/account/code")
    assert "Sandbox: no text is sent. The code is 123456" in page.text
    page = await consumer.send("code", code="123 456")
    assert page.answer.url.path == "/account"
    assert shop.name in page.text
    assert f"Signed in with the number ending {consumer.phone[-2:]}" in page.text


async def test_opening_the_first_page_stores_nothing(consumer: Consumer, service: Running) -> None:
    before = await rows_of(service)
    await consumer.open("/account")
    await consumer.open("/account")
    assert (await consumer.http.head("/account")).status_code == 200
    assert await rows_of(service) == before


async def test_a_known_number_and_an_unknown_one_look_the_same_until_the_code_is_right(
    sign_in: Callable[..., Consumer], shop: Merchant
) -> None:
    known, unknown = sign_in("3124470151"), sign_in("3124470251")
    await known.buy_at(shop)
    shown = []
    for each in (known, unknown):
        await each.open("/account")
        await each.send("phone", phone=each.phone)
        await each.send("code", code="000000")
        await each.send("resend")
        texts = [re.sub(r'name="csrf" value="\w+"', "", answer.text) for answer in each.answers]
        shown.append([(answer.status_code, text) for answer, text in zip(each.answers, texts, strict=True)])
    assert shown[0] == shown[1]
    assert shop.name not in str(shown)
    page = await unknown.send("code", code="123456")
    assert "No plans yet for this number" in page.text


@pytest.mark.parametrize("path", ["", "/pay?number=2", "/card", "/agreement", f"/receipts/{'0' * 8}"])
async def test_no_page_of_a_plan_can_be_opened_before_the_right_code_is_entered(
    consumer: Consumer, shop: Merchant, path: str
) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.open("/account")
    await consumer.send("phone", phone=consumer.phone)
    page = await consumer.open(f"{plan.path}{path}")
    assert page.answer.url.path == "/account"
    assert "confirm your number" in page.text
    assert shop.name not in page.answer.text


async def test_errors_about_numbers_and_codes_are_shown_beside_their_fields(consumer: Consumer) -> None:
    await consumer.open("/account")
    page = await consumer.send("phone", phone="12")
    assert (page.status, "Enter a US mobile number" in page.text) == (400, True)
    assert 'id="phone-error"' in page.answer.text
    assert page.form("phone")[1]["phone"] == "12"
    page = await consumer.send("phone", phone=consumer.phone)
    page = await consumer.send("code", code="999999")
    assert (page.status, "This code is wrong" in page.text) == (400, True)
    assert 'aria-describedby="code-error code-hint"' in page.answer.text


async def test_a_code_allows_five_attempts_and_a_new_code_five_more(consumer: Consumer) -> None:
    await consumer.open("/account")
    await consumer.send("phone", phone=consumer.phone)
    for _ in range(5):
        page = await consumer.send("code", code="000000")
        assert "This code is wrong" in page.text
    page = await consumer.send("code", code="123456")
    assert "Too many wrong codes" in page.text
    page = await consumer.send("resend")
    assert "A new code is on its way" in page.text
    page = await consumer.send("code", code="123456")
    assert page.heading == "Your plans"


async def test_one_browser_gets_six_codes_and_no_more(consumer: Consumer) -> None:
    await consumer.open("/account")
    await consumer.send("phone", phone=consumer.phone)
    for _ in range(5):
        assert "A new code" in (await consumer.send("resend")).text
    page = await consumer.send("resend")
    assert (page.status, "Too many codes were requested" in page.text) == (400, True)


async def test_two_clicks_on_continue_make_one_session(consumer: Consumer, service: Running) -> None:
    await consumer.open("/account")
    action, held = consumer.page.form("phone")
    before = await rows_of(service)
    data = {**held, "phone": consumer.phone}
    both = await asyncio.gather(*(consumer.http.post(action, data=data) for _ in range(2)))
    assert [answer.headers["location"] for answer in both] == ["/account/code"] * 2
    assert await rows_of(service) == before + 1


async def test_the_session_s_secret_changes_after_the_right_code_and_the_earlier_one_is_refused(
    sign_in: Callable[..., Consumer], shop: Merchant
) -> None:
    consumer, other = sign_in(), sign_in()
    plan = await consumer.buy_at(shop)
    await consumer.open("/account")
    planted = session_of(consumer)
    await consumer.enter()
    assert session_of(consumer) != planted
    other.http.cookies.set("account", planted or "", domain="127.0.0.1", path="/")
    page = await other.open(plan.path)
    assert page.answer.url.path == "/account"
    assert shop.name not in page.text


async def test_a_cookie_that_the_service_did_not_set_is_replaced(consumer: Consumer) -> None:
    consumer.http.cookies.set("account", "planted", domain="127.0.0.1", path="/")
    await consumer.open("/account")
    assert "planted" not in str(consumer.http.cookies.jar)
    assert consumer.page.form("phone")


async def test_after_an_hour_the_session_has_ended_and_the_page_says_so(
    consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    await consumer.open(f"{plan.path}/pay?number=2")
    await plan.shop.service.context.pool.fetchrow(
        "UPDATE account_sessions SET ends_at = now() WHERE phone = $1", consumer.phone
    )
    page = await consumer.send("pay")
    assert page.answer.url.path == "/account"
    assert "We sign you out an hour after each code" in page.text
    page = await consumer.open("/account")
    assert page.form("phone")
    page = await consumer.enter()
    assert "$25.00 on" in page.text


async def test_the_session_s_hour_begins_when_the_right_code_is_entered(
    consumer: Consumer, service: Running
) -> None:
    await consumer.enter()
    sql = "SELECT ends_at - now() > interval '59 minutes' AND ends_at - now() <= interval '1 hour' AS right FROM account_sessions WHERE phone = $1"
    row = await service.context.pool.fetchrow(sql, consumer.phone)
    assert row is not None
    assert row["right"]
    assert (
        "Max-Age=3600" in next(a for a in reversed(consumer.answers) if a.is_redirect).headers["set-cookie"]
    )


async def test_signing_out_also_ends_copies_of_the_session(
    sign_in: Callable[..., Consumer],
) -> None:
    consumer, copied = sign_in(), sign_in()
    await consumer.enter()
    copied.http.cookies.set("account", session_of(consumer) or "", domain="127.0.0.1", path="/")
    assert "Signed in" in (await copied.open("/account")).text
    page = await consumer.send("leave")
    assert "You are signed out" in page.text
    assert page.form("phone")
    assert (await copied.open("/account")).form("phone")


async def test_a_form_of_another_page_changes_nothing(
    sign_in: Callable[..., Consumer], shop: Merchant
) -> None:
    consumer, other = sign_in(), sign_in()
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    await other.enter()
    csrf = other.page.form("leave")[1]["csrf"]
    fields = {"numbers": "2", "expected": "2500", "card": "visa-4242", "card_number": "4242424242424242"}
    for path in (f"{plan.path}/pay", f"{plan.path}/card", "/account/leave", "/account/phone"):
        for word in ("", csrf):
            answer = await consumer.http.post(path, data={**fields, "csrf": word})
            assert answer.status_code == 403, path
            assert "Nothing was changed" in answer.text
    page = await consumer.open(f"{plan.path}/pay?number=2")
    action, held = page.form("pay")
    answer = await consumer.http.post(action, data=held, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 403
    assert "Scheduled" in (await consumer.open(plan.path)).text


async def test_every_page_forbids_caching_and_foreign_content_and_has_safe_cookies(
    consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    for path in (plan.path, f"{plan.path}/pay?all=1", f"{plan.path}/card", f"{plan.path}/agreement"):
        await consumer.open(path)
    for answer in consumer.answers:
        assert answer.headers["cache-control"] == "no-store"
        if not answer.is_redirect:
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "form-action 'self';" in policy
    cookies = [answer.headers["set-cookie"] for answer in consumer.answers if "set-cookie" in answer.headers]
    assert len(cookies) == 3
    assert all("HttpOnly" in each and "SameSite=lax" in each and "Path=/" in each for each in cookies)


async def test_the_address_of_a_step_redirects_to_the_page_and_any_other_address_gets_a_clear_error(
    consumer: Consumer,
) -> None:
    for step in ("phone", "resend", "leave"):
        assert (await consumer.open(f"/account/{step}")).answer.url.path == "/account"
    assert "confirm your number" in (await consumer.open("/account/code")).text
    page = await consumer.open("/account/nowhere")
    assert (page.status, page.heading) == (404, "There is no such page")
    assert page.link("See your plans") == "/account"
    too_large = await consumer.http.post("/account/phone", content=b"x" * 300_000)
    assert too_large.status_code in {303, 413}
    await consumer.open("/account")
    too_large = await consumer.http.post("/account/phone", content=b"x" * 300_000)
    assert (too_large.status_code, "<h1>" in too_large.text) == (413, True)


async def test_the_checkout_links_to_the_account_page_and_its_plan_is_there_at_the_end(
    consumer: Consumer, shop: Merchant
) -> None:
    order = await shop.create()
    page = await consumer.open(order["redirectUrl"])
    assert page.link("See your earlier plans") == "/account"
    page = await consumer.buy(order, phone=consumer.phone)
    assert page.outcome == "approved"
    page = await consumer.enter()
    assert shop.name in page.text


async def test_a_session_near_its_end_gets_a_new_hour_when_a_number_is_entered(
    consumer: Consumer, service: Running
) -> None:
    await consumer.open("/account")
    await consumer.send("phone", phone=consumer.phone)
    sql = "UPDATE account_sessions SET ends_at = now() + interval '1 minute' WHERE phone = $1"
    await service.context.pool.fetchrow(sql, consumer.phone)
    await consumer.open("/account")
    await consumer.send("phone", phone=consumer.phone)
    sql = "SELECT ends_at - now() > interval '59 minutes' AS long FROM account_sessions WHERE phone = $1"
    row = await service.context.pool.fetchrow(sql, consumer.phone)
    assert row is not None
    assert row["long"]


@pytest.mark.parametrize("shape", ["\u202d+1 ({}) {}\u2011{}\u202c", "{}\u00a0{}\u00a0{}"])
async def test_a_pasted_number_and_a_code_of_another_script_sign_in(consumer: Consumer, shape: str) -> None:
    phone = consumer.phone
    await consumer.open("/account")
    await consumer.send("phone", phone=shape.format(phone[:3], phone[3:6], phone[6:]))
    page = await consumer.send("code", code="\u0661\u0662\u0663\u0664\u0665\u0666")
    assert page.heading == "Your plans"
