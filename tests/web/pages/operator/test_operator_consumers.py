"""How the operator's people treat a consumer's personal data: masked, revealed with a reason, exported, erased."""

from __future__ import annotations

import asyncio
import json
from uuid import UUID

from cuota.core.operator.role import OperatorRole
from cuota.core.order.id_bounds import BEYOND
from cuota.db.checkout import consumers
from cuota.db.operator import operator_log
from cuota.web.pages.operator.consumers import exported_file
from cuota.work.card_refunds import return_due_money
from support.makers import PROFILE, Merchant, complete
from support.pages.operator_staff import OperatorStaff
from support.phones import phone_number


async def logged(operator: OperatorStaff, about: UUID) -> list[str]:
    """Return the actions in the log about a subject, newest first."""
    found = await operator_log.page(operator.service.context.pool, BEYOND, 50, about=about)
    return [each.action for each in found]


async def known(merchant: Merchant) -> tuple[str, str]:
    """Make a consumer with a plan. Return the phone number and the consumer's id."""
    phone = phone_number()
    order = await merchant.create("100.00")
    await complete(merchant.service, merchant.merchant_id, order, phone=phone)
    return phone, str(merchant.service.context.vault.consumer_id(phone))


async def test_a_consumer_is_found_by_phone_and_masked(operator: OperatorStaff, merchant: Merchant) -> None:
    phone, consumer_id = await known(merchant)
    await operator.enter(OperatorRole.FINANCE)
    await operator.open("/operator/consumers")
    page = await operator.press("consumers", phone=phone)
    assert page.answer.url.path == f"/operator/consumers/{consumer_id}"
    for private in (PROFILE.surname, PROFILE.email, PROFILE.address.line1, phone):
        assert private not in page.text
    assert phone[-4:] in page.text
    assert "$75.00" in page.text, "what is left of the plan"


async def test_only_a_person_with_the_right_can_reveal_a_name_and_each_reveal_is_logged(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    _, consumer_id = await known(merchant)
    await operator.enter(OperatorRole.SUPPORT)
    await operator.open(f"/operator/consumers/{consumer_id}")
    page = await operator.press("reveal", reason="")
    assert page.status == 400
    assert PROFILE.surname not in page.text
    page = await operator.press("reveal", reason="the consumer called")
    assert PROFILE.surname in page.text
    assert page.answer.headers["cache-control"] == "no-store"
    assert await logged(operator, UUID(consumer_id)) == ["consumer.reveal"]


async def test_everything_about_a_consumer_is_exported_for_the_right_number_only(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    phone, consumer_id = await known(merchant)
    await operator.enter()
    path = f"/operator/consumers/{consumer_id}"
    await operator.open(path)
    page = await operator.press("privacy", do="export", phone="2125550000", reason="asked")
    assert (page.status, "not the consumer's phone number" in page.text) == (400, True)
    action, held = operator.page.form("privacy")
    answer = await operator.http.post(
        action, data={**held, "do": "export", "phone": phone, "reason": "asked"}
    )
    assert json.loads(answer.content)["consumer_id"] == consumer_id
    assert answer.headers["content-disposition"].startswith("attachment")
    assert await logged(operator, UUID(consumer_id)) == ["consumer.export"]


async def test_a_consumer_who_owes_money_is_not_erased_and_the_page_says_why(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    phone, consumer_id = await known(merchant)
    await operator.enter()
    await operator.open(f"/operator/consumers/{consumer_id}")
    page = await operator.press("privacy", do="preview", phone=phone, reason="asked")
    assert "Nothing can be erased now" in page.text
    await operator.press("privacy", do="erase", phone=phone, reason="asked")
    rows = await merchant.service.context.pool.fetch(
        "SELECT action, reason FROM operator_log WHERE about = $1 ORDER BY entry_id DESC LIMIT 2", consumer_id
    )
    assert [row["action"] for row in rows] == ["consumer.erase.refused", "consumer.erase"]
    assert "is still owed" in rows[0]["reason"]


async def test_an_erasure_is_shown_before_it_is_done(operator: OperatorStaff, merchant: Merchant) -> None:
    phone = phone_number()
    order = await merchant.create("100.00")
    await complete(merchant.service, merchant.merchant_id, order, phone=phone)
    assert (await merchant.move(order, "void", "100.00")).status_code == 200
    while await return_due_money(merchant.service.context):
        pass
    context, consumer_id = merchant.service.context, merchant.service.context.vault.consumer_id(phone)
    await operator.enter()
    await operator.open(f"/operator/consumers/{consumer_id}")
    page = await operator.press("privacy", do="preview", phone=phone, reason="asked")
    assert "This would be erased" in page.text
    assert await consumers.read(context.pool, consumer_id) is not None
    page = await operator.press("privacy", do="erase", phone=phone, reason="asked")
    assert "The personal data is erased" in page.text
    assert await consumers.read(context.pool, consumer_id) is None


async def test_a_long_export_is_written_while_the_service_answers_other_requests() -> None:
    # The event loop handles other requests only between two turns.
    turns, done = 0, asyncio.Event()

    async def others() -> None:
        nonlocal turns
        while not done.is_set():
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    orders = [{"number": number} for number in range(100_000)]
    answer = await exported_file({"orders": orders})
    done.set()
    await beside
    assert json.loads(answer.body)["orders"] == orders
    assert turns > 1
