"""What every rail is created with: (settings, books, vault, now)."""

from __future__ import annotations

import secrets
from typing import Any

from cuota.db.pool import Pool
from cuota.db.vault import Vault
from cuota.flows.context import utc_now
from cuota.rails.settings import RailSettings
from cuota.rails.stores import Clock, RailVault


def rail_parts(
    pool: Pool, vault: RailVault | None = None, now: Clock = utc_now, **settings: Any
) -> tuple[RailSettings, Pool, RailVault, Clock]:
    """The four arguments of a rail in the sandbox. Without a vault, the rail gets one with a key of its own."""
    return RailSettings(**{"sandbox": True, **settings}), pool, vault or Vault(secrets.token_bytes(32)), now
