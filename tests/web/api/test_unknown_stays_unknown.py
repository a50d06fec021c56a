"""The database is lost during a request with an Idempotency-Key. The answer claims only what the service knows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import pytest
from starlette.requests import Request

from cuota import config
from cuota.core.refusal import Refused
from cuota.db.pool import Pool, unavailable
from cuota.flows.merchant.manage_merchants import MerchantTerms, create_merchant
from cuota.flows.settle import UNKNOWN
from cuota.run import runtime
from cuota.web.app import make_app
from cuota.web.idempotent import Keep, answer, answer_plain


@asynccontextmanager
async def asked(
    settings: config.Settings, where: dict[str, object]
) -> AsyncIterator[tuple[Request, UUID, Pool]]:
    """A POST with a key, its merchant, and a database that the test can stop."""
    async with runtime.opened(settings, where) as context:
        new = await create_merchant(context, MerchantTerms(name="Shop", maximum=200_000))
        headers = [(b"idempotency-key", b"one"), (b"host", b"127.0.0.1")]
        scope = {"type": "http", "method": "POST", "path": "/order", "query_string": b"", "headers": headers}
        scope |= {"scheme": "http", "app": make_app(context), "request_id": "one"}
        yield Request(scope), new.merchant.merchant_id, context.pool


async def test_after_a_lost_save_the_answer_says_that_the_result_is_unknown_although_the_key_cannot_be_released(
    settings: config.Settings, own_database: dict[str, object]
) -> None:
    async with asked(settings, own_database) as (request, merchant_id, pool):

        async def run(_: Keep | None) -> bytes:
            await pool.close()
            raise unavailable(UNKNOWN)

        with pytest.raises(Refused) as told:
            await answer(request, merchant_id, b"{}", run)
    assert told.value.message == UNKNOWN


async def test_if_the_database_is_lost_after_the_call_was_carried_out_the_caller_still_gets_its_answer(
    settings: config.Settings, own_database: dict[str, object]
) -> None:
    async with asked(settings, own_database) as (request, merchant_id, pool):

        async def act() -> bytes:
            await pool.close()
            return b"{}"

        response = await answer_plain(request, merchant_id, b"{}", act)
    assert (response.status_code, response.body) == (200, b"{}")
