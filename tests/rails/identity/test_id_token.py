"""An ID token is accepted only if every check of OpenID Connect Core 1.0, section 3.1.3.7, succeeds."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from cuota.rails.identity.provider import IdentityProvider
from cuota.rails.identity.request import ProofRefused
from support.identity.forger import ACCESS_TOKEN, ASKED, SECRET, Forger

Forge = Callable[[Forger], object]


def claim(**changes: Any) -> Forge:
    return lambda forger: forger.signed(forger.claims(**changes))


def encoded(part: object) -> str:
    text = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def unsigned(forger: Forger) -> str:
    return f"{encoded({'alg': 'none'})}.{encoded(forger.claims())}."


def by_secret(forger: Forger) -> str:
    """HS256, which the document offers, with the client secret as the key."""
    return jwt.encode({"alg": "HS256"}, forger.claims(), OctKey.import_key(SECRET), algorithms=["HS256"])


def by_public_key(forger: Forger) -> str:
    """HS256 with the text of the public key as the key."""
    signed = f"{encoded({'alg': 'HS256', 'kid': 'k1'})}.{encoded(forger.claims())}"
    return f"{signed}.{encoded(hmac.digest(forger.key.as_pem(private=False), signed.encode(), 'sha256'))}"


def by_own_key(forger: Forger) -> str:
    """The attacker's key, which the token's header names and contains."""
    own = RSAKey.generate_key(2048)
    header = {"alg": "RS256", "kid": "k1", "jwk": own.as_dict(private=False)}
    return jwt.encode(header, forger.claims(), own, algorithms=["RS256"])


def changed_afterwards(forger: Forger) -> str:
    head, _, signature = forger.signed(forger.claims()).split(".")
    return f"{head}.{encoded(forger.claims(sub='somebody-else'))}.{signature}"


WRONG: dict[str, Forge] = {
    "no signature": unsigned,
    "signed with the client secret": by_secret,
    "signed with the public key as a secret": by_public_key,
    "signed with the thief's key": by_own_key,
    "changed after it was signed": changed_afterwards,
    "for another client": claim(aud="another"),
    "for other clients, too": claim(aud=["cuota", "another"], azp="cuota"),
    "for nobody": claim(aud=[]),
    "without an addressee": claim(aud=None),
    "made for another party": claim(azp="another"),
    "of another issuer": claim(iss="https://login.evil.example"),
    "without an issuer": claim(iss=None),
    "ended": claim(exp=timedelta(seconds=-120)),
    "without an end": claim(exp=None),
    "an end that is no number": claim(exp="2099"),
    "made in the future": claim(iat=timedelta(seconds=600), exp=timedelta(seconds=900)),
    "made long ago": claim(iat=timedelta(seconds=-3600), exp=timedelta(seconds=900)),
    "without the time": claim(iat=None),
    "not valid yet": claim(nbf=timedelta(seconds=600)),
    "of another sign-in": claim(nonce="another"),
    "without a nonce": claim(nonce=None),
    "a nonce that is a list": claim(nonce=[ASKED.nonce]),
    "with another access token": claim(at_hash="AAAAAAAAAAAAAAAAAAAAAA"),
    "without a subject": claim(sub=None),
    "with an empty subject": claim(sub=""),
    "with a subject that is a number": claim(sub=7),
    "with a long subject": claim(sub="a" * 256),
    "with a subject that is not printable": claim(sub="a\0"),
    "signed in tomorrow": claim(auth_time=timedelta(seconds=86400)),
    "a sign-in that is no number": claim(auth_time=True),
    "methods that are no list": claim(amr="mfa"),
    "encrypted": lambda _: "a.b.c.d.e",
    "no token": lambda _: "hello",
    "nothing": lambda _: None,
    "a number": lambda _: 7,
    "very long": lambda forger: forger.signed(forger.claims(more="x" * 40_000)) + "A" * 10,
}


@pytest.mark.parametrize("forge", WRONG.values(), ids=WRONG)
async def test_a_wrong_id_token_is_refused(forger: Forger, provider: IdentityProvider, forge: Forge) -> None:
    forger.give(forge(forger))
    with pytest.raises(ProofRefused):
        await provider.claims(ASKED, "the-code")


@pytest.mark.parametrize(
    "forge",
    [claim(), claim(aud=["cuota"]), claim(azp="cuota"), claim(at_hash=None), claim(auth_time=timedelta(seconds=-5)), claim(exp=timedelta(seconds=-20))],
    ids=["usual", "a list of one", "made for us", "without a hash of the access token", "with the time of the sign-in", "a clock that differs"],
)  # fmt: skip
async def test_a_correct_id_token_is_accepted(
    forger: Forger, provider: IdentityProvider, forge: Forge
) -> None:
    forger.give(forge(forger))
    assert (await provider.claims(ASKED, "the-code"))["sub"] == "ana"


async def test_if_there_are_several_keys_the_token_must_name_one(
    forger: Forger, provider: IdentityProvider
) -> None:
    forger.publish(forger.key, RSAKey.generate_key(2048, {"kid": "k2"}))
    forger.give(jwt.encode({"alg": "RS256"}, forger.claims(), forger.key, algorithms=["RS256"]))
    with pytest.raises(ProofRefused):
        await provider.claims(ASKED, "the-code")


async def test_the_code_is_sent_once_with_the_verifier_and_the_exact_address(
    forger: Forger, provider: IdentityProvider
) -> None:
    await provider.claims(ASKED, "the code+1")
    heard = forger.heard["/token"]
    assert forger.asked["/token"] == 1
    assert b"code=the+code%2B1" in heard or b"code=the%20code%2B1" in heard
    assert b"code_verifier=" + ASKED.verifier.encode() in heard
    assert b"redirect_uri=https%3A%2F%2Fpay.example%2Foperator%2Fprovider%2Freturn" in heard
    assert SECRET.encode() not in heard, "the secret is in the header, encoded"


async def test_the_secret_is_sent_in_the_form_if_the_provider_requires_it(
    forger: Forger, provider: IdentityProvider
) -> None:
    document = forger.metadata(token_endpoint_auth_methods_supported=["client_secret_post"])
    forger.answers["/.well-known/openid-configuration"] = 200, document
    await provider.claims(ASKED, "the-code")
    assert b"client_secret=the-client-secret" in forger.heard["/token"]
    assert b"authorization:" not in forger.heard["/token"].lower()


async def test_a_response_without_an_access_token_is_refused(
    forger: Forger, provider: IdentityProvider
) -> None:
    forger.give(forger.signed(forger.claims(at_hash=None)), access_token=None)
    with pytest.raises(ProofRefused):
        await provider.claims(ASKED, "the-code")


async def test_the_userinfo_response_must_be_about_the_same_person(
    forger: Forger, provider: IdentityProvider
) -> None:
    forger.give(forger.signed(forger.claims(email=None, email_verified=None)))
    told = {
        "sub": "ana",
        "email": "ana@company.example",
        "email_verified": True,
        "amr": ["mfa"],
        "auth_time": int(time.time()),
    }
    forger.answers["/userinfo"] = 200, told
    claims = await provider.claims(ASKED, "the-code")
    assert claims["email"] == "ana@company.example"
    assert f"Bearer {ACCESS_TOKEN}".encode() in forger.heard["/userinfo"]
    assert "amr" not in claims, "only the ID token says how the person signed in"
    assert "auth_time" not in claims
    forger.answers["/userinfo"] = 200, {**told, "sub": "somebody-else"}
    with pytest.raises(ProofRefused):
        await provider.claims(ASKED, "the-code")
