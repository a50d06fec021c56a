"""A reset of the second factor, at the same moment as a sign-in or as a new passkey: neither outlives the reset."""

from __future__ import annotations

import json
import secrets
from datetime import timedelta
from typing import Any
from uuid import UUID

import pyotp
import pytest

from cuota.db.desk import people
from cuota.db.operator import operators
from cuota.flows.context import Context, utc_now
from cuota.flows.desk import keep_passkeys, sign_in
from cuota.flows.desk.change_team import reset_factor
from cuota.flows.desk.check_passkey import (
    PasskeyPurpose,
    PasskeyRefused,
    begin_adding,
    begin_using,
    check_passkey,
    finish_adding,
)
from cuota.flows.desk.record import OPERATOR
from cuota.flows.desk.sign_in import Place
from cuota.flows.operator import keep_operator_passkeys, operator_sign_in
from cuota.flows.operator.change_operators import reset_operator_factor
from cuota.flows.operator.log_action import OperatorActor
from support.pages.passkeys import Browsers, Keyed, entered, with_passkey
from support.pages.staff import Staff

HERE = Place("", "")


def context_of(one: Keyed) -> Context:
    return one.staff.service.context


async def visit_of(one: Keyed) -> Any:
    """Return the session of this browser, as a request reads it."""
    text = one.staff.http.cookies[one.tables]
    if isinstance(one.staff, Staff):
        return await sign_in.load_visit(context_of(one), one.staff.shop.merchant_id, text.partition(".")[2])
    return await operator_sign_in.load_operator_visit(context_of(one), text)


async def person_of(one: Keyed, person_id: UUID) -> Any:
    pool = context_of(one).pool
    if isinstance(one.staff, Staff):
        return await people.read(pool, one.staff.shop.merchant_id, person_id)
    return await operators.read(pool, person_id)


async def reset(one: Keyed, person_id: UUID) -> None:
    if isinstance(one.staff, Staff):
        await reset_factor(context_of(one), one.staff.shop.merchant_id, OPERATOR, person_id, "lost phone")
    else:
        await reset_operator_factor(context_of(one), OperatorActor(None), person_id, "lost phone")


async def opened(one: Keyed, person_id: UUID) -> int:
    """Return how many sessions a person has."""
    sql = f"SELECT count(*) AS sessions FROM {one.tables}_sessions WHERE person_id = $1"
    (row,) = await context_of(one).pool.fetch(sql, person_id)
    return int(row["sessions"])


async def test_a_passkey_that_is_removed_while_it_signs_in_opens_no_session(keyed: Browsers) -> None:
    one = await with_passkey(keyed)
    context, secret, desk = context_of(one), secrets.token_urlsafe(32), isinstance(one.staff, Staff)
    store: Any = (
        keep_passkeys.passkeys_of_browser(context, secret, "")
        if desk
        else keep_operator_passkeys.operator_passkeys_of_browser(context, secret, "")
    )
    answer = one.device.get(json.loads(await begin_using(context, store, PasskeyPurpose.SIGN_IN)))
    passkey = await check_passkey(context, store, PasskeyPurpose.SIGN_IN, answer)
    await reset(one, passkey.person_id)
    enter: Any = keep_passkeys.enter_by_passkey if desk else keep_operator_passkeys.enter_operator_by_passkey
    with pytest.raises(PasskeyRefused):
        await enter(context, store, passkey, None, HERE)
    assert await opened(one, passkey.person_id) == 0


async def test_a_passkey_is_not_added_after_the_reset_that_ended_its_session(keyed: Browsers) -> None:
    one = await entered(keyed)
    context, visit = context_of(one), await visit_of(one)
    store: Any = (
        keep_passkeys.passkeys_of_visit(context, visit, "")
        if isinstance(one.staff, Staff)
        else keep_operator_passkeys.operator_passkeys_of_visit(context, visit, "")
    )
    made = one.device.create(json.loads(await begin_adding(context, store)))
    await reset(one, visit.person.person_id)
    with pytest.raises(PasskeyRefused):
        await finish_adding(context, store, made, "laptop")
    assert await store.mine() == []


async def test_a_code_does_not_finish_a_sign_in_whose_session_has_ended(keyed: Browsers) -> None:
    one = await entered(keyed)
    staff: Any = one.staff
    context, person_id = context_of(one), (await visit_of(one)).person.person_id
    await one.leave()
    await staff.open_link(await person_of(one, person_id))
    visit = await visit_of(one)
    await context.pool.fetch(f"DELETE FROM {one.tables}_sessions WHERE person_id = $1 RETURNING 1", person_id)
    # The code of the sign-in before was used, so this one is of the next time step.
    code = pyotp.TOTP(staff.key).at(utc_now() + timedelta(seconds=30))
    finish: Any = sign_in.finish if isinstance(staff, Staff) else operator_sign_in.finish_sign_in
    assert await finish(context, visit, code, HERE) is None
    assert await opened(one, person_id) == 0
