"""What a merchant passes on may hold a card number that a shopper typed. It is masked before anything is kept or said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from cuota.core.wire.card_text import masked, masked_tree, may_hold_card

# Keys, amounts and addresses that the merchant must find again as it sent them.
KEPT = frozenset(
    {
        *("merchantId", "merchantReference", "reference", "sku", "signature", "amount", "price", "quantity"),
        *("redirectConfirmUrl", "redirectCancelUrl", "statusCallbackUrl", "callbackUrl", "redirect_uri"),
    }
)


def without_cards(body: dict[str, Any], raw: bytes) -> dict[str, Any]:
    """The body of `raw`, every card number in its free text masked. Mostly one scan of the raw body."""
    if not may_hold_card(raw):
        return body
    clean: dict[str, Any] = masked_tree(body, KEPT)
    shopper = clean.get("shopper")
    for part, name in ((clean, "additionalData"), (shopper, "additional_data")):
        if isinstance(part, dict) and isinstance(part.get(name), dict):
            # Here a number is kept as it is written.
            part[name] = {key: _as_text(value) for key, value in part[name].items()}
    return clean


def _as_text(value: Any) -> Any:
    if isinstance(value, bool) or value is None or isinstance(value, dict | list | str):
        return value
    text = masked(str(value))
    return text if "*" in text else value


def fields_without_cards(fields: Sequence[tuple[str, str]], encoded: bytes) -> Sequence[tuple[str, str]]:
    """The same for the fields of a form or a query."""
    if not may_hold_card(unquote_to_bytes(encoded)):
        return fields
    kept = tuple(name.lower() for name in KEPT)
    return [
        (masked(name), value if name.lower().rpartition(".")[2] in kept else masked(value))
        for name, value in fields
    ]
