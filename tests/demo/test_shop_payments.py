"""The shop repeats calls safely over a bad network, with one token."""

from __future__ import annotations

from decimal import Decimal

import httpx
import pytest

from cuota_demo.payments import PaymentError, Payments
from cuota_demo.settings import ShopSettings
from support.demo.shop_network import MOVED, RECORD, Answer, Network, refusal


def payments_over(settings: ShopSettings, network: Network) -> Payments:
    return Payments(settings, httpx.MockTransport(network))


@pytest.mark.parametrize(
    "lost", [httpx.ReadTimeout("late"), httpx.ConnectError("down"), refusal("unavailable", 503)]
)
async def test_a_call_without_an_answer_is_repeated_byte_for_byte(
    settings: ShopSettings, lost: Answer
) -> None:
    network = Network(lost, httpx.Response(200, json=MOVED))
    moved = await payments_over(settings, network).capture("o-1", 1250, "r")
    assert (moved.amount, moved.reference) == (1250, "r")
    assert network.bodies() == [b'{"amount":"12.50","merchantReference":"r"}'] * 2


async def test_a_create_is_repeated_with_the_same_idempotency_key(settings: ShopSettings) -> None:
    answer = httpx.Response(200, json={"orderId": "o-1", "redirectUrl": "https://pay.test/c"})
    network = Network(httpx.ReadTimeout("late"), answer)
    assert (await payments_over(settings, network).create_order({"amount": "1.00"}, "key")).order_id == "o-1"
    assert [call.headers["Idempotency-Key"] for call in network.calls] == ["key", "key"]


async def test_a_repeated_call_that_was_already_applied_counts_as_done(settings: ShopSettings) -> None:
    original = {**MOVED, "operation": "refund", "id": "m-1", "sameRequest": True}
    network = Network(httpx.ReadTimeout("late"), refusal("duplicate_reference", original=original))
    moved = await payments_over(settings, network).refund("o-1", 1250, "r")
    assert (moved.kind, moved.amount, moved.reference) == ("refund", 1250, "r")


async def test_a_reference_of_another_request_is_an_error(settings: ShopSettings) -> None:
    network = Network(refusal("duplicate_reference", original={**MOVED, "sameRequest": False}))
    with pytest.raises(PaymentError) as caught:
        await payments_over(settings, network).void("o-1", 1250, "r")
    assert caught.value.code == "duplicate_reference"
    assert not caught.value.undecided


async def test_a_refusal_is_final_and_contains_the_balances(settings: ShopSettings) -> None:
    network = Network(refusal("refund_exceeds_captured", balances={"refundable": 3.1}))
    with pytest.raises(PaymentError) as caught:
        await payments_over(settings, network).refund("o-1", 1250, "r")
    assert caught.value.balances == {"refundable": Decimal("3.1")}
    assert not caught.value.undecided
    assert len(network.calls) == 1


@pytest.mark.parametrize(
    "answer", [httpx.ConnectError("down"), refusal("unavailable", 503), httpx.Response(200, text="hi")]
)
async def test_without_any_answer_the_outcome_is_undecided(settings: ShopSettings, answer: Answer) -> None:
    with pytest.raises(PaymentError) as caught:
        await payments_over(settings, Network(answer)).capture("o-1", 1250, "r")
    assert caught.value.undecided


async def test_a_token_is_requested_once_and_reused(settings: ShopSettings) -> None:
    network = Network(httpx.Response(200, json=RECORD))
    payments = payments_over(settings, network)
    for _ in range(3):
        assert (await payments.read_order("o-1")).status == "Approved"
    assert network.tokens == 1


async def test_a_token_near_its_end_is_replaced_before_it_fails(settings: ShopSettings) -> None:
    network = Network(httpx.Response(200, json=RECORD))
    network.expires_in = 30
    payments = payments_over(settings, network)
    await payments.read_order("o-1")
    await payments.read_order("o-1")
    assert [call.headers["Authorization"] for call in network.calls] == ["Bearer token-1", "Bearer token-2"]


async def test_a_withdrawn_token_is_replaced_once(settings: ShopSettings) -> None:
    network = Network(refusal("unauthorized", 401), httpx.Response(200, json=RECORD))
    await payments_over(settings, network).read_order("o-1")
    assert (network.tokens, len(network.calls)) == (2, 2)
    network = Network(refusal("unauthorized", 401))
    with pytest.raises(PaymentError, match="unauthorized"):
        await payments_over(settings, network).read_order("o-1")
    assert (network.tokens, len(network.calls)) == (2, 2)
