"""How a call is carried out, without any input or output: steps to take, and what to make of what came.

A `Talk` is a generator. It yields a step (`Send`, `Wait`, `Locked`), is sent what came of it, and returns the answer
or raises a CuotaError. The two clients only take the steps.
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

# Answers that say "later". 409 is Cuota's only while the first request with the same key still runs.
LATER = frozenset({408, 425, 429, 500, 502, 503, 504})
# Of them, those after which it is certain that nothing was applied.
NOT_APPLIED = frozenset({425, 429})


@dataclass(frozen=True)
class Send:
    """Send a request; what comes back is an Answer or Lost."""

    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(repr=False)


@dataclass(frozen=True)
class Wait:
    """Wait this many seconds."""

    seconds: float


@dataclass(frozen=True)
class Locked:
    """Carry out a talk while nobody else carries out one of these; what comes back is its result."""

    talk: Generator[Any, Any, str]


@dataclass(frozen=True)
class HttpAnswer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


@dataclass(frozen=True)
class Lost:
    """Nothing came back. `sent` is False where it is certain that the request never left."""

    reason: str
    sent: bool


ClientStep = Send | Wait | Locked
Talk = Generator[ClientStep, Any, T]


@dataclass(frozen=True)
class ClientOptions:
    """What a client was told: where, with which credentials, and how patiently."""

    base_url: str
    auth_url: str
    client_id: str
    client_secret: str = field(repr=False)
    audience: str
    pauses: Sequence[float]
    longest_wait: float
    clock: Callable[[], float] = time.monotonic

    def pause(self, tries: int, retry_after: float | None) -> float | None:
        """Seconds before the next try; None where there is none. Never earlier than the service asked for."""
        asked = retry_after or 0.0
        if tries >= len(self.pauses) or asked > self.longest_wait:
            return None
        # Spread, so that many clients that failed together do not come back together.
        return max(asked, self.pauses[tries] * random.uniform(0.75, 1.25))  # noqa: S311 - no secret


def perform(terms: ClientOptions, token_of: Callable[[str | None], Talk[str]], call: Call[T]) -> Talk[T]:
    """Carry out a call: with a token, again where that is safe, once more with a new token after a 401."""
    undecided, renewed, tries = False, False, 0
    token = yield from token_of(None)
    while True:
        came = yield Send(call.method, terms.base_url + call.path, call.headers(token), call.body)
        if isinstance(came, HttpAnswer) and came.status == 401 and not renewed:
            renewed = True
            try:
                token = yield from token_of(token)
            except CuotaError as error:
                error.undecided, error.idempotency_key = undecided, call.key
                raise
            continue
        try:
            return settle(call, came, lost_before=undecided)
        except Unavailable as error:
            error.idempotency_key = call.key
            unsafe = error.undecided and call.again is Again.NEVER
            undecided = undecided or (error.undecided and call.again is not Again.READS)
            error.undecided = undecided
            pause = None if unsafe else terms.pause(tries, error.retry_after)
            if pause is None:
                raise
        except RequestRefused as error:
            # A 401 says nothing of an earlier try; any other refusal decides, for the key is looked at first.
            error.undecided, error.idempotency_key = undecided and error.status == 401, call.key
            raise
        tries += 1
        yield Wait(pause)


def settle(call: Call[T], came: HttpAnswer | Lost, *, lost_before: bool) -> T:
    """Read what came of one try, or raise what it means."""
    raw = read_answer(came)
    assert isinstance(came, HttpAnswer)
    if 200 <= came.status < 300:
        try:
            return call.read(raw)
        except (LookupError, TypeError, ValueError, AttributeError) as problem:
            message = f"The answer cannot be read ({type(problem).__name__}: {problem})."
            raise Unavailable(message, status=came.status, undecided=True) from None
    error = refused(came.status, raw, came.headers.get("x-request-id", ""))
    again = error.original
    if (
        call.found_again
        and again
        and again.same_request
        and again.operation in {"", call.path.split("/")[-1]}
    ):
        return call.found_again(again, raw["original"])
    if came.status == 404 and lost_before and call.gone is not None:
        return call.gone
    raise error


def read_answer(came: HttpAnswer | Lost) -> Raw:
    """The JSON object that came; raises Unavailable where the service has not decided, or did not speak at all."""
    if isinstance(came, Lost):
        raise Unavailable(f"No answer came ({came.reason}).", undecided=came.sent)
    raw = _json_object(came.body)
    code = str(raw.get("code") or raw.get("error") or "") if raw is not None else ""
    if came.status not in LATER and code != "idempotency_in_progress":
        if raw is not None:
            return raw
        if came.status in {401, 404}:  # so that a bare 401 of a gateway is still a 401
            return {"message": f"HTTP {came.status}, without a body of the service."}
        message = f"HTTP {came.status}, and not an answer of the service: is base_url right?"
        raise Unavailable(message, status=came.status, undecided=True)
    kind = RateLimited if came.status == 429 else Unavailable
    text = raw and (raw.get("message") or raw.get("error_description"))
    raise kind(
        str(text or f"The service answered HTTP {came.status}."),
        status=came.status,
        code=code or f"http_{came.status}",
        retry_after=retry_after(came.headers.get("retry-after"), datetime.now(UTC)),
        undecided=came.status not in NOT_APPLIED and code != "idempotency_in_progress",
        request_id=came.headers.get("x-request-id", ""),
    )


def retry_after(text: str | None, now: datetime) -> float | None:
    """Seconds that a Retry-After header asks for, which may also be a date; None where it says nothing."""
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
