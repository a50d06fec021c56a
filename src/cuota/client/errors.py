"""The exceptions that the client raises. Your code may depend on the class and on `code`; the texts may change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cuota.client.answers import Balances, FieldError, Original


class CuotaError(Exception):
    """The base class of the client's exceptions. Wrong arguments raise TypeError or ValueError instead.

    `undecided`: the call may have been applied, although no answer confirms that. Keep its reference or key, and repeat
    the call with the same reference or key. `idempotency_key` is the key that was sent, or None.
    """

    undecided = False
    idempotency_key: str | None = None


class RequestRefused(CuotaError):
    """The service refused the call, and nothing was applied. `raw` is the whole answer.

    The refusal of a capture, void or refund has `balances`. If the reference was used before, `original` is the earlier call.
    """

    def __init__(self, status: int, raw: Mapping[str, Any], request_id: str = "") -> None:
        super().__init__(status, raw, request_id)
        self.status = status
        self.raw = raw
        self.code = str(raw.get("code") or raw.get("error") or f"http_{status}")
        self.message = str(
            raw.get("message") or raw.get("error_description") or "The service refused the call."
        )
        self.request_id = str(raw.get("requestId") or request_id)
        self.errors = tuple(FieldError.read(each) for each in _objects(raw.get("errors")))
        balances, original = raw.get("balances"), raw.get("original")
        self.balances = Balances.read(balances) if isinstance(balances, Mapping) else None
        self.original = Original.read(original) if isinstance(original, Mapping) else None

    def __str__(self) -> str:
        fields = "".join(f" [{error.field}: {error.message}]" for error in self.errors)
        return f"{self.code} ({self.status}): {self.message}{fields}"


class Unauthorized(RequestRefused):
    """The service does not accept the credentials or the access token.

    They may be revoked, mistyped, or for another environment.
    """


class NotFound(RequestRefused):
    """Your account has no such order, dispute, event or endpoint."""


class DuplicateReference(RequestRefused):
    """The reference was used on this order before, for a different amount or operation: see `original`."""


class Unavailable(CuotaError):
    """There is no answer that decides the call, because of a network error, an overload, or a proxy.

    The client raises this only after its retries. `retry_after` is the wait in seconds that the service asked for, or None.
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
        advice = (
            " The call may have been applied: repeat it with the same reference or key."
            if self.undecided
            else ""
        )
        return f"{self.code}: {self.message}{advice}"


class RateLimited(Unavailable):
    """The rate limit was exceeded, and the client's retries did not help: see `retry_after`."""


class BadWebhook(CuotaError):
    """It is not proven that the webhook comes from the service. Answer 401, and do not use its content."""


_CLASSES: Mapping[int, type[RequestRefused]] = {401: Unauthorized, 404: NotFound}


def refused(status: int, raw: Mapping[str, Any], request_id: str) -> RequestRefused:
    """Make the exception for a refusal. `raw` is the JSON of the answer."""
    kind = _CLASSES.get(status, RequestRefused)
    if raw.get("code") == "duplicate_reference":
        kind = DuplicateReference
    return kind(status, raw, request_id)


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
