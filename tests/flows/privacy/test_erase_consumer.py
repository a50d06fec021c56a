"""All data about a person can be exported, and can be erased once the person owes nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from cuota.core.consumer import Address
from cuota.db.privacy.person import TREATED
from cuota.db.verify.recalculate import verify
from cuota.flows.checkout.leave_checkout import leave_checkout
from cuota.flows.privacy.erase_consumer import Erasure, erase_consumer
from cuota.flows.privacy.export_consumer import export_consumer
from cuota.flows.risk.explain_order import explain_order
from cuota.work.webhooks import Webhooks
from support.flows.due import settle_all_due
from support.flows.people import PERSON, PHONE, PREFILL, WORDS, bought, everything, paid_off, words_left
from support.makers import PROFILE, checkout, complete
from support.own_service import Own
from support.phones import phone_number
from support.signed import started


async def erase(own: Own, *, dry_run: bool = False, **more: Any) -> Erasure:
    return await erase_consumer(own.context, PHONE, dry_run=dry_run, **more)


async def publish(own: Own) -> None:
    webhooks = Webhooks(own.context)
    try:
        while await webhooks.run(own.context):
            await webhooks.rest()
    finally:
        await webhooks.close()


async def events(own: Own) -> list[dict[str, Any]]:
    answer = await own.auto_merchant.http.get("/events?limit=100")
    assert answer.status_code == 200, answer.text
    return list(answer.json()["events"])


async def test_for_every_table_it_is_defined_what_happens_to_its_personal_data(own: Own) -> None:
    async with own.owner() as owner:
        rows = await owner.fetch(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname !~ '^(pg_|information)'"
        )
    names = {f"{schema}.{table}".removeprefix("public.") for schema, table in rows}
    assert names == set(TREATED), (
        "a new table needs its line in db/privacy/person.py, and maybe a place in the erasure"
    )


async def test_an_export_has_all_data_that_the_person_entered_and_all_data_that_is_stored(own: Own) -> None:
    order = await bought(own)
    await paid_off(own)
    found = await export_consumer(own.context, PHONE)
    text = json.dumps(found).casefold()
    assert [word for word in WORDS if word not in text] == []
    (only,) = found["orders"]
    assert only["order_id"] == order["orderId"]
    assert only["document"]["metadata"] == PREFILL["metadata"]
    assert only["plan"]["payer"]["address"]["line1"] == "77 Zephyr Lane"
    assert only["plan"]["agreement"].startswith("This agreement is between")
    assert [each["amount"] for each in only["charges"]] == [2500] * 4
    assert only["decisions"][0]["approved"] is True
    assert {"plan_started", "payment_received"} <= {each["kind"] for each in only["messages"]}
    assert found["consumers"][0]["phone"] == PHONE
    assert found["sandbox_inbox"], "what was sent to the person"
    assert "card_token" not in text


async def test_an_export_about_an_unknown_person_says_so(own: Own) -> None:
    found = await export_consumer(own.context, PHONE)
    assert (found["found"], found["orders"]) == (False, [])


async def test_an_order_that_only_contains_the_number_is_listed_without_its_contents(own: Own) -> None:
    order = await own.merchant.create("50.00", **PREFILL)
    found = await export_consumer(own.context, PHONE)
    assert [each["order_id"] for each in found["orders_naming_this_number"]] == [order["orderId"]]
    assert found["orders"] == []
    assert "zephyr" not in json.dumps(found).casefold()


async def test_a_person_who_owes_money_is_not_erased_and_the_command_says_why(own: Own) -> None:
    await bought(own)
    before = await everything(own)
    refused = await erase(own)
    assert not refused.done
    (reason,) = refused.reasons
    assert "$75.00 of the plan is still owed, the last payment on" in reason
    assert own.auto_merchant.name in reason
    assert await everything(own) == before


async def test_a_person_is_not_erased_while_the_merchant_may_still_ship(own: Own) -> None:
    await bought(own, own.merchant)
    reasons = (await erase(own)).reasons
    assert any("may still ship and capture $100.00" in reason for reason in reasons)


async def test_a_dry_run_of_an_erasure_prints_the_result_and_changes_nothing(own: Own) -> None:
    await bought(own)
    await paid_off(own)
    before = await everything(own)
    told = await erase(own, dry_run=True)
    assert (told.done, told.reasons) == (False, [])
    assert (told.rows["orders"], told.rows["plans"], told.rows["profiles"]) == (1, 1, 1)
    assert await everything(own) == before


async def test_after_an_erasure_no_data_of_the_person_is_left_and_verify_finds_nothing(own: Own) -> None:
    await bought(own)
    # Make an order that its consumer left, and an order with extra data about the customer.
    left = await own.merchant.create("30.00", **PREFILL)
    await checkout(own.service, own.merchant.merchant_id, left, PERSON, PHONE)
    await leave_checkout(own.context, own.merchant.merchant_id, UUID(left["orderId"]))
    signed = await started(
        own.auto_merchant, "40.00", additionalData={"merchantRiskAssessment": "Mina Quackenbush"}
    )
    await complete(own.service, own.auto_merchant.merchant_id, signed, profile=PERSON, phone=PHONE)
    named = await own.merchant.create("20.00", **PREFILL)
    await paid_off(own)
    await publish(own)
    assert set(await words_left(own)) == set(WORDS)
    done = await erase(own)
    assert (done.done, done.reasons, done.rows["orders"], done.rows["plans"]) == (True, [], 4, 2)
    assert await words_left(own) == []
    assert (await verify(own.context.pool)).disagreements == []
    assert (await own.merchant.read(named))["consumer"] is None
    again = await erase(own)
    assert again.erased_before is not None
    assert not any(again.rows.values())
    assert (await export_consumer(own.context, PHONE))["consumers"] == []


async def test_after_an_erasure_events_and_the_order_are_returned_without_the_person(own: Own) -> None:
    order = await bought(own)
    await paid_off(own)
    await publish(own)
    before = {each["id"]: each for each in await events(own)}
    approved = next(each for each in before.values() if each["type"] == "order.approved")
    assert approved["customer"]["lastName"] == "Quackenbush"
    record = await own.auto_merchant.read(order)
    await erase(own)
    after = {each["id"]: each for each in await events(own)}
    assert set(after) == set(before)
    gone = {"consumer": None, "billing": None, "shipping": None, "description": None, "metadata": {}}
    for name, each in after.items():
        expected = {**before[name], "order": {**before[name]["order"], **gone}, "metadata": {}}
        if each["type"] == "order.approved":
            expected["customer"] = None
        assert each == expected
    assert await own.auto_merchant.read(order) == {**record, **gone}


async def test_a_refund_of_an_erased_consumers_order_goes_back_to_the_card(own: Own) -> None:
    order = await bought(own)
    await paid_off(own)
    await erase(own)
    assert (await own.auto_merchant.move(order, "refund", "10.00")).status_code == 200
    await paid_off(own)
    assert (await own.auto_merchant.read(order))["refundedAmount"] == 10
    assert (await verify(own.context.pool)).disagreements == []
    assert await words_left(own) == []
    told = await explain_order(own.context, UUID(order["orderId"]))
    assert "Approved" in told.lines[0]


async def test_the_next_owner_of_the_number_finds_no_plans_and_can_buy(own: Own) -> None:
    await bought(own)
    await paid_off(own)
    await erase(own)
    order = await own.auto_merchant.create("60.00")
    next_owner = replace(PROFILE, surname="Newcomer")
    await complete(own.service, own.auto_merchant.merchant_id, order, profile=next_owner, phone=PHONE)
    found = await export_consumer(own.context, PHONE)
    assert [each["order_id"] for each in found["orders"]] == [order["orderId"]]


async def test_an_erasure_changes_nothing_of_another_consumer(own: Own) -> None:
    other = phone_number()
    mine = await own.auto_merchant.create("70.00", consumer={"phoneNumber": PHONE})
    theirs = replace(PROFILE, address=Address("5 Other Street", "", "Reno", "NV", "89501"))
    # The order contains this number, but another consumer paid.
    await complete(own.service, own.auto_merchant.merchant_id, mine, profile=theirs, phone=other)
    await bought(own)
    await paid_off(own)
    assert (await erase(own)).done
    kept = await export_consumer(own.context, other)
    assert kept["orders"][0]["plan"]["payer"]["address"]["line1"] == "5 Other Street"
    # The shop's data about the erased person is gone. The plan and everything else of the payer stays.
    assert kept["orders"][0]["document"]["consumer"] is None
    assert len(kept["orders"][0]["charges"]) == 4


@pytest.mark.parametrize("settled", [False, True])
async def test_a_refused_card_refund_must_be_paid_in_another_way_before_an_erasure(
    own: Own, *, settled: bool
) -> None:
    order = await bought(own)
    assert (await own.auto_merchant.move(order, "refund", "100.00")).status_code == 200
    await settle_all_due(own.context)
    await own.context.pool.execute(
        "UPDATE card_refunds SET state = 'failed', reason = 'card_closed', try_at = NULL, settled_at = now()"
    )
    done = await erase(own, refunds_settled=settled)
    assert done.done is settled
    if not settled:
        assert "a card refused a refund of $25.00" in done.reasons[0]


async def test_verify_finds_personal_data_that_was_written_into_an_erased_order(own: Own) -> None:
    order = await bought(own)
    await paid_off(own)
    await erase(own)
    async with own.owner() as owner:
        await owner.execute(
            """UPDATE order_details SET document = (jsonb_set(document::jsonb, '{consumer}', '{"surname": "X"}'))::json
            WHERE order_id = $1""",
            UUID(order["orderId"]),
        )
        await owner.execute("UPDATE plans SET agreement = 'text' WHERE order_id = $1", UUID(order["orderId"]))
    found = {(each.row, each.problem) for each in (await verify(own.context.pool)).disagreements}
    assert found == {
        ("order_details", "was erased, but still has consumer"),
        ("plans", "was erased, but still has its agreement or payer"),
    }


async def test_the_service_can_blank_a_document_but_never_write_one(own: Own) -> None:
    order = await bought(own)
    with pytest.raises(Exception, match="permission denied"):
        await own.context.pool.execute("UPDATE order_details SET document = '{}'")
    row = await own.context.pool.fetchrow(
        "SELECT blank_orders($1, ARRAY[$2::uuid], now()) AS n",
        own.auto_merchant.merchant_id,
        UUID(order["orderId"]),
    )
    assert row is not None
    assert row["n"] == 1
    record = await own.auto_merchant.read(order)
    assert (record["taxAmount"], record["items"][0]["name"]) == (1.10, "A lamp")
