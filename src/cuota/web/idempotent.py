"""The Idempotency-Key header: the same key and body within 24 hours answers what was answered."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.refusal import Code, Refused
from cuota.db.order import idempotency
from cuota.db.order.outcomes import Answer
from cuota.db.pool import BUSY, GONE, Pool, unavailable
from cuota.db.vault import Vault
from cuota.flows.context import utc_now
from cuota.web.problem import MEDIA_TYPE, body_of, status_of
from cuota.web.service import Service, service_of

LONGEST_KEY = 255
# Answers that say nothing about the request itself are not kept: the same key may ask again.
NOT_KEPT = {Code.UNAVAILABLE, Code.RATE_LIMITED, Code.INTERNAL_ERROR, Code.IDEMPOTENCY_IN_PROGRESS}
NO_ANSWER = (
    "The database went away before the answer could be kept, and it is not known whether this was done. "
    "Repeat the request with the same Idempotency-Key."
)

Keep = Callable[[bytes], Answer]
Run = Callable[[Keep | None], Awaitable[bytes]]
Act = Callable[[], Awaitable[bytes]]


def _key_of(request: Request) -> str | None:
    values = request.headers.getlist("idempotency-key")
    if not values:
        return None
    key = values[0].strip()
    # The draft standard writes the key as a quoted string; an unquoted token is the same key.
    if len(key) >= 2 and key[0] == key[-1] == '"':
        key = key[1:-1]
    if len(values) > 1 or not key or len(key) > LONGEST_KEY or not key.isascii() or not key.isprintable():
        message = f"Send one Idempotency-Key of 1 to {LONGEST_KEY} printable ASCII characters."
        raise Refused(Code.BAD_HEADER, message)
    return key


@dataclass(frozen=True, slots=True)
class _Seal:
    """Keeps an answer that holds a secret encrypted, bound to its merchant and key. Of no use to money's `keep`."""

    vault: Vault
    bound_to: str

    def close(self, body: bytes) -> bytes:
        return self.vault.encrypt(body.decode(), self.bound_to)

    def open(self, stored: bytes) -> bytes:
        return self.vault.decrypt(stored, self.bound_to).encode()


async def answer_plain(
    request: Request, merchant_id: UUID, body: bytes, act: Act, *, secret: bool = False
) -> Response:
    """For a POST that moves no money: lease the key, act, store what was answered. `secret`: store it encrypted.

    A process that dies on the way frees the key when its lease ends, and the same request then acts (again).
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
    """Run once a key and answer. `run` is given what to keep with the money, or None without a key."""
    key = _key_of(request)
    if key is None:
        return Response(await run(None), media_type="application/json")
    service = service_of(request)
    seal = _Seal(service.context.vault, f"idempotency:{merchant_id}:{key}") if secret else None
    pool, now, lease = service.context.pool, utc_now(), service.context.new_id()
    target = f"{request.method} {request.url.path}?{request.url.query}\n".encode()
    asked = hashlib.sha256(target + body).digest()
    if not await idempotency.claim(pool, merchant_id, key, asked, lease, now):
        return await _earlier(service, merchant_id, key, asked, seal)
    kept = False

    def keep(answered: bytes) -> Answer:
        nonlocal kept
        kept = True
        return Answer(key, lease, 200, answered)

    try:
        content = await run(keep)
    except Refused as refused:
        if refused.code in NOT_KEPT:
            await _free(pool, merchant_id, key, lease)
        else:
            problem = _problem(request, service, refused)
            problem = seal.close(problem) if seal else problem
            await idempotency.finish(pool, merchant_id, key, lease, status_of(refused), problem)
        raise
    except BaseException:
        await _free(pool, merchant_id, key, lease)
        raise
    if not kept:
        # A dry run, or a call that moves no money, saves nothing that its answer could have been kept with.
        stored = seal.close(content) if seal else content
        try:
            await idempotency.finish(pool, merchant_id, key, lease, 200, stored)
        except Refused:
            # It says that nothing was applied. That is so of this statement, not of what was done before it.
            raise unavailable(NO_ANSWER) from None
    return Response(content, media_type="application/json")


async def _free(pool: Pool, merchant_id: UUID, key: str, lease: UUID) -> None:
    """Free the key. Where that fails its lease ends by itself: the caller is told what became of the request."""
    with contextlib.suppress(Refused, *GONE, *BUSY):
        await idempotency.release(pool, merchant_id, key, lease)


def _problem(request: Request, service: Service, refused: Refused) -> bytes:
    public_url, request_id = service.settings.public_url, request.scope["request_id"]
    return body_of(refused, public_url=public_url, path=request.url.path, request_id=request_id)


async def _earlier(
    service: Service, merchant_id: UUID, key: str, asked: bytes, seal: _Seal | None
) -> Response:
    kept = await idempotency.read(service.context.pool, merchant_id, key, asked)
    if kept is not None and not kept.same_request:
        message = "This Idempotency-Key was used for a different request. Use a new key for a new request."
        raise Refused(Code.IDEMPOTENCY_KEY_REUSED, message)
    if kept is None or kept.status is None or kept.body is None:
        message = "The first request with this Idempotency-Key is still in progress. Try again shortly."
        raise Refused(Code.IDEMPOTENCY_IN_PROGRESS, message, retry_after=1)
    media_type = "application/json" if kept.status < 400 else MEDIA_TYPE
    body = seal.open(kept.body) if seal else kept.body
    return Response(body, kept.status, {"Idempotency-Replayed": "true"}, media_type=media_type)
