"""The webhooks that each example receiver of the docs accepts and refuses."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from cuota.core.webhook.signature import pay_signature, webhook_signature
from support.makers import Merchant
from support.receivers.programs import (
    LANGUAGES,
    Letter,
    Receiver,
    deliveries_of,
    letter,
    order_told_to,
    started,
)
from support.sending import deliver, webhook_secret

OTHER = "whsec_" + base64.b64encode(b"of another merchant, 32 bytes...").decode()


@pytest.fixture(params=LANGUAGES)
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def receiver(language: str, merchant: Merchant, tmp_path: Path) -> AsyncIterator[Receiver]:
    """A receiver with the merchant's own two secrets."""
    secrets = await webhook_secret(merchant), merchant.signing_secret
    async with started(language, tmp_path / "inbox", *secrets) as running:
        yield running


async def test_a_webhook_of_the_service_is_accepted_and_stored_byte_for_byte(
    merchant: Merchant, receiver: Receiver
) -> None:
    order = await order_told_to(merchant, receiver.url)
    await deliver(merchant)
    feed = (await merchant.http.get("/events")).json()["events"]
    (event,) = [each["id"] for each in feed if each["orderId"] == order["orderId"]]
    assert receiver.kept() == {event: (await merchant.http.get(f"/events/{event}")).content}
    (told,) = await deliveries_of(merchant, event)
    assert (told["state"], [each["status"] for each in told["attempts"]]) == ("delivered", [204])
    assert receiver.left_over() == []


async def test_a_repeated_webhook_is_acknowledged_and_stored_once(
    merchant: Merchant, receiver: Receiver
) -> None:
    await order_told_to(merchant, receiver.url)
    await deliver(merchant)
    (event,) = receiver.kept()
    kept = (receiver.inbox / f"{event}.json").stat()
    assert (await merchant.http.post(f"/events/{event}/replay")).json() == {"replayed": 1}
    await deliver(merchant)
    (told,) = await deliveries_of(merchant, event)
    assert [each["status"] for each in told["attempts"]] == [204, 204]
    again = (receiver.inbox / f"{event}.json").stat()
    assert list(receiver.kept()) == [event]
    assert (again.st_ino, again.st_mtime_ns) == (kept.st_ino, kept.st_mtime_ns)
    assert receiver.left_over() == []


async def test_repeated_webhooks_at_the_same_moment_are_stored_once(
    merchant: Merchant, receiver: Receiver
) -> None:
    sent = await letter(merchant, await merchant.create())
    answers = await asyncio.gather(*(sent.send(receiver.url) for _ in range(8)))
    assert [answer.status for answer in answers] == [204] * 8
    assert list(receiver.kept().values()) == [sent.body]
    assert receiver.left_over() == []


async def test_a_webhook_is_accepted_while_the_sandbox_s_clock_is_weeks_ahead(
    merchant: Merchant, receiver: Receiver
) -> None:
    async with merchant.service.clock.moved(days=42):
        order = await _told_later(merchant, receiver)
    assert [name.split("_")[1] for name in receiver.kept()] == [order.replace("-", "")]


async def _told_later(merchant: Merchant, receiver: Receiver) -> str:
    async with merchant.service.client() as http:
        later = Merchant(**{**vars(merchant), "http": http})
        http.headers["Authorization"] = f"Bearer {await later.token()}"
        order = await order_told_to(later, receiver.url)
        await deliver(later)
    return str(order["orderId"])


async def test_during_a_rotation_of_an_endpoint_s_secret_the_old_one_still_verifies(
    merchant: Merchant, language: str, tmp_path: Path
) -> None:
    made = (await merchant.http.post("/webhook-endpoints", json={"url": "http://127.0.0.1:9/"})).json()
    async with started(language, tmp_path / "inbox", made["secret"], merchant.signing_secret) as receiver:
        address = f"/webhook-endpoints/{made['id']}"
        assert (await merchant.http.patch(address, json={"url": receiver.url})).status_code == 200
        assert (await merchant.http.post(f"{address}/rotate-secret")).status_code == 200
        assert (await merchant.http.post(f"{address}/test")).json()["acknowledged"] is True
        assert (await merchant.http.post(f"{address}/rotate-secret")).status_code == 200
        # The oldest of the three secrets has expired.
        assert (await merchant.http.post(f"{address}/test")).json()["status"] == 401


