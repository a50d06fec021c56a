"""Which owners are accepted, and the limit for the sum of all shares."""

from __future__ import annotations

from datetime import date

import pytest

from cuota.core.onboarding.owner import OwnerDetails, read_owner, require_shares
from cuota.core.onboarding.problem import BadOnboarding
from support.onboarding import OWNER

TODAY = date(2026, 11, 23)


def errors_of(**changed: str) -> dict[str, str]:
    with pytest.raises(BadOnboarding) as caught:
        read_owner({**OWNER, **changed}, TODAY)
    return caught.value.errors


@pytest.mark.parametrize("typed", ["05/17/1980", "5/17/1980", "1980-05-17"])
def test_a_date_of_birth_is_read_in_the_formats_of_people_and_browsers(typed: str) -> None:
    found = read_owner({**OWNER, "born": typed}, TODAY)
    assert found == OwnerDetails("Jordan Rivera", date(1980, 5, 17), 6000, controlling=True)


@pytest.mark.parametrize(
    "typed", ["", "17.05.1980", "02/30/1980", "05/17/80", "1899-12-31", "2026-11-23", "x"]
)
def test_another_text_is_not_a_date_of_birth(typed: str) -> None:
    assert set(errors_of(born=typed)) == {"born"}


@pytest.mark.parametrize("typed", ["", "-1", "101", "60.123", "sixty"])
def test_a_share_is_a_percentage(typed: str) -> None:
    assert set(errors_of(share=typed)) == {"share"}


def test_an_owner_of_less_than_a_quarter_must_control_the_business() -> None:
    assert "25 %" in errors_of(share="24.99", controlling="")["share"]
    assert read_owner({**OWNER, "share": "25", "controlling": ""}, TODAY).share == 2500
    assert read_owner({**OWNER, "share": "0"}, TODAY).share == 0


@pytest.mark.parametrize("typed", ["", " ", "123", "x" * 101, "A\x07B"])
def test_a_name_has_letters(typed: str) -> None:
    assert set(errors_of(name=typed)) == {"name"}


def test_the_shares_of_the_owners_are_at_most_one_hundred_percent() -> None:
    half = OwnerDetails("A", date(1980, 1, 1), 5000, controlling=True)
    require_shares([half, half])
    with pytest.raises(BadOnboarding, match=r"100\.01 %"):
        require_shares([half, half, OwnerDetails("B", date(1980, 1, 1), 1, controlling=True)])
    with pytest.raises(BadOnboarding, match="At most 10"):
        require_shares([OwnerDetails("B", date(1980, 1, 1), 0, controlling=True)] * 11)
