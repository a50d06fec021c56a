"""Forms with files: broken forms get a clear error, large forms are refused early, and the memory is limited."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any
from uuid import UUID, uuid4

import pytest

from cuota.core.refusal import Code, Refused
from cuota.db.dispute import disputes
from cuota.web import upload
from cuota.web.upload import AT_ONCE, MOST_UPLOAD_BYTES, upload_place
from support.makers import Merchant
from support.pages.consumer import Consumer, Plan

BOUNDARY = "bound-of-parts"
KIND = {"content-type": f"multipart/form-data; boundary={BOUNDARY}"}
STORY = {"reason": "not_received", "amount": "40.00", "text": "Nothing came."}


def part(name: str, content: bytes, more: bytes = b"") -> bytes:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"'.encode()
    return head + more + b"\r\n\r\n" + content + b"\r\n"


def a_form(fields: dict[str, str], *files: bytes) -> bytes:
    texts = [part(name, value.encode()) for name, value in fields.items()]
    return b"".join([*texts, *files, f"--{BOUNDARY}--\r\n".encode()])


def a_file(content: bytes, name: bytes = b"a.txt", field: str = "files") -> bytes:
    return part(field, content, b'; filename="' + name + b'"')


@pytest.fixture
async def plan(consumer: Consumer, shop: Merchant) -> Plan:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    return plan


async def held(consumer: Consumer, plan: Plan) -> dict[str, str]:
    """Return the form's hidden fields, with the story filled in."""
    _, fields = (await consumer.open(f"{plan.path}/dispute")).form("dispute")
    return fields | STORY


async def opened(plan: Plan) -> list[Any]:
    pool = plan.shop.service.context.pool
    return await disputes.of_order(pool, plan.shop.merchant_id, UUID(plan.order["orderId"]))


async def test_a_form_with_a_file_name_in_any_script_is_accepted(consumer: Consumer, plan: Plan) -> None:
    body = a_form(await held(consumer, plan), a_file(b"I waited.", "фото ñ.txt".encode()))
    answer = await consumer.http.post(f"{plan.path}/dispute", content=body, headers=KIND)
    assert answer.status_code == 303, answer.text
    assert "фото ñ.txt" in (await consumer.open(answer.headers["location"])).text


