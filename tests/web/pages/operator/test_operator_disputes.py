"""Disputes in the operator's dashboard: people read both sides and decide, and the merchant's own audit log says so."""

from __future__ import annotations

from uuid import UUID

import pytest

from cuota.core.dispute.dispute import DisputeStatus
from cuota.core.dispute.evidence import EvidenceFile
from cuota.core.operator.role import OperatorRole
from cuota.core.order.id_bounds import BEYOND
from cuota.db.desk import audit
from cuota.db.dispute import disputes
from cuota.db.operator import operator_log
from cuota.web.pages.operator import disputes as operator_disputes
from support.disputes import captured, charged_back, to_decide
from support.makers import Merchant
from support.pages.operator_staff import OperatorStaff


async def logged(operator: OperatorStaff, about: UUID) -> list[str]:
    """Return the actions in the log about a subject, newest first."""
    found = await operator_log.page(operator.service.context.pool, BEYOND, 50, about=about)
    return [each.action for each in found]


@pytest.mark.parametrize(
    ("side", "status"), [("consumer", DisputeStatus.LOST), ("merchant", DisputeStatus.WON)]
)
async def test_a_support_person_reads_both_sides_and_decides(
    operator: OperatorStaff,
    merchant: Merchant,
    monkeypatch: pytest.MonkeyPatch,
    side: str,
    status: DisputeStatus,
) -> None:
    monkeypatch.setattr(operator_disputes, "A_PAGE", 10_000)
    dispute = await to_decide(merchant)
    await operator.enter(OperatorRole.SUPPORT)
    page = await operator.open("/operator/disputes?view=decide")
    assert f"/operator/disputes/{dispute.dispute_id}" in page.seen.links
    page = await operator.open(f"/operator/disputes/{dispute.dispute_id}")
    assert "Nothing came." in page.text
    assert "It was delivered." in page.text
    page = await operator.press(str(dispute.dispute_id), **{"for": side, "reason": "the carrier says so"})
    assert "The dispute is decided" in page.text
    found = await disputes.find(operator.service.context.pool, merchant.merchant_id, dispute.dispute_id)
    assert found is not None
    assert found.dispute.status is status
    assert await logged(operator, dispute.dispute_id) == ["dispute.decide"]


async def told(merchant: Merchant) -> list[tuple[str, dict[str, str] | None]]:
    """Return what the operator did, as the merchant's own audit log has it, newest first."""
    found = await audit.page(merchant.service.context.pool, merchant.merchant_id, BEYOND, 50)
    return [(each.action, each.after) for each in found if each.role == "operator"]


async def test_a_second_click_makes_no_second_decision(operator: OperatorStaff, merchant: Merchant) -> None:
    dispute = await to_decide(merchant)
    await operator.enter()
    await operator.open(f"/operator/disputes/{dispute.dispute_id}")
    action, held = operator.page.form(str(dispute.dispute_id))
    form = {**held, "for": "merchant", "reason": "delivered"}
    for status in (303, 409):
        assert (await operator.http.post(action, data=form)).status_code == status
    assert await logged(operator, dispute.dispute_id) == ["dispute.decide"]
    assert await told(merchant) == [
        ("dispute.decide", {"dispute": str(dispute.dispute_id), "for": "merchant"})
    ]


@pytest.mark.parametrize("changes", [{"for": "nobody", "reason": "x"}, {"for": "consumer", "reason": " "}])
async def test_a_decision_without_a_side_or_a_reason_changes_nothing(
    operator: OperatorStaff, merchant: Merchant, changes: dict[str, str]
) -> None:
    dispute = await to_decide(merchant)
    await operator.enter()
    await operator.open(f"/operator/disputes/{dispute.dispute_id}")
    page = await operator.press(str(dispute.dispute_id), **changes)
    assert page.status == 400
    assert await logged(operator, dispute.dispute_id) == []


async def test_a_file_of_a_dispute_is_a_download(operator: OperatorStaff, merchant: Merchant) -> None:
    dispute = await to_decide(merchant, files=(EvidenceFile("note.txt", "text/plain", b"I waited."),))
    await operator.enter(OperatorRole.SUPPORT)
    page = await operator.open(f"/operator/disputes/{dispute.dispute_id}")
    (path,) = [link for link in page.seen.links if "/files/" in link]
    answer = await operator.http.get(path)
    assert answer.content == b"I waited."
    assert answer.headers["content-disposition"].startswith("attachment")


async def test_a_chargeback_s_page_says_which_payment_it_took_back(
    operator: OperatorStaff, merchant: Merchant
) -> None:
    dispute = await charged_back(merchant, await captured(merchant), 2500)
    await operator.enter(OperatorRole.SUPPORT)
    assert "Payment 1 of the plan" in (await operator.open(f"/operator/disputes/{dispute.dispute_id}")).text
