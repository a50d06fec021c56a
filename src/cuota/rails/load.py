"""Make the rails that the settings name."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from cuota.rails.bounded import BoundedCardRail
from cuota.rails.card import Books, CardRail, SandboxCardRail
from cuota.rails.message import MessageRail, SandboxMessageRail


class NoSuchRail(Exception):  # noqa: N818 - stops the start
    """A rail's dotted path leads nowhere; the text names the setting."""


@dataclass(frozen=True, slots=True)
class Rails:
    """Everything that reaches outside."""

    card: CardRail
    message: MessageRail


def load(card: str, message: str, books: Books, *, sandbox: bool) -> Rails:
    """Make both; raise NoSuchRail before anything is served. Production takes no simulator, by whatever name."""
    card_rail = SandboxCardRail(books) if card == "sandbox" else _named("CUOTA_CARD_RAIL", card)(books)
    message_rail = SandboxMessageRail() if message == "sandbox" else _named("CUOTA_MESSAGE_RAIL", message)()
    if not sandbox and isinstance(card_rail, SandboxCardRail):
        raise NoSuchRail("CUOTA_CARD_RAIL: production needs a real rail, and this one is simulated.")
    if not sandbox and message_rail.shown_code is not None:
        raise NoSuchRail("CUOTA_MESSAGE_RAIL: production needs a real rail, and this one shows its codes.")
    return Rails(card=BoundedCardRail(card_rail), message=message_rail)


def _named(setting: str, path: str) -> Any:
    module, _, name = path.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as problem:
        raise NoSuchRail(f"{setting}: {path} cannot be loaded: {problem}.") from None
