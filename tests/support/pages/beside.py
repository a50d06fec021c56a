"""A second service beside the shared one, with other rails, settings or another database."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import httpx

from cuota.flows.context import Context
from cuota.rails.card.rails import CardRails
from cuota.rails.card.sandbox import SandboxCardRail
from cuota.web.app import make_app
from support.makers import Clock, Running


class Beside(Running):
    """The real application, called without a socket by httpx's ASGI transport."""

    def client(self, **more: Any) -> httpx.AsyncClient:
        return super().client(transport=httpx.ASGITransport(app=self.app), **more)


def beside(context: Context, clock: Clock, **changes: Any) -> Beside:
    """Start the service. `changes` are fields of Context, or `card`/`message` for one of its rails."""
    rails = {name: changes.pop(name) for name in ("card", "message") if name in changes}
    if isinstance(rails.get("card"), SandboxCardRail):
        rails["card"] = CardRails(rails["card"])
    changed = replace(context, rails=replace(context.rails, **rails), **changes)
    return Beside(changed.settings, changed, clock, make_app(changed))
