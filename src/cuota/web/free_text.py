"""Masks card numbers in the text that merchants send.

A shopper may type a card number into any free-text field of a shop. Masking happens before anything is stored or repeated
in an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from cuota.core.wire.card_text import masked, masked_tree, may_hold_card

# Fields that are never masked: the merchant must get back these keys, amounts and addresses exactly as sent.
KEPT = frozenset(
    {
        *("merchantId", "merchantReference", "reference", "sku", "signature", "amount", "price", "quantity"),
        *("redirectConfirmUrl", "redirectCancelUrl", "statusCallbackUrl", "callbackUrl", "redirect_uri"),
    }
)


def without_cards(body: dict[str, Any], raw: bytes) -> dict[str, Any]:
    """Return `body` with every card number in its free text masked.

    `raw` is the encoded body. Usually one scan of it shows that there is nothing to mask.
    """
    if not may_hold_card(raw):
        return body
    clean: dict[str, Any] = masked_tree(body, KEPT)
    shopper = clean.get("shopper")
    for part, name in ((clean, "additionalData"), (shopper, "additional_data")):
        if isinstance(part, dict) and isinstance(part.get(name), dict):
            # A number in this map is stored with its original digits, so a card number must be masked there too.
            part[name] = {key: _as_text(value) for key, value in part[name].items()}
    return clean


def _as_text(value: Any) -> Any:
    if isinstance(value, bool) or value is None or isinstance(value, dict | list | str):
        return value
    text = masked(str(value))
    return text if "*" in text else value


def fields_without_cards(fields: Sequence[tuple[str, str]], encoded: bytes) -> Sequence[tuple[str, str]]:
    """Mask card numbers in the fields of a form or a query. `encoded` is its encoded text."""
    if not may_hold_card(unquote_to_bytes(encoded)):
        return fields
    unmasked = tuple(name.lower() for name in KEPT)
    return [
        (masked(name), value if name.lower().rpartition(".")[2] in unmasked else masked(value))
        for name, value in fields
    ]
