"""Make the rails that the settings name."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from cuota.rails.card import Books, CardRail, SandboxCardRail
from cuota.rails.message import MessageRail, SandboxMessageRail


class NoSuchRail(Exception):  # noqa: N818 - stops the start
    """A rail's dotted path leads nowhere; the text names the setting."""


@dataclass(frozen=True, slots=True)
class Rails:
    """Everything that reaches outside."""

    card: CardRail
    message: MessageRail


def load(card: str, message: str, books: Books) -> Rails:
    """Make both; raise NoSuchRail before anything is served."""
    return Rails(
        card=SandboxCardRail(books) if card == "sandbox" else _named("CUOTA_CARD_RAIL", card)(books),
        message=SandboxMessageRail() if message == "sandbox" else _named("CUOTA_MESSAGE_RAIL", message)(),
    )


def _named(setting: str, path: str) -> Any:
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as problem:
        raise NoSuchRail(f"{setting}: {path} cannot be loaded: {problem}.") from None
