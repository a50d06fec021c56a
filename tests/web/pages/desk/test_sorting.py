"""The order of the dashboard's lists: the address of a page contains the order, and each row is on exactly one page."""

from __future__ import annotations

from typing import Any

import pytest

from cuota.core.desk.role import Role
from cuota.db.desk import orders as listing
from cuota.web.pages.desk import disputes, orders, payouts
from support.disputes import captured, disputed
from support.makers import Merchant
from support.pages.staff import Staff
from support.settlement_rows import Row, paid

AMOUNTS = ["50.00", "20.00", "50.00", "35.00", "90.00", "20.00", "50.00"]
UP = sorted(map(float, AMOUNTS))


async def made(shop: Merchant, reference: str = "A-1") -> list[str]:
    """Create orders with these amounts. Return their ids, oldest first."""
    return [(await shop.create(amount, merchantReference=reference))["orderId"] for amount in AMOUNTS]


async def every_page(staff: Staff, address: str, beginning: str) -> list[str]:
    """Return the addresses of all rows of a list, page by page."""
    page = await staff.open(address)
    seen: list[str] = []
    for _ in range(20):
        assert page.status == 200
        seen += [
            link
            for link in page.seen.links
            if link.startswith(beginning) and link.count("/") == 3 and "?" not in link
        ]
        following = [
            href for href, words in page.seen.links.items() if "Next page" in words or "further back" in words
        ]
        if not following:
            return [each for each in seen if not each.endswith(("/export", "/bank"))]
        page = await staff.open(following[0])
    raise AssertionError("the list has no end")


def amount_of(ids: list[str], made_ids: list[str]) -> list[float]:
    known = dict(zip(made_ids, map(float, AMOUNTS), strict=True))
    return [known[each.rpartition("/")[2]] for each in ids]


@pytest.fixture(autouse=True)
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (orders, payouts, disputes):
        monkeypatch.setattr(module, "A_PAGE", 2)


@pytest.mark.parametrize(("sort", "expected"), [("largest", UP[::-1]), ("smallest", UP)])
@pytest.mark.parametrize("query", ["", "view=in-checkout&", "q=A-1&", "from=2020-01-01&"])
async def test_orders_are_sorted_by_amount_and_each_order_is_on_exactly_one_page(
    staff: Staff, sort: str, expected: list[float], query: str
) -> None:
    ids = await made(staff.shop)
    await staff.enter()
    await staff.indexed()
    seen = await every_page(staff, f"/desk/orders?{query}sort={sort}", "/desk/orders/")
    assert len(set(seen)) == len(seen) == len(ids)
    assert amount_of(seen, ids) == expected


@pytest.mark.parametrize("sort", ["newest", "oldest"])
async def test_orders_are_sorted_by_time(staff: Staff, sort: str) -> None:
    ids = await made(staff.shop)
    await staff.enter()
    seen = await every_page(staff, f"/desk/orders?sort={sort}", "/desk/orders/")
    assert [each.rpartition("/")[2] for each in seen] == (ids if sort == "oldest" else ids[::-1])


async def test_a_rare_order_is_found_after_many_orders_that_do_not_match(
    staff: Staff, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "SCANNED", 3)
    await made(staff.shop)
    order = await staff.shop.approved("30.00")
    await staff.enter()
    seen = await every_page(staff, "/desk/orders?view=approved&sort=largest", "/desk/orders/")
    assert seen == [f"/desk/orders/{order['orderId']}"]


@pytest.mark.parametrize(
    "query",
    [
        "sort=nonsense",
        "sort=deadline",
        "sort=largest&after=no-id",
        "sort=largest&after=01a20cba-aa56-7018-9c21-e05ae7a21571",
    ],
)
async def test_an_unknown_order_or_position_shows_the_list(staff: Staff, query: str) -> None:
    await made(staff.shop)
    await staff.enter()
    page = await staff.open(f"/desk/orders?{query}")
    assert (page.status, "2 rows on this page" in page.text) == (200, True)


