"""A page of the feed has at most about one mebibyte, and all pages together have every event once."""

from __future__ import annotations

from typing import Any

import pytest

from cuota.db.webhook.events import AnyFacts
from cuota.flows.webhook.deliver_webhooks import publish_events
from cuota.flows.webhook.show_event import event_body
from cuota.web.api import events
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


async def test_only_the_events_of_the_page_are_written(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(8):
        await merchant.create(description="x" * 200_000)
    await publish_events(merchant.service.context)
    written: list[int] = []

    def counted(facts: AnyFacts, sequence: int, *, sandbox: bool) -> bytes:
        written.append(sequence)
        return event_body(facts, sequence, sandbox=sandbox)

    monkeypatch.setattr(events, "event_body", counted)
    page = read_json((await merchant.http.get("/events")).content)
    assert (len(page["events"]), page["hasMore"], len(written)) == (5, True, 6)


async def test_small_events_fill_a_page_up_to_its_limit(merchant: Merchant) -> None:
    for _ in range(25):
        await merchant.create()
    pages = await pages_of(merchant, 22)
    assert [(len(page["events"]), page["hasMore"]) for _, page in pages] == [(22, True), (3, False)]
