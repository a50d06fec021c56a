"""A worker without a bank rail says so in one line of its log when it starts."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from cuota.flows.payout.send_payouts import NO_BANK_RAIL
from cuota.work.loop import Signals, work
from support.own_service import Own


@pytest.mark.parametrize("configured", [True, False])
async def test_the_log_says_that_payouts_wait_once_and_only_without_a_bank_rail(
    own: Own, caplog: pytest.LogCaptureFixture, *, configured: bool
) -> None:
    rails = own.context.rails if configured else replace(own.context.rails, bank=None)
    signals = Signals(asyncio.Event(), asyncio.Event())
    signals.stop.set()
    await work(replace(own.context, rails=rails), signals)
    said = [record for record in caplog.records if record.getMessage() == NO_BANK_RAIL]
    assert len(said) == (0 if configured else 1)
