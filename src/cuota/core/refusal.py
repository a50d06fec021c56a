"""Refusals: errors with a stable code. Only `web/problem` turns them into HTTP responses."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from cuota.core.expected_failure import ExpectedFailure


class Code(StrEnum):
    """The codes of all refusals. Merchants' programs depend on them."""

    MALFORMED_REQUEST = "malformed_request"
    VALIDATION_FAILED = "validation_failed"
    AMOUNT_OUT_OF_RANGE = "amount_out_of_range"
    BAD_HEADER = "bad_header"
    UNAUTHORIZED = "unauthorized"
    INSUFFICIENT_SCOPE = "insufficient_scope"
    MERCHANT_SUSPENDED = "merchant_suspended"
    MERCHANT_NOT_APPROVED = "merchant_not_approved"
    INVALID_SIGNATURE = "invalid_signature"
    ORIGIN_NOT_REGISTERED = "origin_not_registered"
    NOT_FOUND = "not_found"
    ORDER_NOT_FOUND = "order_not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    BODY_TOO_LARGE = "body_too_large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type"
    IDEMPOTENCY_KEY_REUSED = "idempotency_key_reused"
    IDEMPOTENCY_IN_PROGRESS = "idempotency_in_progress"
    REFUND_EXCEEDS_CAPTURED = "refund_exceeds_captured"
    CAPTURE_EXCEEDS_AUTHORIZED = "capture_exceeds_authorized"
    VOID_EXCEEDS_UNCAPTURED = "void_exceeds_uncaptured"
    DUPLICATE_REFERENCE = "duplicate_reference"
    MISSING_REFERENCE = "missing_reference"
    INVALID_AMOUNT = "invalid_amount"
    ORDER_NOT_COMPLETED = "order_not_completed"
    AUTHORIZATION_EXPIRED = "authorization_expired"
    DISPUTE_NOT_FOUND = "dispute_not_found"
    DISPUTE_NOT_POSSIBLE = "dispute_not_possible"
    DISPUTE_STATE = "dispute_state"
    BAD_FILE = "bad_file"
    RETURN_NOT_POSSIBLE = "return_not_possible"
    CHARGEBACK_OPEN = "chargeback_open"
    RATE_LIMITED = "rate_limited"
    UNAVAILABLE = "unavailable"
    INTERNAL_ERROR = "internal_error"


@dataclass(frozen=True, slots=True)
class FieldError:
    """One problem with one field. `field` is its dotted path, `code` is stable, `message` says what to do."""

    field: str
    code: str
    message: str


class Refused(ExpectedFailure):
    """A request was refused. The exception contains what the client needs to correct the request.

    `facts` are additional members of the error body (`balances`, `original`), as JSON values.
    `retry_after` is in whole seconds.
    """

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        errors: tuple[FieldError, ...] = (),
        facts: dict[str, object] | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.errors = errors
        self.facts = facts or {}
        self.retry_after = retry_after
