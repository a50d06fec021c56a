"""core/plan/agreement_values and agreement_words: the stored values of an agreement, and the words that never change."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from cuota.core.installment import schedule
from cuota.core.plan.agreement import accepted_text, agreement
from cuota.core.plan.agreement_values import UnreadableAgreement, read_values
from cuota.core.plan.agreement_words import WORDINGS
from support.core.values import PROFILE, TODAY

SHORT = (
    '[1,"Jordan Rivera","Shop","Cuota","Cuota, 1 Main Street","https://a.example",7,"USD",'
    '[[2604,"2026-11-21"],[2604,"2026-12-05"],[2604,"2026-12-19"],[2603,"2027-01-02"]],[412,"71.74",7399,7811]]'
)
# The samples have every sentence, weekday, month, form of an amount and currency. They are written out, so that their texts depend
# on nothing but the words.
SAMPLES: tuple[list[Any], ...] = (
    json.loads(SHORT),
    [1, 'José O"Brien', "Shop", "Cuota", "Oak LLC, 1 Main Street", "", 30, "CAD", [[123_456_789, "2026-11-21"]], None],
    *(
        [1, "Jordan Rivera", "Shop", "Cuota", "", "", 7, "USD", [[n, str(date(2026, 11, 21) + timedelta(29 * n))]], None]
        for n in range(14)
    ),
)  # fmt: skip
# The hash of the samples in each version. A changed hash is a changed version, which must never happen: the texts that
# consumers accepted would not have their hashes any more. Give changed words a new version instead (core/plan/agreement_words.py).
PINNED = {1: "a3b86ec3bc2e7e70bc37636ad8a9db92bbb395c53a07ad49809020ff8bd88cd3"}


def test_the_words_of_each_version_never_change() -> None:
    for version in WORDINGS:
        texts = (accepted_text(_json([version, *row[1:]])) for row in SAMPLES)
        assert hashlib.sha256("\n\n\n".join(texts).encode()).hexdigest() == PINNED[version]


def test_no_version_of_the_words_is_ever_removed() -> None:
    assert set(WORDINGS) == set(PINNED)


def test_the_values_are_a_short_array_in_one_form() -> None:
    written = agreement(
        "Cuota", "Shop", PROFILE, schedule(10_003, 412, TODAY), "USD", 7, "Cuota, 1 Main Street", "https://a.example"
    )  # fmt: skip
    assert written.values == SHORT
    free = agreement("Cuota", "Shop", PROFILE, schedule(10_003, 0, TODAY), "USD", 7)
    assert free.values.endswith(',[2500,"2027-01-02"]],null]')
    named = agreement(
        "Cuota", "Shop", replace(PROFILE, surname='José O"Brien'), schedule(1, 0, TODAY), "USD", 7
    )
    assert named.values.startswith('[1,"Jordan José O\\"Brien","Shop",')


def _json(row: list[Any]) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


CHANGED = [
    (1, "Jordan Riviera"), (2, "Other"), (3, "Other"), (4, ""), (5, ""), (6, 8), (7, "CAD"), (8, [[10_415, "2026-11-21"]]),
    (8, [[2604, "2026-11-22"], [2604, "2026-12-05"], [2604, "2026-12-19"], [2603, "2027-01-02"]]),
    (9, None), (9, [411, "71.74", 7399, 7811]), (9, [412, "71.75", 7399, 7811]), (9, [412, "71.74", 7398, 7811]),
    (9, [412, "71.74", 7399, 7810]),
]  # fmt: skip


@pytest.mark.parametrize(("place", "value"), CHANGED)
def test_each_value_is_in_the_text_and_so_protected_by_its_hash(place: int, value: object) -> None:
    row = json.loads(SHORT)
    assert row[place] != value
    row[place] = value
    assert accepted_text(_json(row)) != accepted_text(SHORT)


WRONG = [
    "[", "[]", "[1]", '["text"]', SHORT[:-1], f"{SHORT} ", SHORT.replace(",7,", ", 7,"), SHORT.replace(",7,", ",7.0,"),
    SHORT.replace(",7,", ",true,"), SHORT.replace(",7,", ',"7",'), SHORT.replace('"Shop"', "null"),
    SHORT.replace('"Shop"', '"Sh\\u006fp"'), SHORT.replace("2604", "2604.0"), SHORT.replace("2604", "26e2"),
    SHORT.replace("2026-11-21", "20261121"), SHORT.replace("2026-11-21", "2026-11-31"), SHORT.replace('"71.74"', "71.74"),
    SHORT.replace("[412,", "["), SHORT.replace(",[412", ",0,[412"), SHORT.replace("[412,", "{").replace("7811]]", "7811}]"),
]  # fmt: skip


@pytest.mark.parametrize("stored", WRONG)
def test_values_in_any_other_form_are_refused(stored: str) -> None:
    with pytest.raises(UnreadableAgreement, match="is not the values of an agreement"):
        read_values(stored)


@pytest.mark.parametrize("depth", [3_000, 100_000])
def test_values_that_are_nested_too_deeply_are_refused(depth: int) -> None:
    with pytest.raises(UnreadableAgreement, match="is not the values of an agreement"):
        read_values("[" * depth)


def test_the_words_of_a_newer_release_are_refused_with_what_to_do() -> None:
    with pytest.raises(
        UnreadableAgreement, match=r"version 99, which this release .* Start the newest release"
    ):
        accepted_text(SHORT.replace("[1,", "[99,", 1))


def test_an_erased_agreement_has_no_text() -> None:
    assert accepted_text("") == ""
