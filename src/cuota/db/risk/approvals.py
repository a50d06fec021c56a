"""Advanced Approvals of a merchant: its mode, and the models that were fitted for it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.core.risk.model import Model
from cuota.db.session import Session

_READ = "SELECT approvals, approvals_model FROM merchants WHERE merchant_id = $1"
_MOVE = """UPDATE merchants SET approvals = $2, approvals_model = coalesce($3, approvals_model) WHERE merchant_id = $1
    AND ($4::text IS NULL OR approvals = $4) RETURNING 1"""
# Where it is on, another model decides only once an operator has said so again.
_SHADOW = "UPDATE merchants SET approvals_model = $2 WHERE merchant_id = $1 AND approvals = 'trial'"
_KEEP = """INSERT INTO models (merchant_id, version, document, report, fitted_at) VALUES ($1, $2, $3::json, $4::json, $5)
    ON CONFLICT (merchant_id, version) DO NOTHING"""


@dataclass(frozen=True, slots=True)
class ApprovalsState:
    """off, trial or on; and the version of the model that it goes by, if there is one."""

    mode: str
    model: str | None


async def read(session: Session, merchant_id: UUID) -> ApprovalsState:
    """How it stands."""
    row = await session.fetchrow(_READ, merchant_id)
    assert row is not None
    return ApprovalsState(row["approvals"], row["approvals_model"])


async def read_modes(session: Session) -> dict[UUID, str]:
    """Of all merchants: off, trial or on."""
    rows = await session.fetch("SELECT merchant_id, approvals FROM merchants")
    return {row["merchant_id"]: row["approvals"] for row in rows}


async def move(
    session: Session, merchant_id: UUID, mode: str, model: str | None = None, *, was: str | None = None
) -> bool:
    """Another mode; with another model, where one is named. False: it no longer is what it `was`."""
    return await session.fetchrow(_MOVE, merchant_id, mode, model, was) is not None


async def shadow(session: Session, merchant_id: UUID, model: str) -> None:
    """In a trial: from now on it is recorded what this model says."""
    await session.fetchrow(_SHADOW, merchant_id, model)


async def keep(
    session: Session, merchant_id: UUID, model: Model, report: dict[str, object], now: datetime
) -> None:
    """Store a fitted model with what its trial said; the same numbers are one model."""
    document = json.dumps(model.as_document())
    await session.fetchrow(_KEEP, merchant_id, model.version, document, json.dumps(report), now)
