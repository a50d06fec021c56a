"""Masks a JSON value for the request log: what a developer needs stays, and everything else goes.

The rule is a list of what may be kept (amounts, references, ids, states, codes), never a list of what must go: a new field that
holds a name is masked before anybody thinks of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from cuota.core.wire.card_text import masked

MASK = "***"
DEEPEST = 20
LONGEST_TEXT = 200
# Names of fields whose numbers and short texts are kept.
KEPT = frozenset(
    [
        "amount",
        "minimumAmount",
        "maximumAmount",
        "orderAmount",
        "originalAmount",
        "capturedAmount",
        "refundedAmount",
        "voidedAmount",
        "shippingAmount",
        "taxAmount",
        "price",
        "quantity",
        "fee",
        "gross",
        "net",
        "captured",
        "refunded",
        "voided",
        "capturable",
        "refundable",
        "voidable",
        "withheld",
        "reserved",
        "debt",
        "available",
        "pending",
        "fixed",
        "percent",
        "minimum",
        "reserve",
        "refundFee",
        "merchantFeeForPaymentPlan",
        "returnedToCard",
        "currency",
        "count",
        "size",
        "length",
        "bytes",
        "merchantReference",
        "merchantRefundReference",
        "reference",
        "refundReference",
        "sku",
        "id",
        "orderId",
        "merchantId",
        "payoutId",
        "disputeId",
        "endpointId",
        "eventId",
        "fileId",
        "lineId",
        "firstLineId",
        "lastLineId",
        "returnId",
        "requestId",
        "status",
        "paymentState",
        "orderStatus",
        "disputeStatus",
        "outcome",
        "kind",
        "type",
        "operation",
        "code",
        "field",
        "error",
        "acceptedByProfile",
        "success",
        "test",
        "final",
        "dateTime",
        "createdDateTime",
        "expiryDateTime",
        "authorizationExpiryDateTime",
        "refundedDateTime",
        "settledDateTime",
        "nextTryDateTime",
        "timestamp",
        "openedAt",
        "closedAt",
        "closesAt",
        "decidedAt",
        "paidAt",
        "sentAt",
        "returnedAt",
        "submittedAt",
        "noticedAt",
        "respondBy",
        "appealBy",
        "arrivalDate",
        "dueDate",
        "releaseDate",
        "holdUntil",
        "effectiveAt",
        "validFrom",
        "cutoff",
        "timeZone",
        "sequence",
        "version",
        "tries",
        "lineCount",
        "replayed",
        "dryRun",
        "capture",
        "isPreOrder",
        "integrationType",
        "checkoutFlow",
        "display",
        "deferFundsCapture",
        "paused",
        "milliseconds",
        "acknowledged",
        "hasMore",
        "nextCursor",
        "reserveDays",
        "canceled",
        "sameRequest",
        "sha256",
        "after",
        "until",
        "limit",
        "cursor",
    ]
)
# Objects about a person or a card. Nothing in them is kept, under whatever name.
PERSONS = frozenset(
    [
        "consumer",
        "customer",
        "buyer",
        "recipient",
        "billing",
        "shipping",
        "address",
        "phone",
        "contact",
        "card",
    ]
)
# Texts of our own. They may repeat a part of what was sent, such as a field's name.
TEXTS = frozenset({"message", "detail", "title", "hint"})
# The name of a field, and not a value in its place: no @, and few digits.
_NAME = re.compile(r"[A-Za-z_][A-Za-z_.\-\[\]]{0,60}[0-9]{0,4}", re.ASCII)
_EMAIL = re.compile(r"[^\s@]+@[^\s@]+")
# A phone number, or a longer run of digits.
_DIGITS = re.compile(r"(?<![0-9A-Za-z-])\+?\(?[0-9](?:[ ().-]{0,2}[0-9]){8,}(?![0-9A-Za-z-])")
_FEW, _LARGEST = 12, 10**12
_LONGEST_QUERY, _MOST_PARAMETERS = 2000, 50


def for_log(value: Any, name: str = "", depth: int = 0) -> Any:
    """Return a JSON value with everything masked that is not known to be harmless. `name` is the field that holds it."""
    if isinstance(value, dict | list):
        return MASK if depth >= DEEPEST else _tree(value, name, depth + 1)
    if value is None or value is True or value is False or value == "":
        return value
    if isinstance(value, str):
        return _text(value, name)
    # No amount is as large as a card number.
    return value if name in KEPT and -_LARGEST < value < _LARGEST else MASK


def _tree(value: dict[str, Any] | list[Any], name: str, depth: int) -> Any:
    if isinstance(value, list):
        return [for_log(item, name, depth) for item in value]
    return {
        # The name of a person's object stands for every name in it.
        key if key in KEPT or _NAME.fullmatch(key) else MASK: for_log(
            item, name if name in PERSONS else key, depth
        )
        for key, item in value.items()
    }


def _text(value: str, name: str) -> str:
    if name in KEPT:
        if "@" in value:
            return MASK
        return value if len(value) <= _FEW or _is_plain(value) else masked(value[:LONGEST_TEXT])
    if name in TEXTS:
        return _DIGITS.sub(MASK, _EMAIL.sub(MASK, masked(value)))[: 2 * LONGEST_TEXT]
    return MASK


def _is_plain(value: str) -> bool:
    """Whether this is a time or a GUID as the API writes them. They are frequent, and hold no card number."""
    if len(value) == 24:
        return value[10] == "T" and value[4] == value[7] == "-" and value[23] == "Z"
    return len(value) == 36 and value[8] == value[13] == value[18] == value[23] == "-"


def query_for_log(query: str) -> Mapping[str, Any]:
    """Return the first parameters of a query string, masked in the same way."""
    first = "&".join(query[:_LONGEST_QUERY].split("&")[:_MOST_PARAMETERS])
    return dict(for_log(dict(parse_qsl(first, keep_blank_values=True))))
