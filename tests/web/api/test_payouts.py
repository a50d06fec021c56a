"""`/payouts`, `/balance` and `/terms`: a merchant reads its own payouts line by line, but never another merchant's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest

from support.api.bodies import assert_refused, failures
from support.contract import read_json
from support.makers import Merchant
from support.settlement_rows import CLOSED, Row, carry, paid, write_account, write_lines, write_terms


async def read(merchant: Merchant, path: str, **query: Any) -> dict[str, Any]:
    answer = await merchant.http.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return dict(read_json(answer.content))


async def walked(merchant: Merchant, path: str, **query: Any) -> list[dict[str, Any]]:
    """Return the entries of all pages."""
    found: list[dict[str, Any]] = []
    after: dict[str, str] = {}
    while True:
        page = await read(merchant, path, **query, **after)
        found += page["data"]
        assert (page["nextCursor"] is not None) is page["hasMore"]
        if not page["hasMore"]:
            return found
        after = {"after": page["nextCursor"]}


async def test_a_merchant_without_payouts_has_an_empty_list(merchant: Merchant) -> None:
    assert await read(merchant, "/payouts") == {"data": [], "hasMore": False, "nextCursor": None}
    assert await read(merchant, "/terms") == {"data": []}


async def test_payouts_are_listed_newest_first_on_pages_of_every_size(merchant: Merchant) -> None:
    ids = [await paid(merchant, Row("capture", 100 + n)) for n in range(5)]
    for size in (1, 2, 5, 100):
        found = await walked(merchant, "/payouts", limit=size)
        assert [each["payoutId"] for each in found] == ids[::-1]
    assert found[0] == {
        "payoutId": ids[4], "status": "paid", "amount": Decimal("1.04"), "currency": "USD",
        "closedAt": "2026-11-24T05:00:03.000Z", "arrivalDate": "2026-11-25", "lineCount": 1,
        "bankAccount": {"last4": "6789"},
    }  # fmt: skip


async def test_a_page_does_not_shift_when_a_payout_is_added(merchant: Merchant) -> None:
    ids = [await paid(merchant, Row("capture", 100)) for _ in range(3)]
    first = await read(merchant, "/payouts", limit=2)
    await paid(merchant, Row("capture", 100))
    rest = await read(merchant, "/payouts", limit=2, after=first["nextCursor"])
    assert [each["payoutId"] for each in [*first["data"], *rest["data"]]] == ids[::-1]


async def test_the_filter_status_may_name_several_statuses(merchant: Merchant) -> None:
    states = ("created", "sent", "paid", "returned")
    ids = {state: await paid(merchant, Row("capture", 100), status=state) for state in states}
    for state, payout_id in ids.items():
        assert [each["payoutId"] for each in await walked(merchant, "/payouts", status=state)] == [payout_id]
    both = await walked(merchant, "/payouts", status="sent,paid", limit=1)
    assert [each["payoutId"] for each in both] == [ids["paid"], ids["sent"]]


async def test_a_payout_has_totals_by_type_and_over_all_lines_to_the_cent(merchant: Merchant) -> None:
    payout_id = await paid(
        merchant, Row("capture", 11996), Row("fee", 0, -738), Row("capture", 5000), Row("fee", 0, -325),
        Row("refund", -2000), Row("reserve_held", -750), status="returned", reason="R03",
    )  # fmt: skip
    found = await read(merchant, f"/payouts/{payout_id}")
    assert (found["number"], found["firstLineId"], found["lastLineId"]) == (1, "1", "6")
    assert (found["amount"], found["returnReason"]) == (Decimal("131.83"), "R03")

    def total(count: int, gross: str, fee: str, net: str) -> dict[str, Any]:
        return {"count": count, "gross": Decimal(gross), "fee": Decimal(fee), "net": Decimal(net)}

    assert found["totals"] == {
        "capture": total(2, "169.96", "0", "169.96"),
        "fee": total(2, "0", "-10.63", "-10.63"),
        "refund": total(1, "-20", "0", "-20"),
        "reserve_held": total(1, "-7.50", "0", "-7.50"),
        "overall": total(6, "142.46", "-10.63", "131.83"),
    }


async def test_lines_have_the_order_and_the_references_and_are_sorted_by_number(merchant: Merchant) -> None:
    order = UUID((await merchant.create(merchantReference="A-7"))["orderId"])
    await paid(merchant, Row("capture", 100))
    rows = [
        Row("capture", 11996, 0, order, "ship-1", sequence=3),
        Row("fee", 0, -738, order, "ship-1", sequence=3),
    ]
    payout_id = await paid(merchant, *rows, Row("adjustment", 1))
    for size in (1, 2, 100):
        lines = await walked(merchant, f"/payouts/{payout_id}/lines", limit=size)
        assert [line["lineId"] for line in lines] == ["2", "3", "4"]
    assert lines[1] == {
        "lineId": "3", "type": "fee", "orderId": str(order), "merchantReference": "A-7", "reference": "ship-1",
        "gross": Decimal("0.00"), "fee": Decimal("-7.38"), "net": Decimal("-7.38"), "at": "2026-11-24T00:00:03.000Z",
        "sequence": 3,
    }  # fmt: skip
    assert (lines[2]["orderId"], lines[2]["merchantReference"], lines[2]["sequence"]) == (None, None, None)
    assert b'"net":-7.38' in (await merchant.http.get(f"/payouts/{payout_id}/lines")).content


async def test_an_amount_of_eighteen_digits_is_exact(merchant: Merchant) -> None:
    payout_id = await paid(merchant, Row("capture", 123_456_789_012_345_678))
    assert b'"amount":1234567890123456.78' in (await merchant.http.get(f"/payouts/{payout_id}")).content


@pytest.mark.parametrize("below", ["", "/lines"])
async def test_another_merchant_s_payout_gets_the_same_answer_as_an_unknown_payout(
    merchant: Merchant, auto_merchant: Merchant, below: str
) -> None:
    theirs = await paid(auto_merchant, Row("capture", 100))
    for payout_id in (theirs, str(uuid4()), "none", "%00"):
        assert_refused(await merchant.http.get(f"/payouts/{payout_id}{below}"), 404, "not_found")
    assert (await read(merchant, "/payouts"))["data"] == []


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=x", "after=x", "status=done", "format=xml"])
async def test_the_error_names_a_wrong_parameter(merchant: Merchant, query: str) -> None:
    answer = await merchant.http.get(f"/payouts?{query}")
    assert_refused(answer, 400, "validation_failed")
    assert failures(answer) == [(query.partition("=")[0], "invalid")]
    assert_refused(await merchant.http.get("/payouts?cursor=1"), 400, "malformed_request")


async def test_a_cursor_works_only_with_its_own_list(merchant: Merchant, auto_merchant: Merchant) -> None:
    for _ in range(2):
        payout_id = await paid(merchant, Row("capture", 1), Row("capture", 1))
    payouts = (await read(merchant, "/payouts", limit=1))["nextCursor"]
    lines = (await read(merchant, f"/payouts/{payout_id}/lines", limit=1))["nextCursor"]
    wrong = [
        ("/payouts", {"status": "paid", "after": payouts}),
        ("/payouts", {"after": lines}),
        (f"/payouts/{payout_id}/lines", {"after": payouts}),
    ]
    for path, query in wrong:
        assert_refused(await merchant.http.get(path, params=query), 400, "validation_failed")
    assert_refused(
        await auto_merchant.http.get("/payouts", params={"after": payouts}), 400, "validation_failed"
    )


@pytest.mark.parametrize("path", ["/payouts", "/balance", "/terms"])
async def test_other_methods_are_refused_and_head_has_no_body(merchant: Merchant, path: str) -> None:
    answer = await merchant.http.post(path, json={})
    assert_refused(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "GET, HEAD"
    head = await merchant.http.head(path)
    assert (head.status_code, head.content) == (200, b"")


async def test_the_balance_of_a_merchant_without_movements_is_zero(merchant: Merchant) -> None:
    zero = Decimal("0.00")
    assert await read(merchant, "/balance") == {
        "available": zero, "pending": zero, "reserved": zero, "debt": zero, "nextPayout": None,
    }  # fmt: skip


async def test_the_balance_separates_the_carried_amount_from_the_new_amount(merchant: Merchant) -> None:
    now = datetime.now(UTC)
    await write_account(merchant)
    await write_lines(merchant, [Row("capture", 500, at=now - timedelta(days=3))])
    await carry(merchant)
    await write_lines(merchant, [Row("capture", 1000, at=now)])
    found = await read(merchant, "/balance")
    assert (found["available"], found["pending"], found["debt"]) == (5, 10, 0)
    assert found["nextPayout"]["amount"] == 15
    assert datetime.fromisoformat(found["nextPayout"]["closesAt"]) > now


async def test_a_capture_is_pending_before_it_has_a_line(merchant: Merchant) -> None:
    order = await merchant.approved("100.00")
    assert (await merchant.move(order, "capture", "40.00")).status_code == 200
    assert (await merchant.move(order, "refund", "15.00")).status_code == 200
    assert (await read(merchant, "/balance"))["pending"] == 25


async def test_with_a_debt_the_balance_shows_it_and_no_payout_is_expected(merchant: Merchant) -> None:
    await write_account(merchant)
    await write_lines(merchant, [Row("refund", -2500, at=CLOSED)])
    found = await read(merchant, "/balance")
    assert (found["debt"], found["nextPayout"]) == (25, None)


async def test_terms_are_listed_by_version_with_percentages_as_decimals(merchant: Merchant) -> None:
    await write_terms(merchant)
    await write_terms(
        merchant, CLOSED, percent=625, refund_fee="pro_rata", reserve=500, reserve_days=90, payout="weekly"
    )
    first, second = (await read(merchant, "/terms"))["data"]
    assert first == {
        "version": 1, "validFrom": "2026-01-01T00:00:00.000Z", "percent": Decimal("5.90"), "fixed": Decimal("0.30"),
        "refundFee": "kept", "payout": "daily", "minimum": 0, "reserve": 0, "reserveDays": 0, "cutoff": "00:00",
        "timeZone": "America/New_York",
    }  # fmt: skip
    assert (second["percent"], second["reserve"], second["refundFee"]) == (Decimal("6.25"), 5, "pro_rata")
