"""The request log in the merchant's dashboard: the list with its filters, one call, and the history of an order."""

from __future__ import annotations

import re
from collections.abc import Callable
from uuid import UUID

import pytest

from cuota.core.credential import Scope
from cuota.core.desk.role import Role
from cuota.db.desk import api_requests
from cuota.flows.context import new_id
from cuota.flows.merchant.manage_credentials import add_credential, find_credential, revoke_credential
from cuota.web.pages.desk.requests import MOST_REVOKED
from support.makers import Merchant
from support.pages.staff import Staff
from support.pages.visitor import Page
from support.request_log import copy_of, written

PATH = "/desk/requests"


async def calls(page: Page) -> list[str]:
    """Return the addresses of the calls on a page."""
    return [link for link in page.seen.links if link.startswith(f"{PATH}/")]


@pytest.fixture
async def busy(staff: Staff) -> Staff:
    """A developer of a merchant with four calls: two about one order, a refused call, and a call that reads."""
    await staff.enter(Role.DEVELOPER)
    order = await staff.shop.approved()
    await staff.shop.move(order, "capture", "10.00", "ship-1")
    await staff.shop.move(order, "capture", "999.00", "too-much")
    await staff.shop.http.get("/configuration")
    await written(staff.shop)
    return staff


async def test_the_list_has_every_call_newest_first(busy: Staff) -> None:
    page = await busy.open(PATH)
    assert "4 calls" in page.text
    first, *_, last = await calls(page)
    assert "GET /configuration" in page.seen.links[first]
    assert "POST /order" in page.seen.links[last]
    # The names of the path are those of the API reference.
    assert "POST /order/{orderId}/capture" in page.text
    assert "order_id" not in page.text
    for words in ("200", "422", "capture_exceeds_authorized", "first credential"):
        assert words in page.text, words


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("status=4", 1), ("status=2", 3), ("status=5", 0), ("route=/order/{order_id}/capture", 2), ("route=/nothing", 0),
        ("credential=client_nobody", 0), ("status=nonsense", 4), ("status=4&route=/order", 0), ("before=no-id", 4),
    ],
)  # fmt: skip
async def test_the_list_is_filtered(busy: Staff, query: str, count: int) -> None:
    page = await busy.open(f"{PATH}?{query}")
    assert page.status == 200
    assert len(await calls(page)) == count
    if not count:
        assert "No call matches" in page.text


async def test_the_filter_offers_the_credentials_in_force_and_the_last_revoked_ones(busy: Staff) -> None:
    context, merchant_id = busy.service.context, busy.shop.merchant_id
    revoked = []
    for number in range(MOST_REVOKED + 3):
        client_id, _ = await add_credential(context, merchant_id, f"system {number}", Scope.READ)
        await revoke_credential(context, await find_credential(context, merchant_id, client_id))
        revoked.append(client_id)

    def offered(page: Page) -> set[str]:
        return set(re.findall(r'<option value="(client_[^"]+)"', page.answer.text))

    found = offered(await busy.open(PATH))
    assert len(found) == MOST_REVOKED + 1
    assert set(revoked[3:]) < found
    # A credential that the address of the page names is still chosen.
    assert offered(await busy.open(f"{PATH}?credential={revoked[0]}")) == {*found, revoked[0]}


async def test_calls_are_found_by_order_and_by_request_id(busy: Staff) -> None:
    found = await written(busy.shop)
    order_id = next(each.order_id for each in found if each.order_id)
    page = await busy.open(f"{PATH}?q={order_id}")
    assert len(await calls(page)) == 3
    page = await busy.open(f"{PATH}?q={found[0].request_id}")
    assert page.heading == "GET /configuration"
    page = await busy.open(f"{PATH}?q=Jordan")
    assert "Enter the id of an order or of a request" in page.text
    page = await busy.open(f"{PATH}?q={new_id()}")
    assert "No call matches" in page.text


