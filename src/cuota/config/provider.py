"""The settings of the OpenID Connect provider at which the operator's people sign in: the readers, and the checks across settings."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from cuota.config.derived import Given
from cuota.config.reading import is_loopback
from cuota.core.operator.provider import ProviderRules
from cuota.core.operator.role import OperatorRole
from cuota.rails.settings import ProviderSettings

_PREFIX = "CUOTA_OPERATOR_OIDC_"
_NEEDED = {
    "ISSUER": "it names the provider",
    "CLIENT_ID": "Cuota identifies itself to the provider with it",
    "CLIENT_SECRET": "Cuota authenticates to the provider with it",
}
_CLAIM = re.compile(r"[!-~]{1,200}", re.ASCII)


def issuer(text: str) -> str:
    """Read the issuer: an address that is compared exactly, so a slash at its end counts."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
    plain = re.fullmatch(r"[!-~]+", text, re.ASCII) and "\\" not in text and "@" not in parts.netloc
    if (
        parts.scheme not in {"http", "https"}
        or not parts.hostname
        or parts.query
        or parts.fragment
        or not plain
    ):
        raise ValueError(
            "must be the issuer exactly as the provider writes it, such as https://login.example.com"
        )
    return text


def plain(text: str) -> str:
    """Read a client id or a client secret."""
    if not re.fullmatch(r"[ -~]{1,500}", text, re.ASCII):
        raise ValueError("must be 1 to 500 printable ASCII characters")
    return text


def claim(text: str) -> str:
    """Read the name of a claim."""
    if not _CLAIM.fullmatch(text) or "," in text:
        raise ValueError("must be the name of a claim, such as groups")
    return text


def domains(text: str) -> frozenset[str]:
    """Read domains of e-mail addresses, separated by commas."""
    found = frozenset(each.strip().lower() for each in text.split(","))
    if not all(re.fullmatch(r"[a-z0-9](?:[a-z0-9-]*\.)+[a-z0-9-]+", each, re.ASCII) for each in found):
        raise ValueError(
            "must be domains of e-mail addresses, separated by commas, such as example.com,example.org"
        )
    return found


def two_factors(text: str) -> frozenset[str]:
    """Read values of the claims amr and acr, separated by commas."""
    found = frozenset(each.strip() for each in text.split(","))
    if not all(re.fullmatch(r"(amr|acr)=[!-~]+", each, re.ASCII) for each in found):
        raise ValueError(
            "must be values of the claims amr and acr, separated by commas, such as amr=mfa,acr=phr"
        )
    return found


def roles(text: str) -> tuple[tuple[str, OperatorRole], ...]:
    """Read which value of the claim gives which role. Nobody becomes an owner in this way."""
    found = []
    for each in text.split(","):
        value, equals, name = (part.strip() for part in each.rpartition("="))
        known = name in {role.value for role in OperatorRole if role is not OperatorRole.OWNER}
        if not value or not equals or not known:
            raise ValueError(
                "must be values and roles, such as cuota-finance=finance,cuota-help=support; the roles are support, risk, finance"
                " and read-only, because owners are made by owners only"
            )
        found.append((value, OperatorRole(name)))
    return tuple(found)


def provider(
    given: Given, problems: list[str], *, loopback: bool
) -> tuple[ProviderSettings | None, ProviderRules | None]:
    """Return the provider and the rules of its sign-ins, or (None, None) if no setting names a provider.

    Adds a sentence for each missing or contradictory setting to `problems`. `loopback`: this sandbox may call its own machine.
    """
    mine = {name.removeprefix(_PREFIX): value for name, value in given.items() if name.startswith(_PREFIX)}
    if not mine:
        return None, None
    found = [
        f"{_PREFIX}{name}: must be set if the operator's people sign in at a provider, because {why}."
        for name, why in _NEEDED.items()
        if name not in mine
    ]
    address = urlsplit(str(mine.get("ISSUER", "https://")))
    production = given.get("CUOTA_ENVIRONMENT") == "production"
    if address.scheme != "https" and (production or not is_loopback(address.hostname or "")):
        found.append(
            f"{_PREFIX}ISSUER: must be an https address. Only a sandbox may use http, for a provider on the same machine."
        )
    if ("ROLE_CLAIM" in mine) is not ("ROLES" in mine):
        found.append(f"{_PREFIX}ROLES: set both {_PREFIX}ROLE_CLAIM and {_PREFIX}ROLES, or neither.")
    problems += found
    if found:
        return None, None
    private = mine.get("NETWORK") == "private"
    verified, role_claim = str(mine.get("VERIFIED_CLAIM", "email_verified")), str(mine.get("ROLE_CLAIM", ""))
    return (
        ProviderSettings(
            str(mine["ISSUER"]), str(mine["CLIENT_ID"]), str(mine["CLIENT_SECRET"]),
            ("email", verified, *([role_claim] if role_claim else ())), loopback or private, private,
        ),
        ProviderRules(
            str(mine.get("NAME", address.hostname)), mine.get("MODE") == "only",
            mine.get("ALLOWED_DOMAINS", frozenset()),  # type: ignore[arg-type] # as `domains` read it
            mine.get("SECOND_FACTOR", frozenset()),  # type: ignore[arg-type]
            verified, role_claim, mine.get("ROLES", ()),  # type: ignore[arg-type]
        ),
    )  # fmt: skip
