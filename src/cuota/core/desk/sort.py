"""The orders in which the dashboard's lists are shown."""

from __future__ import annotations

from enum import StrEnum


class Sort(StrEnum):
    """The order of a list. DEADLINE is only for disputes: what is to be answered first."""

    NEWEST = "newest"
    OLDEST = "oldest"
    LARGEST = "largest"
    SMALLEST = "smallest"
    DEADLINE = "deadline"

    @property
    def by_amount(self) -> bool:
        """Whether the amounts decide, and the time only between rows of one amount."""
        return self in {Sort.LARGEST, Sort.SMALLEST}


SORT_WORDS = {
    Sort.NEWEST: "Newest first",
    Sort.OLDEST: "Oldest first",
    Sort.LARGEST: "Largest first",
    Sort.SMALLEST: "Smallest first",
}
DISPUTE_SORT_WORDS = {**SORT_WORDS, Sort.DEADLINE: "Answer due first"}


def read_sort(typed: str, words: dict[Sort, str]) -> Sort:
    """Return the order that an address asks for; NEWEST if it is none of these."""
    return Sort(typed) if typed in {each.value for each in words} else Sort.NEWEST
