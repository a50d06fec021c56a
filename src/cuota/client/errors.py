"""One family of errors. Branch on the class or on `code`, never on the text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cuota.client.answers import Balances, FieldError, Original


class CuotaError(Exception):
    """Whatever the client raises, beside TypeError and ValueError for what your own code got wrong.

    `undecided`: the call may have been applied although no answer says so. Keep its reference or key, and ask again
    with the same. `idempotency_key` is the one that was sent, where there was one.
    """

    undecided = False
    idempotency_key: str | None = None


class RequestRefused(CuotaError):
    """The service answered, and refused: nothing was applied. `raw` is the whole answer.

    `balances` stand in the refusal of a capture, void or refund; `original` says what a reference was used for before.
    """

    def __init__(self, status: int, raw: Mapping[str, Any], request_id: str = "") -> None:
        super().__init__(status, raw, request_id)
        self.status = status
        self.raw = raw
        self.code = str(raw.get("code") or raw.get("error") or f"http_{status}")
        self.message = str(raw.get("message") or raw.get("error_description") or "The service refused.")
        self.request_id = str(raw.get("requestId") or request_id)
        self.errors = tuple(FieldError.read(each) for each in _objects(raw.get("errors")))
        balances, original = raw.get("balances"), raw.get("original")
        self.balances = Balances.read(balances) if isinstance(balances, Mapping) else None
        self.original = Original.read(original) if isinstance(original, Mapping) else None

    def __str__(self) -> str:
        fields = "".join(f" [{error.field}: {error.message}]" for error in self.errors)
        return f"{self.code} ({self.status}): {self.message}{fields}"


class Unauthorized(RequestRefused):
    """The credentials, or the access token, are not accepted: revoked, mistyped, or of the other environment."""


class NotFound(RequestRefused):
    """There is no such order, event or endpoint of yours."""


class DuplicateReference(RequestRefused):
    """The reference was used on this order before, for another amount: see `original`."""


class Unavailable(CuotaError):
    """No answer that decides: the network, an overload, a proxy. Tried again as often as that is safe.

    `retry_after` is in seconds, where the service said so.
    """

    def __init__(
        self, message: str, *, status: int | None = None, code: str = "unreachable",
        retry_after: float | None = None, undecided: bool = False, request_id: str = "",
    ) -> None:  # fmt: skip
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.retry_after = retry_after
        self.undecided = undecided
        self.request_id = request_id

    def __str__(self) -> str:
        known = (
            " It may have been applied: ask again with the same reference or key." if self.undecided else ""
        )
        return f"{self.code}: {self.message}{known}"


class RateLimited(Unavailable):
    """Too many requests, and longer to wait than the client waits by itself: see `retry_after`."""


class BadWebhook(CuotaError):
    """What came is not proved to come from the service. Answer 401 and read nothing of it."""


_CLASSES: Mapping[int, type[RequestRefused]] = {401: Unauthorized, 404: NotFound}


def refused(status: int, raw: Mapping[str, Any], request_id: str) -> RequestRefused:
    """The refusal that an answer is."""
    kind = _CLASSES.get(status, RequestRefused)
    if raw.get("code") == "duplicate_reference":
        kind = DuplicateReference
    return kind(status, raw, request_id)


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
