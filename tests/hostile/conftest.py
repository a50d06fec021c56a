"""The services that get hostile requests: the shared one, and one of another environment."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from cuota import config
from cuota.run import runtime
from cuota.web.app import make_app
from support.db.template import Template
from support.hostile.world import World
from support.makers import Clock, Merchant, Running, make_merchant
from support.own_service import InProcess


@pytest.fixture(scope="session")
async def elsewhere(template: Template, settings: config.Settings) -> AsyncIterator[tuple[Running, Merchant]]:
    """A production service beside the sandbox. The two share no database, secret key, signing key, issuer or
    audience."""
    theirs = replace(settings, secret_key=secrets.token_bytes(32))
    async with template.copied() as where, runtime.opened(theirs, where, pool_size=4) as opened:
        url = "https://pay.example"
        # Its rails are simulated, because the tests have no real ones. A real production service would not start with
        # them.
        live = replace(theirs, environment="production", public_url=url, auth_url=url, audience=url)
        clock = Clock()
        context = replace(opened, settings=live, now=clock.now)
        running = InProcess(live, context, clock, make_app(context))
        async with make_merchant(running) as merchant:
            yield running, merchant


@pytest.fixture
def world(
    service: Running, merchant: Merchant, auto_merchant: Merchant, elsewhere: tuple[Running, Merchant]
) -> World:
    """The services and merchants on which a row is tried."""
    return World(service, merchant, auto_merchant, *elsewhere)
