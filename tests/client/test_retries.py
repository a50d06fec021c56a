"""Which calls are retried and which are not. No call is applied twice, whatever the network loses."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from cuota.client import DuplicateReference, RequestRefused, Unauthorized, Unavailable
from cuota.client.talk import retry_after
from cuota.flows.merchant import manage_merchants
from support.client_tools import Both, Cutter, header, reason
from support.makers import Merchant, order_body
from support.waiting import until

MOVED = {"capture": "captured", "void": "voided", "refund": "refunded"}


@pytest.fixture
async def order_id(merchant: Merchant) -> str:
    """Return an approved order of 100.00, of which 50.00 are captured."""
    order = await merchant.approved("100.00")
    await merchant.move(order, "capture", "50.00", "first")
    return str(order["orderId"])


@pytest.mark.parametrize("operation", ["capture", "void", "refund"])
async def test_a_movement_whose_answer_is_lost_is_applied_once_and_the_retry_finds_the_first_call(
    lossy: Both, cutter: Cutter, order_id: str, operation: str
) -> None:
    before = await lossy("get_order", order_id)
    cutter.next_ones(operation, 1)
    moved = await lossy(operation, order_id, "12.50", "once")
    assert (moved.operation, moved.reference, moved.amount) == (operation, "once", Decimal("12.50"))
    assert moved.repeated is True
    after = await lossy("get_order", order_id)
    name = MOVED[operation]
    assert getattr(after, name) - getattr(before, name) == Decimal("12.50")
    listed = {"capture": after.captures, "void": after.voids, "refund": after.refunds}[operation][-1]
    assert (listed.reference, listed.amount, listed.at) == (moved.reference, moved.amount, moved.at)
    assert len(cutter.tries(f"/{operation}")) == 2


async def test_a_repetition_after_a_restart_also_finds_the_first_call(
    lossy: Both, cutter: Cutter, order_id: str, merchant: Merchant, kind: str
) -> None:
    cutter.next_ones("capture", 99)
    error = await reason(lossy("capture", order_id, "12.50", "once"), Unavailable)
    assert error.undecided
    async with Both.of(kind, merchant) as restarted:
        assert (await restarted("capture", order_id, "12.50", "once")).repeated
        assert (await restarted("get_order", order_id)).captured == Decimal("62.50")


async def test_a_reference_that_was_used_for_another_amount_is_refused_with_the_original_amount(
    shop: Both, order_id: str
) -> None:
    error = await reason(shop("capture", order_id, "12.50", "first"), DuplicateReference)
    assert (error.code, error.status, error.undecided) == ("duplicate_reference", 422, False)
    assert (error.original.operation, error.original.amount) == ("capture", Decimal("50.00"))
    assert error.original.same_request is False
    assert error.balances.capturable == Decimal("50.00")


async def test_after_the_last_attempt_the_error_says_that_the_call_may_have_been_applied(
    lossy: Both, cutter: Cutter, order_id: str
) -> None:
    cutter.next_ones("capture", 99)
    error = await reason(lossy("capture", order_id, "12.50", "once"), Unavailable)
    assert len(cutter.tries("capture")) == 3
    assert (error.code, error.status, error.undecided) == ("unreachable", None, True)
    assert "may have been applied" in str(error)


async def test_a_read_whose_answer_is_lost_is_retried(lossy: Both, cutter: Cutter, order_id: str) -> None:
    cutter.next_ones(order_id, 2)
    assert (await lossy("get_order", order_id)).status == "Approved"
    cutter.next_ones(order_id, 99)
    error = await reason(lossy("get_order", order_id), Unavailable)
    assert not error.undecided


async def test_an_order_whose_answer_is_lost_is_created_once_with_one_key(
    lossy: Both, cutter: Cutter, merchant: Merchant
) -> None:
    cutter.next_ones("POST /order", 2)
    made = await lossy("create_order", order_body("30.00"))
    heads = cutter.tries("POST /order ")
    assert len(heads) == 3
    assert len({header(head, "Idempotency-Key") for head in heads}) == 1
    events = (await merchant.http.get("/events")).json()["events"]
    assert [event["orderId"] for event in events] in ([], [made.order_id])
    again = await lossy("create_order", order_body("30.00"))
    assert again.order_id != made.order_id


async def test_an_order_with_the_caller_s_own_key_is_the_same_order_after_a_restart(
    lossy: Both, cutter: Cutter, merchant: Merchant, kind: str
) -> None:
    cutter.next_ones("POST /order", 99)
    error = await reason(lossy("create_order", order_body("30.00"), idempotency_key="mine-1"), Unavailable)
    assert (error.undecided, error.idempotency_key) == (True, "mine-1")
    async with Both.of(kind, merchant) as restarted:
        first = await restarted("create_order", order_body("30.00"), idempotency_key="mine-1")
        second = await restarted("create_order", order_body("30.00"), idempotency_key="mine-1")
        assert first == second
        error = await reason(
            restarted("create_order", order_body("31.00"), idempotency_key="mine-1"), RequestRefused
        )
        assert error.code == "idempotency_key_reused"


async def test_a_call_that_could_be_applied_twice_is_never_retried(
    lossy: Both, cutter: Cutter, merchant: Merchant
) -> None:
    cutter.next_ones("POST /webhook-endpoints", 1)
    error = await reason(lossy("register_endpoint", "http://127.0.0.1:9/hooks"), Unavailable)
    assert error.undecided
    assert len(cutter.tries("POST /webhook-endpoints ")) == 1
    # The same call with the same key returns the stored answer with its secret, and makes no second endpoint.
    again = await lossy(
        "register_endpoint", "http://127.0.0.1:9/hooks", idempotency_key=error.idempotency_key
    )
    assert again.secret.startswith("whsec_")
    assert [one.id for one in await lossy("endpoints")] == [again.id]
    cutter.next_ones("rotate-secret", 1)
    await reason(lossy("rotate_secret", again.id), Unavailable)
    assert len(cutter.tries("rotate-secret")) == 1


async def test_a_removal_whose_answer_is_lost_counts_as_done_when_the_retry_finds_nothing(
    lossy: Both, cutter: Cutter
) -> None:
    made = await lossy("register_endpoint", "http://127.0.0.1:9/hooks")
    cutter.next_ones("DELETE", 1)
    await lossy("remove_endpoint", made.id)
    assert len(cutter.tries("DELETE")) == 2
    assert await lossy("endpoints") == ()
    await reason(lossy("remove_endpoint", made.id), RequestRefused)


async def test_fifty_calls_with_one_reference_move_the_money_once(shop: Both, order_id: str) -> None:
    moved = await asyncio.gather(*(shop("capture", order_id, "10.00", "one") for _ in range(50)))
    assert sum(not each.repeated for each in moved) == 1
    assert len({each.at for each in moved}) == 1
    assert (await shop("get_order", order_id)).captured == Decimal("60.00")


async def test_if_the_secret_is_revoked_after_a_lost_answer_the_result_is_still_undecided(
    lossy: Both, cutter: Cutter, order_id: str, merchant: Merchant
) -> None:
    await lossy("configuration")
    cutter.next_ones("capture", 1)
    cutter.answered.clear()
    held = [True]
    cutter.holds = lambda head: bool(held)
    call = asyncio.ensure_future(reason(lossy("capture", order_id, "12.50", "once"), Unauthorized))
    await until(lambda: cutter.answered)
    await manage_merchants.revoke_merchant(merchant.service.context, str(merchant.merchant_id))
    await asyncio.sleep(2.2)  # so long the service may still take the token
    held.clear()
    assert (await call).undecided is True


async def test_if_the_connection_is_refused_nothing_was_applied(merchant: Merchant, kind: str) -> None:
    async with Both.of(kind, merchant, base_url="http://127.0.0.1:9") as both:
        error = await reason(both("capture", "o-1", "1.00", "r"), Unavailable)
    assert (error.undecided, error.status) == (False, None)


class Later:
    """A service that gives prepared answers, and counts the requests."""

    def __init__(
        self, status: int, *headers: str, body: str = '{"code": "unavailable", "message": "later"}'
    ) -> None:
        self.status, self.headers, self.body, self.asked = status, headers, body.encode(), 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.asked += 1
        lines = (
            f"HTTP/1.1 {self.status} So",
            f"Content-Length: {len(self.body)}",
            "Connection: close",
            *self.headers,
        )
        writer.write("\r\n".join((*lines, "", "")).encode() + self.body)
        await writer.drain()
        writer.close()

    async def answer_to(self, kind: str, merchant: Merchant, call: tuple[Any, ...], **more: Any) -> Any:
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server, Both.of(kind, merchant, base_url=url, **more) as both:
            return await reason(both(*call), Unavailable)


async def test_retry_after_is_respected(merchant: Merchant, kind: str) -> None:
    later, started = Later(503, "Retry-After: 1"), time.monotonic()
    error = await later.answer_to(kind, merchant, ("configuration",), pauses=(0.01,))
    assert time.monotonic() - started >= 1
    assert (later.asked, error.status, error.retry_after, error.code) == (2, 503, 1.0, "unavailable")


@pytest.mark.parametrize("status", [429, 503])
async def test_a_retry_after_above_the_maximum_is_raised_to_the_caller(
    merchant: Merchant, kind: str, status: int
) -> None:
    later = Later(status, "Retry-After: 3600")
    error = await later.answer_to(kind, merchant, ("capture", "o-1", "1.00", "r"))
    assert (later.asked, error.retry_after) == (1, 3600.0)
    assert (type(error).__name__, error.undecided) == {
        429: ("RateLimited", False), 503: ("Unavailable", True),
    }[status]  # fmt: skip


@pytest.mark.parametrize(
    "answer", [(200, "<html>hi"), (302, ""), (500, "{}"), (502, ""), (200, "[]"), (200, "{}")]
)
async def test_an_unreadable_answer_leaves_the_result_undecided(
    merchant: Merchant, kind: str, answer: tuple[int, str]
) -> None:
    later = Later(answer[0], body=answer[1])
    error = await later.answer_to(kind, merchant, ("capture", "o-1", "1.00", "r"))
    assert (later.asked, error.status, error.undecided) == (3, answer[0], True)


def test_retry_after_may_be_a_date_and_an_unreadable_value_is_ignored() -> None:
    now = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)
    assert retry_after("Sat, 21 Nov 2026 10:00:07 GMT", now) == 7.0
    assert retry_after("Sat, 21 Nov 2026 09:00:00 GMT", now) == 0.0
    assert retry_after("9" * 5000, now) == float("inf")
    assert [retry_after(text, now) for text in ("", "soon", "-1", "٣", None)] == [None] * 5
