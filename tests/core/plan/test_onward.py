"""The payments that a consumer chose, in the query of the plan's page."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest

from cuota.core.plan.onward import Onward, read_numbers, read_onward


def test_the_query_of_chosen_payments_is_read_as_it_was_written() -> None:
    onward = Onward(2, (3, 4))
    read = parse_qs(onward.query)
    assert read_onward(read["paying"][0], read["then"][0]) == onward


@pytest.mark.parametrize(
    "text",
    ["", "0", "1,", ",1", "1,1", "1;2", "100", "-1", "1 ,2", "\u0661", ",".join(map(str, range(1, 42)))],
)
def test_a_text_that_is_no_list_of_different_payments_names_none(text: str) -> None:
    assert read_numbers(text) == []
    assert read_onward("1", text) is None


def test_only_one_payment_is_charged_at_a_time() -> None:
    assert read_onward("1,2", "3") is None