@pytest.mark.parametrize(
    ("broken", "kind"),
    [
        (lambda form: form, "multipart/form-data"),
        (lambda form: form, "multipart/form-data; boundary="),
        (lambda form: form, "multipart/form-data; boundary=another"),
        (lambda form: form, f"text/plain; boundary={BOUNDARY}"),
        (lambda form: form, "application/x-www-form-urlencoded"),
        (lambda form: form[:-20], None),
        (lambda form: form[: len(form) // 2], None),
        (lambda form: b"", None),
        (lambda form: a_file(b"a", b"\xff\xfe.txt") + form, None),
        (lambda form: part("text", b"\xff\xfe") + form, None),
        (lambda form: part("files", b"a text, no file") + form, None),
        (lambda form: a_file(b"a", field="text") + form, None),
        (lambda form: part("text", b"a" * 70_000) + form, None),
        (lambda form: part("x", b"a", b"\r\nX-A: b" * 1_000_000) + form, None),
        (lambda form: part("x", b"a", b"\r\nX-A: " + b"b" * 1_000_000) + form, None),
        (lambda form: b"".join(part(f"x{n}", b"a") for n in range(10_000)) + form, None),
        (lambda form: b"".join(a_file(b"a") for _ in range(30)) + form, None),
        (lambda form: form.replace(b"form-data; name", b"attachment; name"), None),
        (lambda form: secrets.token_bytes(100_000), None),
    ],
)  # fmt: skip
async def test_a_form_that_cannot_be_read_gets_a_clear_error_and_changes_nothing(
    consumer: Consumer, plan: Plan, broken: Any, kind: str | None
) -> None:
    body = broken(a_form(await held(consumer, plan)))
    answer = await consumer.http.post(
        f"{plan.path}/dispute", content=body, headers={"content-type": kind} if kind else KIND
    )
    assert answer.status_code == 400, answer.text
    assert "This form could not be read" in answer.text
    assert await opened(plan) == []


async def test_a_text_with_a_null_character_counts_as_no_text(consumer: Consumer, plan: Plan) -> None:
    body = a_form(await held(consumer, plan) | {"text": "a\0b", "amount": "1\0"})
    answer = await consumer.http.post(f"{plan.path}/dispute", content=body, headers=KIND)
    assert answer.status_code == 400
    assert "Write what happened" in answer.text


async def test_a_form_that_grows_too_large_is_refused(consumer: Consumer, plan: Plan) -> None:
    fields = await held(consumer, plan)

    async def growing() -> Any:
        yield a_form(fields).removesuffix(f"--{BOUNDARY}--\r\n".encode())
        yield part("files", b"", b'; filename="a.txt"').removesuffix(b"\r\n")
        for _ in range(MOST_UPLOAD_BYTES // 65536 + 1):
            yield b"a" * 65536

    answer = await consumer.http.post(f"{plan.path}/dispute", content=growing(), headers=KIND)
    assert answer.status_code == 413
    assert "at most 10 MB together" in answer.text


async def test_a_form_with_a_too_large_content_length_is_refused_before_it_is_sent(
    consumer: Consumer, plan: Plan
) -> None:
    cookies = "; ".join(f"{name}={value}" for name, value in consumer.http.cookies.items())
    base = consumer.http.base_url
    head = (
        f"POST {plan.path}/dispute HTTP/1.1\r\nHost: {base.host}:{base.port}\r\nCookie: {cookies}\r\n"
        f"Content-Type: {KIND['content-type']}\r\nContent-Length: {MOST_UPLOAD_BYTES + 1}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection(str(base.host), base.port)
    try:
        writer.write(head.encode())
        async with asyncio.timeout(60):
            assert b" 413 " in await reader.readline()
    finally:
        writer.close()


async def test_a_browser_that_is_not_signed_in_is_refused_before_it_has_sent_its_files(
    consumer: Consumer, plan: Plan
) -> None:
    consumer.http.cookies.clear()
    answer = await consumer.http.post(
        f"{plan.path}/dispute", content=a_form(STORY, a_file(b"a" * 8 * 2**20)), headers=KIND
    )
    assert answer.status_code == 303
    assert answer.headers["location"] == "/account?said=ended"
    assert answer.headers["connection"] == "close"


async def test_only_a_few_uploads_are_in_memory_at_a_time_and_one_for_each_sender(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(upload, "_places", None)
    monkeypatch.setattr(upload, "WAIT_SECONDS", 0.05)
    senders = [uuid4() for _ in range(AT_ONCE)]
    go_on, inside = asyncio.Event(), asyncio.Semaphore(0)

    async def send(sender: UUID) -> None:
        async with upload_place(sender):
            inside.release()
            await go_on.wait()

    async with asyncio.TaskGroup() as sending:
        first = sending.create_task(send(senders[0]))
        await inside.acquire()
        with pytest.raises(Refused, match="Your other files are still arriving") as refused:
            await send(senders[0])
        assert refused.value.code is Code.UNAVAILABLE
        for sender in senders[1:]:
            sending.create_task(send(sender))
            await inside.acquire()
        with pytest.raises(Refused, match="Many files are arriving"):
            await send(uuid4())
        go_on.set()
    assert first.done()
    async with asyncio.timeout(60):
        await send(senders[0])


async def test_an_upload_that_waits_for_its_sender_and_then_for_a_place_waits_no_longer_than_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(upload, "_places", asyncio.Semaphore(0))
    monkeypatch.setattr(upload, "WAIT_SECONDS", 0.5)
    ended: list[str] = []

    async def send(name: str, sender: UUID) -> None:
        with pytest.raises(Refused, match="Many files are arriving"):
            async with upload_place(sender):
                pass
        ended.append(name)

    # The first upload of the sender waits for a place. Its end gives the second one its turn, after half of the time.
    sender = uuid4()
    async with asyncio.TaskGroup() as sending:
        sending.create_task(send("first", sender))
        await asyncio.sleep(0.25)
        sending.create_task(send("second", sender))
        await asyncio.sleep(0.2)
        sending.create_task(send("another sender", uuid4()))
    assert ended == ["first", "second", "another sender"]
