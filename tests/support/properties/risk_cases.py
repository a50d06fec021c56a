"""Facts of every kind, and policies: the standard policy with other numbers."""

from __future__ import annotations

import re
from contextlib import suppress

from hypothesis import strategies as st

from cuota.core.risk.facts import Approvals, Facts, History, Mismatches, Velocity
from cuota.core.risk.policy import BadPolicy, Policy, load_policy
from support.core.risk_values import STANDARD, STANDARD_TEXT

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
NUMBERS = [
    (start + found.start(), start + found.end())
    for line in re.finditer(r"^\w+ = [^#\n]*", STANDARD_TEXT, re.MULTILINE)
    for start in [line.start()]
    for found in NUMBER.finditer(line[0])
]
INTEGERS = st.integers(-100, 1_200)
WRITTEN = st.one_of(
    INTEGERS.map(str),
    st.integers().map(str),
    st.integers(0, 10**6).map(lambda cents: f"{cents // 100}.{cents % 100:02d}"),
    st.floats().map(str),
)
NEARBY = st.one_of(
    st.integers(-60, 0).map(str),
    st.integers(0, 100).map(str),
    st.integers(400, 800).map(str),
    st.integers(100, 5_000).map(lambda whole: f"{whole}.00"),
)


@st.composite
def mutations(draw: st.DrawFn, written: st.SearchStrategy[str] = WRITTEN) -> str:
    """Return the standard policy's text with one to four numbers changed."""
    text = STANDARD_TEXT
    places = draw(st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=4, unique=True))
    for start, end in sorted(places, reverse=True):
        text = text[:start] + draw(written) + text[end:]
    return text


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Return the standard policy with several numbers changed, one after the other. Skip changes with which the policy
    does not load."""
    text, policy = STANDARD_TEXT, STANDARD
    for start, end in sorted(draw(st.lists(st.sampled_from(NUMBERS), max_size=8, unique=True)), reverse=True):
        changed = text[:start] + draw(NEARBY) + text[end:]
        with suppress(BadPolicy):
            policy, text = load_policy(changed), changed
    return policy


COUNTS = st.integers(0, 20)
POINTS = st.integers(-100, 100)
FIELDS = st.dictionaries(
    st.text(max_size=8), st.one_of(st.booleans(), st.integers(), st.text(max_size=8)), max_size=4
)
APPROVALS = st.builds(
    Approvals,
    st.sampled_from(["off", "trial", "on", "on"]),
    FIELDS,
    st.none() | st.text(max_size=8),
    POINTS,
    st.lists(st.tuples(st.text(max_size=8), POINTS), max_size=3).map(tuple),
)
# Most people have done nothing wrong, so that some decisions are approvals.
RARE = st.sampled_from([0, 0, 0, 0, 0, 0, 1, 1, 2, 3])
HISTORIES = st.builds(
    History,
    approved_orders=COUNTS,
    paid_installments=st.integers(0, 20),
    late_installments=RARE,
    overdue_installments=st.sampled_from([0, 0, 0, 0, 0, 0, 0, 0, 1, 3]),
    outstanding=st.just(0) | st.integers(0, 300_000),
    declined_orders=RARE,
    days_known=st.none() | st.integers(0, 500),
    disputes=st.sampled_from([0, 0, 0, 0, 0, 0, 0, 1, 1, 2]),
)
SEEN = st.sampled_from([0, 0, 0, 0, 0, 1, 20, 39, 40, 70])
VELOCITIES = st.just(Velocity()) | st.just(Velocity()) | st.builds(Velocity, SEEN, SEEN, SEEN, SEEN)
FACTS = st.builds(
    Facts,
    amount=st.integers(1, 50_000) | st.integers(1, 600_000),
    currency=st.just("USD"),
    merchant_minimum=st.just(100),
    merchant_maximum=st.just(200_000),
    history=HISTORIES,
    velocity=VELOCITIES,
    mismatches=st.builds(Mismatches, *([st.booleans()] * 4)),
    approvals=st.none() | APPROVALS,
)
WILD = st.integers()
ANY_FACTS = st.builds(
    Facts,
    amount=WILD,
    currency=st.text(),
    merchant_minimum=WILD,
    merchant_maximum=WILD,
    history=st.builds(History, *([WILD] * 6), st.none() | WILD, WILD),
    velocity=st.builds(Velocity, *([WILD] * 4)),
    mismatches=st.builds(Mismatches, *([st.booleans()] * 4)),
    approvals=st.none()
    | st.builds(Approvals, st.sampled_from(["off", "trial", "on"]), FIELDS, st.none(), WILD),
    steer=st.sampled_from(["", "decline", "approve"]),
)
