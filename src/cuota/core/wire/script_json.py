"""Converts values for the --json output of commands: names in camelCase, and money as text such as "240.00"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cuota.core import money

# The names of amounts in cents, in reports and in facts.
_CENTS = frozenset(
    {
        "approved_amount",
        "lost_amount",
        "amount",
        "merchant_minimum",
        "merchant_maximum",
        "outstanding",
        "limit",
    }
)
# The merchant's data keeps the merchant's names.
_AS_SENT = "fields"
_AVERAGE = "customer_average_order_value"


def for_scripts(value: Any, name: str = "") -> Any:
    """Return a value as JSON values for scripts. `name` is the value's name."""
    if isinstance(value, Mapping):
        if name == _AS_SENT:
            return {key: _cents(each) if key == _AVERAGE else each for key, each in value.items()}
        return {_camel(key): for_scripts(each, key) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [for_scripts(each) for each in value]
    return _cents(value) if name in _CENTS else value


def _cents(value: Any) -> Any:
    """Format cents as text. A stored value that is not an integer (altered, or of an earlier release) stays unchanged."""
    return money.text_of(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _camel(name: str) -> str:
    return re.sub(r"_([a-z0-9])", lambda found: found[1].upper(), name)
