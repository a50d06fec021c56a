"""The settings of the operator's OpenID Connect provider: what is missing or contradicts itself stops the start with a sentence."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from cuota import config
from cuota.core.operator.provider import ProviderRules, proves_two_factors, role_of, verified_email
from cuota.core.operator.role import OperatorRole
from cuota.rails.settings import ProviderSettings
from support.production import PRODUCTION

PREFIX = "CUOTA_OPERATOR_OIDC_"
GIVEN = {
    "CUOTA_OPERATOR_OIDC_ISSUER": "https://login.example.com/acme/",
    "CUOTA_OPERATOR_OIDC_CLIENT_ID": "cuota",
    "CUOTA_OPERATOR_OIDC_CLIENT_SECRET": "canary0secret",
}


def read(tmp_path: Path, listen: str = "http://127.0.0.1:8000", **given: str) -> config.Settings:
    key = base64.b64encode(bytes(range(32))).decode()
    return config.load({"CUOTA_DATA_DIR": str(tmp_path), "CUOTA_SECRET_KEY": key, **given}, listen=listen)


def refused(tmp_path: Path, **given: str) -> str:
    """Return the sentences with which the settings are refused. They never repeat the secret."""
    with pytest.raises(config.BadSettings) as problem:
        read(tmp_path, **given)
    assert "canary0" not in str(problem.value)
    return str(problem.value)


def test_without_these_settings_there_is_no_provider(tmp_path: Path) -> None:
    settings = read(tmp_path)
    assert (settings.provider, settings.provider_rules, settings.rails.provider) == (None, None, None)


def test_the_settings_reach_the_provider_with_safe_defaults_and_the_secret_is_shown_nowhere(
    tmp_path: Path,
) -> None:
    settings = read(tmp_path, "http://0.0.0.0:8000", **GIVEN)
    expected = ProviderSettings(
        "https://login.example.com/acme/", "cuota", "canary0secret", ("email", "email_verified")
    )
    assert settings.provider == settings.rails.provider == expected
    assert settings.provider_rules == ProviderRules("login.example.com")
    assert "canary0" not in repr(settings)


def test_every_setting_is_read(tmp_path: Path) -> None:
    more = {
        "NAME": "Acme Login", "MODE": "only", "ALLOWED_DOMAINS": "Acme.example, acme.example.org", "VERIFIED_CLAIM": "xms_edov",
        "SECOND_FACTOR": "amr=mfa,acr=urn:example:gold", "ROLE_CLAIM": "groups", "ROLES": "a=b=finance, help=support",
        "NETWORK": "private",
    }  # fmt: skip
    settings = read(tmp_path, **GIVEN, **{PREFIX + name: text for name, text in more.items()})
    assert settings.provider_rules == ProviderRules(
        "Acme Login", only=True, domains=frozenset({"acme.example", "acme.example.org"}), verified_claim="xms_edov",
        two_factors=frozenset({"amr=mfa", "acr=urn:example:gold"}), role_claim="groups",
        roles=(("a=b", OperatorRole.FINANCE), ("help", OperatorRole.SUPPORT)),
    )  # fmt: skip
    assert settings.provider is not None
    assert settings.provider.claims == ("email", "xms_edov", "groups")
    assert (settings.provider.loopback, settings.provider.private) == (True, True)


@pytest.mark.parametrize("missing", GIVEN)
def test_a_missing_setting_stops_the_start(tmp_path: Path, missing: str) -> None:
    given = {name: text for name, text in GIVEN.items() if name != missing}
    assert f"{missing}: must be set if the operator's people sign in at a provider" in refused(
        tmp_path, **given
    )


@pytest.mark.parametrize(
    "issuer", ["http://login.example.com", "http://10.0.0.7", "login.example.com", "https://a@login.example.com", "https://login.example.com/?a=b", "https://login.example.com\\@evil.example", "ftp://login.example.com"],
)  # fmt: skip
def test_an_issuer_without_https_or_of_another_form_stops_the_start(tmp_path: Path, issuer: str) -> None:
    assert f"{PREFIX}ISSUER: must be" in refused(tmp_path, **{**GIVEN, f"{PREFIX}ISSUER": issuer})


def test_a_sandbox_uses_a_provider_on_its_own_machine_and_production_does_not(tmp_path: Path) -> None:
    here = {**GIVEN, f"{PREFIX}ISSUER": "http://127.0.0.1:9400"}
    settings = read(tmp_path, **here)
    assert settings.provider is not None
    assert settings.provider.loopback
    given = {**PRODUCTION, **here}
    with pytest.raises(config.BadSettings, match="must be an https address"):
        config.load({"CUOTA_DATA_DIR": str(tmp_path), **given})


def test_production_calls_its_own_machine_and_network_only_if_a_setting_says_so(tmp_path: Path) -> None:
    for network, allowed in (("public", False), ("private", True)):
        given = {**PRODUCTION, **GIVEN, f"{PREFIX}NETWORK": network}
        provider = config.load({"CUOTA_DATA_DIR": str(tmp_path), **given}).provider
        assert provider is not None
        assert (provider.loopback, provider.private) == (allowed, allowed)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("MODE", "never", "must be also or only"),
        ("ALLOWED_DOMAINS", "@acme.example", "must be domains"),
        ("ALLOWED_DOMAINS", "acme.example,", "must be domains"),
        ("SECOND_FACTOR", "mfa", "must be values of the claims amr and acr"),
        ("ROLES", "admins=owner", "owners are made by owners only"),
        ("ROLES", "finance", "must be values and roles"),
        ("ROLES", "a=finance,=support", "must be values and roles"),
        ("ROLE_CLAIM", "groups", f"set both {PREFIX}ROLE_CLAIM and {PREFIX}ROLES"),
        ("ROLES", "a=finance", f"set both {PREFIX}ROLE_CLAIM and {PREFIX}ROLES"),
        ("NETWORK", "open", "must be public or private"),
        ("CLIENT_SECRET", "canary0 \u00e9", "printable ASCII"),
    ],
)
def test_a_wrong_setting_stops_the_start(tmp_path: Path, name: str, text: str, said: str) -> None:
    assert said in refused(tmp_path, **{**GIVEN, PREFIX + name: text})


@pytest.mark.parametrize(
    ("claims", "email"),
    [
        ({"email": "Ana@Acme.example", "email_verified": True}, "ana@acme.example"),
        ({"email": "ana@acme.example", "email_verified": "true"}, "ana@acme.example"),
        ({"email": "ana@acme.example", "email_verified": False}, None),
        ({"email": "ana@acme.example", "email_verified": "false"}, None),
        ({"email": "ana@acme.example", "email_verified": ["true"]}, None),
        ({"email": "ana@acme.example"}, None),
        ({"email": ["ana@acme.example"], "email_verified": True}, None),
        ({"email": "ana", "email_verified": True}, None),
        ({"email_verified": True}, None),
    ],
)
def test_only_a_verified_address_counts(claims: dict[str, object], email: str | None) -> None:
    assert verified_email(ProviderRules("Acme"), claims) == email


def test_a_second_factor_is_proved_by_the_values_in_the_settings_only() -> None:
    rules = ProviderRules("Acme", two_factors=frozenset({"amr=mfa", "acr=gold"}))
    for claims, proved in (
        ({"amr": ["pwd", "mfa"]}, True), ({"acr": "gold"}, True), ({"amr": ["gold"]}, False), ({"acr": "mfa"}, False),
        ({"amr": "mfa"}, True), ({"amr": [["mfa"]]}, False), ({}, False), ({"amr": None, "acr": 7}, False),
    ):  # fmt: skip
        assert proves_two_factors(rules, claims) is proved, claims
    assert not proves_two_factors(ProviderRules("Acme"), {"amr": ["mfa"]})


def test_the_first_role_of_the_settings_wins() -> None:
    rules = ProviderRules(
        "Acme", role_claim="groups", roles=(("a", OperatorRole.RISK), ("b", OperatorRole.SUPPORT))
    )
    assert role_of(rules, {"groups": ["b", "a"]}) is OperatorRole.RISK
    assert role_of(rules, {"groups": "b"}) is OperatorRole.SUPPORT
    assert role_of(rules, {"groups": ["A"], "roles": ["a"]}) is None
