"""The answer to a form with a statement is lost on a bad network, and the consumer sends the form again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cuota.flows.dispute.evidence import statements
from support.disputes import disputed
from support.evidence_files import PNG
from support.makers import Merchant
from support.pages.consumer import Consumer

NO_FILE = [("files", ("", b"", "application/octet-stream"))]
Files = Sequence[tuple[str, tuple[str, bytes, str]]]


async def begun(consumer: Consumer, shop: Merchant) -> tuple[str, Any]:
    """Dispute an order, sign in, and return the path of the dispute's page and the dispute."""
    plan = await consumer.buy_at(shop)
    dispute = await disputed(shop, plan.order, 4000)
    await consumer.enter()
    return f"{plan.path}/disputes/{dispute.dispute_id}", dispute


async def add(consumer: Consumer, path: str, text: str, files: Files = NO_FILE) -> int:
    """Send the form, and return the status of the page that the browser shows then."""
    action, held = (await consumer.open(path)).form("add")
    answer = await consumer.http.post(action, data=held | {"text": text}, files=files)
    if answer.status_code != 303:
        return answer.status_code
    page = await consumer.open(answer.headers["location"])
    assert "Your text and files were added." in page.text
    return page.status


async def test_the_same_form_is_stored_once_and_does_not_count_toward_the_limit(
    consumer: Consumer, shop: Merchant
) -> None:
    path, dispute = await begun(consumer, shop)
    files = [("files", ("box.png", PNG, "image/png"))]
    assert [await add(consumer, path, "I wrote to the shop.", files) for _ in range(5)] == [200] * 5
    assert await add(consumer, path, "They did not answer.") == 200
    context = shop.service.context
    stored = await statements(context, shop.merchant_id, dispute.dispute_id)
    assert [each.text for each in stored] == ["Nothing came.", "I wrote to the shop.", "They did not answer."]
    assert [len(each.files) for each in stored] == [0, 1, 0]


async def test_the_same_text_with_another_file_is_another_statement(
    consumer: Consumer, shop: Merchant
) -> None:
    path, dispute = await begun(consumer, shop)
    for content in (b"first page", b"other page"):
        await add(consumer, path, "See this.", [("files", ("a.txt", content, "text/plain"))])
    stored = await statements(shop.service.context, shop.merchant_id, dispute.dispute_id)
    assert [each.text for each in stored] == ["Nothing came.", "See this.", "See this."]
