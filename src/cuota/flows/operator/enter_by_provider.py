"""Finds the person of the team who signs in at the provider. Nobody else can sign in.

At the first sign-in, the verified e-mail address identifies the person. After that, only the account (issuer and subject)
identifies the person. A sign-in never adds a person to the team, and never makes a person an owner.
"""

from __future__ import annotations

import hmac
import logging
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from cuota.core.operator.person import Operator
from cuota.core.operator.provider import ProviderRules, in_domain, proves_two_factors, role_of, verified_email
from cuota.core.operator.role import OPERATOR_WORDS, OperatorRole
from cuota.db.operator import identities, operator_sessions, operators
from cuota.flows.context import Context, utc_now
from cuota.flows.desk.sign_in import FRESH, Place
from cuota.flows.operator.log_action import OperatorActor, OperatorNote, log_action
from cuota.flows.operator.operator_sign_in import OperatorVisit, open_operator
from cuota.flows.operator.visit_provider import STALE, ProviderRefused, Returned, rules_of

log = logging.getLogger("cuota.identity")


async def enter_by_provider(
    context: Context, returned: Returned, before: OperatorVisit | None, place: Place
) -> str:
    """Open a session for the person, and end the browser's earlier session. Return the secret. Raises ProviderRefused.

    If the provider proves no second factor, the session still needs Cuota's second factor.
    """
    claims, rules, now = returned.claims, rules_of(context), utc_now()
    person, known = await _person(context, claims)
    actor = OperatorActor(person, place.address)
    role = role_of(rules, claims)
    try:
        _check(rules, person, claims, role)
        person = await _settle(context, actor, person, claims, None if known else now, role)
    except ProviderRefused as refused:
        await log_action(context, actor, OperatorNote("sign-in.refused", rules.name, str(refused)))
        raise
    two_factors = proves_two_factors(rules, claims)
    note = OperatorNote("sign-in.provider", rules.name, "", after={"secondFactor": two_factors})
    await log_action(context, OperatorActor(person, place.address), note)
    proved_at = _proved_at(claims, now) if two_factors else None
    async with context.pool.session() as session, session.transaction():
        alive = await identities.lock_person(session, person.person_id)
        linked = await identities.person_of(session, claims["iss"], claims["sub"])
        if not alive or linked is None or linked.person_id != person.person_id:
            raise ProviderRefused(STALE)
        if before is not None:
            await operator_sessions.end(session, before.session.session_hash)
        return await open_operator(context, session, person, place, proved_at)


def _check(rules: ProviderRules, person: Operator, claims: dict[str, Any], role: OperatorRole | None) -> None:
    """Check the requirements of the settings for a person of the team. Raises ProviderRefused."""
    if not in_domain(rules, verified_email(rules, claims)):
        raise ProviderRefused(
            f"Your e-mail address at {rules.name} is not verified, or is in a domain that may not sign in here."
        )
    if rules.role_claim and role is None and person.role is not OperatorRole.OWNER:
        raise ProviderRefused(
            f"{rules.name} gives you no role here. Ask the people who manage your account there."
        )


async def confirm_by_provider(
    context: Context, returned: Returned, visit: OperatorVisit | None, place: Place
) -> None:
    """Record a fresh second factor in the session that asked for it. Raises ProviderRefused.

    The provider must prove a second factor, and that the person gave it within the last five minutes.
    """
    claims, rules, now = returned.claims, rules_of(context), utc_now()
    asked_by = returned.session_hash
    if visit is None or asked_by is None or not hmac.compare_digest(visit.session.session_hash, asked_by):
        raise ProviderRefused(STALE)
    person = await identities.person_of(context.pool, claims["iss"], claims["sub"])
    if person is None or person.person_id != visit.person.person_id:
        raise ProviderRefused(
            f"This account at {rules.name} is not yours here. Use the account with which you sign in."
        )
    at = _proved_at(claims, now)
    if not proves_two_factors(rules, claims) or now - at > FRESH:
        raise ProviderRefused(
            f"{rules.name} did not ask you for a second factor again. Enter a code of your app instead."
        )
    await operator_sessions.proved(context.pool, visit.session.session_hash, at)
    await log_action(
        context, OperatorActor(visit.person, place.address), OperatorNote("sign-in.confirmed", rules.name, "")
    )


async def _person(context: Context, claims: dict[str, Any]) -> tuple[Operator, bool]:
    """Return the person, and whether the account is already linked. Raises ProviderRefused."""
    rules = rules_of(context)
    person = await identities.person_of(context.pool, claims["iss"], claims["sub"])
    if person is not None:
        return person, True
    email = verified_email(rules, claims)
    if email is None:
        # A failed sign-in of a person outside the team is not written into the audit log, because anybody could fill the log.
        log.warning(
            "a sign-in at the provider is refused", extra={"facts": {"problem": "no verified e-mail address"}}
        )
        raise ProviderRefused(
            f"{rules.name} did not say that your e-mail address is verified, so we cannot tell who you are. Verify the address there,"
            " and then sign in again."
        )
    person = await operators.by_email(context.pool, email)
    if person is None:
        log.warning("a sign-in at the provider is refused", extra={"facts": {"problem": "not in the team"}})
        raise ProviderRefused(
            f"Nobody of this team has the e-mail address of your account at {rules.name}. Ask an owner to invite you with that address."
        )
    return person, False


async def _settle(
    context: Context,
    actor: OperatorActor,
    person: Operator,
    claims: dict[str, Any],
    link_at: datetime | None,
    role: OperatorRole | None,
) -> Operator:
    """Link the account with the person, and give the person the role that the provider names. Raises ProviderRefused."""
    rules = rules_of(context)
    async with context.pool.session() as session, session.transaction():
        if not await identities.lock_person(session, person.person_id):
            raise ProviderRefused("You are not in this team any more.")
        if link_at is not None:
            if not await identities.link(session, claims["iss"], claims["sub"], person.person_id, link_at):
                raise ProviderRefused(
                    f"You sign in with another account at {rules.name}. If that is an account you no longer have, ask an owner to"
                    " forget it on your page under Team."
                )
            await log_action(
                context, actor, OperatorNote("sign-in.linked", rules.name, "first sign-in"), session
            )
        if role is None or not await identities.give_role(session, person.person_id, role):
            return person
        reason = f"{rules.name} names the role {OPERATOR_WORDS[role][0].lower()}"
        note = OperatorNote(
            "team.role", f"{person.name} <{person.email}>", reason, before={"role": person.role}, after={"role": role}
        )  # fmt: skip
        await log_action(context, actor, note, session)
        return replace(person, role=role)


def _proved_at(claims: dict[str, Any], now: datetime) -> datetime:
    """Return when the person signed in at the provider.

    If the provider does not report the time, the sign-in does not count as fresh.
    """
    at = claims.get("auth_time")
    return now - 2 * FRESH if at is None else min(now, datetime.fromtimestamp(at, UTC))
