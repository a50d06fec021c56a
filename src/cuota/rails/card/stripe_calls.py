"""Calls Stripe through its official library. Any result that is not a clear answer raises RailUnavailable."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

import httpx
import stripe

from cuota.rails.bounded import SECONDS
from cuota.rails.settings import StripeKeys
from cuota.rails.unavailable import RailUnavailable

TIMEOUT = httpx.Timeout(8.0, connect=4.0)
assert TIMEOUT.read is not None
assert TIMEOUT.read < SECONDS
PAGE = 100
_OTHER_PARAMETERS, _FAILED = 400, 500
T = TypeVar("T")
Json = dict[str, Any]
# Below this log level, Stripe's library logs the sent data (names, e-mail addresses). By default, it also sends its
# response times to Stripe.
logging.getLogger("stripe").setLevel(logging.WARNING)
stripe.enable_telemetry = False


class Connections(stripe.HTTPXClient):
    """Stripe's client for httpx, which passes the encoded form as `data`. httpx deprecates that: text must be `content`."""

    def _get_request_args_kwargs(
        self, method: str, url: str, headers: Mapping[str, str], post_data: Any
    ) -> tuple[list[str], dict[str, Any]]:
        return [method, url], {"headers": headers, "content": post_data or None, "timeout": TIMEOUT}


def client(keys: StripeKeys, connections: Connections) -> stripe.StripeClient:
    """Return a client for these keys. It never repeats a request: our own look-up comes first."""
    return stripe.StripeClient(
        keys.secret,
        http_client=connections,
        # Stripe has a separate address for files, which the stand-in serves too.
        base_addresses={"api": keys.api_url, "files": keys.api_url} if keys.api_url else None,
        max_network_retries=0,
    )


class SpentKey(RailUnavailable):
    """Under this idempotency key, Stripe only repeats an earlier failure. That request has ended."""


def _is_spent(problem: stripe.StripeError) -> bool:
    status = problem.http_status or 0
    if isinstance(problem, stripe.IdempotencyError):
        # The earlier request had other parameters, and has ended. (409 means that it still runs.)
        return status == _OTHER_PARAMETERS
    return status >= _FAILED and (problem.headers or {}).get("idempotent-replayed") == "true"


async def answered(call: Awaitable[T], passed: tuple[type[stripe.StripeError], ...] = ()) -> T:
    """Await a call. Raises RailUnavailable for any error that is not one of `passed`, because the call may have acted.

    Raises SpentKey if an earlier request with the same idempotency key failed and has ended.

    The text of the exception has Stripe's code and the id of the request, but none of the sent data.
    """
    try:
        return await call
    except passed:
        raise
    except stripe.StripeError as problem:
        code = f", {problem.code}" if problem.code else ""
        request = f", request {problem.request_id}" if problem.request_id else ""
        failure = SpentKey if _is_spent(problem) else RailUnavailable
        raise failure(f"Stripe: {type(problem).__name__}{code}{request}") from None


async def all_of(listed: Awaitable[Any]) -> list[Json]:
    """Return every object of a list, of all pages, newest first."""

    async def pages() -> list[Json]:
        return [each.to_dict() async for each in (await listed).auto_paging_iter()]

    return await answered(pages())


async def first_of(listed: Awaitable[Any], **metadata: str) -> Json | None:
    """Return the newest object of a list whose metadata has these values. Reads only as many pages as necessary."""

    async def pages() -> Json | None:
        async for each in (await listed).auto_paging_iter():
            found: Json = each.to_dict()
            if metadata.items() <= (found.get("metadata") or {}).items():
                return found
        return None

    return await answered(pages())
