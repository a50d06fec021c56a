"""`GET /orders`: a merchant finds its own orders by reference, status and date, page by page, but never another
merchant's."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cuota.core.order.id_bounds import BEYOND, FIRST, id_bounds
from cuota.db.order import listing as order_list
from support.api.bodies import assert_refused, failures
from support.makers import Merchant, order_body


async def listed(merchant: Merchant, **query: Any) -> dict[str, Any]:
    answer = await merchant.http.get("/orders", params=query)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def walked(merchant: Merchant, **query: Any) -> list[str]:
    """Return the order ids of all pages."""
    ids, cursor = [], None
    while True:
        page = await listed(merchant, **query, **({"cursor": cursor} if cursor else {}))
        ids += [order["orderId"] for order in page["data"]]
        cursor = page["nextCursor"]
        assert (cursor is not None) is page["hasMore"]
        if cursor is None:
            return ids


async def test_a_merchant_without_orders_has_an_empty_list(merchant: Merchant) -> None:
    assert await listed(merchant) == {"data": [], "hasMore": False, "nextCursor": None}


async def test_orders_are_listed_newest_first_and_like_single_orders(merchant: Merchant) -> None:
    made = [await merchant.create() for _ in range(2)]
    paid = await merchant.approved("100.00")
    await merchant.move(paid, "capture", "40.00", "c-1")
    page = await listed(merchant)
    assert page["data"] == [await merchant.read(order) for order in (paid, made[1], made[0])]
    assert page["data"][0]["captures"][0]["merchantReference"] == "c-1"


async def test_with_every_page_size_each_order_is_listed_once_even_while_orders_are_created(
    merchant: Merchant,
) -> None:
    made = [(await merchant.create())["orderId"] for _ in range(7)]
    for size in (1, 2, 3, 7, 100):
        assert await walked(merchant, limit=size) == made[::-1]
    first = await listed(merchant, limit=3)
    await merchant.create()
    rest = await listed(merchant, limit=100, cursor=first["nextCursor"])
    assert [order["orderId"] for order in [*first["data"], *rest["data"]]] == made[::-1]


async def test_a_reference_finds_all_orders_that_have_it(merchant: Merchant, auto_merchant: Merchant) -> None:
    name = f"A-{secrets.token_hex(4)}"
    mine = [(await merchant.create(merchantReference=name))["orderId"] for _ in range(3)]
    await merchant.create(merchantReference=name + "x")
    await auto_merchant.create(merchantReference=name)
    assert await walked(merchant, merchantReference=name, limit=2) == mine[::-1]
    assert await walked(merchant, merchantReference=name.lower() + "?") == []
    nameless = (await merchant.create(merchantReference=""))["orderId"]
    assert await walked(merchant, merchantReference="") == [nameless]


async def test_the_filter_status_may_name_several_statuses(merchant: Merchant) -> None:
    created = (await merchant.create())["orderId"]
    approved = (await merchant.approved("100.00"))["orderId"]
    assert await walked(merchant, status="Approved") == [approved]
    assert await walked(merchant, status="Created") == [created]
    assert await walked(merchant, status="Approved,Created") == [approved, created]
    assert await walked(merchant, status="Declined") == []


async def test_a_range_of_dates_includes_its_beginning_but_not_its_end(merchant: Merchant) -> None:
    order = await merchant.create()
    record = await merchant.read(order)
    at = datetime.fromisoformat(record["createdDateTime"])
    # Times are shown to the millisecond, but stored to the microsecond.
    after = (at + timedelta(milliseconds=1)).isoformat()
    assert await walked(merchant, createdFrom=at.isoformat(), createdTo=after) == [order["orderId"]]
    assert await walked(merchant, createdFrom=after) == []
    assert await walked(merchant, createdTo=at.isoformat()) == []
    day = at.astimezone(UTC).date()
    assert await walked(merchant, createdFrom=day, createdTo=day + timedelta(days=1)) == [order["orderId"]]
    # A plus sign that the client did not encode.
    answer = await merchant.http.get(f"/orders?createdFrom={day}T00:00:00+00:00")
    assert len(answer.json()["data"]) == 1


async def test_a_page_reads_a_limited_number_of_orders_and_the_next_page_continues_after_them(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid = (await merchant.approved("100.00"))["orderId"]
    for _ in range(5):
        await merchant.create()
    monkeypatch.setattr(order_list, "SCANNED", 2)
    first = await listed(merchant, status="Approved")
    assert (first["data"], first["hasMore"]) == ([], True)
    assert await walked(merchant, status="Approved") == [paid]
    assert len(await walked(merchant, status="Created,Approved", limit=5)) == 6


async def test_a_page_of_large_orders_ends_early_and_no_order_is_lost(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [(await merchant.create(description="x" * 4000))["orderId"] for _ in range(5)]
    monkeypatch.setattr(order_list, "MOST_BYTES", 6000)
    assert len((await listed(merchant))["data"]) == 2
    assert await walked(merchant) == made[::-1]


async def test_a_page_of_orders_with_many_movements_ends_early_and_no_order_is_lost(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [await merchant.approved("20.00") for _ in range(3)]
    for order in made:
        for _ in range(20):
            assert (await merchant.move(order, "capture", "0.50", secrets.token_hex(50))).status_code == 200
    monkeypatch.setattr(order_list, "MOST_BYTES", 6000)
    assert [len(await walked(merchant, limit=each)) for each in (1, 3)] == [3, 3]
    assert len((await listed(merchant))["data"]) == 2
    assert await walked(merchant) == [order["orderId"] for order in reversed(made)]


async def test_another_merchants_orders_are_never_listed(merchant: Merchant, auto_merchant: Merchant) -> None:
    made = [await merchant.create() for _ in range(3)]
    cursor = (await listed(merchant, limit=1))["nextCursor"]
    assert await walked(auto_merchant) == []
    assert_refused(
        await auto_merchant.http.get("/orders", params={"cursor": cursor}), 400, "validation_failed"
    )
    assert len(made) == 3


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "é",
        "AAAA",
        "=" * 32,
        "A" * 32,
        "A" * 31,
        "A" * 10_000,
        "019aa3c4-7b10-7c3e-9a51-2f6d8e0b4c11",
    ],
)
async def test_an_invalid_cursor_is_refused_with_an_explanation(merchant: Merchant, cursor: str) -> None:
    answer = await merchant.http.get("/orders", params={"cursor": cursor}, headers={"x-no-contract": "1"})
    if len(cursor) < 5000:
        assert_refused(answer, 400, "validation_failed")
        assert failures(answer) == [("cursor", "invalid")]
        assert "nextCursor" in answer.json()["detail"]
    else:
        assert answer.status_code in {400, 414}


async def test_a_cursor_works_only_with_its_own_filters(merchant: Merchant) -> None:
    for _ in range(3):
        await merchant.create()
    cursor = (await listed(merchant, limit=1, status="Created"))["nextCursor"]
    assert len((await listed(merchant, limit=2, status="Created", cursor=cursor))["data"]) == 2
    for other in ({}, {"status": "Approved"}, {"status": "Created", "merchantReference": "A-1042"}):
        answer = await merchant.http.get("/orders", params={**other, "cursor": cursor})
        assert_refused(answer, 400, "validation_failed")


@pytest.mark.parametrize(
    ("query", "code", "fields"),
    [
        ("limit=0", "validation_failed", ["limit"]),
        ("limit=101", "validation_failed", ["limit"]),
        ("limit=ten&status=approved", "validation_failed", ["limit", "status"]),
        ("status=", "validation_failed", ["status"]),
        ("createdFrom=yesterday&createdTo=14d", "validation_failed", ["createdFrom", "createdTo"]),
        ("createdFrom=2026-11-21T10:00:00", "validation_failed", ["createdFrom"]),
        ("createdFrom=2026-02-30", "validation_failed", ["createdFrom"]),
        ("merchantReference=a%00b", "validation_failed", ["merchantReference"]),
        (f"merchantReference={'r' * 101}", "validation_failed", ["merchantReference"]),
        ("merchantreference=1042", "malformed_request", ["merchantreference"]),
        ("status=Created&status=Approved", "malformed_request", ["status"]),
        ("page=2", "malformed_request", ["page"]),
    ],
)
async def test_an_unreadable_query_is_refused_and_the_error_names_its_parameters(
    merchant: Merchant, query: str, code: str, fields: list[str]
) -> None:
    answer = await merchant.http.get(f"/orders?{query}")
    assert_refused(answer, 400, code)
    assert [name for name, _ in failures(answer)] == fields


async def test_without_a_token_it_is_401(merchant: Merchant) -> None:
    async with merchant.service.client() as bare:
        assert_refused(await bare.get("/orders"), 401, "unauthorized")


async def test_dates_bound_the_ids_that_are_read(merchant: Merchant) -> None:
    """In production, ids and orders use the same clock, so rows older than the requested dates are not read."""
    before = datetime.now(UTC)
    order = await merchant.create()
    low, high = id_bounds(before, before)
    assert str(low) <= order["orderId"] < str(high)
    assert id_bounds(datetime(1, 1, 1, tzinfo=UTC), None) == (FIRST, BEYOND)
    assert id_bounds(None, datetime(1, 1, 1, tzinfo=UTC)) == (FIRST, FIRST)


async def test_the_list_returns_the_order_s_data_as_it_was_sent(merchant: Merchant) -> None:
    await merchant.http.post("/order", json=order_body("12.30", metadata={"cart": "7"}))
    (order,) = (await listed(merchant))["data"]
    assert (order["amount"], order["metadata"]) == (12.3, {"cart": "7"})
