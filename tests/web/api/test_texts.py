"""Consumers answer texts with STOP, START and HELP. The text hook delivers the answers, signed like outgoing texts."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import httpx
import pytest

from cuota.core.checkout.text_answer import TextAnswer, read_answer
from cuota.core.message import Message
from cuota.core.webhook.signature import webhook_signature
from cuota.db.checkout import text_choices
from cuota.flows.checkout.answer_text import REPLIES_AN_HOUR, number_hash
from cuota.flows.plan.send_messages import send_messages
from cuota.rails.inbox import look
from cuota.rails.senders import Senders
from cuota.web.app import make_app
from support.core.values import PROFILE
from support.makers import Merchant, Running, complete
from support.phones import phone_number

PACIFIC = ZoneInfo("America/Los_Angeles")  # the state of makers.PROFILE
SECRET = "whsec_" + "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


@asynccontextmanager
async def hooked(service: Running) -> AsyncIterator[httpx.AsyncClient]:
    """A service with a text hook whose secret the test has. Its messages go to the inbox."""
    senders = Senders(None, None, "https://texts.example/send", SECRET, secure=False)
    settings = replace(service.context.settings, senders=senders)
    app = make_app(replace(service.context, settings=settings))
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url=settings.public_url) as http:
        yield http


async def hand_in(
    http: httpx.AsyncClient, body: object, key: str = "", at: int | None = None, secret: str = SECRET
) -> httpx.Response:
    content = json.dumps(body).encode()
    key, at = key or f"msg_{secrets.token_hex(8)}", int(time.time()) if at is None else at
    headers = {
        "Content-Type": "application/json",
        "webhook-id": key,
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,AAAA {webhook_signature([secret], key, at, content)}",
    }
    return await http.post("/texts", content=content, headers=headers)


async def texts_to(service: Running, phone: str) -> list[str]:
    return [each.text for each in await look(service.context.pool, to=phone) if each.channel == "text"]


async def stopped(service: Running, phone: str) -> bool:
    return await text_choices.is_stopped(service.context.pool, number_hash(service.context, phone))


async def test_stop_ends_texts_but_not_mail_and_start_enables_texts_again(
    service: Running, auto_merchant: Merchant
) -> None:
    phone = phone_number()
    mail = f"{phone}@mail.example"
    order = await auto_merchant.create()
    own = replace(PROFILE, email=mail)
    await complete(service, auto_merchant.merchant_id, order, profile=own, phone=phone)
    await _all_sent(service)
    before = len(await texts_to(service, phone))
    async with hooked(service) as http:
        answer = await hand_in(http, {"from": f"+1{phone}", "text": " Stop. "})
        assert (answer.status_code, answer.json()) == (200, {"understood": "stop"})
        said = (await texts_to(service, phone))[0]
        assert "you get no more texts from us" in said
        await auto_merchant.move(order, "refund", "10.00")
        await _all_sent(service)
        assert len(await texts_to(service, phone)) == before + 1
        mails = await look(service.context.pool, to=mail)
        assert any(f"{auto_merchant.name} refunded $10.00" in mail.text for mail in mails)
        await hand_in(http, {"from": f"+1{phone}", "text": "START"})
        await auto_merchant.move(order, "refund", "5.00")
        await _all_sent(service)
        assert "refunded $5.00" in (await texts_to(service, phone))[0]


async def _all_sent(service: Running) -> None:
    """It is noon where the consumer lives, because messages about a shop's actions at night are sent in the morning."""
    noon = service.clock.now().astimezone(PACIFIC).replace(hour=12, minute=0) + timedelta(days=1)
    async with service.clock.moved(seconds=(noon - service.clock.now()).total_seconds()):
        while await send_messages(service.context):
            pass


async def test_a_requested_code_is_sent_even_after_stop(service: Running, merchant: Merchant) -> None:
    phone = phone_number()
    async with hooked(service) as http:
        await hand_in(http, {"from": f"+1{phone}", "text": "STOP"})
    await complete(service, merchant.merchant_id, await merchant.create(), phone=phone)
    assert any("code" in text for text in await texts_to(service, phone))


async def test_a_notice_that_could_only_be_sent_by_text_is_dropped_after_stop(
    service: Running, auto_merchant: Merchant
) -> None:
    phone = phone_number()
    order = await auto_merchant.create()
    await complete(service, auto_merchant.merchant_id, order, phone=phone)
    async with hooked(service) as http:
        await hand_in(http, {"from": phone, "text": "STOP"})
    senders = Senders(None, None, "https://texts.example/send", SECRET, secure=False)
    by_text_only = replace(service.context, settings=replace(service.context.settings, senders=senders))
    while await send_messages(by_text_only):
        pass
    sql = "SELECT state, reason FROM messages WHERE order_id = $1"
    rows = await service.context.pool.fetch(sql, UUID(order["orderId"]))
    assert [tuple(row) for row in rows] == [("failed", "the number's owner stopped texts")]


