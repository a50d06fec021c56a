"""The provider's documents are checked before use, cached for an hour, and read again with a rate limit."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from joserfc.jwk import RSAKey

from cuota.rails.identity import provider as providers
from cuota.rails.identity.fetch import JsonClient
from cuota.rails.identity.metadata import read_metadata
from cuota.rails.identity.provider import IdentityProvider
from cuota.rails.identity.request import ProofRefused
from cuota.rails.unavailable import RailUnavailable
from support.identity.forger import ASKED, Elapsed, Forger

DISCOVERY = "/.well-known/openid-configuration"
HTTPS = "https://login.example.com"
RIGHT = Forger(HTTPS, key=RSAKey.generate_key(2048)).metadata()
WRONG: dict[str, dict[str, Any]] = {
    "of another issuer": {"issuer": "https://login.evil.example"},
    "of an issuer that differs by a slash": {"issuer": f"{HTTPS}/"},
    "without an issuer": {"issuer": None},
    "a token endpoint without https": {"token_endpoint": "http://login.example.com/token"},
    "a token endpoint that is no address": {"token_endpoint": "/token"},
    "a token endpoint that is a list": {"token_endpoint": [f"{HTTPS}/token"]},
    "a token endpoint with a name and password": {
        "token_endpoint": "https://login.example.com@evil.example/"
    },
    "a token endpoint with a backslash": {"token_endpoint": "https://evil.example\\@login.example.com/"},
    "no token endpoint": {"token_endpoint": None},
    "no authorization endpoint": {"authorization_endpoint": None},
    "an authorization endpoint of a script": {"authorization_endpoint": "javascript:alert(1)"},
    "no keys": {"jwks_uri": None},
    "keys without https": {"jwks_uri": "http://login.example.com/keys"},
    "a userinfo endpoint without https": {"userinfo_endpoint": "http://login.example.com/me"},
    "no algorithm that is accepted": {"id_token_signing_alg_values_supported": ["none", "HS256"]},
    "algorithms that are no list": {"id_token_signing_alg_values_supported": "RS256"},
    "no PKCE with S256": {"code_challenge_methods_supported": ["plain"]},
    "PKCE as a number": {"code_challenge_methods_supported": 1},
    "PKCE as a text": {"code_challenge_methods_supported": "S256"},
    "only a signed assertion as the client's proof": {
        "token_endpoint_auth_methods_supported": ["private_key_jwt"]
    },
    "no subject types": {"subject_types_supported": None},
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_a_wrong_document_is_refused(change: dict[str, Any]) -> None:
    document = {name: value for name, value in {**RIGHT, **change}.items() if value is not None}
    with pytest.raises(RailUnavailable):
        read_metadata(document, HTTPS)


def test_a_document_whose_pkce_methods_are_null_is_used_like_one_without_them() -> None:
    assert read_metadata({**RIGHT, "code_challenge_methods_supported": None}, HTTPS)


def test_a_correct_document_is_used() -> None:
    found = read_metadata(RIGHT, HTTPS)
    assert (found.algorithms, found.auth_method, found.names_itself) == (
        ("RS256",),
        "client_secret_basic",
        False,
    )
    only_es256 = {**RIGHT, "id_token_signing_alg_values_supported": ["ES256"]}
    assert read_metadata(only_es256, HTTPS).algorithms == ("ES256",)


async def test_the_documents_are_read_once_an_hour(
    forger: Forger, provider: IdentityProvider, elapsed: Elapsed
) -> None:
    await asyncio.gather(*(provider.address(ASKED, again=False) for _ in range(20)))
    for _ in range(3):
        await provider.claims(ASKED, "the-code")
    assert (forger.asked[DISCOVERY], forger.asked["/keys"]) == (1, 1)
    elapsed.seconds += providers.LIFE_SECONDS + 1
    await provider.claims(ASKED, "the-code")
    assert (forger.asked[DISCOVERY], forger.asked["/keys"]) == (2, 2)


async def test_the_keys_are_read_again_for_unknown_keys_at_most_once_a_minute(
    forger: Forger, provider: IdentityProvider, elapsed: Elapsed
) -> None:
    await provider.claims(ASKED, "the-code")
    forger.give(forger.signed(forger.claims(), kid="forged"))
    for seconds, times in ((1, 1), (30, 1), (60, 2), (70, 2), (119, 2), (125, 3)):
        elapsed.seconds = seconds + 0.5
        with pytest.raises(ProofRefused):
            await provider.claims(ASKED, "the-code")
        assert forger.asked["/keys"] == times, seconds


async def test_a_new_key_is_found_and_a_withdrawn_key_is_refused(
    forger: Forger, provider: IdentityProvider, elapsed: Elapsed
) -> None:
    await provider.claims(ASKED, "the-code")
    before = forger.signed(forger.claims())
    forger.key = RSAKey.generate_key(2048, {"kid": "k2", "use": "sig", "alg": "RS256"})
    forger.publish(forger.key)
    forger.give(forger.signed(forger.claims(), kid="k2"))
    elapsed.seconds += 61
    assert (await provider.claims(ASKED, "the-code"))["sub"] == "ana"
    forger.give(before)
    with pytest.raises(ProofRefused):
        await provider.claims(ASKED, "the-code")


@pytest.mark.parametrize(
    "answer",
    [(500, {}), (302, {}), (200, b"<html>"), (200, b"[]"), (200, b"{"), (200, b"[" * 30_000), (200, b'{"a": "' + b"x" * 70_000 + b'"}')],
    ids=["an error", "elsewhere", "a page", "a list", "half", "deep", "long"],
)  # fmt: skip
async def test_an_unreadable_response_counts_as_no_response(
    forger: Forger, provider: IdentityProvider, answer: tuple[int, object]
) -> None:
    forger.answers[DISCOVERY] = answer
    with pytest.raises(RailUnavailable):
        await provider.address(ASKED, again=False)
    assert "/moved" not in forger.asked, "no redirect is followed"


async def test_unreadable_keys_count_as_no_keys(forger: Forger, provider: IdentityProvider) -> None:
    for keys in ({}, {"keys": []}, {"keys": 7}, {"keys": [{"kty": "RSA", "n": "!", "e": "AQAB"}]}):
        forger.answers["/keys"] = 200, keys
        with pytest.raises(RailUnavailable):
            await IdentityProvider(forger.settings()).claims(ASKED, "the-code")


async def test_after_a_failure_people_do_not_wait_for_each_others_timeouts(
    forger: Forger, provider: IdentityProvider, elapsed: Elapsed
) -> None:
    forger.answers[DISCOVERY] = 503, {}
    for _ in range(5):
        with pytest.raises(RailUnavailable):
            await provider.address(ASKED, again=False)
    assert forger.asked[DISCOVERY] == 1
    forger.answers[DISCOVERY] = 200, forger.metadata()
    elapsed.seconds += providers.DOWN_SECONDS + 0.1
    assert (await provider.address(ASKED, again=False)).startswith(f"{forger.issuer}/authorize?")


async def test_a_refused_code_is_not_an_outage_but_a_failing_token_endpoint_is(
    forger: Forger, provider: IdentityProvider
) -> None:
    forger.answers["/token"] = 400, {"error": "invalid_grant"}
    with pytest.raises(ProofRefused, match="invalid_grant"):
        await provider.claims(ASKED, "the-code")
    forger.answers["/token"] = 400, {"error": "<script>" * 50}
    with pytest.raises(ProofRefused, match="another error"):
        await provider.claims(ASKED, "the-code")
    forger.answers["/token"] = 502, {}
    with pytest.raises(RailUnavailable):
        await provider.claims(ASKED, "the-code")


async def test_a_provider_on_this_machine_is_called_only_if_the_settings_allow_it(forger: Forger) -> None:
    provider = IdentityProvider(forger.settings(loopback=False))
    with pytest.raises(RailUnavailable, match="not on the public internet"):
        await provider.address(ASKED, again=False)
    assert not forger.asked
    await provider.close()


async def test_an_endpoint_on_a_private_address_is_not_called(forger: Forger) -> None:
    """A hacked provider names an address inside the company's network."""
    client = JsonClient(loopback=True, private=False)
    for address in ("http://10.0.0.1/token", "http://169.254.169.254/latest", "http://[fd00::1]/"):
        with pytest.raises(RailUnavailable, match="not on the public internet"):
            await client.get(address)
    private = JsonClient(loopback=True, private=True)
    for address in ("http://169.254.169.254/latest", "http://168.63.129.16/", "http://[fe80::1]/"):
        with pytest.raises(RailUnavailable, match="not on the public internet"):
            await private.get(address)
    await client.close()
    await private.close()
