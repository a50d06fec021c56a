"""Several audiences: each shop uses the audience that it was given. A request without an audience gets the first
one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cuota import config
from cuota.core.refusal import Refused
from cuota.flows.context import Context
from cuota.flows.merchant.authenticate import Callers
from cuota.flows.merchant.issue_token import TokenRefused, TokenRequest, issue_token
from cuota.flows.merchant.keys import Keys
from support.makers import Merchant

FIRST, SECOND = "https://auth.shop.example", "https://api.old.example/merchant"


def context_of(merchant: Merchant, *audiences: str) -> Context:
    context = merchant.service.context
    settings = replace(context.settings, audience=audiences[0], more_audiences=audiences[1:])
    return replace(context, settings=settings)


async def token_for(context: Context, merchant: Merchant, audience: str | None) -> str:
    asked = TokenRequest(merchant.client_id, merchant.client_secret, audience)
    return f"Bearer {(await issue_token(context, Keys(context), asked)).access_token}"


def test_the_setting_accepts_several_audiences_separated_by_commas_or_spaces() -> None:
    for text in (
        f"{FIRST},{SECOND}",
        f" {FIRST}/ , {SECOND}\n",
        f"{FIRST} {SECOND}",
        f"{FIRST}, {SECOND}, {FIRST}",
    ):
        assert config.load({"CUOTA_AUDIENCE": text}).audiences == (FIRST, SECOND)
    assert config.load({"CUOTA_PUBLIC_URL": FIRST}).audiences == (FIRST,)


@pytest.mark.parametrize("named", [None, FIRST, SECOND, f"{SECOND}/"])
async def test_a_token_for_any_of_the_audiences_is_accepted(merchant: Merchant, named: str | None) -> None:
    context = context_of(merchant, FIRST, SECOND)
    token = await token_for(context, merchant, named)
    callers = Callers(context, Keys(context))
    assert (await callers.caller(token)).merchant.merchant_id == merchant.merchant_id


async def test_a_token_has_the_requested_audience_or_the_first_one(merchant: Merchant) -> None:
    context = context_of(merchant, FIRST, SECOND)
    only_second = context_of(merchant, SECOND)
    callers = Callers(only_second, Keys(only_second))
    assert await callers.caller(await token_for(context, merchant, SECOND))
    # The audience of a request without one is the first, and this service does not have it.
    with pytest.raises(Refused):
        await callers.caller(await token_for(context, merchant, None))


@pytest.mark.parametrize(
    "foreign", ["https://api.old.example", SECOND + "/x", "http://auth.shop.example", f"{FIRST} {SECOND}"]
)
async def test_a_foreign_audience_is_refused(merchant: Merchant, foreign: str) -> None:
    with pytest.raises(TokenRefused) as refused:
        await token_for(context_of(merchant, FIRST, SECOND), merchant, foreign)
    assert refused.value.error == "invalid_target"
    assert FIRST in refused.value.description
    assert SECOND in refused.value.description


@pytest.mark.parametrize("kind", ["json", "data"])
async def test_a_token_request_without_an_audience_is_answered(merchant: Merchant, kind: str) -> None:
    body = {
        "client_id": merchant.client_id,
        "client_secret": merchant.client_secret,
        "grant_type": "client_credentials",
    }
    for asked in (body, {**body, "audience": ""}):
        async with merchant.service.client() as http:
            answer = await http.post("/oauth/token", **{kind: asked})
        assert answer.status_code == 200, answer.text
        headers = {"Authorization": f"Bearer {answer.json()['access_token']}"}
        assert (await merchant.http.get("/configuration", headers=headers)).status_code == 200
