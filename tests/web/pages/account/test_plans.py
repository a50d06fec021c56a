"""The consumer's pages: the list, a plan in each state, the agreement and receipts. None shows another consumer's
data."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest

from cuota.core.dates import day
from cuota.core.plan.agreement import accepted_text
from cuota.db.plan.accounts import ShownPlan, plans_of
from cuota.work.card_refunds import return_due_money
from support.makers import Merchant, Running, make_merchant
from support.pages.consumer import FAILS_LATER, LOST_LATER, Consumer

PACIFIC = ZoneInfo("America/Los_Angeles")  # the state of makers.PROFILE


async def shown_of(consumer: Consumer) -> list[ShownPlan]:
    context = consumer.service.context
    return await plans_of(context.pool, context.vault.consumer_id(consumer.phone), 50, 0)


async def test_the_list_shows_the_shop_the_order_the_payments_the_next_date_and_the_card(
    consumer: Consumer, shop: Merchant
) -> None:
    await consumer.buy_at(shop, "200.00", merchantReference="A-77<b>")
    page = await consumer.enter()
    plan = (await shown_of(consumer))[0].plan
    assert shop.name in page.text
    assert "Order A-77<b>" in page.text
    assert "A-77&lt;b&gt;" in page.answer.text
    assert "Active" in page.text
    assert f"$50.00 on {day(plan[1].due_on)}, Visa ending 4242" in page.text
    assert "Payment 1 of 4:" in page.text
    assert "Today" not in page.text
    assert page.text.count("Paid") == 1


async def test_overdue_plans_are_listed_first_with_instructions_and_then_plans_with_payments_left(
    consumer: Consumer, shop: Merchant, service: Running
) -> None:
    lost = await consumer.buy_at(shop, "40.00", LOST_LATER, merchantReference="LOST")
    await consumer.buy_at(shop, "40.00", merchantReference="ACTIVE")
    done = await consumer.buy_at(shop, "40.00", merchantReference="DONE")
    back = await consumer.buy_at(shop, "40.00", merchantReference="BACK")
    await consumer.enter()
    await consumer.pay(done, "all=1")
    assert (await shop.move(back.order, "refund", "40.00")).status_code == 200
    async with service.clock.moved(days=15):
        await lost.collected()
    page = await consumer.open("/account")
    assert page.link("Use another card") == f"{lost.path}/card"
    places = [page.text.index(f"Order {name}") for name in ("LOST", "ACTIVE", "BACK", "DONE")]
    assert places == sorted(places)
    for word in (
        "Active",
        "Overdue",
        "Completed",
        "Canceled",
        "another card is needed",
        "You have paid everything",
    ):
        assert word in page.text


async def test_the_list_has_twenty_plans_a_page_and_a_link_to_older_ones(
    consumer: Consumer, shop: Merchant
) -> None:
    for number in range(21):
        await consumer.buy_at(shop, "8.00", merchantReference=f"N-{number:02d}")
    page = await consumer.enter()
    assert page.text.count("Order N-") == 20
    older = await consumer.open(page.link("Older plans"))
    assert older.text.count("Order N-") == 1
    assert "Order N-00" in older.text
    assert older.link("Newer plans") == "/account"
    for wrong in ("0", "-1", "x", "9" * 40, "%00", "²"):
        assert (await consumer.open(f"/account?page={wrong}")).text.count("Order N-") == 20
    assert "No older plans" in (await consumer.open("/account?page=9999")).text


async def test_a_plan_lists_each_payment_with_date_amount_state_and_receipt(
    consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop)
    page = await consumer.enter()
    page = await consumer.open(page.link(shop.name))
    assert page.answer.url.path == plan.path
    assert f"<bdi>{shop.name}</bdi></h1>" in page.answer.text
    items = (await shown_of(consumer))[0].plan
    for item in items:
        assert f"Payment {item.number}, {day(item.due_on)}" in page.text
    assert page.text.count("Scheduled") == 3
    assert f"$25.00 on {day(items[1].due_on)}, Visa ending 4242." in page.text
    assert page.link("Pay $25.00 early") == f"{plan.path}/pay?number=2"
    assert page.link("Pay all that is left, $75.00") == f"{plan.path}/pay?all=1"
    assert page.link("Change the card") == f"{plan.path}/card"
    receipt = await consumer.open(page.link("Receipt"))
    for words in (
        "$25.00",
        "Visa ending 4242",
        f"For your order at{shop.name}",
        "1 of 4",
        "A-1042",
        str(items[0].charge_id),
    ):
        assert words in receipt.text, words


async def test_an_overdue_payment_shows_when_its_card_is_retried_in_the_consumer_s_local_time(
    consumer: Consumer, shop: Merchant, service: Running
) -> None:
    plan = await consumer.buy_at(shop, card=FAILS_LATER)
    await consumer.enter()
    async with service.clock.moved(days=15):
        await plan.collected()
        page = await consumer.open(plan.path)
        item = (await shown_of(consumer))[0].plan[1]
        assert item.charge_at is not None
        assert "$25.00 was due on" in page.text
        assert (
            f"Visa ending 0341 is tried again on {day(item.charge_at.astimezone(PACIFIC).date())} at "
            in page.text
        )
        assert page.text.count("Overdue") == 4  # the text is in the tag, the picture, the heading and the row
        assert page.link("Pay the overdue $25.00")
        # The worker may be a little late, so the page never promises a time that has passed.
        async with service.clock.moved(days=1):
            assert "is tried again in a few minutes" in (await consumer.open(plan.path)).text


async def test_a_card_with_a_hard_decline_is_reported_and_the_page_asks_for_another_card_first(
    consumer: Consumer, shop: Merchant, service: Running
) -> None:
    plan = await consumer.buy_at(shop, card=LOST_LATER)
    await consumer.enter()
    async with service.clock.moved(days=15):
        await plan.collected()
        page = await consumer.open(plan.path)
    assert "Visa ending 9987 cannot pay it and is not tried again: another card is needed." in page.text
    assert page.link("Use another card") == f"{plan.path}/card"
    assert f"{plan.path}/pay" not in page.answer.text
    # If somebody sends the form anyway, the page says so, and no card is charged.
    tried = await consumer.open(f"{plan.path}/pay?number=2")
    assert tried.heading.startswith("Pay $")
    assert "This card can no longer be used; nothing was charged." in (await consumer.send("pay")).text


async def test_two_overdue_payments_are_paid_together(
    consumer: Consumer, shop: Merchant, service: Running
) -> None:
    plan = await consumer.buy_at(shop, card=FAILS_LATER)
    await consumer.enter()
    async with service.clock.moved(days=15):
        await plan.collected()
    async with service.clock.moved(days=29):
        for _ in range(6):
            await plan.collected()
        page = await consumer.open("/account")
        assert "$50.00 is overdue: 2 payments." in page.text
        assert page.link("Pay now, $50.00") == f"{plan.path}/pay?overdue=1"
        page = await consumer.open(plan.path)
        assert page.link("Pay the overdue $50.00") == f"{plan.path}/pay?overdue=1"
        assert "Pay $50.00" in (await consumer.open(f"{plan.path}/pay?overdue=1")).heading


async def test_pending_and_completed_card_refunds_are_explained_in_words(
    consumer: Consumer, shop: Merchant, service: Running
) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    await shop.move(plan.order, "refund", "90.00")
    page = await consumer.open(plan.path)
    assert "$15.00 is on its way back to Visa ending 4242" in page.text
    assert "Paid $15.00 sent back" in page.text
    assert page.text.count("Canceled") == 6  # the words are in three dots and three rows
    await return_due_money(service.context)
    page = await consumer.open(plan.path)
    assert "$15.00 went back to Visa ending 4242" in page.text
    receipt = await consumer.open(page.link("Receipt"))
    assert "Of this, $15.00 goes back to the card." in receipt.text
    assert f"You returned items, or {shop.name} gave you money back" in receipt.text
    assert "You paid $10.00 in the end" in receipt.text
    await plan.write("UPDATE card_refunds SET state = 'failed' WHERE order_id = $1")
    assert "$15.00 could not be sent back to Visa ending 4242" in (await consumer.open(plan.path)).text


async def test_a_payment_in_progress_says_so_and_has_no_second_button(
    consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    await plan.write(
        "UPDATE orders SET charging = gen_random_uuid(), charging_since = now() WHERE order_id = $1"
    )
    page = await consumer.open(plan.path)
    assert "A payment is being made right now" in page.text
    assert page.link("Check again") == plan.path
    assert not [link for link in page.seen.links if "/pay" in link or "/card" in link]
    for path in ("/pay?number=2", "/pay?all=1", "/card"):
        page = await consumer.open(f"{plan.path}{path}")
        assert (page.answer.url.path, "nothing is charged twice" in page.text) == (plan.path, True)
    assert "A payment is being made right now" in (await consumer.open("/account")).text
    await plan.write("UPDATE orders SET charging = NULL, charging_since = NULL WHERE order_id = $1")


async def test_the_agreement_is_shown_as_it_was_accepted_with_its_date_and_hash(
    consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    page = await consumer.open((await consumer.open(plan.path)).link("The agreement you accepted"))
    row = await shop.service.context.pool.fetchrow(
        "SELECT agreement, agreement_hash FROM plans WHERE order_id = $1", UUID(plan.order["orderId"])
    )
    assert row is not None
    text = accepted_text(row["agreement"])
    assert text != row["agreement"]
    for paragraph in text.split("\n\n"):
        assert paragraph in page.text
    assert row["agreement_hash"] in page.text
    assert "You accepted this on" in page.text
    # An earlier release stored the text.
    sql = "UPDATE plans SET agreement = $2 WHERE order_id = $1 RETURNING 1"
    assert await shop.service.context.pool.fetchrow(sql, UUID(plan.order["orderId"]), text)
    assert (await consumer.open(f"{plan.path}/agreement")).text == page.text


async def test_every_address_of_another_consumer_or_without_a_plan_shows_the_same_page(
    sign_in: Callable[..., Consumer], shop: Merchant
) -> None:
    mine, theirs = sign_in(), sign_in()
    own, other = await mine.buy_at(shop), await theirs.buy_at(shop)
    await mine.enter()
    await theirs.enter()
    foreign = (await theirs.open(other.path)).link("Receipt").rpartition("/")[2]
    paths = [
        *(f"{other.path}{part}" for part in ("", "/pay?all=1", "/card", "/agreement", f"/receipts/{foreign}")),
        f"{own.path}/receipts/{foreign}", f"{own.path}/receipts/{uuid4()}", f"{own.path}/receipts/1",
        f"{own.path[:-1]}", f"{own.path}0", f"/account/plans/{uuid4()}/{own.order['orderId']}",
        f"/account/plans/x/{own.order['orderId']}", "/account/plans/%00/%00", "/account/nowhere", f"{own.path}/nowhere",
    ]  # fmt: skip
    pages = [await mine.open(path) for path in paths]
    assert {(page.status, page.answer.text) for page in pages} == {(404, pages[0].answer.text)}
    csrf = (await mine.open("/account")).form("leave")[1]["csrf"]
    for part in ("pay", "card"):
        form = {"csrf": csrf, "numbers": "2", "expected": "2500", "card": "visa-4242"}
        answer = await mine.http.post(f"{other.path}/{part}", data=form)
        assert (answer.status_code, answer.text) == (404, pages[0].answer.text)
    assert (await theirs.open(other.path)).text.count("Scheduled") == 3


async def test_an_order_without_an_agreement_is_not_found(consumer: Consumer, shop: Merchant) -> None:
    order = await shop.create()
    await consumer.enter()
    assert (await consumer.open(f"/account/plans/{shop.merchant_id}/{order['orderId']}")).status == 404


async def test_a_shop_that_was_renamed_or_lost_its_credentials_is_still_shown(
    consumer: Consumer, service: Running
) -> None:
    name = f"Renamed & <Co> {secrets.token_hex(4)}"
    async with make_merchant(service, defer_funds_capture=False) as gone:
        plan = await consumer.buy_at(gone)
        await service.context.pool.fetchrow(
            "UPDATE merchants SET name = $2 WHERE merchant_id = $1", gone.merchant_id, name
        )
        await service.context.pool.fetchrow(
            "UPDATE credentials SET revoked_at = now() WHERE merchant_id = $1", gone.merchant_id
        )
    page = await consumer.enter()
    assert name in page.text
    assert "<Co>" not in page.answer.text
    for part in ("", "/pay?all=1", "/card", "/agreement"):
        assert (await consumer.open(f"{plan.path}{part}")).status == 200
    assert "Your payment went through" in (await consumer.pay(plan)).text


@pytest.mark.parametrize("said", ["nobody", "%3Cscript%3E", "ended", ""])
async def test_the_query_of_an_address_cannot_put_text_on_the_page(
    consumer: Consumer, shop: Merchant, said: str
) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    plain = await consumer.open(plan.path)
    assert (await consumer.open(f"{plan.path}?said={said}")).answer.text == plain.answer.text
