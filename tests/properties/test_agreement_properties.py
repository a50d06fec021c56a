"""Properties of every agreement: its stored values give the text that earlier releases stored."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cuota.core.consumer import Profile
from cuota.core.installment import schedule
from cuota.core.plan.agreement import accepted_text, agreement
from support.core.agreement_before import text_before
from support.core.values import PROFILE
from support.properties.steady import STEADY

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)
FEES = st.one_of(st.just(0), st.integers(0, 10**6))


@st.composite
def agreed(draw: st.DrawFn) -> tuple[Any, ...]:
    """Draw the arguments of `agreement`."""
    who = Profile(draw(WORDS), draw(WORDS), "jordan@mail.example", PROFILE.address)
    plan = schedule(draw(st.integers(1, 10**9)), draw(FEES), draw(st.dates()))
    currency, days = draw(st.sampled_from(["USD", "CAD"])), draw(st.integers(1, 90))
    provider = draw(WORDS)
    creditor = draw(st.sampled_from(["", provider, f"{provider} LLC, 1 Main Street", draw(WORDS)]))
    return provider, draw(WORDS), who, plan, currency, days, creditor, draw(WORDS)


@STEADY
@given(agreed())
def test_the_text_made_from_the_values_is_the_text_of_earlier_releases(said: tuple[Any, ...]) -> None:
    written = agreement(*said)
    assert written.text == text_before(*said)
    assert accepted_text(written.values) == written.text


@STEADY
@given(agreed())
def test_the_text_of_an_earlier_release_is_read_as_it_is(said: tuple[Any, ...]) -> None:
    # Every text of an earlier release begins with these words, so no text is taken for values.
    text = text_before(*said)
    assert text.startswith("This agreement is between ")
    assert accepted_text(text) == text
