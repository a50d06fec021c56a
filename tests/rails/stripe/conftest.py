"""The rail to Stripe, connected to the stand-in."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from support.makers import Running
from support.stripe.processor import StripeProcessor
from support.stripe.stand_in import StandIn


@pytest.fixture
async def processor(service: Running, stand_in: StandIn) -> AsyncIterator[StripeProcessor]:
    opened = StripeProcessor(service.context.pool, stand_in)
    yield opened
    await opened.close()
