"""The claims of a company's OpenID Connect provider about a person, and which of them Cuota accepts.

The claims come from an ID token whose signature and audience were checked (`rails/identity/`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cuota.core.desk.person import read_email
from cuota.core.operator.role import OperatorRole

# The values with which providers say that an e-mail address is verified. Some send a text, and Microsoft's `xms_edov` may be a
# number.
_TRUE = (True, "true", "1", 1)


@dataclass(frozen=True, slots=True)
class ProviderRules:
    """The settings for signing in at the provider.

    `name` is the provider's name on the pages. `only`: the provider is the only way to sign in. `domains` are the allowed
    domains of e-mail addresses; an empty list allows all. `two_factors` holds the values that prove a second factor, such as
    `amr=mfa`; an empty list means that the provider proves only one factor. `roles` maps values of the claim `role_claim` to
    roles, and the first match counts. Without `role_claim`, the provider gives no roles.
    """

    name: str
    only: bool = False
    domains: frozenset[str] = frozenset()
    two_factors: frozenset[str] = frozenset()
    verified_claim: str = "email_verified"
    role_claim: str = ""
    roles: tuple[tuple[str, OperatorRole], ...] = ()


def verified_email(rules: ProviderRules, claims: Mapping[str, Any]) -> str | None:
    """Return the e-mail address that the provider has verified, in lower case, or None if the provider has verified no address.

    Only ASCII is allowed: `lower` turns some other letters into ASCII letters, so another person's address could look like this
    one.
    """
    email, verified = claims.get("email"), claims.get(rules.verified_claim)
    if not isinstance(email, str) or not email.isascii():
        return None
    return read_email(email) if isinstance(verified, bool | str | int) and verified in _TRUE else None


def in_domain(rules: ProviderRules, email: str | None) -> bool:
    """Return whether the address is in an allowed domain. If no domain is set, every domain is allowed."""
    return not rules.domains or (email is not None and email.rpartition("@")[2] in rules.domains)


def proves_two_factors(rules: ProviderRules, claims: Mapping[str, Any]) -> bool:
    """Return whether the provider states, in a way that the settings accept, that it asked for a second factor."""
    said = {f"{name}={value}" for name in ("amr", "acr") for value in _texts(claims.get(name))}
    return bool(rules.two_factors & said)


def role_of(rules: ProviderRules, claims: Mapping[str, Any]) -> OperatorRole | None:
    """Return the role that the provider gives, or None if the provider gives none."""
    said = set(_texts(claims.get(rules.role_claim)))
    return next((role for value, role in rules.roles if value in said), None)


def _texts(claim: object) -> list[str]:
    """Return the texts of a claim. The claim is a text or a list of texts."""
    every = claim if isinstance(claim, list) else [claim]
    return [each for each in every if isinstance(each, str)]