async def test_while_the_signing_secret_is_replaced_a_receiver_with_both_accepts_either(
    merchant: Merchant, language: str, tmp_path: Path
) -> None:
    webhook, old, new = await webhook_secret(merchant), merchant.signing_secret, "signing_new"
    async with started(language, tmp_path / "inbox", webhook, f"{old} {new}") as receiver:
        sent = await letter(merchant, await merchant.create())
        for secret, status in (
            (old, 204),
            (new, 204),
            ("signing_other", 401),
            (f"{old} {new}", 401),
            ("", 401),
        ):
            sent.headers["X-Pay-Signature"] = pay_signature(secret, sent.body)
            assert (await sent.send(receiver.url)).status == status


def _changed_byte(sent: Letter) -> None:
    sent.body = sent.body.replace(b'"amount":100', b'"amount":900', 1)


def _changed_byte_signed_by_one_secret(sent: Letter, signing: str) -> None:
    _changed_byte(sent)
    sent.headers["X-Pay-Signature"] = pay_signature(signing, sent.body)


def _other_webhook_secret(sent: Letter) -> None:
    name, at = sent.headers["webhook-id"], int(sent.headers["webhook-timestamp"])
    sent.headers["webhook-signature"] = webhook_signature([OTHER], name, at, sent.body)


def _other_signing_secret(sent: Letter) -> None:
    sent.headers["X-Pay-Signature"] = pay_signature("signing_other", sent.body)


def _another_id(sent: Letter) -> None:
    sent.headers["webhook-id"] += "0"


def _fresher_timestamp(sent: Letter) -> None:
    sent.headers["webhook-timestamp"] = str(int(sent.headers["webhook-timestamp"]) + 1)


def _no_version(sent: Letter) -> None:
    sent.headers["webhook-signature"] = sent.headers["webhook-signature"].removeprefix("v1,")


def _no_ascii(sent: Letter) -> None:
    sent.headers["X-Pay-Signature"] = "\N{EURO SIGN}".encode()


SPOILED = {
    "a changed byte": _changed_byte,
    "a signature by another webhook secret": _other_webhook_secret,
    "a signature by another signing secret": _other_signing_secret,
    "another id": _another_id,
    "another timestamp": _fresher_timestamp,
    "a signature without its version": _no_version,
    "a signature that is no ASCII": _no_ascii,
    **{
        f"no {name}": lambda sent, name=name: sent.headers.pop(name)
        for name in ("webhook-id", "webhook-timestamp", "webhook-signature", "X-Pay-Signature")
    },
}


@pytest.mark.parametrize("how", SPOILED)
async def test_a_changed_webhook_is_refused_and_not_stored(
    merchant: Merchant, receiver: Receiver, how: str
) -> None:
    sent = await letter(merchant, await merchant.create())
    genuine = Letter(dict(sent.headers), sent.body)
    spoil: Callable[[Letter], object] = SPOILED[how]
    spoil(sent)
    assert (sent.headers, sent.body) != (genuine.headers, genuine.body)
    assert (await sent.send(receiver.url)).status == 401
    assert receiver.kept() == {}
    # The unchanged webhook is accepted, so the receiver refused the change.
    assert (await genuine.send(receiver.url)).status == 204
    assert len(receiver.kept()) == 1


async def test_one_right_signature_of_two_is_not_enough(merchant: Merchant, receiver: Receiver) -> None:
    sent = await letter(merchant, await merchant.create())
    _changed_byte_signed_by_one_secret(sent, merchant.signing_secret)
    assert (await sent.send(receiver.url)).status == 401
    assert receiver.kept() == {}


@pytest.mark.parametrize(("age", "status"), [(360, 401), (-360, 401), (200, 204), (-200, 204)])
async def test_a_signed_webhook_whose_time_differs_by_more_than_five_minutes_is_refused(
    merchant: Merchant, receiver: Receiver, age: int, status: int
) -> None:
    sent = await letter(merchant, await merchant.create(), at=int(time.time()) - age)
    assert (await sent.send(receiver.url)).status == status
    assert len(receiver.kept()) == (status == 204)