async def test_help_names_the_brand_the_page_and_the_lender(service: Running) -> None:
    phone = phone_number()
    async with hooked(service) as http:
        assert (await hand_in(http, {"from": phone, "text": "help"})).json() == {"understood": "help"}
    [said] = await texts_to(service, phone)
    settings = service.context.settings
    for words in (settings.brand_name, f"{settings.public_url}/account", settings.creditor, "STOP"):
        assert words in said


async def test_any_other_text_is_accepted_and_not_answered(service: Running) -> None:
    phone = phone_number()
    async with hooked(service) as http:
        answer = await hand_in(http, {"from": phone, "text": "when is it due?"})
    assert (answer.status_code, answer.json()) == (200, {"understood": "other"})
    assert await texts_to(service, phone) == []


async def test_the_same_text_delivered_ten_times_at_once_is_answered_once(service: Running) -> None:
    phone = phone_number()
    async with hooked(service) as http:
        body = {"from": phone, "text": "STOP"}
        answers = await asyncio.gather(*(hand_in(http, body, "msg_same") for _ in range(10)))
    assert {answer.status_code for answer in answers} == {200}
    assert len(await texts_to(service, phone)) == 1


async def test_an_older_stop_that_arrives_late_does_not_undo_a_start(service: Running) -> None:
    phone, now = phone_number(), int(time.time())
    async with hooked(service) as http:
        await hand_in(http, {"from": phone, "text": "START"}, at=now)
        await hand_in(http, {"from": phone, "text": "STOP"}, at=now - 60)
    assert not await stopped(service, phone)


async def test_two_programs_that_answer_each_other_do_not_loop_forever(service: Running) -> None:
    phone = phone_number()
    async with hooked(service) as http:
        for _ in range(REPLIES_AN_HOUR + 3):
            assert (await hand_in(http, {"from": phone, "text": "HELP"})).status_code == 200
    assert len(await texts_to(service, phone)) in range(REPLIES_AN_HOUR, 2 * REPLIES_AN_HOUR)


@pytest.mark.parametrize(
    "wrong",
    [{"secret": SECRET.replace("MDE", "MDF")}, {"at": 0}, {"at": 10**11}, {"at": -1}, {"key": "k" * 300}],
)
async def test_a_request_without_a_valid_current_signature_changes_nothing(
    service: Running, wrong: dict[str, Any]
) -> None:
    phone = phone_number()
    async with hooked(service) as http:
        answer = await hand_in(http, {"from": phone, "text": "STOP"}, **wrong)
    assert answer.status_code == 401
    assert "CUOTA_TEXT_HOOK_SECRET" in answer.text
    assert not await stopped(service, phone)


@pytest.mark.parametrize(
    "body", [{}, [], {"from": "12", "text": "STOP"}, {"from": 1, "text": "STOP"}, {"from": "2125550187"},
             {"from": "2125550187", "text": "x" * 2001}],
)  # fmt: skip
async def test_the_error_about_a_malformed_body_says_what_to_send(service: Running, body: object) -> None:
    async with hooked(service) as http:
        answer = await hand_in(http, body)
    assert answer.status_code == 400


async def test_without_a_text_hook_the_path_does_not_exist(service: Running) -> None:
    async with service.client() as http:
        answer = await http.post("/texts", json={"from": "2125550187", "text": "STOP"})
    assert answer.status_code == 404


async def test_in_the_sandbox_the_inbox_can_answer_like_a_phone(service: Running) -> None:
    phone = phone_number()
    await service.context.rails.message.send(
        Message(service.context.new_id(), phone, None, "Pay", "", "It is due.")
    )
    async with service.client(follow_redirects=True) as http:
        page = await http.get(f"/sandbox/inbox?to={phone}")
        assert "Answer from this phone" in page.text
        page = await http.post("/sandbox/inbox", data={"to": phone, "text": "STOP"})
        assert "you get no more texts from us" in page.text
        assert await stopped(service, phone)
        foreign = await http.post(
            "/sandbox/inbox", data={"to": phone, "text": "START"}, headers={"sec-fetch-site": "cross-site"}
        )
        assert foreign.status_code == 403
        assert (await http.post("/sandbox/inbox", data={"to": "nobody", "text": "STOP"})).status_code == 400
    assert await stopped(service, phone)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("STOP", TextAnswer.STOP), ("stop all", TextAnswer.STOP), ('"Unsubscribe"', TextAnswer.STOP), ("Quit!", TextAnswer.STOP),
        ("start", TextAnswer.START), ("Unstop", TextAnswer.START), ("HELP?", TextAnswer.HELP), ("info", TextAnswer.HELP),
        ("please stop", TextAnswer.OTHER), ("", TextAnswer.OTHER), ("👍", TextAnswer.OTHER),
    ],
)  # fmt: skip
def test_a_keyword_is_recognized_in_every_notation(text: str, meant: TextAnswer) -> None:
    assert read_answer(text) is meant
