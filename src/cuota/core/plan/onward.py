"""The rest of several payments that a consumer chose, while the card's bank has one of them confirmed.

It travels in the query of the plan's page: `paying=2&then=3,4`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# A plan has at most MOST_INSTALLMENTS payments (core/plan/hardship.py).
_NUMBERS = re.compile(r"[1-9][0-9]?(,[1-9][0-9]?){0,39}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Onward:
    """`paying` is the number of the payment that is being charged, `then` are the chosen payments after it."""

    paying: int
    then: tuple[int, ...]

    @property
    def query(self) -> str:
        """The part of a query that names them."""
        return f"paying={self.paying}&then={','.join(map(str, self.then))}"


def read_numbers(text: str) -> list[int]:
    """Return different numbers of payments from a text as `2,3,4`; an empty list if the text is anything else."""
    numbers = [int(number) for number in text.split(",")] if _NUMBERS.fullmatch(text) else []
    return numbers if len(set(numbers)) == len(numbers) else []


def read_onward(paying: str, then: str) -> Onward | None:
    """Return the payments that a page's query names, or None if it names none."""
    one, rest = read_numbers(paying), read_numbers(then)
    return Onward(one[0], tuple(rest)) if len(one) == 1 and rest else None
