"""Rate limits on one-time codes by text. They are needed because each text costs money and anybody can request one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Limit(StrEnum):
    """What codes are counted by. If several limits are reached, a refusal names the first of them."""

    BROWSER = "browser"  # one session of a browser
    ADDRESS = "address"  # the client's IP address
    NUMBER = "number"  # the phone number, for requests from all addresses
    NUMBER_FROM_ADDRESS = "number_from_address"  # the phone number, for requests from one address
    ORDER = "order"  # one checkout, in all browsers together
    PREFIX = "prefix"  # area code and exchange, against floods of texts to ranges of numbers
    INSTALLATION = "installation"  # all codes of the installation


@dataclass(frozen=True, slots=True)
class TextLimits:
    """The limits that an operator can set, in codes per hour. None means no limit."""

    installation: int | None = None
    prefix: int | None = None
    address: int | None = None
