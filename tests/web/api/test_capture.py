"""Tests of `POST /order/{orderId}/capture`."""

from __future__ import annotations

import asyncio

from support.makers import Merchant


async def test_the_answer_to_a_capture_has_its_reference_amount_and_time(merchant: Merchant) -> None:
    order = await merchant.approved("100.00")
    answer = await merchant.move(order, "capture", "30.50", "ship-1")
    assert answer.status_code == 200
    assert answer.json()["merchantReference"] == "ship-1"
    assert answer.text.count('"amount":30.50') == 1
    record = await merchant.read(order)
    assert record["paymentState"] == "PARTIALLY_CAPTURED"
    assert record["capturedAmount"] == 30.5


async def test_of_64_simultaneous_identical_captures_one_is_applied(merchant: Merchant) -> None:
    order = await merchant.approved("100.00")
    answers = await asyncio.gather(*(merchant.move(order, "capture", "10.00", "once") for _ in range(64)))
    assert sorted(answer.status_code for answer in answers) == [200] + [422] * 63
    assert all(a.json()["code"] == "duplicate_reference" for a in answers if a.status_code == 422)
    assert all(a.json()["original"]["sameRequest"] for a in answers if a.status_code == 422)
    assert (await merchant.read(order))["capturedAmount"] == 10


async def test_of_64_simultaneous_captures_of_10_on_100_ten_are_applied(merchant: Merchant) -> None:
    order = await merchant.approved("100.00")
    answers = await asyncio.gather(*(merchant.move(order, "capture", "10.00") for _ in range(64)))
    assert sorted(answer.status_code for answer in answers) == [200] * 10 + [422] * 54
    assert all(a.json()["code"] == "capture_exceeds_authorized" for a in answers if a.status_code == 422)
    record = await merchant.read(order)
    assert record["capturedAmount"] == 100
    assert record["paymentState"] == "CAPTURED"
