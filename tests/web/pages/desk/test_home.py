"""The first page of the merchant's dashboard: its chart of the last two weeks, and the numbers behind it."""

from __future__ import annotations

import pytest

from cuota.web.pages.desk.chart import HEIGHT, WIDTH, bars
from support.pages.staff import Staff


async def test_the_chart_has_a_bar_for_each_day_and_the_same_numbers_in_a_table(staff: Staff) -> None:
    for amount in ("100.00", "50.00"):
        await staff.shop.approved(amount)
    page = await staff.enter()
    assert page.answer.text.count("<rect ") == 14
    assert "$150.00 approved in two weeks" in page.answer.text
    table = page.answer.text.partition("Orders of each day")[2]
    assert table.count("<tr><th") == 14 + 1
    assert "$150.00" in table


async def test_a_shop_without_orders_has_no_chart(staff: Staff) -> None:
    page = await staff.enter()
    assert "<rect " not in page.answer.text
    assert "No orders yet." in page.text


async def test_a_day_in_the_table_links_to_its_orders(staff: Staff) -> None:
    await staff.shop.approved()
    page = await staff.enter()
    today = next(link for link in page.seen.links if "from=" in link and "to=" in link)
    page = await staff.open(today)
    assert "A-1042" in page.text


@pytest.mark.parametrize(
    ("values", "heights"),
    [
        ([], []),
        ([0, 0], [0, 0]),
        ([1, 1000], [2, HEIGHT]),
        ([5], [HEIGHT]),
        ([50, 100], [HEIGHT // 2, HEIGHT]),
    ],
)
def test_the_highest_value_fills_the_chart_and_no_value_above_zero_is_invisible(
    values: list[int], heights: list[int]
) -> None:
    found = bars(values)
    assert [each["height"] for each in found] == heights
    assert all(each["y"] + each["height"] == HEIGHT for each in found)
    assert all(each["x"] >= 0 and each["x"] + each["width"] <= WIDTH for each in found)
