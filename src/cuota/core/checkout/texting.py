"""How many one-time codes go out by text in an hour: each costs money, and anybody may ask for one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Limit(StrEnum):
    """What codes are counted by, in the order in which a refusal names it."""

    BROWSER = "browser"  # one session of a browser
    ADDRESS = "address"  # the client's IP address
    NUMBER = "number"  # the phone number, whoever asks
    NUMBER_FROM_ADDRESS = "number_from_address"  # the phone number, as one address asks for it
    ORDER = "order"  # one checkout, in however many browsers it was opened
    PREFIX = "prefix"  # area code and exchange: whoever pumps texts into ranges of numbers
    INSTALLATION = "installation"  # all of them


@dataclass(frozen=True, slots=True)
class TextLimits:
    """What an operator may choose, codes an hour. None: no limit."""

    installation: int | None = None
    prefix: int | None = None
    address: int | None = None
