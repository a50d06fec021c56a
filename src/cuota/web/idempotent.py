"""The Idempotency-Key header. A request that repeats a key and body within 24 hours gets the stored answer again.

The first request with a key claims it for a limited time (a lease). Its answer is stored under the key. If the process
dies before that, the lease ends, and a retry runs the request.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.refusal import Code, Refused
from cuota.db.order import idempotency
from cuota.db.order.idempotency import LEASE, IdempotencyRecord
from cuota.db.order.outcomes import Answer
from cuota.db.pool import BUSY, GONE
from cuota.db.session import Session
from cuota.db.vault import Vault
from cuota.flows.afterwards import afterwards
from cuota.flows.context import Context
from cuota.flows.lost_session import until_known
from cuota.web.problem import MEDIA_TYPE, body_of, status_of
from cuota.web.service import Service, service_of

LONGEST_KEY = 255
# A request normally ends within this time. If it has not, its process may have died.
SOON = timedelta(seconds=1)
# Refusals that depend on the moment and not on the request. They are not stored, so that a retry runs the request again.
NOT_KEPT = {
    Code.UNAVAILABLE, Code.RATE_LIMITED, Code.INTERNAL_ERROR, Code.IDEMPOTENCY_IN_PROGRESS, Code.MERCHANT_SUSPENDED,
    Code.MERCHANT_NOT_APPROVED,
}  # fmt: skip

Keep = Callable[[bytes], Answer]
Run = Callable[[Keep | None], Awaitable[bytes]]
Act = Callable[[], Awaitable[bytes]]


def _key_of(request: Request) -> str | None:
    values = request.headers.getlist("idempotency-key")
    if not values:
        return None
    # Only the white space that HTTP allows around a value. A bare `strip` would also accept a key with other characters around it.
    key = values[0].strip(" \t")
    # The draft standard writes the key as a quoted string. An unquoted token counts as the same key.
    if len(key) >= 2 and key[0] == key[-1] == '"':
        key = key[1:-1]
    if len(values) > 1 or not key or len(key) > LONGEST_KEY or not key.isascii() or not key.isprintable():
        message = f"Send one Idempotency-Key of 1 to {LONGEST_KEY} printable ASCII characters."
        raise Refused(Code.BAD_HEADER, message)
    return key


@dataclass(frozen=True, slots=True)
class _Seal:
    """Encrypts a stored answer that contains a secret, bound to its merchant and key. `Keep` does not use this."""

    vault: Vault
    bound_to: str

    def close(self, body: bytes) -> bytes:
        return self.vault.encrypt(body.decode(), self.bound_to)

    def open(self, stored: bytes) -> bytes:
        return self.vault.decrypt(stored, self.bound_to).encode()


async def answer_plain(
    request: Request, merchant_id: UUID, body: bytes, act: Act, *, secret: bool = False
) -> Response:
    """Answer a POST that moves no money: claim the key, call `act`, store the answer. `secret`: store it encrypted.

    If the process dies before the answer is stored, the lease of the key ends, and a retry calls `act` again.
    """

    async def run(keep: Keep | None) -> bytes:
        del keep
        return await act()

    answered = await answer(request, merchant_id, body, run, secret=secret)
    if secret:
        answered.headers["Cache-Control"] = "no-store"
    return answered


async def answer(
    request: Request, merchant_id: UUID, body: bytes, run: Run, *, secret: bool = False
) -> Response:
    """Call `run` only once for each Idempotency-Key, and answer with its result.

    `run` gets a `Keep`, or None if the request has no key. `Keep` turns the body of the answer into a record that `run`
    stores in the same transaction as the money it moves. If `run` does not use it, the answer is stored afterward.
    """
    key = _key_of(request)
    if key is None:
        return Response(await run(None), media_type="application/json")
    service = service_of(request)
    seal = _Seal(service.context.vault, f"idempotency:{merchant_id}:{key}") if secret else None
    pool, lease = service.context.pool.entry, service.context.new_id()
    target = f"{request.method} {request.url.path}?{request.url.query}\n".encode()
    request_hash = hashlib.sha256(target + body).digest()
    if not await _claim(service.context, merchant_id, key, request_hash, lease):
        return await _earlier(service, merchant_id, key, request_hash, seal)
    stored_by_run = False

    def keep(content: bytes) -> Answer:
        nonlocal stored_by_run
        stored_by_run = True
        return Answer(key, lease, 200, content)

    try:
        content = await run(keep)
    except Refused as refused:
        # The flows use this code if the lease was lost.
        lost = refused.code is Code.IDEMPOTENCY_IN_PROGRESS
        if refused.code in NOT_KEPT:
            await _free(pool, merchant_id, key, lease)
        else:
            problem = _problem(request, service, refused)
            problem = seal.close(problem) if seal else problem
            refusal = Answer(key, lease, status_of(refused), problem)
            lost = not await _finish(service.context, merchant_id, refusal)
        if lost:
            # This process stood still, and a retry ran the request. Perhaps our refusal is only about what the retry has applied.
            return await _earlier(service, merchant_id, key, request_hash, seal)
        raise
    except BaseException:
        await _free(pool, merchant_id, key, lease)
        raise
    if not stored_by_run:
        # A dry run, or a call that moves no money, has no transaction in which it could have stored the answer.
        stored = seal.close(content) if seal else content
        await _finish(service.context, merchant_id, Answer(key, lease, 200, stored))
    return Response(content, media_type="application/json")


async def _claim(context: Context, merchant_id: UUID, key: str, request_hash: bytes, lease: UUID) -> bool:
    pool, now = context.pool.entry, context.real_now()
    try:
        return await idempotency.claim(pool, merchant_id, key, request_hash, lease, now)
    except (asyncio.CancelledError, *GONE):
        # The claim may be saved although its answer was lost. If it stayed, a retry would be refused until the lease ends.
        await _free(pool, merchant_id, key, lease)
        raise


async def _finish(context: Context, merchant_id: UUID, answer: Answer) -> bool:
    """Store the answer, again after a lost session. Return False if the lease was lost.

    If storing the answer fails, the caller still gets the answer, and the lease ends later.
    """
    held = True

    async def store() -> None:
        nonlocal held
        held = await idempotency.finish(
            context.pool.entry, merchant_id, answer.key, answer.lease, answer.status, answer.body
        )

    with afterwards("the answer for an Idempotency-Key"):
        await until_known(context, store, "The answer may not have been stored.")
    return held


async def _free(pool: Session, merchant_id: UUID, key: str, lease: UUID) -> None:
    """Free the key. If that fails, ignore the error: the lease ends later, and the caller must get the first error."""
    with contextlib.suppress(Refused, *GONE, *BUSY):
        try:
            await idempotency.release(pool, merchant_id, key, lease)
        except GONE:
            # The session's node died. Try once more: a new session may be at another node, and a second release changes nothing.
            await idempotency.release(pool, merchant_id, key, lease)


def _problem(request: Request, service: Service, refused: Refused) -> bytes:
    public_url, request_id = service.settings.public_url, request.scope["request_id"]
    return body_of(refused, public_url=public_url, path=request.url.path, request_id=request_id)


async def _earlier(
    service: Service, merchant_id: UUID, key: str, request_hash: bytes, seal: _Seal | None
) -> Response:
    earlier = await idempotency.read(service.context.pool.entry, merchant_id, key, request_hash)
    if earlier is not None and not earlier.same_request:
        message = "This Idempotency-Key was used for a different request. Use a new key for a new request."
        raise Refused(Code.IDEMPOTENCY_KEY_REUSED, message)
    if earlier is None or earlier.status is None or earlier.body is None:
        message = "The first request with this Idempotency-Key is still in progress. Try again shortly."
        raise Refused(
            Code.IDEMPOTENCY_IN_PROGRESS,
            message,
            retry_after=_retry_after(earlier, service.context.real_now()),
        )
    media_type = "application/json" if earlier.status < 400 else MEDIA_TYPE
    body = seal.open(earlier.body) if seal else earlier.body
    return Response(body, earlier.status, {"Idempotency-Replayed": "true"}, media_type=media_type)


def _retry_after(earlier: IdempotencyRecord | None, now: datetime) -> int:
    """Return the seconds after which a retry probably gets an answer.

    If the process of the first request may have died, this is the rest of the lease: a client that makes only a few retries,
    one second apart, would fail although a later retry succeeds.
    """
    soon = math.ceil(SOON.total_seconds())
    if earlier is None:
        return soon
    rest = earlier.lease_ends_at - now
    return soon if rest > LEASE - SOON else max(math.ceil(rest.total_seconds()), soon)
