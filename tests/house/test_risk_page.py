"""docs/risk.md is correct: its policy loads, its tables are complete, and its numbers are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cuota.core.risk.approvals import FIELDS
from cuota.core.risk.decision import APPROVAL_CODES, DECLINE_CODES, MOST_REASONS
from cuota.core.risk.explanation import because
from cuota.core.risk.model import FEATURES
from cuota.core.risk.policy import BadPolicy, load_policy
from cuota.flows.risk.try_approvals import MATURES_AFTER
from cuota.trial import fit as risk_fit
from cuota.trial import sample as trial_sample
from cuota.trial import trial
from cuota.work.tidy import SIGNALS_KEPT

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "risk.md").read_text()
WORDS = " ".join(PAGE.split())
(POLICY,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_the_page_s_policy_loads_with_the_numbers_that_it_shows() -> None:
    policy = load_policy(POLICY)
    assert policy.version == "2026-12-careful"
    assert policy.exposure.new == 60_000
    assert [step.limit for step in policy.exposure.steps] == [100_000, 250_000]


def test_an_error_in_the_page_s_policy_names_its_line() -> None:
    lines = POLICY.split("\n")
    at = next(number for number, line in enumerate(lines, 1) if line.startswith("late_at_most"))
    lines[at - 1] = "late_at_most = -1"
    with pytest.raises(BadPolicy) as refused:
        load_policy("\n".join(lines))
    assert refused.value.line == at


def test_the_page_lists_every_field_with_both_names_and_its_measure() -> None:
    for field in FIELDS:
        assert f"\n| {field.gateway} | {field.smi} |" in PAGE, f"docs/risk.md lacks a row for {field.gateway}"
    _, measures = PAGE.split("| field | measure | more is |")
    for name, feature in FEATURES.items():
        (row,) = [
            line for line in measures.split("\n") if line.startswith("|") and name in line.split("|")[1]
        ]
        assert row.split("|")[3].strip() == ("good" if feature.good else "bad"), name


def test_the_page_lists_every_reason_with_its_meaning() -> None:
    for code in (*APPROVAL_CODES, *DECLINE_CODES):
        word = "approved" if code in APPROVAL_CODES else "declined"
        row = f"| {code} | {word} | {because(code).removeprefix(f'{code}: ')} |"
        assert row in PAGE, f"docs/risk.md lacks this row:\n{row}"


def test_the_numbers_in_the_page_are_those_of_the_code() -> None:
    most = {1: "one", 4: "four", 5: "five", 10: "ten"}
    for said in (
        f"the reasons, at most {most[MOST_REASONS]},",
        f"{trial.ENOUGH_DECIDED:,} decided orders, {trial.ENOUGH_MATURED} approved ones whose outcome is known",
        f"{trial.ENOUGH_LOSSES} losses among them, and data with at least {trial.ENOUGH_COVERED:.0%} of the orders",
        f"at most {most[trial.MOST_BINS]} groups of rising predicted risk, {trial.FEWEST_IN_A_BIN} or more in each",
        f"{trial_sample.RESAMPLES} resamples",
        f"{trial_sample.CAUTION} times what the curve says",
        f"The consumers are split into {most[risk_fit.FOLDS]}.",
        f"fewer than {risk_fit.FEWEST_LOSSES} losses there is no model",
        f"A field that fewer than {risk_fit.FEWEST_ORDERS} orders have",
        f"has matured {MATURES_AFTER.days} days after its decision",
        f"`.venv/bin/cuota time advance {MATURES_AFTER.days}d`",
        f"dropped after {SIGNALS_KEPT.days} days",
    ):
        assert said in WORDS, f"docs/risk.md does not say: {said}"
