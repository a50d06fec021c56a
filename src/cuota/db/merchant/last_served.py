"""Stores settings of the service that ran last, so that commands use the same settings and not those of their shell."""

from __future__ import annotations

from dataclasses import dataclass

from cuota.db.session import Session

_READ = "SELECT audience, policy_version, creditor, agency, brand_name, loopback_webhooks, onboarding FROM last_served"
_SERVED = """INSERT INTO last_served (audience, policy_version, creditor, agency, brand_name, loopback_webhooks, onboarding)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (single) DO UPDATE SET audience = excluded.audience, policy_version = excluded.policy_version,
    creditor = excluded.creditor, agency = excluded.agency, brand_name = excluded.brand_name,
    loopback_webhooks = excluded.loopback_webhooks, onboarding = excluded.onboarding"""
_WORKED = """INSERT INTO last_served (audience, creditor, agency, brand_name) VALUES ($1, $2, $3, $4)
    ON CONFLICT (single) DO UPDATE SET creditor = excluded.creditor, agency = excluded.agency,
    brand_name = excluded.brand_name"""


@dataclass(frozen=True, slots=True)
class LastServed:
    """The stored settings. Except for the audience, each is None if `cuota work` or an earlier release stored the row without it."""

    audience: str
    policy_version: str | None
    creditor: str | None
    agency: str | None
    brand_name: str | None
    loopback_webhooks: bool | None
    onboarding: str | None


async def note(session: Session, served: LastServed) -> None:
    """Store the settings. A process without a policy neither decides nor serves, so it stores only the texts for letters."""
    said = served.creditor, served.agency, served.brand_name
    if served.policy_version is None:
        await session.fetchrow(_WORKED, served.audience, *said)
    else:
        await session.fetchrow(
            _SERVED,
            served.audience,
            served.policy_version,
            *said,
            served.loopback_webhooks,
            served.onboarding,
        )


async def read(session: Session) -> LastServed | None:
    """Return the stored settings, or None if no service has run."""
    row = await session.fetchrow(_READ)
    return None if row is None else LastServed(**row)
