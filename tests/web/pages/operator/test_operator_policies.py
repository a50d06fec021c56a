"""The operator compares policies: the decisions of each version, the differences of a text, and the decisions that
another policy would make."""

from __future__ import annotations

import re

import pytest

from cuota.core.operator.role import OperatorRole
from cuota.core.risk.policy import load_policy
from cuota.db.risk import policies as stored
from support.makers import Merchant
from support.pages.operator_staff import OperatorStaff

PAGE = "/operator/risk/policies"


def in_force(operator: OperatorStaff) -> str:
    return operator.service.context.policy.text


def stricter(text: str) -> str:
    """Return a policy that approves no new consumer."""
    changed, count = re.subn(r'\nnew = "[^"]+"', '\nnew = "0.01"', text)
    assert count == 1
    return re.sub(r'version = "[^"]+"', 'version = "2027-01-strict"', changed)


async def test_the_decisions_of_the_version_in_force_are_counted(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    await merchant.approved()
    await operator.enter(OperatorRole.RISK)
    await operator.open("/operator/risk")
    page = await operator.open(operator.page.link("Policies: compare versions"))
    version = operator.service.context.policy.version
    assert f"{PAGE}/{version}" in page.seen.links
    # The cells are the last days, the number of orders, and the share of approvals.
    assert re.search(rf"{version}in force.* to .*[AP]M[1-9][0-9,]* %", page.text), page.text


async def test_a_whole_policy_can_be_simulated_and_its_changes_are_shown_and_nothing_is_stored(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    await merchant.approved()
    await operator.enter(OperatorRole.RISK)
    await operator.open(PAGE)
    text = stricter(in_force(operator))
    page = await operator.press("policies", text=text.replace("\n", "\r\n"), days="1")
    assert "What this policy would have decided" in page.text
    assert '+new = "0.01"' in page.text
    assert "newly declined for" in page.text
    assert await stored.read(operator.service.context.pool, load_policy(text).version) is None


async def test_simulating_the_text_in_force_shows_no_difference(operator: OperatorStaff) -> None:
    await operator.enter(OperatorRole.RISK)
    await operator.open(PAGE)
    page = await operator.press("policies", days="1")
    assert "Nothing: this is the text of the policy in force." in page.text


async def test_a_changed_text_with_the_version_in_force_is_refused_with_the_advice_to_use_a_new_version(
    operator: OperatorStaff,
) -> None:
    await operator.enter(OperatorRole.RISK)
    await operator.open(PAGE)
    page = await operator.press("policies", text=in_force(operator) + "\n# changed\n", days="1")
    assert "give it a new version" in page.text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1"),
        ("version = 7", "line 1"),
        ("x" * 8_999, "line 1"),
        ("[score]\nbase = 1.5", "line"),
        ("version = \x7f", "line 1"),
        ("\u202eversion", "line 1"),
    ],
    ids=["empty", "number", "long", "float", "control", "right-to-left"],
)
async def test_a_text_that_is_no_policy_is_refused_and_stays_in_the_form(
    operator: OperatorStaff, text: str, said: str
) -> None:
    await operator.enter(OperatorRole.RISK)
    await operator.open(PAGE)
    page = await operator.press("policies", text=text, days="1")
    assert (page.status, "This is not a policy" in page.text, said in page.text) == (400, True, True)


async def test_a_number_of_days_that_is_not_offered_is_refused(operator: OperatorStaff) -> None:
    await operator.enter(OperatorRole.RISK)
    await operator.open(PAGE)
    page = await operator.press("policies", days="365")
    assert (page.status, "Choose a number of days" in page.text) == (400, True)


async def test_the_page_of_a_version_has_its_text_and_its_changes(operator: OperatorStaff) -> None:
    text = stricter(in_force(operator)).replace("2027-01-strict", "2027-01-older")
    await stored.keep(operator.service.context.pool, "2027-01-older", text)
    await operator.enter(OperatorRole.RISK)
    page = await operator.open(f"{PAGE}/2027-01-older")
    assert "Compared with the policy in force" in page.text
    assert '+new = "0.01"' in page.text
    page = await operator.open(f"{PAGE}/{operator.service.context.policy.version}")
    assert "Compared with" not in page.text


@pytest.mark.parametrize(
    "version", ["nobody", "%00", "..%2f..", "a" * 3000], ids=["none", "nul", "up", "long"]
)
async def test_an_unknown_version_is_not_found(operator: OperatorStaff, version: str) -> None:
    await operator.enter(OperatorRole.RISK)
    assert (await operator.open(f"{PAGE}/{version}")).status == 404
