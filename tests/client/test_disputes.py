"""Both clients list, read, accept and appeal disputes, and send evidence."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from cuota.client import Dispute, Event, NotFound, RequestRefused
from cuota.flows.dispute.notice_return import notice_return
from cuota.flows.webhook.deliver_webhooks import publish_events
from support.client_tools import Both, Cutter
from support.disputes import captured, charged_back, decided, disputed
from support.makers import Merchant

UNKNOWN = "019aa3c4-7b10-7c3e-9a51-2f6d8e0b4c11"


async def walk(shop: Both, name: str, **more: Any) -> list[Any]:
    return [each async for each in shop._walk(name, **more)]


async def test_disputes_are_iterated_page_by_page_and_filtered(shop: Both, merchant: Merchant) -> None:
    orders = [await captured(merchant) for _ in range(3)]
    ids = [str((await disputed(merchant, order, 4000)).dispute_id) for order in orders]
    found: list[Dispute] = await walk(shop, "disputes", page_size=2)
    assert [each.dispute_id for each in found] == ids[::-1]
    assert (found[0].amount, found[0].status, found[0].statements) == (Decimal("40.00"), "open", ())
    assert await walk(shop, "disputes", status="won,lost") == []
    (one,) = await walk(shop, "disputes", order_id=orders[1]["orderId"])
    assert one.dispute_id == ids[1]


async def test_a_dispute_is_read_and_accepted_once(shop: Both, merchant: Merchant) -> None:
    dispute = await disputed(merchant, await captured(merchant, merchantReference="A-7"), 4000)
    found = await shop("dispute", str(dispute.dispute_id))
    assert (found.merchant_reference, found.withheld, found.outcome) == ("A-7", 40, None)
    assert found.statements[0].text == "Nothing came."
    for _ in range(2):
        done = await shop("accept_dispute", str(dispute.dispute_id))
        assert (done.status, done.final, done.appeal_by) == ("lost", True, None)


async def test_evidence_and_an_appeal_can_have_files(shop: Both, merchant: Merchant) -> None:
    dispute = str((lost := await disputed(merchant, await captured(merchant), 4000)).dispute_id)
    done = await shop("submit_evidence", dispute, "It came.", [("note.txt", b"Delivered.")])
    assert (done.status, done.statements[1].files[0].media_type) == ("under_review", "text/plain")
    await decided(merchant, lost, for_consumer=True)
    appealed = await shop("appeal", dispute, files=[("note.txt", b"Delivered.")])
    assert (appealed.status, appealed.appealed_by) == ("appealed", "merchant")
    with pytest.raises(RequestRefused) as refused:
        await shop("appeal", dispute, "Again.")
    assert (refused.value.code, refused.value.raw["disputeStatus"]) == ("dispute_state", "appealed")
    with pytest.raises(TypeError, match="must be bytes"):
        await shop("submit_evidence", dispute, files=[("note.txt", "Delivered.")])


async def test_evidence_whose_answer_is_lost_is_sent_once(
    lossy: Both, cutter: Cutter, merchant: Merchant
) -> None:
    dispute = str((await disputed(merchant, await captured(merchant), 4000)).dispute_id)
    cutter.next_ones("/evidence", 1)
    done = await lossy("submit_evidence", dispute, "It came.")
    assert [each.party for each in done.statements] == ["consumer", "merchant"]
    cutter.next_ones("/accept", 1)
    assert (await lossy("accept_dispute", dispute)).status == "lost"


async def test_an_unknown_dispute_is_not_found_and_a_malformed_id_is_never_sent(shop: Both) -> None:
    with pytest.raises(NotFound):
        await shop("dispute", UNKNOWN)
    with pytest.raises(ValueError, match="is not the id"):
        await shop("accept_dispute", "../orders")


async def test_events_contain_the_dispute_or_the_return_notice(shop: Both, merchant: Merchant) -> None:
    order = await captured(merchant)
    await notice_return(merchant.service.context, merchant.merchant_id, UUID(order["orderId"]), "UPS", "1Z9")
    chargeback = await charged_back(merchant, order, 2500)
    await publish_events(merchant.service.context)
    events: list[Event] = [event async for event in shop.events()]
    told = {event.type: event for event in events}
    returned, opened = told["return.noticed"].returned, told["dispute.opened"].dispute
    assert returned is not None
    assert (returned.carrier, returned.tracking_number) == ("UPS", "1Z9")
    assert opened is not None
    assert (opened.dispute_id, opened.kind) == (str(chargeback.dispute_id), "chargeback")
    assert (opened.status, opened.amount, opened.outcome) == ("open", 25, None)
    assert told["capture.completed"].dispute is None