async def test_the_form_and_the_addresses_keep_the_chosen_order(staff: Staff) -> None:
    await made(staff.shop)
    await staff.enter()
    page = await staff.open("/desk/orders?sort=largest&view=in-checkout")
    assert page.form("orders")[1]["sort"] == "largest"
    assert "sort=largest" in page.link("Next page")
    assert "sort=largest" in page.link("Export as CSV")


async def test_a_sorted_search_says_that_only_its_newest_matches_are_sorted(staff: Staff) -> None:
    await made(staff.shop)
    await staff.enter()
    assert (
        "The newest 5,000 matches are sorted by amount"
        in (await staff.open("/desk/orders?q=A-1&sort=largest")).text
    )
    assert "are sorted by amount" not in (await staff.open("/desk/orders?q=A-1")).text


async def test_the_export_of_a_list_has_its_order_and_the_export_of_a_search_has_every_match(
    staff: Staff,
) -> None:
    await made(staff.shop)
    await staff.enter()
    for query, count in (("sort=smallest", 7), ("q=A-1&sort=smallest", 7)):
        await staff.open(f"/desk/orders/export?{query}")
        action, held = staff.page.form("export")
        answer = await staff.http.post(action, data={**held, "reason": "report"})
        amounts = [float(line.split(",")[6]) for line in answer.text.splitlines()[1:]]
        assert len(amounts) == count
        if query == "sort=smallest":
            assert amounts == UP


async def test_payouts_are_sorted(staff: Staff) -> None:
    sums = [300, 100, 200, 100, 500]
    ids = [await paid(staff.shop, Row("capture", cents)) for cents in sums]
    await staff.enter(Role.FINANCE)

    async def seen(sort: str) -> list[str]:
        return [
            each.rpartition("/")[2]
            for each in await every_page(staff, f"/desk/payouts?sort={sort}", "/desk/payouts/")
        ]

    assert await seen("oldest") == ids
    assert await seen("newest") == ids[::-1]
    known = dict(zip(ids, sums, strict=True))
    assert [known[each] for each in await seen("largest")] == sorted(sums, reverse=True)
    assert [known[each] for each in await seen("smallest")] == sorted(sums)
    assert await seen("nonsense") == ids[::-1]


async def test_disputes_are_sorted_by_time_amount_or_deadline(staff: Staff) -> None:
    cents = [4000, 1000, 2500, 1000]
    found: list[Any] = []
    for amount in cents:
        order = await staff.shop.approved()
        await staff.shop.move(order, "capture", "100.00")
        found.append(await disputed(staff.shop, order, amount))
    pool = staff.service.context.pool
    # The second dispute has the earlier deadline.
    await pool.execute(
        "UPDATE disputes SET respond_by = respond_by - interval '1 day' WHERE merchant_id = $1 AND dispute_id = $2",
        staff.shop.merchant_id, found[1].dispute_id,
    )  # fmt: skip
    ids = [str(each.dispute_id) for each in found]
    await staff.enter()

    async def seen(sort: str) -> list[str]:
        rows = await every_page(staff, f"/desk/disputes?view=open&sort={sort}", "/desk/disputes/")
        return [each.rpartition("/")[2] for each in rows]

    known = dict(zip(ids, cents, strict=True))
    assert await seen("newest") == ids[::-1]
    assert await seen("oldest") == ids
    assert [known[each] for each in await seen("largest")] == sorted(cents, reverse=True)
    assert [known[each] for each in await seen("smallest")] == sorted(cents)
    assert (await seen("deadline"))[0] == ids[1]
    assert sorted(await seen("deadline")) == sorted(ids)


@pytest.mark.parametrize("rows", ["dispute", "payout"])
async def test_the_count_of_the_last_page_is_not_the_count_of_the_list(staff: Staff, rows: str) -> None:
    if rows == "dispute":
        for amount in (1000, 2000, 3000):
            await disputed(staff.shop, await captured(staff.shop, "50.00"), amount)
    else:
        for cents in (100, 300, 200):
            await paid(staff.shop, Row("capture", cents))
    await staff.enter()
    assert f"2 {rows}s on this page" in (await staff.open(f"/desk/{rows}s")).text
    assert f"1 {rows} on this page" in (await staff.open(staff.page.link("Next page"))).text
