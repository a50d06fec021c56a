"""A body of the API or of the checkout is judged by the credential, the session and the merchant when the body has arrived."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from uuid import UUID, uuid4

import pytest

from cuota.flows.merchant.manage_merchants import revoke_merchant
from cuota.flows.merchant.suspend_merchant import suspend_merchant
from cuota.web import app
from cuota.web.app import ROUTES
from support.makers import Merchant
from support.pages.late_form import send_late
from support.pages.visitor import Visitor, address_of, charges

# A body of these methods may arrive slowly.
WITH_BODY = {"POST", "PATCH"}
STEPS = [row.path for row in ROUTES if row.area is app.CHECKOUT and "POST" in row.methods.split()]


@pytest.fixture
async def visit(merchant: Merchant) -> AsyncIterator[Callable[..., Visitor]]:
    """Opens browsers, each with its own cookies."""
    async with AsyncExitStack() as stack:

        def browser() -> Visitor:
            http = merchant.service.client()
            stack.push_async_callback(http.aclose)
            return Visitor(http)

        yield browser


def revoking(merchant: Merchant) -> Callable[[], Awaitable[None]]:
    async def revoke() -> None:
        context = merchant.service.context
        await revoke_merchant(context, str(merchant.merchant_id))
        # The process reads a credential again after two seconds. This is the same without the wait.
        merchant.service.app.service.callers.forget()

    return revoke


async def restored(merchant: Merchant) -> None:
    """Take the revocation back, for the next route."""
    pool = merchant.service.context.pool
    await pool.fetch(
        "UPDATE credentials SET revoked_at = NULL WHERE merchant_id = $1 RETURNING 1", merchant.merchant_id
    )
    merchant.service.app.service.callers.forget()


async def test_a_body_whose_credential_was_revoked_while_the_body_arrived_gets_401(
    merchant: Merchant,
) -> None:
    rows = [
        (method, row.path)
        for row in ROUTES
        for method in row.methods.split()
        if row.area is app.API and method in WITH_BODY
    ]
    assert len(rows) > 12
    order = await merchant.approved()
    body = {"amount": "1.00", "merchantReference": "late", "text": "late", "url": "http://127.0.0.1:9/late"}
    for method, path in rows:
        target = "/".join(
            order["orderId"] if part == "{order_id}" else str(uuid4()) if part.startswith("{") else part
            for part in path.split("/")
        )
        answer = await send_late(merchant.http, target, revoking(merchant), method=method, json=body)
        await restored(merchant)
        assert answer.status == 401, (method, path, answer.body)
        assert json.loads(answer.body)["code"] == "unauthorized"
    assert (await merchant.read(order))["capturedAmount"] == 0


async def test_a_step_of_a_checkout_whose_session_ended_while_the_form_arrived_is_not_used(
    merchant: Merchant, visit: Callable[..., Visitor]
) -> None:
    pool = merchant.service.context.pool
    assert len(STEPS) > 8
    for path in STEPS:
        order = await merchant.create()
        visitor = visit()
        await visitor.until("pay", order)
        csrf = visitor.page.form("pay")[1]["csrf"]

        async def end(order_id: str = order["orderId"]) -> None:
            await pool.fetch("DELETE FROM checkout_sessions WHERE order_id = $1 RETURNING 1", UUID(order_id))

        target = f"{address_of(order)}/{path.rpartition('/')[2]}"
        answer = await send_late(visitor.http, target, end, data={"csrf": csrf})
        assert answer.status == 404, path
        assert b"Start again from the shop" in answer.body, path


async def test_nothing_is_charged_if_the_merchant_is_suspended_while_the_pay_form_arrives(
    merchant: Merchant, visit: Callable[..., Visitor]
) -> None:
    order = await merchant.create()
    visitor = visit()
    await visitor.until("pay", order)
    action, fields = visitor.page.form("pay")
    card = {"card_number": "4242 4242 4242 4242", "card_expiry": "12/39", "card_cvc": "737", "agree": "yes"}

    async def suspend() -> None:
        await suspend_merchant(merchant.service.context, merchant.name, hold=False)

    answer = await send_late(visitor.http, action, suspend, data={**fields, **card})
    assert answer.status == 403, answer.body
    assert await charges(merchant.service, order) == []
