"""The rails that must keep the promises of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from cuota.rails.card.rails import CardRails
from support.makers import Running
from support.rails.processor import Processor
from support.rails.sandbox_processor import SandboxProcessor


@pytest.fixture(params=["sandbox"])
async def processor(request: pytest.FixtureRequest, service: Running) -> AsyncIterator[Processor]:
    """A card processor, and the rail to it."""
    yield SandboxProcessor(service.context.pool)


@pytest.fixture
def rails(processor: Processor) -> CardRails:
    """The rail as the service calls it: with timeouts, and with its name in each token."""
    return CardRails(processor.rail)


@pytest.fixture(autouse=True)
def expected_log(caplog: pytest.LogCaptureFixture) -> None:
    """Lost answers are logged, but nobody needs to read them here."""
    caplog.set_level("CRITICAL", "cuota.rails")
