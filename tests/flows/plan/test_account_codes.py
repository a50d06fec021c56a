"""A code that is refused because the browser has had its six codes counts toward no limit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cuota.core.checkout.texting import TextLimits
from cuota.flows.checkout.limit_texts import Browser
from cuota.flows.checkout.prove_number import CODES_A_SESSION
from cuota.flows.checkout.take_step import Problem
from cuota.flows.plan.enter_account import new_secret, open_account, send_account_code
from support.own_service import Own
from support.phones import phone_number


async def test_refused_codes_of_one_browser_do_not_use_up_the_codes_of_others(own: Own) -> None:
    limits = TextLimits(installation=CODES_A_SESSION + 2)
    context = replace(own.context, settings=replace(own.context.settings, text_limits=limits))
    secret, phone = new_secret(), phone_number()
    for sent in range(4 * CODES_A_SESSION):
        visit = await open_account(context, secret)
        if sent < CODES_A_SESSION:
            await send_account_code(context, visit, phone, Browser("198.51.100.1"))
        else:
            with pytest.raises(Problem):
                await send_account_code(context, visit, phone, Browser("198.51.100.1"))
    other = await open_account(context, new_secret())
    await send_account_code(context, other, phone_number(), Browser("203.0.113.9"))
