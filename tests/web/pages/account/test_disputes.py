"""A consumer reports a problem, reads its state, adds to it, appeals, withdraws it, and reports that goods were sent
back."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from cuota.core.dispute.dispute import DisputeParty
from cuota.core.dispute.evidence import EvidenceFile
from cuota.db.dispute import disputes
from cuota.flows.dispute import answer_dispute
from cuota.flows.dispute.evidence import statements
from support.evidence_files import PNG
from support.makers import Merchant
from support.pages.consumer import Consumer, Page, Plan

STORY = {"reason": "not_received", "amount": "40.00", "text": "Nothing came."}


async def disputes_of(plan: Plan) -> list[Any]:
    pool = plan.shop.service.context.pool
    return await disputes.of_order(pool, plan.shop.merchant_id, UUID(plan.order["orderId"]))


async def form_of(consumer: Consumer, path: str, action: str) -> tuple[str, dict[str, str]]:
    return (await consumer.open(path)).form(action)


async def opened(consumer: Consumer, plan: Plan, files: list[Any] | None = None, **more: str) -> Page:
    """Sign in, send the form, and return the page of the dispute."""
    await consumer.enter()
    action, held = await form_of(consumer, f"{plan.path}/dispute", "dispute")
    answer = await consumer.http.post(
        action, data=held | STORY | more, files=files or [("files", ("", b"", "application/octet-stream"))]
    )
    assert answer.status_code == 303, answer.text
    return await consumer.open(answer.headers["location"])


async def test_a_problem_is_reported_with_a_text_and_files_and_the_plan_is_paused(
    consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop)
    page = await opened(
        consumer,
        plan,
        [("files", ("../../box.png", PNG, "text/html")), ("files", ("a.txt", b"I waited", ""))],
    )
    assert page.heading == "Your dispute"
    for words in (
        "We have your dispute",
        "It did not arrive",
        "$40.00",
        "Nothing came.",
        "box.png",
        "a.txt",
        "nothing is charged",
    ):
        assert words in page.text, words
    page = await consumer.open(plan.path)
    for words in ("Payments are paused", "Paused", "Problems with this order", "Waiting for the shop"):
        assert words in page.text, words
    assert "Report a problem" not in page.text
    (dispute,) = await disputes_of(plan)
    assert (dispute.amount, dispute.withheld) == (4000, 4000)


async def test_a_file_is_downloaded_as_an_attachment_with_the_type_of_its_content(
    consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop)
    page = await opened(consumer, plan, [("files", ("<b>.html", PNG, "text/html"))])
    address = page.link("<b>.html.png")
    answer = await consumer.http.get(address)
    assert answer.content == PNG
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"


async def test_the_merchant_s_files_are_named_but_cannot_be_downloaded(
    consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop)
    page = await opened(consumer, plan)
    (dispute,) = await disputes_of(plan)
    proof = EvidenceFile("proof.png", "image/png", PNG)
    await answer_dispute.submit_evidence(
        shop.service.context, shop.merchant_id, dispute.dispute_id, "It was delivered.", [proof]
    )
    page = await consumer.open(f"{plan.path}/disputes/{dispute.dispute_id}")
    assert "It was delivered." in page.text
    assert "proof.png" in page.text
    assert not any("proof.png" in text for text in page.seen.links.values())
    rows = await shop.service.context.pool.fetch(
        "SELECT evidence_id FROM dispute_files WHERE dispute_id = $1", dispute.dispute_id
    )
    path = f"{plan.path}/disputes/{dispute.dispute_id}/files/{rows[0]['evidence_id']}/1"
    assert (await consumer.http.get(path)).status_code == 404


@pytest.mark.parametrize(
    ("wrong", "files", "said"),
    [
        ({"reason": "nothing"}, [], "Choose what went wrong"),
        ({"amount": "a lot"}, [], "Enter an amount"),
        ({"amount": "100.01"}, [], "between 0.01 and 100.00"),
        ({"amount": "0"}, [], "between 0.01 and 100.00"),
        ({"text": ""}, [], "Write what happened"),
        ({}, [("x.html", b"<html><script>alert(1)</script>\x00")], "not a PDF"),
        ({}, [("empty.png", b"")], "is empty"),
        ({}, [("big.txt", b"a" * (5 * 1024 * 1024 + 1))], "larger than 5 MiB"),
        ({}, [(f"{n}.txt", b"a") for n in range(6)], "at most 5 files"),
    ],
)  # fmt: skip
async def test_errors_are_shown_and_the_typed_text_is_kept(
    consumer: Consumer, shop: Merchant, wrong: dict[str, str], files: list[tuple[str, bytes]], said: str
) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    action, held = await form_of(consumer, f"{plan.path}/dispute", "dispute")
    sent = [("files", (name, content, "")) for name, content in files] or [("files", ("", b"", ""))]
    answer = await consumer.http.post(action, data=held | STORY | wrong, files=sent)
    assert answer.status_code in {400, 422}, answer.status_code
    assert said in answer.text
    assert await disputes_of(plan) == []


async def test_two_clicks_open_one_dispute(consumer: Consumer, shop: Merchant) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    action, held = await form_of(consumer, f"{plan.path}/dispute", "dispute")
    sent = {"data": held | STORY, "files": [("files", ("", b"", ""))]}
    answers = await asyncio.gather(*(consumer.http.post(action, **sent) for _ in range(3)))
    assert [answer.status_code for answer in answers] == [303] * 3
    assert len(await disputes_of(plan)) == 1


async def test_a_consumer_adds_to_a_dispute_and_withdraws_it_and_the_payments_continue(
    consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop)
    page = await opened(consumer, plan)
    action, held = page.form("add")
    answer = await consumer.http.post(
        action, data=held | {"text": "Still nothing."}, files=[("files", ("", b"", ""))]
    )
    page = await consumer.open(answer.headers["location"])
    assert "Still nothing." in page.text
    action, held = page.form("withdraw")
    for _ in range(2):
        answer = await consumer.http.post(action, data=held)
        page = await consumer.open(answer.headers["location"])
        assert "You withdrew" in page.text
    page = await consumer.open(plan.path)
    assert "Payments are paused" not in page.text
    assert "Report a problem" in page.text


async def test_a_consumer_who_lost_can_appeal_once(consumer: Consumer, shop: Merchant) -> None:
    plan = await consumer.buy_at(shop)
    await opened(consumer, plan)
    (dispute,) = await disputes_of(plan)
    ids = shop.merchant_id, dispute.dispute_id
    await answer_dispute.decide_dispute(shop.service.context, *ids, for_consumer=False)
    path = f"{plan.path}/disputes/{dispute.dispute_id}"
    page = await consumer.open(path)
    assert "Decided for the shop" in page.text
    action, held = page.form("appeal")
    sent = {"data": held | {"text": "Look again"}, "files": [("files", ("", b"", ""))]}
    answer = await consumer.http.post(action, **sent)
    assert "You have appealed" in (await consumer.open(answer.headers["location"])).text
    answer = await consumer.http.post(action, **sent)
    assert answer.status_code == 400
    (after,) = await disputes_of(plan)
    assert after.appealed_by is DisputeParty.CONSUMER


async def test_another_consumer_s_dispute_is_not_found(
    consumer: Consumer, shop: Merchant, sign_in: Callable[..., Consumer]
) -> None:
    plan = await consumer.buy_at(shop)
    page = await opened(consumer, plan)
    path = page.answer.url.path
    other = sign_in()
    mine = await other.buy_at(shop)
    await other.enter()
    for wrong in (path, path.replace(plan.path, mine.path), f"{mine.path}/disputes/nonsense"):
        assert (await other.http.get(wrong)).status_code == 404
    _, held = await form_of(other, f"{mine.path}/dispute", "dispute")
    answer = await other.http.post(
        f"{plan.path}/dispute", data=held | STORY, files=[("files", ("", b"", ""))]
    )
    assert answer.status_code == 404


async def test_a_form_of_another_site_is_refused(consumer: Consumer, shop: Merchant) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    action, held = await form_of(consumer, f"{plan.path}/dispute", "dispute")
    sent = {"data": held | STORY | {"csrf": "guessed"}, "files": [("files", ("", b"", ""))]}
    assert (await consumer.http.post(action, **sent)).status_code == 403
    assert await disputes_of(plan) == []


async def files_stored(plan: Plan) -> int:
    pool = plan.shop.service.context.pool
    sql = "SELECT count(*) AS files FROM dispute_files WHERE merchant_id = $1"
    return int((await pool.fetchrow(sql, plan.shop.merchant_id))["files"])


async def test_an_impossible_dispute_stores_no_files_and_the_page_asks_for_them_again(
    consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    action, held = await form_of(consumer, f"{plan.path}/dispute", "dispute")
    files = [("files", ("box.png", PNG, ""))]
    answer = await consumer.http.post(action, data=held | STORY | {"amount": "100.01"}, files=files)
    assert answer.status_code == 400
    assert "Choose your files again" in answer.text
    assert await files_stored(plan) == 0


async def test_nothing_can_be_added_to_a_dispute_that_was_closed_meanwhile(
    consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop)
    page = await opened(consumer, plan)
    add, held = page.form("add")
    withdraw, hidden = page.form("withdraw")
    await consumer.http.post(withdraw, data=hidden)
    answer = await consumer.http.post(
        add, data=held | {"text": "More"}, files=[("files", ("box.png", PNG, ""))]
    )
    assert answer.status_code == 400
    assert "Nothing more can be added to this dispute" in answer.text
    assert await files_stored(plan) == 0


async def test_an_order_without_a_capture_says_that_there_is_nothing_to_dispute(
    consumer: Consumer, merchant: Merchant
) -> None:
    plan = await consumer.buy_at(merchant)
    await consumer.enter()
    assert "Report a problem" not in (await consumer.open(plan.path)).text
    page = await consumer.open(f"{plan.path}/dispute")
    assert "there is nothing to dispute" in page.text
    assert not any(
        action.endswith("/dispute") for action in re.findall(r'action="([^"]*)"', page.answer.text)
    )


async def test_a_fourth_statement_within_an_hour_waits_and_refused_ones_do_not_count(
    consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop)
    page = await opened(consumer, plan)
    action, held = page.form("add")
    none = [("files", ("", b"", ""))]
    for text, status in [("", 400), ("a", 303), ("", 400), ("b", 303), ("c", 429)]:
        answer = await consumer.http.post(action, data=held | {"text": text}, files=none)
        assert answer.status_code == status, text
    assert "You can try again at" in answer.text
    assert 0 < int(answer.headers["retry-after"]) <= 3600
    (dispute,) = await disputes_of(plan)
    written = await statements(shop.service.context, shop.merchant_id, dispute.dispute_id)
    assert [each.text for each in written] == ["Nothing came.", "a", "b"]
