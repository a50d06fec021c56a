"""Stores a merchant's mode of Advanced Approvals, and the models that were fitted for the merchant."""

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
# If the mode is `on`, a new model is used only after an operator has turned the mode on again.
_SHADOW = "UPDATE merchants SET approvals_model = $2 WHERE merchant_id = $1 AND approvals = 'trial'"
_KEEP = """INSERT INTO models (merchant_id, version, document, report, fitted_at) VALUES ($1, $2, $3::json, $4::json, $5)
    ON CONFLICT (merchant_id, version) DO NOTHING"""


@dataclass(frozen=True, slots=True)
class ApprovalsState:
    """The mode (off, trial or on), and the version of the model in use, if there is one."""

    mode: str
    model: str | None


async def read(session: Session, merchant_id: UUID) -> ApprovalsState:
    """Return the merchant's mode and model."""
    row = await session.fetchrow(_READ, merchant_id)
    assert row is not None
    return ApprovalsState(row["approvals"], row["approvals_model"])


async def read_modes(session: Session) -> dict[UUID, str]:
    """Return the modes of all merchants (off, trial or on)."""
    rows = await session.fetch("SELECT merchant_id, approvals FROM merchants")
    return {row["merchant_id"]: row["approvals"] for row in rows}


async def move(
    session: Session, merchant_id: UUID, mode: str, model: str | None = None, *, was: str | None = None
) -> bool:
    """Change the mode and, if given, the model. Returns False if the mode is no longer `was`."""
    return await session.fetchrow(_MOVE, merchant_id, mode, model, was) is not None


async def shadow(session: Session, merchant_id: UUID, model: str) -> None:
    """From now on, record this model's points with each decision of the trial."""
    await session.fetchrow(_SHADOW, merchant_id, model)


async def keep(
    session: Session, merchant_id: UUID, model: Model, report: dict[str, object], now: datetime
) -> None:
    """Store a fitted model with its trial's report. A model with the same numbers is stored once."""
    document = json.dumps(model.as_document())
    await session.fetchrow(_KEEP, merchant_id, model.version, document, json.dumps(report), now)
