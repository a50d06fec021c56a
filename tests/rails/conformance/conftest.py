"""The rails that must keep the promises of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest

from cuota.rails.card.rails import CardRails
from support.makers import Running
from support.rails.processor import Processor
from support.rails.sandbox_processor import SandboxProcessor

if TYPE_CHECKING:
    from support.stripe.stand_in import StandIn


@pytest.fixture
def sandbox_processor(service: Running) -> Processor:
    """The sandbox's simulated processor."""
    return SandboxProcessor(service.context.pool)


@pytest.fixture
async def stripe_processor(service: Running, stand_in: StandIn) -> AsyncIterator[Processor]:
    """The stand-in for Stripe."""
    from support.stripe.processor import StripeProcessor

    opened = StripeProcessor(service.context.pool, stand_in)
    yield opened
    await opened.close()


@pytest.fixture(params=["sandbox", "stripe"])
def processor(request: pytest.FixtureRequest) -> Processor:
    """A card processor and the rail to it. Add each new rail here."""
    found: Processor = request.getfixturevalue(f"{request.param}_processor")
    return found


@pytest.fixture
def rails(processor: Processor) -> CardRails:
    """The rail as the service calls it, with timeouts and with the rail's name in each token."""
    return CardRails(processor.rail)


@pytest.fixture(autouse=True)
def expected_log(caplog: pytest.LogCaptureFixture) -> None:
    """Silence the log: answers are lost in these tests on purpose."""
    caplog.set_level("CRITICAL", "cuota.rails")
