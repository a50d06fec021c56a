"""The redirect to the company's OpenID Connect provider and back, for a sign-in or for a fresh second factor.

A visit belongs to one browser (by a cookie with a secret), expires after ten minutes, and works once. The visit is used up
before any other check. So an attacker cannot finish a sign-in here with a stolen state or code, or with one that another
browser began.
"""

from __future__ import annotations

import base64
import logging
import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from cuota.core.operator.provider import ProviderRules
from cuota.db.operator import identities
from cuota.db.operator.identities import Limits, NewVisit
from cuota.flows.context import Context, utc_now
from cuota.flows.desk.sign_in import Place
from cuota.flows.operator.operator_sign_in import OperatorVisit
from cuota.rails.identity.request import ProofRefused, ProviderRequest
from cuota.rails.unavailable import RailUnavailable

VISIT_LIFE = timedelta(minutes=10)
# The limits within ten minutes: for one browser, and for one IP address, which a whole office may share.
MOST_OF_BROWSER = 20
MOST_OF_ADDRESS = 100
LONGEST_ANSWER = 4096
log = logging.getLogger("cuota.identity")


class ProviderRefused(Exception):
    """The provider's sign-in is refused. The text gives the reason, and says what to do."""


TOO_OFTEN = "Too many tries. Wait ten minutes, and then try again."
STALE = (
    "This sign-in was begun in another browser, was finished before, or took longer than ten minutes. Start again. Nothing was"
    " changed."
)


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """The parameters with which the provider sent the browser back. `issuer` is None if the answer does not name an issuer."""

    state: str
    code: str
    error: str
    issuer: str | None


@dataclass(frozen=True, slots=True)
class Returned:
    """A finished visit. `session_hash` is the hash of the session that asked for a fresh second factor, or None."""

    claims: dict[str, Any]
    session_hash: bytes | None


def rules_of(context: Context) -> ProviderRules:
    """Return the rules for signing in. Call this only if a provider is set."""
    rules = context.settings.provider_rules
    assert rules is not None, "the routes of a provider answer 404 where none is set"
    return rules


def redirect_uri(context: Context) -> str:
    """Return the only address to which the provider sends browsers back. The provider compares the address exactly."""
    return f"{context.settings.public_url.rstrip('/')}/operator/provider/return"


def _asked(context: Context, state: str) -> ProviderRequest:
    """Return the request to the provider.

    Nonce and verifier are keyed hashes of the state, so a person who sees the state knows neither.
    """
    nonce, verifier = (
        base64.urlsafe_b64encode(context.vault.hash(use, state)).rstrip(b"=").decode()
        for use in ("operator-provider-nonce", "operator-provider-verifier")
    )
    return ProviderRequest(state, nonce, verifier, redirect_uri(context))


def _state_hash(context: Context, state: str) -> bytes:
    return context.vault.hash("operator-provider-state", state)


def _browser_hash(context: Context, secret: str) -> bytes:
    return context.vault.hash("operator-provider-browser", secret)


async def begin_visit(
    context: Context, secret: str, place: Place, *, visit: OperatorVisit | None = None, again: bool = False
) -> str:
    """Return the provider's address to which the browser goes. `secret` is the secret of the browser's cookie.

    With `visit`, its session asks for a fresh second factor. `again`: the person must sign in at the provider even if
    already signed in there. Raises ProviderRefused, RailUnavailable.
    """
    provider, now = context.rails.identity, utc_now()
    assert provider is not None
    state = secrets.token_urlsafe(32)
    try:
        address = await provider.address(_asked(context, state), again=again or visit is not None)
    except RailUnavailable as problem:
        _warn(problem)
        raise
    new = NewVisit(
        _browser_hash(context, secret), _state_hash(context, state), provider.issuer,
        visit.session.session_hash if visit else None, place.address[:64], now + VISIT_LIFE,
    )  # fmt: skip
    limits = Limits(now - VISIT_LIFE, MOST_OF_BROWSER, MOST_OF_ADDRESS)
    if not await identities.begin(context.pool, new, now, limits):
        raise ProviderRefused(TOO_OFTEN)
    return address


async def finish_visit(context: Context, secret: str, answer: ProviderAnswer) -> Returned:
    """Use up the visit, and return the provider's claims about the person. Raises ProviderRefused, RailUnavailable."""
    provider, name = context.rails.identity, rules_of(context).name
    assert provider is not None
    taken = await identities.take(
        context.pool, _browser_hash(context, secret), _state_hash(context, answer.state), utc_now()
    )
    if taken is None or taken.issuer != provider.issuer:
        raise ProviderRefused(STALE)
    try:
        await provider.check_issuer(answer.issuer)
        if answer.error:
            raise ProviderRefused(_words(name, answer.error))
        claims = await provider.claims(_asked(context, answer.state), answer.code)
    except ProofRefused as refused:
        log.warning("the answer of the provider is not accepted", extra={"facts": {"problem": str(refused)}})
        raise ProviderRefused(
            f"The answer of {name} could not be accepted. Start again. If that does not help, tell the people who run this service:"
            " their log has the reason."
        ) from None
    except RailUnavailable as problem:
        _warn(problem)
        raise
    return Returned(claims, taken.session_hash)


def _warn(problem: RailUnavailable) -> None:
    log.warning("the provider does not answer", extra={"facts": {"problem": str(problem)}})


def _words(name: str, error: str) -> str:
    """Return the text about an error that the provider reports.

    The provider's own text is never shown, because anybody can write it.
    """
    if error in {"access_denied", "login_required", "interaction_required", "consent_required"}:
        return f"You were not signed in at {name}: the sign-in was canceled, or {name} does not let you use this dashboard."
    if error in {"temporarily_unavailable", "server_error"}:
        return f"{name} cannot answer right now. Try again in a moment."
    return f"{name} refused the sign-in. Tell the people who run this service: perhaps its settings there are wrong."
