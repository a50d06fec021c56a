"""The fields that the request log keeps, each with the shape of the values that are kept in it.

A value of another shape may be anything, such as a name or a card number in the wrong field. `core/wire/log_mask.py` replaces it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from cuota.core.dispute.dispute import DisputeKind, DisputeOutcome, DisputeStatus
from cuota.core.order.event import EVENT_TYPES, TEST_EVENT
from cuota.core.order.order import Status
from cuota.core.payout.line import LineType
from cuota.core.payout.payout import PayoutStatus
from cuota.core.payout.terms import RefundFee

ValueShape = Callable[[str], object]

_GUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
_NUMBER = re.compile(r"-?(?:[0-9]{1,12}|[0-9]{1,3}(?:,[0-9]{3}){1,3})(?:\.[0-9]{1,20})?", re.ASCII)
_ID = re.compile(
    rf"{_GUID}(?:-[1-9])?|evt_(?:test_)?[0-9a-f]{{32}}(?:_[0-9]{{1,9}})?", re.ASCII | re.IGNORECASE
)
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = re.compile(
    rf"{_DAY}(?:T[0-9]{{2}}:[0-9]{{2}}(?::[0-9]{{2}}(?:\.[0-9]{{1,9}})?)?(?:Z|[+-][0-9]{{2}}:?[0-9]{{2}})?)?",
    re.ASCII,
)
_CLOCK = re.compile(r"[0-2][0-9]:[0-5][0-9]", re.ASCII)
_ZONE = re.compile(r"UTC|[A-Z][A-Za-z]{1,15}(?:/[A-Z][A-Za-z_-]{1,30}){1,2}", re.ASCII)
_CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_CURSOR = re.compile(r"[A-Za-z0-9_+/-]{20,200}={0,2}", re.ASCII)
_STATES = frozenset([*Status, *DisputeStatus, *PayoutStatus, "ok"])
_HTTP = re.compile(r"[1-9][0-9]{2}", re.ASCII)
_FLAG = frozenset({"true", "false"})


def _any(text: str) -> bool:
    """Accept every text that has no mail address: the merchant chooses the value. Card numbers are masked separately."""
    return "@" not in text


def _flag(text: str) -> bool:
    return text.lower() in _FLAG


def _status(text: str) -> object:
    return text in _STATES or _HTTP.fullmatch(text)


def _number_or_id(text: str) -> object:
    return _NUMBER.fullmatch(text) or _ID.fullmatch(text)


def _place(text: str) -> object:
    """Accept a place in a list: a cursor, an event's id, a number or a time."""
    return _number_or_id(text) or _TIME.fullmatch(text) or _cursor(text)


def _cursor(text: str) -> object:
    """Accept an encrypted or random text: it has letters and digits."""
    return _CURSOR.fullmatch(text) and not text.isalpha() and not text.isdigit()


def _fields(shape: ValueShape, names: str) -> dict[str, ValueShape]:
    return dict.fromkeys(names.split(), shape)


def _words(names: str, words: Iterable[str]) -> dict[str, ValueShape]:
    return _fields(frozenset(words).__contains__, names)


# "checkout" is the type of a checkout of the SMI.
_TYPES = (*(each.name for each in EVENT_TYPES), TEST_EVENT, *LineType, "checkout")
# The fields whose numbers and texts are kept, if they have this shape.
SHAPES: dict[str, ValueShape] = {
    **_fields(
        _NUMBER.fullmatch,
        """amount minimumAmount maximumAmount orderAmount originalAmount capturedAmount refundedAmount voidedAmount
        shippingAmount taxAmount price quantity fee gross net captured refunded voided capturable refundable voidable withheld
        payment released reserved debt available pending fixed percent minimum reserve merchantFeeForPaymentPlan returnedToCard count size
        length bytes sequence version tries lineCount replayed milliseconds reserveDays limit""",
    ),
    **_fields(_any, "merchantReference merchantRefundReference reference refundReference sku"),
    **_fields(_number_or_id, "lineId firstLineId lastLineId"),
    **_fields(
        _ID.fullmatch, "id orderId merchantId payoutId disputeId endpointId eventId fileId returnId requestId"
    ),
    **_fields(
        _TIME.fullmatch,
        """dateTime createdDateTime expiryDateTime authorizationExpiryDateTime refundedDateTime settledDateTime
        nextTryDateTime timestamp openedAt closedAt closesAt decidedAt paidAt sentAt returnedAt submittedAt noticedAt respondBy
        appealBy arrivalDate dueDate releaseDate holdUntil effectiveAt validFrom""",
    ),
    **_fields(
        _flag,
        """success test final dryRun capture isPreOrder deferFundsCapture paused acknowledged hasMore canceled
        sameRequest""",
    ),
    **_fields(_place, "after until cursor nextCursor"),
    **_fields(_CURRENCY.fullmatch, "currency"),
    **_fields(_CLOCK.fullmatch, "cutoff"),
    **_fields(_ZONE.fullmatch, "timeZone"),
    **_fields(_HASH.fullmatch, "sha256"),
    **_words("refundFee", RefundFee),
    **_words("paymentState", ["NONE", "AUTHORIZED", "PARTIALLY_CAPTURED", "CAPTURED", "VOIDED", "EXPIRED"]),
    **_fields(_status, "status orderStatus disputeStatus"),
    **_words("outcome", DisputeOutcome),
    **_words("kind", DisputeKind),
    **_words("type", _TYPES),
    **_words(
        "operation",
        ["capture", "void", "refund", "AuthorizeOrder", "CaptureOrder", "VoidOrder", "RefundOrder"],
    ),
    **_words("acceptedByProfile", ["lenient"]),
    **_words("integrationType", ["api", "virtual_card"]),
    **_words("checkoutFlow", ["standard", "express"]),
    **_words("display", ["popup", "iframe", "redirect"]),
}
# The fields of our own refusals and warnings, in which we write the values.
OURS: dict[str, ValueShape] = {
    "type": re.compile(r"https?://[^#@\s]{1,100}/docs#[a-z_]{1,60}", re.ASCII).fullmatch,
    "field": re.compile(r"[A-Za-z_][A-Za-z0-9_.\-\[\]]{0,100}", re.ASCII).fullmatch,
    "code": re.compile(r"[a-z][a-z_.]{1,59}", re.ASCII).fullmatch,
    "error": re.compile(r"[a-z][a-z_.]{1,59}", re.ASCII).fullmatch,
}
