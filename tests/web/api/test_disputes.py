"""`/disputes`: a merchant lists its own disputes and reads one with its files, but never another merchant's."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import uuid4

import httpx
import pytest

from cuota.core.dispute.evidence import EvidenceFile
from support.api.bodies import assert_refused, failures
from support.contract import read_json
from support.disputes import captured, charged_back, decided, disputed, paid_twice
from support.makers import Merchant
from support.own_service import Own
from web.api.test_payouts import read, walked

PDF = EvidenceFile('Räp"ort 1.pdf', "application/pdf", b"%PDF-1.7 not much\x00\xff")
TEXT = EvidenceFile("note.txt", "text/plain", "Caf\u00e9\n".encode())


async def test_a_merchant_without_disputes_has_an_empty_list(merchant: Merchant) -> None:
    assert await read(merchant, "/disputes") == {"data": [], "hasMore": False, "nextCursor": None}


async def test_disputes_are_listed_newest_first_on_pages_of_every_size(merchant: Merchant) -> None:
    ids, orders = [], []
    for cents in (4000, 100, 10000):
        orders.append(await captured(merchant))
        ids.append(str((await disputed(merchant, orders[-1], cents)).dispute_id))
    for size in (1, 2, 100):
        found = await walked(merchant, "/disputes", limit=size)
        assert [each["disputeId"] for each in found] == ids[::-1]
    respond_by = found[0].pop("respondBy")
    assert found[0] == {
        "disputeId": ids[2], "orderId": orders[2]["orderId"], "kind": "dispute", "reason": "not_received",
        "amount": Decimal("100.00"), "status": "open",
    }  # fmt: skip
    assert respond_by.endswith("Z")


async def test_a_page_does_not_shift_when_a_dispute_is_added(merchant: Merchant) -> None:
    ids = [str((await disputed(merchant, await captured(merchant), 100)).dispute_id) for _ in range(3)]
    first = await read(merchant, "/disputes", limit=2)
    await disputed(merchant, await captured(merchant), 100)
    rest = await read(merchant, "/disputes", limit=2, after=first["nextCursor"])
    assert [each["disputeId"] for each in [*first["data"], *rest["data"]]] == ids[::-1]


async def test_the_list_is_filtered_by_status_and_by_order(merchant: Merchant) -> None:
    orders = [await captured(merchant) for _ in range(3)]
    made = [await disputed(merchant, order, 100) for order in orders]
    await decided(merchant, made[1], for_consumer=True)
    await decided(merchant, made[2], for_consumer=False)

    async def ids(**query: Any) -> list[str]:
        return [each["disputeId"] for each in await walked(merchant, "/disputes", limit=1, **query)]

    names = [str(each.dispute_id) for each in made]
    assert await ids(status="open") == [names[0]]
    assert await ids(status="won,lost") == [names[2], names[1]]
    assert await ids(orderId=orders[1]["orderId"]) == [names[1]]
    assert await ids(orderId=orders[1]["orderId"], status="open") == []
    assert await ids(orderId=str(uuid4())) == []


async def test_a_dispute_is_shown_with_its_order_its_times_and_its_statements(merchant: Merchant) -> None:
    order = await captured(merchant, merchantReference="A-7")
    dispute = await disputed(merchant, order, 4000, files=(PDF, TEXT))
    found = await read(merchant, f"/disputes/{dispute.dispute_id}")
    assert (found["merchantReference"], found["currency"], found["withheld"]) == ("A-7", "USD", Decimal(40))
    assert [name for name, value in found.items() if value is None] == [
        "submittedAt", "decidedAt", "appealBy", "appealedBy", "closedAt", "outcome", "refundReference",
    ]  # fmt: skip
    (said,) = found["statements"]
    assert (said["party"], said["text"], said["at"]) == ("consumer", "Nothing came.", found["openedAt"])
    files = [(file["name"], file["mediaType"], file["size"]) for file in said["files"]]
    assert files == [(file.name, file.media_type, len(file.content)) for file in (PDF, TEXT)]
    await decided(merchant, dispute, for_consumer=True)
    later = await read(merchant, f"/disputes/{dispute.dispute_id}")
    assert (later["status"], later["final"]) == ("lost", False)
    assert later["decidedAt"] < later["appealBy"]


async def test_a_chargeback_names_the_payment_that_the_bank_took_back(merchant: Merchant) -> None:
    order = await paid_twice(merchant)
    made = [await charged_back(merchant, order, 500, payment=payment) for payment in (1, 2)]
    await disputed(merchant, await captured(merchant), 100)
    listed = await walked(merchant, "/disputes", limit=100)
    assert [each.get("payment") for each in listed] == [None, 2, 1]
    read_again = [await read(merchant, f"/disputes/{each['disputeId']}") for each in listed]
    assert [each.get("payment") for each in read_again] == [None, 2, 1]
    assert [each["disputeId"] for each in listed[1:]] == [str(each.dispute_id) for each in made[::-1]]


async def test_a_file_is_sent_as_an_attachment_that_no_browser_shows(merchant: Merchant) -> None:
    dispute = await disputed(merchant, await captured(merchant), 100, files=(PDF, TEXT))
    (said,) = (await read(merchant, f"/disputes/{dispute.dispute_id}"))["statements"]
    for file, sent in zip((PDF, TEXT), said["files"], strict=True):
        answer = await merchant.http.get(f"/disputes/{dispute.dispute_id}/files/{sent['fileId']}")
        assert answer.content == file.content
        assert answer.headers["content-type"].startswith(file.media_type)
        assert answer.headers["content-disposition"].startswith('attachment; filename="')
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
    named = (
        await merchant.http.get(f"/disputes/{dispute.dispute_id}/files/{said['files'][0]['fileId']}")
    ).headers
    assert (
        "filename=\"R_p_ort 1.pdf\"; filename*=UTF-8''R%C3%A4p%22ort%201.pdf" in named["content-disposition"]
    )


async def test_an_unknown_file_is_not_found(merchant: Merchant) -> None:
    dispute = await disputed(merchant, await captured(merchant), 100, files=(TEXT,))
    other = await disputed(merchant, await captured(merchant), 100)
    (said,) = (await read(merchant, f"/disputes/{dispute.dispute_id}"))["statements"]
    file_id = said["files"][0]["fileId"]
    for name in (f"{file_id[:-1]}2", f"{uuid4()}-1", "x", "%00", f"{file_id}1"):
        answer = await merchant.http.get(f"/disputes/{dispute.dispute_id}/files/{name}")
        assert_refused(answer, 404, "not_found")
    assert_refused(await merchant.http.get(f"/disputes/{other.dispute_id}/files/{file_id}"), 404, "not_found")


CALLS = [("GET", ""), ("GET", "/files/x-1"), ("POST", "/accept"), ("POST", "/evidence"), ("POST", "/appeal")]


@pytest.mark.parametrize(("method", "below"), CALLS)
async def test_another_merchant_s_dispute_gets_the_same_answer_as_an_unknown_dispute(
    merchant: Merchant, auto_merchant: Merchant, method: str, below: str
) -> None:
    theirs = await disputed(merchant, await captured(merchant), 100)
    body = {"text": "No."} if below in {"/evidence", "/appeal"} else None
    for dispute_id in (theirs.dispute_id, uuid4(), "none", "%00"):
        answer = await auto_merchant.http.request(method, f"/disputes/{dispute_id}{below}", json=body)
        assert_refused(answer, 404, "dispute_not_found")
    assert (await read(merchant, f"/disputes/{theirs.dispute_id}"))["status"] == "open"
    assert str(theirs.dispute_id) not in str(await walked(auto_merchant, "/disputes"))


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=101", "after=x", "status=done", "status=", "orderId=1", "orderId="]
)
async def test_the_error_names_a_wrong_parameter(merchant: Merchant, query: str) -> None:
    answer = await merchant.http.get(f"/disputes?{query}")
    assert_refused(answer, 400, "validation_failed")
    assert failures(answer) == [(query.partition("=")[0], "invalid")]
    assert_refused(await merchant.http.get("/disputes?order=1"), 400, "malformed_request")


async def test_a_cursor_works_only_with_its_own_list(merchant: Merchant, auto_merchant: Merchant) -> None:
    for _ in range(2):
        await disputed(merchant, await captured(merchant), 100)
    after = (await read(merchant, "/disputes", limit=1))["nextCursor"]

    async def answered(reader: Merchant, path: str, **query: Any) -> httpx.Response:
        return await reader.http.get(path, params={"after": after, **query})

    for answer in (
        await answered(merchant, "/disputes", status="open"),
        await answered(auto_merchant, "/disputes"),
        await answered(merchant, "/payouts"),
    ):
        assert_refused(answer, 400, "validation_failed")


async def test_the_refund_of_a_lost_dispute_is_named_by_its_reference(own: Own) -> None:
    from cuota.flows.dispute.close_disputes import settle_due_disputes

    order = await captured(own.merchant)
    dispute = await disputed(own.merchant, order, 4000)
    answer = await own.merchant.http.post(f"/disputes/{dispute.dispute_id}/accept")
    assert read_json(answer.content)["refundReference"] is None
    await settle_due_disputes(own.context)
    found = await read(own.merchant, f"/disputes/{dispute.dispute_id}")
    assert (found["status"], found["outcome"], found["withheld"]) == ("closed", "lost", 0)
    refunds = (await own.merchant.read(order))["refunds"]
    assert [each["merchantReference"] for each in refunds] == [found["refundReference"]]
