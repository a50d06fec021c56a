"""The shop's back office shows the disputes of an order, and answers them at the real service."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import httpx

from cuota.flows.webhook.deliver_webhooks import publish_events
from cuota_demo.catalog import cart_of
from support.contract import read_json
from support.disputes import captured, decided, disputed
from web.test_shop_payouts import Staffed, shop

# pytest finds fixtures by their names.
__all__ = ["shop"]


async def an_order(shop: Staffed) -> tuple[dict[str, Any], str]:
    """Make a captured order that the shop knows, and return it with its page."""
    number = shop.store.place("somebody", str(uuid4()), cart_of({})).number
    order = await captured(shop.merchant, merchantReference=f"AO-{number}")
    shop.store.created(number, order["orderId"], "https://pay.example")
    return order, f"/orders/{number}"


async def posted(shop: Staffed, path: str, **fields: str) -> httpx.Response:
    page = (await shop.http.get(path)).text
    hidden = {name: re.search(rf'name="{name}" value="([^"]+)"', page) for name in ("csrf", "key")}
    given = {name: found[1] for name, found in hidden.items() if found}
    return await shop.http.post(path, data={**given, **fields})


async def standing(shop: Staffed, dispute_id: object) -> dict[str, Any]:
    return dict(read_json((await shop.merchant.http.get(f"/disputes/{dispute_id}")).content))


async def test_an_order_without_a_dispute_shows_none_and_does_not_call_the_provider(shop: Staffed) -> None:
    _, path = await an_order(shop)
    assert "Read and answer" not in (await shop.http.get(path)).text


async def test_the_staff_reads_a_dispute_sends_evidence_and_appeals(shop: Staffed) -> None:
    order, path = await an_order(shop)
    dispute = await disputed(shop.merchant, order, 4000, text="<b>Nothing</b> came.")
    await publish_events(shop.merchant.service.context)
    await shop.told()
    here = f"{path}/disputes/{dispute.dispute_id}"
    assert f'href="{here}"' in (await shop.http.get(path)).text
    page = (await shop.http.get(here)).text
    for text in ("Dispute of $40.00", "It never came", "&lt;b&gt;Nothing&lt;/b&gt; came.", "Answer by"):
        assert text in page, text
    assert (await posted(shop, here, answer="evidence", text=" ")).headers["location"] == here
    assert "Write what happened." in (await shop.http.get(here)).text
    await posted(shop, here, answer="evidence", text="It came on Tuesday.")
    assert "The evidence was sent." in (await shop.http.get(here)).text
    found = await standing(shop, dispute.dispute_id)
    assert (found["status"], found["statements"][1]["text"]) == ("under_review", "It came on Tuesday.")
    await decided(shop.merchant, dispute, for_consumer=True)
    page = (await shop.http.get(here)).text
    assert 'value="appeal"' in page
    assert 'value="accept"' not in page
    await posted(shop, here, answer="appeal", text="Look again.")
    assert (await standing(shop, dispute.dispute_id))["status"] == "appealed"


async def test_a_dispute_is_accepted_and_a_second_click_changes_nothing(shop: Staffed) -> None:
    order, path = await an_order(shop)
    dispute = await disputed(shop.merchant, order, 4000)
    here = f"{path}/disputes/{dispute.dispute_id}"
    page = (await shop.http.get(here)).text
    csrf, key = (re.search(rf'name="{name}" value="([^"]+)"', page) for name in ("csrf", "key"))
    assert csrf
    assert key
    for _ in range(2):
        fields = {"csrf": csrf[1], "key": key[1], "answer": "accept"}
        assert (await shop.http.post(here, data=fields)).status_code == 303
        assert "The dispute was accepted." in (await shop.http.get(here)).text
    assert (await standing(shop, dispute.dispute_id))["status"] == "lost"


async def test_a_dispute_of_another_order_is_not_found(shop: Staffed) -> None:
    order, _ = await an_order(shop)
    _, other = await an_order(shop)
    dispute = await disputed(shop.merchant, order, 4000)
    for path in (f"{other}/disputes/{dispute.dispute_id}", f"{other}/disputes/{uuid4()}"):
        assert (await shop.http.get(path)).status_code == 404
    assert (await shop.http.post(f"{other}/disputes/{dispute.dispute_id}", data={})).status_code == 403
