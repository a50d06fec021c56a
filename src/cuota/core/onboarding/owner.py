"""The people who own or control a merchant's business."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from uuid import UUID

from cuota.core.consumer import typed_name
from cuota.core.onboarding.problem import BadOnboarding
from cuota.core.payout.percent import percent_text, read_percent

LEAST_SHARE, WHOLE = 2500, 10_000
"""In basis points. A person with a smaller share need not be entered, unless the person controls the business (31 CFR 1010.230)."""
MOST_OWNERS = 10
LONGEST_NAME = 100
_EARLIEST = date(1900, 1, 1)


def us_day(born: date) -> str:
    """Write a date as 05/17/1980."""
    return f"{born:%m/%d/%Y}"


@dataclass(frozen=True, slots=True)
class OwnerDetails:
    """The fields of a form about an owner. `share` is in basis points; `controlling`: the person directs the business."""

    name: str
    born: date
    share: int
    controlling: bool

    @property
    def born_text(self) -> str:
        """The date of birth in the format of the forms: 05/17/1980."""
        return us_day(self.born)


@dataclass(frozen=True, slots=True)
class Owner:
    """A stored owner. `version` increases with each change."""

    owner_id: UUID
    version: int
    details: OwnerDetails


FIELDS = ("name", "born", "share", "controlling")


def read_owner(form: dict[str, str], today: date) -> OwnerDetails:
    """Read an owner from the fields of a form. Raises BadOnboarding with an error for each wrong field."""
    errors: dict[str, str] = {}
    name = " ".join(typed_name(form.get("name", "")).split())
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable() or not any(map(str.isalpha, name)):
        errors["name"] = f"Enter the person's first and last name, in at most {LONGEST_NAME} characters."
    born = _read_day(form.get("born", ""))
    if born is None or not _EARLIEST <= born < today:
        errors["born"] = "Enter the date of birth, such as 05/17/1980."
    share, controlling = read_percent(form.get("share", "")), form.get("controlling") == "yes"
    if share is None:
        errors["share"] = (
            "Enter the share in percent, such as 25 or 33.33. Enter 0 if the person owns nothing."
        )
    elif share < LEAST_SHARE and not controlling:
        errors["share"] = "Only people with 25 % or more are named here, and those who control the business."
    if errors:
        raise BadOnboarding(errors)
    assert born is not None
    assert share is not None
    return OwnerDetails(name, born, share, controlling)


def require_shares(owners: Sequence[OwnerDetails]) -> None:
    """Raise BadOnboarding if there are too many owners, or if their shares exceed 100 percent."""
    if len(owners) > MOST_OWNERS:
        raise BadOnboarding.of(f"At most {MOST_OWNERS} people can be named.")
    owned = sum(each.share for each in owners)
    if owned > WHOLE:
        raise BadOnboarding.of(f"All shares together are {percent_text(owned)} %. Check each share.", "share")


def _read_day(typed: str) -> date | None:
    """Read 1980-05-17, which browsers send, or 05/17/1980."""
    iso = re.fullmatch(r"([0-9]{4})-([0-9]{2})-([0-9]{2})", typed, re.ASCII)
    us = re.fullmatch(r"([0-9]{1,2})/([0-9]{1,2})/([0-9]{4})", typed, re.ASCII)
    try:
        if iso:
            return date(int(iso[1]), int(iso[2]), int(iso[3]))
        return date(int(us[3]), int(us[1]), int(us[2])) if us else None
    except ValueError:
        return None
