"""Masks a JSON value for the request log: the values that a developer needs are kept, and all others are removed.

The rule is a list of what may be kept (amounts, references, ids, states, codes), not a list of what must be removed. So a new
field that contains a name is masked even if nobody thought of it. A known field is kept only if its value has the expected shape
(`core/wire/log_shapes.py`). Otherwise the log has the type and the length of the value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from cuota.core.wire.card_text import masked
from cuota.core.wire.log_shapes import OURS, SHAPES

MASK = "***"
DEEPEST = 20
LONGEST_TEXT = 200
# The names of the fields whose values may be kept.
KEPT = frozenset({*SHAPES, *OURS})
# Objects about a person or a card, and objects whose content the merchant chooses. No value in them is kept, whatever its name
# is.
CLOSED = frozenset(
    ["consumer", "customer", "buyer", "recipient", "billing", "shipping", "address", "phone", "contact", "card",
     "metadata", "additionalData"]
)  # fmt: skip
# Our own texts in a refusal or a warning. They may repeat a part of the request, such as a field's name.
TEXTS = frozenset({"message", "detail", "title", "hint"})
_NO_TEXTS: frozenset[str] = frozenset()
# A field's name, not a value in its place: it has no @ and few digits.
_NAME = re.compile(r"[A-Za-z_][A-Za-z_.\-\[\]]{0,60}[0-9]{0,4}", re.ASCII)
_EMAIL = re.compile(r"[^\s@]+@[^\s@]+")
# A phone number, or a longer sequence of digits.
_DIGITS = re.compile(r"(?<![0-9A-Za-z-])\+?\(?[0-9](?:[ ().-]{0,2}[0-9]){8,}(?![0-9A-Za-z-])")
_FEW, _LARGEST = 12, 10**12
_LONGEST_QUERY, _MOST_PARAMETERS = 2000, 50


def for_log(value: Any, name: str = "", depth: int = 0, texts: frozenset[str] = _NO_TEXTS) -> Any:
    """Return a JSON value. Every part that is not known to be harmless is masked.

    `name` is the field that contains the value. `texts` are the fields that contain our own texts.
    """
    if isinstance(value, dict | list):
        return MASK if depth >= DEEPEST else _tree(value, name, depth + 1, texts)
    if value is None or value is True or value is False or value == "":
        return value
    if isinstance(value, str):
        return _text(value, name, texts)
    return _number(value, name)


def answer_for_log(value: Any, *, refused: bool) -> Any:
    """Return one of our responses, masked in the same way. The texts of a refusal and of warnings stay readable."""
    if refused:
        return for_log(value, texts=TEXTS)
    shown = for_log(value)
    if isinstance(value, dict) and value.get("warnings"):
        shown["warnings"] = for_log(value["warnings"], "warnings", 1, TEXTS)
    return shown


def _tree(value: dict[str, Any] | list[Any], name: str, depth: int, texts: frozenset[str]) -> Any:
    if isinstance(value, list):
        return [for_log(item, name, depth, texts) for item in value]
    if name in CLOSED:
        # The name of a closed object replaces every name in the object.
        return {_shown(key): for_log(item, name, depth) for key, item in value.items()}
    return {_shown(key): for_log(item, key, depth, texts) for key, item in value.items()}


def _shown(key: str) -> str:
    return key if key in KEPT or _NAME.fullmatch(key) else MASK


def _number(value: Any, name: str) -> Any:
    shape = SHAPES.get(name)
    if shape is None:
        return MASK
    # No amount has as many digits as a card number.
    if not -_LARGEST < value < _LARGEST:
        return f"{MASK} (number, more than 12 digits)"
    text = str(value)
    return value if shape(text) else f"{MASK} (number, {sum(map(str.isdigit, text))} digits)"


def _text(value: str, name: str, texts: frozenset[str]) -> str:
    shape, ours = SHAPES.get(name), OURS.get(name) if texts else None
    if (shape is not None and shape(value)) or (ours is not None and ours(value)):
        return value if len(value) <= _FEW or _is_plain(value) else masked(value[:LONGEST_TEXT])
    if shape is not None or ours is not None:
        return f"{MASK} (text, {len(value)} characters)"
    if name in texts:
        return _DIGITS.sub(MASK, _EMAIL.sub(MASK, masked(value)))[: 2 * LONGEST_TEXT]
    return MASK


def _is_plain(value: str) -> bool:
    """Whether this is a time or a GUID in the format of the API. Such values are frequent, and never contain a card number."""
    if len(value) == 24:
        return value[10] == "T" and value[4] == value[7] == "-" and value[23] == "Z"
    return len(value) == 36 and value[8] == value[13] == value[18] == value[23] == "-"


def query_for_log(query: str) -> Mapping[str, Any]:
    """Return the first parameters of a query string, masked in the same way."""
    first = "&".join(query[:_LONGEST_QUERY].split("&")[:_MOST_PARAMETERS])
    return dict(for_log(dict(parse_qsl(first, keep_blank_values=True))))
