"""The access token: all calls share it, it is replaced in time, and it is requested once more after a 401."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cuota.client import Unauthorized, Unavailable
from cuota.client.talk import ClientOptions
from cuota.flows.merchant import manage_merchants
from support.client_tools import Both, Cutter, header, reason
from support.makers import Merchant

TOKEN = "POST /oauth/token"


@pytest.fixture
async def watched(merchant: Merchant, cutter: Cutter, kind: str) -> Any:
    """A client whose requests, including token requests, go through the proxy that loses answers."""
    async with Both.of(kind, merchant, base_url=cutter.url, auth_url=cutter.url) as both:
        yield both


def later(both: Both, seconds: float) -> None:
    """Move the client's own clock forward."""
    terms = both.client._terms
    before = terms.clock
    moved = ClientOptions(**{**vars(terms), "clock": lambda: before() + seconds})
    both.client._terms = both.client._tokens._terms = moved


async def test_fifty_calls_at_once_request_one_token_and_reuse_it(watched: Both, cutter: Cutter) -> None:
    await asyncio.gather(*(watched("configuration") for _ in range(50)))
    await watched("configuration")
    assert len(cutter.tries(TOKEN)) == 1
    assert len({header(head, "Authorization") for head in cutter.tries("/configuration")}) == 1
    assert len(cutter.tries("/configuration")) == 51


async def test_fifty_calls_replace_a_token_once_shortly_before_it_expires(
    watched: Both, cutter: Cutter
) -> None:
    await watched("configuration")
    later(watched, 86400 - 30)
    await asyncio.gather(*(watched("configuration") for _ in range(50)))
    assert len(cutter.tries(TOKEN)) == 2
    assert len({header(head, "Authorization") for head in cutter.tries("/configuration")}) == 2


async def test_if_no_new_token_can_be_requested_a_valid_one_is_still_used(
    watched: Both, cutter: Cutter
) -> None:
    await watched("configuration")
    later(watched, 86400 - 30)
    cutter.next_ones("/oauth/token", 1000)
    await watched("configuration")
    asked = len(cutter.tries(TOKEN))
    await watched("configuration")
    assert len(cutter.tries(TOKEN)) == asked == 1 + 3
    later(watched, 60)
    with pytest.raises(Unavailable):
        await watched("configuration")


async def test_fifty_calls_replace_a_refused_token_once(watched: Both, cutter: Cutter) -> None:
    await watched("configuration")
    tokens = watched.client._tokens
    held = tokens._held
    assert held is not None
    tokens._held = type(held)(held.token + "x", held.renew_at, held.ends_at)
    await asyncio.gather(*(watched("configuration") for _ in range(50)))
    assert len(cutter.tries(TOKEN)) == 2


async def test_a_revoked_secret_raises_unauthorized_and_concurrent_calls_request_a_token_only_once(
    watched: Both, cutter: Cutter, merchant: Merchant
) -> None:
    await watched("configuration")
    await manage_merchants.revoke_merchant(merchant.service.context, str(merchant.merchant_id))
    await asyncio.sleep(2.2)
    # All calls have been refused before any of them learns why.
    cutter.answered.clear()
    refused = "GET /configuration"
    cutter.holds = lambda head: (
        "/oauth/token" in head and sum(refused in each for each in cutter.answered) < 50
    )
    cutter.slow["/oauth/token"] = 1.5
    errors = await asyncio.gather(*(reason(watched("configuration"), Unauthorized) for _ in range(50)))
    assert {error.code for error in errors} == {"invalid_client"}
    # Calls that wait while one call requests a token share its answer.
    assert len(cutter.tries(TOKEN)) in {2, 3}
    assert merchant.client_secret not in "".join(f"{error!r} {error}" for error in errors)


async def test_a_wrong_secret_raises_an_error_at_once(merchant: Merchant, kind: str, cutter: Cutter) -> None:
    async with Both.of(kind, merchant, client_secret="wrong", auth_url=cutter.url) as both:
        error = await reason(both("configuration"), Unauthorized)
    assert (error.code, error.status, error.undecided) == ("invalid_client", 401, False)
    assert "could not be authenticated" in error.message
    assert len(cutter.tries(TOKEN)) == 1


async def test_a_token_request_whose_answer_is_lost_is_retried(watched: Both, cutter: Cutter) -> None:
    cutter.next_ones("/oauth/token", 2)
    await watched("configuration")
    assert len(cutter.tries(TOKEN)) == 3
