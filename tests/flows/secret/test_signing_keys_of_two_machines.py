"""A token-signing key that one machine cannot decrypt stops nothing there but the use of this key."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest

from cuota import config
from cuota.commands.operate import OtherKeys, _rotated
from cuota.db.vault import WrongKey
from cuota.flows.context import Context, utc_now
from cuota.flows.merchant.authenticate import Callers
from cuota.flows.merchant.issue_token import TokenRequest, issue_token
from cuota.flows.merchant.keys import NOTICE, UNREADABLE, Keys, rotate_keys
from cuota.flows.merchant.manage_merchants import MerchantTerms, create_merchant
from cuota.run import runtime


@pytest.fixture
async def lacks(settings: config.Settings, own_database: dict[str, Any]) -> AsyncIterator[Context]:
    """The machine that still has only the old secret key."""
    async with runtime.opened(settings, own_database, pool_size=2) as context:
        yield context


@pytest.fixture
async def has(
    settings: config.Settings, own_database: dict[str, Any], lacks: Context
) -> AsyncIterator[Context]:
    """The machine with the new secret key, which can also read the old one's secrets."""
    both = replace(settings, secret_key=os.urandom(32), old_secret_keys=(settings.secret_key,))
    async with runtime.opened(both, own_database, pool_size=2) as context:
        yield context


async def asked(context: Context) -> TokenRequest:
    new = await create_merchant(context, MerchantTerms(name="Keys"))
    return TokenRequest(new.client_id, new.client_secret, new.audience)


async def test_a_machine_without_the_key_goes_on_with_the_keys_that_it_can_read_and_logs_the_cause(
    lacks: Context, has: Context, caplog: pytest.LogCaptureFixture
) -> None:
    request, keys = await asked(lacks), Keys(lacks)
    old = (await issue_token(lacks, keys, request)).access_token
    added = await rotate_keys(has)
    await keys.load(older_than=0)
    [said] = [each for each in caplog.records if each.name == "cuota.keys"]
    assert (said.message, said.__dict__["facts"]) == (UNREADABLE, {"keyId": added})
    assert await Callers(lacks, keys).caller(f"Bearer {old}")
    assert (await issue_token(lacks, keys, request)).access_token


async def test_the_key_that_cannot_be_read_is_neither_replaced_by_an_older_one_nor_its_tokens_refused(
    lacks: Context, has: Context, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL", "cuota.keys")
    request, keys = await asked(lacks), Keys(lacks)
    await keys.load()
    await rotate_keys(has, at_once=True)
    new = (await issue_token(has, Keys(has), request)).access_token
    await keys.load(older_than=0)
    with pytest.raises(WrongKey, match="CUOTA_SECRET_KEY_OLD"):
        await Callers(lacks, keys).caller(f"Bearer {new}")
    with pytest.raises(WrongKey, match="CUOTA_SECRET_KEY_OLD"):
        keys.signer(utc_now() + NOTICE)


async def test_no_signing_key_is_made_while_a_process_with_another_secret_key_is_connected(
    settings: config.Settings, own_database: dict[str, Any]
) -> None:
    both = replace(settings, secret_key=os.urandom(32), old_secret_keys=(settings.secret_key,))
    async with AsyncExitStack() as stack:
        async with runtime.opened(settings, own_database, pool_size=2) as lacks:
            has = await stack.enter_async_context(runtime.opened(both, own_database, pool_size=2))
            named = f"a process that encrypts with key {lacks.vault.key_id} is connected"
            with pytest.raises(OtherKeys, match=named):
                await _rotated(has, "ES256")
        assert await _rotated(has, "ES256")
