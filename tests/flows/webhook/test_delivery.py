"""The address, content and signature of webhooks, and the record of every attempt."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from support.sending import webhook_secret
from support.webhook.couriers import Post
from support.webhook.listeners import Came, dead_port, hooked
from support.webhook.verifiers import Node, installed, verified

TIMETABLE = (10, 60, 300, 1800, 7200, 21_600, 43_200, 86_400, 86_400)


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Node:
    return installed(tmp_path_factory.mktemp("verifier"))


def base64_hmac(key: bytes, text: bytes) -> str:
    return base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()


async def one_event(post: Post) -> str:
    """Return the id of the only event."""
    (event,) = await post.events()
    return str(event["id"])


async def attempts(post: Post) -> list[dict[str, Any]]:
    """Return the delivery of the only event to its only receiver."""
    (delivery,) = await post.deliveries(await one_event(post))
    return list(delivery["attempts"])


async def test_events_go_to_the_order_s_address_and_to_every_registered_endpoint(post: Post) -> None:
    async with hooked() as own, hooked() as first, hooked() as second:
        for _, listener in (first, second):
            await post.register(listener.url)
        order = await post.told(own[1].url)
        await post.merchant.create()
        await post.deliver()
        bodies = [[came.body for came in hook.got] for hook, _ in (own, first, second)]
        assert len(bodies[0]) == 1
        assert bodies[0][0] in bodies[1]
        assert sorted(bodies[1]) == sorted(bodies[2])
        assert len(bodies[1]) == 2
        # The body has the same bytes as the feed, and the order already has this state when the webhook arrives.
        event = own[0].got[0].event
        answer = await post.merchant.http.get(f"/events/{event['id']}")
        assert answer.content == bodies[0][0]
        assert event["order"]["orderStatus"] == (await post.merchant.read(order))["orderStatus"]


async def test_a_paused_endpoint_loses_no_event_and_a_removed_endpoint_gets_no_event(post: Post) -> None:
    async with hooked() as (paused, paused_at), hooked() as (removed, removed_at):
        one, two = await post.register(paused_at.url), await post.register(removed_at.url)
        await post.merchant.http.patch(f"/webhook-endpoints/{one['id']}", json={"paused": True})
        for _ in range(3):
            await post.merchant.create()
        await post.publish()
        await post.merchant.http.delete(f"/webhook-endpoints/{two['id']}")
        await post.deliver()
        assert (paused.got, removed.got) == ([], [])
        await post.merchant.http.patch(f"/webhook-endpoints/{one['id']}", json={"paused": False})
        await post.deliver()
        assert {came.event["id"] for came in paused.got} == {event["id"] for event in await post.events()}
        assert len(paused.got) == 3
        assert removed.got == []


async def test_the_headers_have_the_id_and_the_time_and_both_signatures_are_right(
    post: Post, node: Node
) -> None:
    async with hooked() as (hook, listener), hooked() as (own, own_at):
        secret = (await post.register(listener.url))["secret"]
        await post.told(own_at.url)
        async with post.own.service.clock.moved(days=40):
            sent_after = int(time.time())
            await post.deliver()
        for came, key in ((hook.got[0], secret), (own.got[0], await webhook_secret(post.merchant))):
            assert came.headers["content-type"] == "application/json"
            assert came.headers["webhook-id"] == came.event["id"]
            post.own.service.contract.check_event_headers("order.created", came.headers)
            # The header has the real time of sending even if the service's clock is far ahead, because receivers
            # compare it with their clock.
            assert sent_after <= int(came.headers["webhook-timestamp"]) <= time.time()
            signed = f"{came.headers['webhook-id']}.{came.headers['webhook-timestamp']}.".encode() + came.body
            raw = base64.b64decode(key.removeprefix("whsec_"))
            assert came.headers["webhook-signature"] == f"v1,{base64_hmac(raw, signed)}"
            signing = post.merchant.signing_secret.encode()
            assert came.headers["x-pay-signature"] == base64_hmac(signing, came.body)
            assert verified(key, came)
            assert node.verify(key, [came]) == [{"event": came.event["id"]}]


async def test_the_libraries_refuse_a_wrong_secret_a_changed_body_and_an_old_webhook(
    post: Post, node: Node
) -> None:
    async with hooked() as (hook, listener):
        secret = (await post.register(listener.url))["secret"]
        await post.merchant.create("23.00")
        await post.deliver()
        (came,) = hook.got
        other = "whsec_" + base64.b64encode(b"another secret, of 32 bytes.....").decode()
        forged = Came(came.headers, came.body.replace(b"23.0", b"24.0"), came.at)
        assert forged.body != came.body
        old = Came({**came.headers, "webhook-timestamp": str(int(time.time()) - 301)}, came.body, came.at)
        assert not verified(other, came)
        assert [verified(secret, each) for each in (came, forged, old)] == [True, False, False]
        assert [set(said) for said in node.verify(secret, [came, forged, old])] == [
            {"event"},
            {"refused"},
            {"refused"},
        ]
        assert set(node.verify(other, [came])[0]) == {"refused"}


async def test_during_a_rotation_both_secrets_sign_and_afterwards_only_the_new_one(
    post: Post, node: Node
) -> None:
    async with hooked() as (hook, listener):
        endpoint = await post.register(listener.url)
        rotated = await post.merchant.http.post(f"/webhook-endpoints/{endpoint['id']}/rotate-secret")
        old, new = endpoint["secret"], rotated.json()["secret"]
        await post.merchant.create()
        async with post.own.service.clock.moved(days=3):
            await post.deliver()
        # The old secret expires by the real clock, not by the sandbox's clock.
        assert len(hook.got[0].headers["webhook-signature"].split()) == 2
        assert verified(old, hook.got[0])
        assert verified(new, hook.got[0])
        assert [set(node.verify(key, hook.got)[0]) for key in (old, new)] == [{"event"}, {"event"}]
        await post.ask("UPDATE webhook_endpoints SET old_secret_ends_at = now() - interval '1 second'")
        await post.merchant.create()
        await post.deliver()
        assert len(hook.got[1].headers["webhook-signature"].split()) == 1
        assert [verified(key, hook.got[1]) for key in (old, new)] == [False, True]


async def test_a_failed_delivery_is_retried_by_the_schedule_and_parked_after_the_tenth_attempt(
    post: Post,
) -> None:
    async with hooked(status=500) as (hook, listener):
        await post.register(listener.url)
        await post.merchant.create()
        await post.deliver()
        later, clock = 0.0, post.own.service.clock
        for number, seconds in enumerate(TIMETABLE, start=1):
            # The clock has advanced a little since the previous attempt.
            async with clock.moved(seconds=later + 0.9 * seconds - 5):
                await post.deliver()
                assert len(hook.got) == number
            later += 1.1 * seconds + 1
            async with clock.moved(seconds=later):
                await post.deliver()
                assert len(hook.got) == number + 1
        (delivery,) = await post.deliveries(await one_event(post))
        assert (delivery["state"], delivery["tries"], len(delivery["attempts"])) == ("parked", 10, 10)
        assert delivery["nextTryDateTime"] is None
        async with clock.moved(days=30):
            await post.deliver()
        assert len(hook.got) == 10
        # Each attempt sends the same id and bytes, so that a receiver can recognize a repetition. The delivery is kept, and can be sent again.
        assert len({(came.headers["webhook-id"], came.body) for came in hook.got}) == 1
        hook.status = 200
        replayed = await post.merchant.http.post(f"/events/{await one_event(post)}/replay")
        assert replayed.json() == {"replayed": 1}
        await post.deliver()
        (delivery,) = await post.deliveries(await one_event(post))
        assert (delivery["state"], len(delivery["attempts"])) == ("delivered", 11)


@pytest.mark.parametrize("kind", ["seconds", "date"])
async def test_retry_after_is_respected_in_seconds_and_as_a_date(post: Post, kind: str) -> None:
    when = datetime.now(UTC) + timedelta(seconds=7200)
    asked = {"seconds": "7200", "date": when.strftime("%a, %d %b %Y %H:%M:%S GMT")}[kind]
    async with hooked(answers=[503], headers=f"Retry-After: {asked}\r\n") as (hook, listener):
        await post.register(listener.url)
        await post.merchant.create()
        await post.deliver()
        for minutes, tries in ((1, 1), (118, 1), (121, 2)):
            async with post.own.service.clock.moved(minutes=minutes):
                await post.deliver()
            assert len(hook.got) == tries


async def test_retry_after_is_respected_up_to_a_day(post: Post) -> None:
    async with hooked(answers=[429], headers="Retry-After: 999999999\r\n") as (hook, listener):
        await post.register(listener.url)
        await post.merchant.create()
        await post.deliver()
        for hours, tries in ((23, 1), (25, 2)):
            async with post.own.service.clock.moved(hours=hours):
                await post.deliver()
            assert len(hook.got) == tries


async def test_every_attempt_can_be_read_with_its_status_time_and_error(post: Post) -> None:
    async with hooked(answers=[500], body=b"why: " + b"x" * 5000, pause=lambda: 0.05) as (_, listener):
        await post.register(listener.url)
        await post.merchant.create()
        await post.deliver()
        (failed,) = await attempts(post)
        assert (failed["status"], failed["error"]) == (500, None)
        assert failed["milliseconds"] >= 50
        # The text of an answer from this machine itself is not stored.
        assert failed["answer"] == ""
    async with post.own.service.clock.moved(seconds=15):
        await post.deliver()
    _, dead = await attempts(post)
    assert (dead["status"], dead["answer"]) == (None, "")
    assert dead["error"]


async def test_a_replay_for_one_endpoint_sends_only_its_deliveries_and_skips_those_in_progress(
    post: Post,
) -> None:
    async with hooked() as (lives, lives_at):
        with dead_port() as url:
            gone = await post.register(url)
            await post.register(lives_at.url)
            await post.merchant.create()
            await post.deliver()
            assert len(lives.got) == 1
            (one,) = [
                each for each in await post.deliveries(await one_event(post)) if each["state"] == "pending"
            ]
            assert one["tries"] == 1
        async with hooked() as (moved, moved_at):
            await post.merchant.http.patch(f"/webhook-endpoints/{gone['id']}", json={"url": moved_at.url})
            answer = await post.merchant.http.post(f"/webhook-endpoints/{gone['id']}/replay", json={})
            assert answer.json() == {"replayed": 1}
            async with post.courier() as courier:
                moved.pause = lambda: 0.5
                assert await courier.send_due() == 1
                answer = await post.merchant.http.post(f"/webhook-endpoints/{gone['id']}/replay", json={})
                assert answer.json() == {"replayed": 0}
                await courier.finish(20)
            assert (len(moved.got), len(lives.got)) == (1, 1)
