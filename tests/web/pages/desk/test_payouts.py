"""Payouts in the merchant's dashboard: which orders are in which deposit."""

from __future__ import annotations

import csv
import io
from uuid import UUID

import pytest

from cuota.core.desk.role import Role
from cuota.core.payout.line import LineType
from cuota.core.payout.payout import PayoutStatus
from cuota.web.pages.desk import payouts
from support.makers import Merchant
from support.pages.staff import Staff
from support.settlement_rows import Row, paid


async def deposit(shop: Merchant) -> tuple[str, str]:
    """Make a payout of two captures with a fee, one of which belongs to a real order. Return the ids of payout and
    order."""
    order = (await shop.approved("100.00", merchantReference="web-7"))["orderId"]
    payout_id = await paid(
        shop,
        Row("capture", 10_000, order_id=UUID(order), reference="ship-7"),
        Row("fee", 0, -620, order_id=UUID(order), reference="ship-7"),
        Row("adjustment", 500, reference="goodwill"),
    )
    return payout_id, order


async def test_a_finance_person_matches_a_deposit_to_its_orders_in_three_clicks(staff: Staff) -> None:
    payout_id, order = await deposit(staff.shop)
    await staff.enter(Role.FINANCE)
    page = await staff.open(staff.page.link("Payouts"))
    assert "$98.80" in page.text
    page = await staff.open(page.link("1"))
    assert page.answer.url.path == f"/desk/payouts/{payout_id}"
    for text in (
        "Payout 1",
        "This payout",
        "Capture",
        "$100.00",
        "Fee",
        "$-6.20",
        "Adjustment",
        "goodwill",
        "ending in 6789",
    ):
        assert text.replace("$-", "-$") in page.text or text in page.text, text
    page = await staff.open(page.link("web-7"))
    assert page.answer.url.path == f"/desk/orders/{order}"


async def test_the_lines_and_the_payouts_come_in_pages(staff: Staff, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payouts, "A_PAGE", 2)
    many = await paid(staff.shop, *(Row("capture", 100 + n, reference=f"line-{n}") for n in range(5)))
    for _ in range(4):
        await paid(staff.shop, Row("capture", 1000))
    await staff.enter()
    seen, page = [], await staff.open("/desk/payouts")
    while True:
        seen += [
            text
            for href, text in page.seen.links.items()
            if href.startswith("/desk/payouts/") and text.isdigit()
        ]
        if "Next page" not in page.text:
            break
        page = await staff.open(page.link("Next page"))
    assert seen == ["5", "4", "3", "2", "1"]
    page, lines = await staff.open(f"/desk/payouts/{many}"), 0
    while True:
        lines += page.text.count("line-")
        if "More lines" not in page.text:
            break
        page = await staff.open(page.link("More lines"))
    assert lines == 5


async def test_the_csv_files_equal_those_of_the_api_and_their_downloads_are_in_the_audit_log(
    staff: Staff,
) -> None:
    payout_id, _ = await deposit(staff.shop)
    await staff.enter(Role.FINANCE)
    for path, api in (("export", ""), (f"{payout_id}/export", f"/{payout_id}/lines")):
        answer = await staff.http.get(f"/desk/payouts/{path}")
        same = await staff.shop.http.get(f"/payouts{api}", headers={"Accept": "text/csv"})
        assert answer.text == same.text
        assert list(csv.DictReader(io.StringIO(answer.text)))
        # A HEAD request downloads nothing, so the log does not count it.
        assert (await staff.http.head(f"/desk/payouts/{path}")).status_code == 200
    page = await staff.open("/desk/audit?action=payouts.")
    assert page.text.count("payouts.export") == 2


async def test_the_filter_shows_only_payouts_of_its_status(staff: Staff) -> None:
    await deposit(staff.shop)
    await staff.enter()
    assert "$98.80" in (await staff.open("/desk/payouts?status=paid")).text
    page = await staff.open("/desk/payouts?status=returned")
    assert "No payout has this status" in page.text
    for strange in ("status=x", "after=x", "after=0", "after=" + "9" * 40):
        assert (await staff.open(f"/desk/payouts?{strange}")).status == 200


async def test_only_the_first_page_of_a_payout_has_the_totals_of_all_its_lines(
    staff: Staff, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payouts, "A_PAGE", 2)
    payout_id = await paid(staff.shop, *[Row("capture", 100)] * 500)
    await staff.enter(Role.FINANCE)
    page = await staff.open(f"/desk/payouts/{payout_id}")
    assert "What it is made of" in page.text
    page = await staff.open(page.link("More lines"))
    assert "What it is made of" not in page.text
    assert page.text.count("not an order") == 2
    page = await staff.open(page.link("Back to the first line"))
    assert "What it is made of" in page.text


async def test_a_shop_without_payouts_sees_when_the_first_one_is_expected(staff: Staff) -> None:
    await staff.enter()
    assert "No payout yet" in (await staff.open("/desk/payouts")).text


async def test_another_merchants_payout_is_not_found(staff: Staff, auto_merchant: Merchant) -> None:
    payout_id, _ = await deposit(auto_merchant)
    await staff.enter()
    for path in (f"/desk/payouts/{payout_id}", f"/desk/payouts/{payout_id}/export"):
        assert (await staff.open(path)).status == 404


async def test_support_people_see_no_payouts(staff: Staff) -> None:
    await staff.enter(Role.SUPPORT)
    assert "/desk/payouts" not in staff.page.seen.links
    assert (await staff.open("/desk/payouts")).status == 403


def test_every_status_and_every_type_of_line_has_a_text() -> None:
    assert set(payouts.STATES) == set(PayoutStatus)
    assert set(payouts.TYPES) == set(LineType)
