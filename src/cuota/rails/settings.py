"""What the settings say about rails. Every rail is created with (settings, books, vault, now)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cuota.rails.senders import Senders


@dataclass(frozen=True, slots=True)
class RailSettings:
    """The settings of all rails.

    `card`, `message` and `issuing` name the rails: a built-in one, or the dotted path of a class. `senders` are set if `message`
    is `live`. `own` holds every setting that begins with CUOTA_RAIL_, for rails that operators wrote; it may contain secrets.
    """

    card: str = "sandbox"
    message: str = "sandbox"
    issuing: str = "none"
    sandbox: bool = False
    senders: Senders | None = None
    own: Mapping[str, str] = field(default_factory=dict, repr=False)
