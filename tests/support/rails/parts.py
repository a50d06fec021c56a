"""The arguments with which every rail is created: (settings, books, vault, now)."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

from cuota.db.pool import Pool
from cuota.db.vault import Vault
from cuota.flows.context import utc_now
from cuota.rails.card.protocol import ChargeRequest, RefundRequest
from cuota.rails.settings import RailSettings
from cuota.rails.stores import Clock, RailVault


def rail_parts(
    pool: Pool, vault: RailVault | None = None, now: Clock = utc_now, **settings: Any
) -> tuple[RailSettings, Pool, RailVault, Clock]:
    """Return the four arguments of a rail in the sandbox. Without `vault`, the rail gets a vault with a new key."""
    return RailSettings(**{"sandbox": True, **settings}), pool, vault or Vault(secrets.token_bytes(32)), now


class RealCardRail:
    """Stands for a real card rail: it is created, but never called."""

    name = "real"

    def __init__(self, *given: object) -> None:
        pass

    async def _never(self, *_: object) -> None:
        raise AssertionError

    fields = keep = charge = find_charge = give_up = refund = answer_chargeback = read_event = (
        events_since
    ) = forget = _never


class RealMessageRail:
    """Stands for a real message rail: it is created, but never called."""

    shown_code = None

    def __init__(self, *given: object) -> None:
        pass

    async def _never(self, *_: object) -> None:
        raise AssertionError

    new_code = send_code = send = _never


def a_charge(token: str = "a_card", amount: int = 100, **more: Any) -> ChargeRequest:
    """Return a request for a charge with new ids. `more` replaces fields."""
    return replace(ChargeRequest(uuid4(), token, amount, "USD", uuid4(), uuid4()), **more)


def a_refund(
    charge: UUID | None = None, token: str = "a_card", amount: int = 100, **more: Any
) -> RefundRequest:
    """Return a request for a refund with new ids. `more` replaces fields."""
    return replace(RefundRequest(uuid4(), charge or uuid4(), token, amount, uuid4(), uuid4()), **more)
