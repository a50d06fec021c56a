"""Two merchants never show the same name, also if both take it at the same moment."""

from __future__ import annotations

import asyncio

import pytest

from cuota.db.locks import NAMES_LOCK
from cuota.flows.context import new_token
from cuota.flows.desk.bad_change import BadChange
from cuota.flows.desk.record import Actor, Cause
from cuota.flows.merchant.change_settings import NAME_TAKEN, set_brand
from cuota.flows.merchant.manage_merchants import BadMerchant, MerchantTerms, create_merchant, update_merchant
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


async def test_a_display_name_that_reads_as_an_id_is_refused(own: Own) -> None:
    made = await create_merchant(own.context, MerchantTerms(name="Birch"))
    with pytest.raises(BadChange, match="not an id"):
        await set_brand(
            own.context, made.merchant.merchant_id, str(new_token()), "", None, Cause(Actor(None), "brand")
        )


async def test_a_merchant_whose_older_name_has_more_spaces_than_another_can_still_change_its_terms(
    own: Own,
) -> None:
    made = await create_merchant(own.context, MerchantTerms(name="Maple"))
    merchant_id = made.merchant.merchant_id
    async with holder(own.where) as other:
        await other.run("UPDATE merchants SET name = 'Cherry ' WHERE merchant_id = $1", merchant_id)
    with pytest.raises(BadMerchant, match="already a merchant named Cherry"):
        await create_merchant(own.context, MerchantTerms(name="Cherry"))
    changed = await update_merchant(own.context, "Cherry ", MerchantTerms(minimum=500))
    assert (changed.name, changed.minimum) == ("Cherry ", 500)
