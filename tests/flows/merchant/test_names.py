"""Two merchants never show the same name, also if both take it at the same moment."""

from __future__ import annotations

import asyncio

import pytest

from cuota.db.locks import NAMES_LOCK
from cuota.flows.desk.bad_change import BadChange
from cuota.flows.desk.record import Actor, Cause
from cuota.flows.merchant.change_settings import NAME_TAKEN, set_brand
from cuota.flows.merchant.manage_merchants import MerchantTerms, create_merchant
from support.db.locks import holder
from support.own_service import Own


async def test_a_display_name_that_another_merchant_takes_as_its_name_at_the_same_moment_is_refused(
    own: Own,
) -> None:
    first, second = [
        await create_merchant(own.context, MerchantTerms(name=name)) for name in ("Alder", "Oak")
    ]
    async with holder(own.where) as other:
        await other.run("SELECT pg_advisory_xact_lock($1)", NAMES_LOCK)
        await other.run(
            "UPDATE merchants SET name = 'Elm' WHERE merchant_id = $1", first.merchant.merchant_id
        )
        cause = Cause(Actor(None), "new brand")
        saving = asyncio.ensure_future(
            set_brand(own.context, second.merchant.merchant_id, "elm", "", None, cause)
        )
        await other.until_waits(saving)
    with pytest.raises(BadChange, match=NAME_TAKEN):
        await saving
