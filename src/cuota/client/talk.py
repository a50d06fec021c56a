"""The logic of a call, without any input or output: which steps to take, how to read answers, and when to retry.

A `Talk` is a generator. It yields a step (`Send`, `Wait` or `Locked`), gets the step's result, and in the end returns the
result of the call or raises a CuotaError. The blocking and the asyncio client only carry out the steps.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from cuota.client.answers import Raw
from cuota.client.calls import Again, Call
from cuota.client.errors import CuotaError, RateLimited, RequestRefused, Unavailable, refused

T = TypeVar("T")

# Statuses that may be retried later. A 409 with the code idempotency_in_progress may be retried too: a request with the
# same key is in progress.
LATER = frozenset({408, 425, 429, 500, 502, 503, 504})
# The retryable statuses that prove that nothing was applied.
NOT_APPLIED = frozenset({425, 429})


@dataclass(frozen=True)
class Send:
    """Send a request. The result is an HttpAnswer or Lost."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(repr=False)


@dataclass(frozen=True)
class Wait:
    """Wait for this many seconds."""

    seconds: float


@dataclass(frozen=True)
class Locked:
    """Carry out a talk while holding the client's lock. The result is that of the talk."""

    talk: Generator[Any, Any, str]


@dataclass(frozen=True)
class HttpAnswer:
    """An answer of the service, or of a proxy."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


@dataclass(frozen=True)
class Lost:
    """No answer arrived. `sent` is False if it is certain that the request was never sent."""

    reason: str
    sent: bool


ClientStep = Send | Wait | Locked
Talk = Generator[ClientStep, Any, T]


@dataclass(frozen=True)
class ClientOptions:
    """The options of a client: addresses, credentials, and how long to wait between attempts.

    `pauses` are the seconds before each retry. `longest_wait` is the longest Retry-After, in seconds, after which the
    client still retries.
    """

    base_url: str
    auth_url: str
    client_id: str
    client_secret: str = field(repr=False)
    audience: str
    pauses: Sequence[float]
    longest_wait: float
    clock: Callable[[], float] = time.monotonic

    def pause(self, tries: int, retry_after: float | None) -> float | None:
        """Return the seconds before the next attempt, or None if there is none.

        The result is never less than `retry_after`.
        """
        required = retry_after or 0.0
        if tries >= len(self.pauses) or required > self.longest_wait:
            return None
        # The pause is random, so that clients that failed at the same time do not retry at the same time.
        return max(required, self.pauses[tries] * random.uniform(0.75, 1.25))  # noqa: S311 - no secret


def perform(terms: ClientOptions, token_of: Callable[[str | None], Talk[str]], call: Call[T]) -> Talk[T]:
    """Carry out a call with an access token.

    The call is retried if that is safe. After a 401 it is sent once more with a new token. `token_of` gets a token that is
    not the given one.
    """
    undecided, renewed, tries = False, False, 0
    token = yield from token_of(None)
    while True:
        result = yield Send(call.method, terms.base_url + call.path, call.headers(token), call.body)
        if isinstance(result, HttpAnswer) and result.status == 401 and not renewed:
            renewed = True
            try:
                token = yield from token_of(token)
            except CuotaError as error:
                error.undecided, error.idempotency_key = undecided, call.key
                raise
            continue
        try:
            return settle(call, result, lost_before=undecided)
        except Unavailable as error:
            error.idempotency_key = call.key
            unsafe = error.undecided and call.again is Again.NEVER
            undecided = undecided or (error.undecided and call.again is not Again.READS)
            error.undecided = undecided
            pause = None if unsafe else terms.pause(tries, error.retry_after)
            if pause is None:
                raise
        except RequestRefused as error:
            # A 401 does not say whether an earlier attempt was applied. Any other refusal does: the service checks the
            # key or reference first, so it would have answered with the result of the earlier attempt.
            error.undecided, error.idempotency_key = undecided and error.status == 401, call.key
            raise
        tries += 1
        yield Wait(pause)


def settle(call: Call[T], result: HttpAnswer | Lost, *, lost_before: bool) -> T:
    """Read the result of one attempt. Returns the result of the call, or raises RequestRefused or Unavailable.

    `lost_before`: the answer to an earlier attempt was lost.
    """
    raw = read_answer(result)
    assert isinstance(result, HttpAnswer)
    if 200 <= result.status < 300:
        try:
            return call.read(raw)
        except (LookupError, TypeError, ValueError, AttributeError) as problem:
            message = f"The answer cannot be read ({type(problem).__name__}: {problem})."
            raise Unavailable(message, status=result.status, undecided=True) from None
    error = refused(result.status, raw, result.headers.get("x-request-id", ""))
    original = error.original
    if (
        call.found_again
        and original
        and original.same_request
        and original.operation in {"", call.path.split("/")[-1]}
    ):
        return call.found_again(original, raw["original"])
    if result.status == 404 and lost_before and call.gone is not None:
        return call.gone
    raise error


def read_answer(result: HttpAnswer | Lost) -> Raw:
    """Return the JSON object of an answer.

    Raises Unavailable if there is no answer, or if the answer does not show the result.
    """
    if isinstance(result, Lost):
        raise Unavailable(f"No answer arrived ({result.reason}).", undecided=result.sent)
    raw = _json_object(result.body)
    code = str(raw.get("code") or raw.get("error") or "") if raw is not None else ""
    if result.status not in LATER and code != "idempotency_in_progress":
        if raw is not None:
            return raw
        if result.status in {401, 404}:  # a gateway's 401 without a JSON body still counts as a 401
            return {"message": f"HTTP {result.status}, without a JSON body from the service."}
        message = f"HTTP {result.status}, but the answer is not from the service. Check base_url."
        raise Unavailable(message, status=result.status, undecided=True)
    kind = RateLimited if result.status == 429 else Unavailable
    text = raw and (raw.get("message") or raw.get("error_description"))
    raise kind(
        str(text or f"The service answered HTTP {result.status}."),
        status=result.status,
        code=code or f"http_{result.status}",
        retry_after=retry_after(result.headers.get("retry-after"), datetime.now(UTC)),
        undecided=result.status not in NOT_APPLIED and code != "idempotency_in_progress",
        request_id=result.headers.get("x-request-id", ""),
    )


def retry_after(text: str | None, now: datetime) -> float | None:
    """Return the seconds in a Retry-After header, which may also be a date; None if it is absent or cannot be read."""
    if text is None:
        return None
    if text.strip().isascii() and text.strip().isdigit():
        return float(text) if len(text) < 12 else float("inf")
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (until.replace(tzinfo=until.tzinfo or UTC) - now).total_seconds())


def _json_object(body: bytes) -> Raw | None:
    try:
        value = json.loads(body, parse_float=Decimal, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _no_number(text: str) -> None:
    raise ValueError(text)