async def test_calls_are_filtered_by_the_credential_that_made_them(staff: Staff) -> None:
    await staff.enter()
    context, merchant_id = staff.service.context, staff.shop.merchant_id
    client_id, secret = await add_credential(context, merchant_id, "warehouse", Scope.READ)
    body = {
        "client_id": client_id, "client_secret": secret, "audience": staff.service.settings.audience,
        "grant_type": "client_credentials",
    }  # fmt: skip
    token = (await staff.http.post("/oauth/token", json=body)).json()["access_token"]
    await staff.http.get("/configuration", headers={"Authorization": f"Bearer {token}"})
    await staff.http.post("/order", json={}, headers={"Authorization": f"Bearer {token}"})
    await staff.shop.http.get("/configuration")
    await written(staff.shop)
    page = await staff.open(f"{PATH}?credential={client_id}")
    assert len(await calls(page)) == 2
    assert "insufficient_scope" in page.text


async def test_a_call_shows_both_bodies_and_advice(busy: Staff) -> None:
    refused = next(each for each in await written(busy.shop) if each.status == 422)
    page = await busy.open(f"{PATH}/{refused.request_id}")
    for words in (
        '"merchantReference": "too-much"', '"amount": "999.00"', '"code": "capture_exceeds_authorized"', "What to do",
        "nothing was changed", "127.0.0.1", busy.shop.client_id, "not sent",
    ):  # fmt: skip
        assert words in page.text, words
    assert "/docs#capture_exceeds_authorized" in page.seen.links
    assert f"/desk/orders/{refused.order_id}" in page.seen.links


async def test_the_page_of_an_order_links_to_its_requests_and_names_the_credential_of_each_movement(
    busy: Staff,
) -> None:
    order_id = next(each.order_id for each in await written(busy.shop) if each.order_id)
    await busy.shop.http.post(
        f"/order/{order_id}/refund?dryRun=true", json={"amount": "1.00", "merchantReference": "ship-1"}
    )
    await written(busy.shop)
    page = await busy.open(f"/desk/orders/{order_id}")
    assert "by the API credential first credential, from 127.0.0.1" in page.text
    assert page.text.count("by the API credential") == 1
    page = await busy.open(page.link("API requests of this order"))
    assert len(await calls(page)) == 4


async def test_many_calls_have_pages_and_each_call_is_on_exactly_one_page(busy: Staff) -> None:
    (one, *_) = await written(busy.shop)
    pool = busy.service.context.pool
    await api_requests.add(pool, busy.shop.merchant_id, [copy_of(one, new_id()) for _ in range(120)])
    page = await busy.open(PATH)
    seen = [*await calls(page)]
    while "Earlier calls" in page.text:
        page = await busy.open(page.link("Earlier calls"))
        seen += await calls(page)
    assert len(seen) == len(set(seen)) == 124


async def test_a_rare_call_is_found_by_looking_further_back(
    busy: Staff, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one, *_) = await written(busy.shop)
    pool = busy.service.context.pool
    await api_requests.add(pool, busy.shop.merchant_id, [copy_of(one, new_id()) for _ in range(120)])
    monkeypatch.setattr(api_requests, "SCANNED", 60)
    page = await busy.open(f"{PATH}?status=4")
    assert "No match among these calls" in page.text
    for _ in range(3):
        if await calls(page):
            break
        page = await busy.open(page.link("Look further back"))
    assert len(await calls(page)) == 1


async def test_another_merchants_calls_are_not_found(
    busy: Staff, browser: Callable[..., Staff], auto_merchant: Merchant
) -> None:
    (mine, *_) = await written(busy.shop)
    other = browser(auto_merchant)
    await other.enter()
    assert "No call yet" in (await other.open(PATH)).text
    assert (await other.open(f"{PATH}/{mine.request_id}")).status == 404
    order_id = next(each.order_id for each in await written(busy.shop) if each.order_id)
    assert "No call matches" in (await other.open(f"{PATH}?q={order_id}")).text


async def test_support_people_see_no_requests(staff: Staff) -> None:
    await staff.enter(Role.SUPPORT)
    order = await staff.shop.approved()
    await staff.shop.move(order, "capture", "1.00")
    await written(staff.shop)
    assert (await staff.open(PATH)).status == 403
    page = await staff.open(f"/desk/orders/{order['orderId']}")
    assert "API requests" not in page.text
    assert "by the API credential" not in page.text


async def test_an_erased_consumers_calls_are_deleted(busy: Staff) -> None:
    order_id: UUID = next(each.order_id for each in await written(busy.shop) if each.order_id)  # type: ignore[assignment]
    await api_requests.forget_orders(busy.service.context.pool, busy.shop.merchant_id, [order_id])
    assert [each.route for each in await written(busy.shop)] == ["/configuration"]
