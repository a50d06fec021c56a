"""Rows A and T of bad_inputs.csv: access tokens as attackers make them, and token requests."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import httpx
from cryptography.hazmat.primitives import hashes, hmac

from support.api.asked_token import asked
from support.api.bodies import assert_refused
from support.api.token_maker import ABSENT, claims_of, forge, signing_key
from support.hostile.decided import DECIDED
from support.hostile.wire import exchange
from support.hostile.world import Row, World, asks, assert_answers, statuses
from support.makers import Merchant


def encoded(value: str | bytes) -> str:
    """Encode as base64url, like the parts of tokens."""
    raw = value.encode() if isinstance(value, str) else value
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


async def unauthorized(world: World, tokens: list[str]) -> None:
    """Assert that each of these tokens is refused."""
    good = await forge(world.merchant)
    assert (await shown(world.merchant, good)).status_code == 200
    for token in tokens:
        answer = await shown(world.merchant, token)
        assert_refused(answer, 401, "unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"


async def shown(merchant: Merchant, token: str) -> httpx.Response:
    return await merchant.http.get("/configuration", headers={"Authorization": f"Bearer {token}"})


@asks("A02", "A06", "A07")
async def claims(world: World, row: Row) -> None:
    now = int(time.time())
    ours, theirs = world.service.settings, world.elsewhere.settings
    changes: dict[str, list[dict[str, Any]]] = {
        "A02": [
            {"exp": now - 1},
            {"nbf": now + 3600},
            {"exp": ABSENT},
            {"exp": str(now + 600)},
            {"exp": 1e20},
        ],
        "A06": [
            {"iss": theirs.auth_url},
            {"aud": theirs.audience},
            {"iss": theirs.auth_url, "aud": theirs.audience},
            {"aud": "https://other.example"},
            {"aud": [ours.audience, "https://other.example"]},
        ],
        "A07": [{"header": {"typ": kind}} for kind in ("JWT", "secevent+jwt")],
    }
    await unauthorized(world, [await forge(world.merchant, **each) for each in changes[row.id]])
    if row.id == "A06":
        # A token of one environment is valid there, and refused in the other environment.
        await unauthorized(world, [await world.foreign.token()])
        assert (await shown(world.foreign, await world.foreign.token())).status_code == 200
        assert_refused(await shown(world.foreign, await world.merchant.token()), 401, "unauthorized")


@asks("A03")
async def unsigned(world: World, row: Row) -> None:
    key = await signing_key(world.service)
    claims = encoded(json.dumps(claims_of(world.merchant)))
    good = await forge(world.merchant)
    tokens = [good.rpartition(".")[0] + "."]
    for name in ("none", "None", "nOnE"):
        head = encoded(json.dumps({"alg": name, "kid": key.kid, "typ": "at+jwt"}))
        tokens += [f"{head}.{claims}.", f"{head}.{claims}", f"{head}.{claims}.{good.rpartition('.')[2]}"]
    await unauthorized(world, tokens)


@asks("A04")
async def confused(world: World, row: Row) -> None:
    key = await signing_key(world.service, "RS256")
    public = json.dumps(key.as_dict(private=False))
    forms = [
        key.as_pem(private=False),
        key.as_der(private=False),
        public.encode(),
        public.replace(" ", "").encode(),
    ]
    tokens = []
    for secret in forms:
        head = encoded(json.dumps({"alg": "HS256", "kid": key.kid, "typ": "at+jwt"}))
        body = f"{head}.{encoded(json.dumps(claims_of(world.merchant)))}"
        signer = hmac.HMAC(secret, hashes.SHA256())
        signer.update(body.encode())
        tokens.append(f"{body}.{encoded(signer.finalize())}")
    await unauthorized(world, tokens)


@asks("A11")
async def spoilt(world: World, row: Row) -> None:
    token = await forge(world.merchant)
    # This row changes only every eleventh byte. api/test_auth changes each byte without a socket, which is faster.
    flipped = [token[:at] + chr(ord(token[at]) ^ 1) + token[at + 1 :] for at in range(0, len(token), 11)]
    await unauthorized(world, [*flipped, "a" * 10_240, await forge(world.merchant, padding="a" * 10_240)])
    head = f"GET /configuration HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {'a' * 1_048_576}\r\n\r\n"
    answer = await exchange(world.port, head.encode())
    assert answer.status in statuses(row, DECIDED), row


async def ask(merchant: Merchant, body: dict[str, object], **more: Any) -> httpx.Response:
    async with merchant.service.client() as http:
        return await http.post("/oauth/token", json=body, **more)


@asks("T01")
async def credentials(world: World, row: Row) -> None:
    wrong = await ask(world.merchant, asked(world.merchant, client_secret="secret_wrong"))
    unknown = await ask(world.merchant, asked(world.merchant, client_id=f"client_nobody_{time.time_ns()}"))
    audience = await ask(world.merchant, asked(world.merchant, audience="https://other.example"))
    assert [(each.status_code, each.json()["error"]) for each in (wrong, unknown, audience)] == [
        (401, "invalid_client"), (401, "invalid_client"), (400, "invalid_target"),
    ]  # fmt: skip
    # api/test_token checks, by counting steps, that both requests do the same work. Times would depend on the machine's
    # load.
    assert wrong.content == unknown.content


@asks("T03")
async def fields(world: World, row: Row) -> None:
    bad: list[object] = [7, None, {"a": ["b"]}, "x" * 10_240, "a\0b"]
    names = ("client_id", "client_secret", "audience", "grant_type")
    bodies = [
        {**asked(world.merchant), name: value}
        for name in names
        for value in bad
        # A request without an audience gets a token for the service's own audience.
        if (name, value) != ("audience", None)
    ]
    answers = [await ask(world.merchant, body) for body in bodies]
    assert_answers(row, {400}, answers)


@asks("T04")
async def guesses(world: World, row: Row) -> None:
    bad = asked(world.merchant, client_secret="secret_wrong")
    answers = [await ask(world.merchant, bad) for _ in range(11)]
    assert [answer.status_code for answer in answers] == [401] * 10 + [429], row
    assert int(answers[-1].headers["retry-after"]) > 0
    for shop in (world.merchant, world.auto_merchant):
        assert_answers(row, {200}, [await ask(shop, asked(shop))])


@asks("T05")
async def other_environment(world: World, row: Row) -> None:
    for at, whose in ((world.foreign, world.merchant), (world.merchant, world.foreign)):
        body = {**asked(whose), "audience": at.service.settings.audience}
        answer = await ask(at, body)
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client"), row


@asks("T07")
async def twice(world: World, row: Row) -> None:
    auth = (world.merchant.client_id, world.merchant.client_secret)
    assert_answers(row, {400}, [await ask(world.merchant, asked(world.merchant), auth=auth)])
