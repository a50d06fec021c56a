"""The sort orders of the dashboard's lists."""

from __future__ import annotations

from enum import StrEnum


class Sort(StrEnum):
    """The sort order of a list. DEADLINE is only for disputes: the earliest deadline comes first."""

    NEWEST = "newest"
    OLDEST = "oldest"
    LARGEST = "largest"
    SMALLEST = "smallest"
    DEADLINE = "deadline"

    @property
    def by_amount(self) -> bool:
        """Whether the list is sorted by amount, and by time only among rows of the same amount."""
        return self in {Sort.LARGEST, Sort.SMALLEST}


SORT_WORDS = {
    Sort.NEWEST: "Newest first",
    Sort.OLDEST: "Oldest first",
    Sort.LARGEST: "Largest first",
    Sort.SMALLEST: "Smallest first",
}
DISPUTE_SORT_WORDS = {**SORT_WORDS, Sort.DEADLINE: "Answer due first"}


def read_sort(typed: str, words: dict[Sort, str]) -> Sort:
    """Return the sort order in a page's address, or NEWEST if `words` does not have it."""
    return Sort(typed) if typed in {each.value for each in words} else Sort.NEWEST
