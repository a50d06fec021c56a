"""The values that an action changed, as a person reads them in a log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def changes_of(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> list[str]:
    """Return a text for each value that an action changed."""
    old, new = before or {}, after or {}
    return [
        f"{name}: {old.get(name, 'none')} → {new.get(name, 'none')}"
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]
