"""The operator's long lists have pages that do not shift, and the oldest waiting entries come first."""

from __future__ import annotations

import re
from uuid import UUID, uuid4

import pytest

from cuota.core.operator.role import OperatorRole
from cuota.flows.dispute.answer_dispute import submit_evidence
from cuota.web.pages.operator import disputes, payouts
from support.disputes import captured, disputed
from support.makers import Merchant
from support.pages.operator_staff import OperatorStaff
from support.settlement_rows import Row, paid


async def opened(merchant: Merchant, *, answered: bool = False) -> str:
    """Open a dispute. Return its page's address."""
    dispute = await disputed(merchant, await captured(merchant), 4000)
    if answered:
        ids = merchant.merchant_id, dispute.dispute_id
        await submit_evidence(merchant.service.context, *ids, "It was delivered.", [])
    return f"/operator/disputes/{dispute.dispute_id}"


def shown(operator: OperatorStaff) -> list[str]:
    """Return the disputes on the page, in its order."""
    return [
        link for link in operator.page.seen.links if re.fullmatch(r"/operator/disputes/[0-9a-f-]{36}", link)
    ]


async def test_disputes_come_newest_first_in_pages_that_do_not_shift(
    operator: OperatorStaff, merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disputes, "A_PAGE", 2)
    made = [await opened(merchant) for _ in range(3)]
    await operator.enter(OperatorRole.SUPPORT)
    await operator.open("/operator/disputes")
    found = shown(operator)
    assert len(found) == 2
    later = await opened(merchant)
    # Other tests' disputes may be newer, because they moved the clock.
    while not set(made) <= set(found):
        await operator.open(operator.page.link("Next page"))
        assert 0 < len(shown(operator)) <= 2
        found += shown(operator)
    assert [each for each in found if each in made] == made[::-1]
    assert len(set(found)) == len(found)
    assert later not in found[found.index(made[-1]) :]
    assert operator.page.link("First page") == "/operator/disputes"


async def test_disputes_to_decide_come_oldest_first_and_none_is_left_out(
    operator: OperatorStaff, merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disputes, "A_PAGE", 2)
    made = [await opened(merchant, answered=True) for _ in range(3)]
    waiting = await opened(merchant)
    await operator.enter(OperatorRole.SUPPORT)
    await operator.open("/operator/disputes?view=decide")
    found = shown(operator)
    while "Next page" in operator.page.text:
        await operator.open(operator.page.link("Next page"))
        assert 0 < len(shown(operator)) <= 2
        found += shown(operator)
    assert [each for each in found if each in made] == made
    assert waiting not in found
    assert len(set(found)) == len(found)


async def deposit(merchant: Merchant, cents: int) -> tuple[UUID, str]:
    """Make a payout. Return its id and its amount as the page shows it."""
    now = merchant.service.context.now()
    payout_id = await paid(merchant, Row("adjustment", cents, reference="goodwill"), at=now)
    return UUID(payout_id), f"${cents // 100}.{cents % 100:02}"


async def test_payouts_come_newest_first_in_pages(
    operator: OperatorStaff, merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payouts, "A_PAGE", 2)
    amounts = [(await deposit(merchant, cents))[1] for cents in (77_701, 77_702, 77_703)]
    await operator.enter(OperatorRole.FINANCE)
    page = await operator.open("/operator/payouts")
    found: list[str] = []
    # Other tests' payouts may be newer.
    while len(found) < 3:
        on_page = [amount for amount in amounts if amount in page.text]
        assert len(on_page) <= 2
        found += sorted(on_page, reverse=True)
        page = await operator.open(page.link("Next page")) if len(found) < 3 else page
    assert found == amounts[::-1]


async def test_a_payout_that_the_bank_did_not_accept_is_counted_and_listed_however_old_it_is(
    operator: OperatorStaff, merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payouts, "A_PAGE", 1)
    payout_id, amount = await deposit(merchant, 88_801)
    pool = operator.service.context.pool
    problem = (
        "UPDATE payouts SET problem = $3, tries = 4, try_at = now() WHERE merchant_id = $1 AND payout_id = $2"
    )
    await pool.fetchrow(problem, merchant.merchant_id, payout_id, "the bank is closed")
    for cents in (88_802, 88_803):
        await deposit(merchant, cents)
    await operator.enter(OperatorRole.FINANCE)
    assert "/operator/payouts?status=look" in operator.page.seen.links
    page = await operator.open("/operator/payouts?status=look")
    while amount not in page.text:
        page = await operator.open(page.link("Next page"))
    assert "4 tries, the last failed: the bank is closed" in page.text
    assert "$888.02" not in page.text
    await pool.fetchrow(problem, merchant.merchant_id, payout_id, None)


@pytest.mark.parametrize(
    "after",
    ["", "x", "_", "2026-01-01_", f"2026-01-01T00:00:00_{uuid4()}", f"0001-01-01T00:00:00%2B14:00_{uuid4()}", "%00_%00"],
    ids=["empty", "word", "line", "half", "no-zone", "too-early", "nul"],
)  # fmt: skip
@pytest.mark.parametrize("path", ["disputes", "payouts"])
async def test_an_unreadable_position_shows_the_first_page(
    operator: OperatorStaff, path: str, after: str
) -> None:
    await operator.enter()
    page = await operator.open(f"/operator/{path}?after={after}")
    assert (page.status, "First page" in page.text) == (200, False)
