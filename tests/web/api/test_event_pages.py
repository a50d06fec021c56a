"""A page of the feed has at most about one mebibyte, and all pages together have every event once."""

from __future__ import annotations

from typing import Any

from cuota.flows.webhook.deliver_webhooks import publish_events
from cuota.web.api.events import MOST_PAGE_BYTES
from support.contract import read_json
from support.makers import Merchant


async def pages_of(merchant: Merchant, limit: int) -> list[tuple[int, dict[str, Any]]]:
    """Return every page with its size. Each page begins after the last event of the previous one."""
    await publish_events(merchant.service.context)
    pages: list[tuple[int, dict[str, Any]]] = []
    after = ""
    while not pages or pages[-1][1]["hasMore"]:
        answer = await merchant.http.get("/events", params={"after": after, "limit": limit})
        page = read_json(answer.content)
        assert page["events"], "a page without an event would never end"
        pages.append((len(answer.content), page))
        after = page["events"][-1]["id"]
    return pages


async def test_a_page_of_large_events_ends_at_a_mebibyte_and_no_event_is_lost_or_doubled(
    merchant: Merchant,
) -> None:
    orders = [(await merchant.create(description="x" * 200_000))["orderId"] for _ in range(26)]
    pages = await pages_of(merchant, 100)
    assert all(size <= MOST_PAGE_BYTES + 100 for size, _ in pages)
    # Five of these events fit, and each page except the last is as full as possible.
    assert [len(page["events"]) for _, page in pages] == [5, 5, 5, 5, 5, 1]
    assert [event["orderId"] for _, page in pages for event in page["events"]] == orders


async def test_small_events_fill_a_page_up_to_its_limit(merchant: Merchant) -> None:
    for _ in range(25):
        await merchant.create()
    pages = await pages_of(merchant, 22)
    assert [(len(page["events"]), page["hasMore"]) for _, page in pages] == [(22, True), (3, False)]
