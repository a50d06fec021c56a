"""Disputes in the merchant's dashboard: reading, evidence with files, acceptance, appeal."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx
import pyotp
import pytest

from cuota.core.desk.role import Role
from cuota.core.dispute.dispute import Dispute, DisputeOutcome, DisputeParty, DisputeReason, DisputeStatus
from cuota.core.dispute.evidence import EvidenceFile
from cuota.core.order.id_bounds import BEYOND
from cuota.db.desk import audit
from cuota.db.dispute import disputes as stored
from cuota.flows.context import utc_now
from cuota.web.pages.desk import dispute_view
from support.disputes import captured, charged_back, decided, disputed
from support.makers import Merchant
from support.pages.staff import Staff

NOTE = EvidenceFile("box.txt", "text/plain", b"The box was empty.")


async def opened(shop: Merchant) -> Dispute:
    return await disputed(shop, await captured(shop), 4000, files=(NOTE,))


def path(dispute: Dispute, more: str = "") -> str:
    return f"/desk/disputes/{dispute.dispute_id}{more}"


async def send(
    staff: Staff, dispute: Dispute, what: str, text: str, *files: tuple[str, bytes], **fields: str
) -> httpx.Response:
    """Send a form with files as a browser does."""
    await staff.open(path(dispute))
    _, held = staff.page.form(what)
    parts: list[Any] = [("files", each) for each in files] or [("files", ("", b""))]
    return await staff.http.post(
        path(dispute, f"/{what}"), data={**held, "text": text, **fields}, files=parts
    )


async def status_of(shop: Merchant, dispute: Dispute) -> DisputeStatus:
    found = await stored.find(shop.service.context.pool, shop.merchant_id, dispute.dispute_id)
    assert found is not None
    return found.dispute.status


async def test_a_support_person_reads_a_dispute_and_sends_evidence_with_a_file(staff: Staff) -> None:
    dispute = await opened(staff.shop)
    await staff.enter(Role.SUPPORT)
    page = await staff.open(staff.page.link("Disputes"))
    page = await staff.open(page.link("Not received"))
    for text in (
        "Answer it",
        "Answer by",
        "$40.00",
        "Nothing came.",
        "box.txt",
        "If you do not answer, you lose",
    ):
        assert text in page.text, text
    answer = await send(staff, dispute, "evidence", "It was signed for.", ("proof.txt", b"Signed by Ana."))
    assert answer.headers["location"].endswith("?said=evidence")
    assert await status_of(staff.shop, dispute) is DisputeStatus.UNDER_REVIEW
    page = await staff.open(path(dispute))
    assert "It was signed for." in page.text
    page = await staff.open(page.link("proof.txt"))
    assert page.answer.text == "Signed by Ana."


async def test_a_file_is_a_download_and_never_a_page(staff: Staff) -> None:
    dispute = await opened(staff.shop)
    await staff.enter()
    page = await staff.open(path(dispute))
    answer = await staff.http.get(page.link("box.txt"))
    assert answer.content == NOTE.content
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_accepting_requires_a_reason_and_is_in_the_audit_log(staff: Staff) -> None:
    dispute = await opened(staff.shop)
    await staff.enter()
    await staff.open(path(dispute))
    page = await staff.press("accept", reason="")
    assert page.status == 400
    assert await status_of(staff.shop, dispute) is DisputeStatus.OPEN
    page = await staff.press("accept", reason="The parcel was lost.")
    assert "You accepted." in page.text
    assert await status_of(staff.shop, dispute) is DisputeStatus.LOST
    page = await staff.open("/desk/audit?action=dispute.")
    assert "The parcel was lost." in page.text


async def test_accepting_a_large_dispute_requires_a_fresh_code(staff: Staff) -> None:
    order = await captured(staff.shop, "600.00")
    dispute = await disputed(staff.shop, order, 60_000)
    person = await staff.invited("large-dispute@shop.example")
    await staff.sign_in(person)
    await staff.service.context.pool.fetch(
        "UPDATE desk_sessions SET proved_at = $1 WHERE person_id = $2",
        utc_now() - timedelta(minutes=6),
        person.person_id,
    )
    await staff.open(path(dispute))
    assert "Code of your authenticator app" in staff.page.text
    for wrong in ("", "000000"):
        page = await staff.press("accept", reason="lost", code=wrong)
        assert page.status == 400
    assert await status_of(staff.shop, dispute) is DisputeStatus.OPEN
    # The code of the sign-in was used, so this one is of the next time step.
    page = await staff.press(
        "accept", reason="lost", code=pyotp.TOTP(staff.key).at(utc_now() + timedelta(seconds=30))
    )
    assert "You accepted." in page.text


async def test_a_second_click_on_accept_changes_nothing(staff: Staff) -> None:
    dispute = await opened(staff.shop)
    await staff.enter()
    await staff.open(path(dispute))
    action, fields = staff.page.form("accept")
    answers = await asyncio.gather(
        *(staff.http.post(action, data={**fields, "reason": "lost"}) for _ in range(3))
    )
    assert {answer.status_code for answer in answers} == {303}
    assert await status_of(staff.shop, dispute) is DisputeStatus.LOST
    logged = await audit.page(staff.service.context.pool, staff.shop.merchant_id, BEYOND, 50)
    assert [each.action for each in logged].count("dispute.accept") == 1


async def test_a_decision_for_the_consumer_is_appealed_once(staff: Staff) -> None:
    dispute = await opened(staff.shop)
    await decided(staff.shop, dispute, for_consumer=True)
    await staff.enter()
    answer = await send(staff, dispute, "appeal", "Here is the signature.", ("proof.txt", b"Signed."))
    assert answer.status_code == 303
    assert await status_of(staff.shop, dispute) is DisputeStatus.APPEALED
    assert "Send the appeal" not in (await staff.open(path(dispute))).text


async def test_a_chargeback_is_answered_in_the_same_way(staff: Staff) -> None:
    dispute = await charged_back(staff.shop, await captured(staff.shop), 2500)
    await staff.enter()
    page = await staff.open(path(dispute))
    assert "Chargeback by the card network" in page.text
    assert "Payment 1 of the plan" in page.text
    assert (await send(staff, dispute, "evidence", "Delivered.")).status_code == 303


async def test_after_the_deadline_a_chargeback_can_be_accepted_but_takes_no_evidence(staff: Staff) -> None:
    dispute = await charged_back(staff.shop, await captured(staff.shop), 2500)
    await staff.enter(Role.OWNER)
    page = await staff.open(path(dispute))
    assert "Send the evidence" in page.text
    # Move the deadline, because a sign-in ends before it.
    await staff.shop.service.context.pool.fetch(
        "UPDATE disputes SET respond_by = $2 WHERE dispute_id = $1",
        dispute.dispute_id,
        utc_now() - timedelta(days=1),
    )
    page = await staff.open(path(dispute))
    assert "The time to answer is over." in page.text
    assert "Send the evidence" not in page.text
    assert "Accept and give $25.00 back" in page.text


@pytest.mark.parametrize(
    ("files", "text", "said"),
    [
        ([], "", "Write what happened"),
        ([("virus.exe", b"MZ\x90\x00")], "Look.", "virus.exe"),
        ([(f"{n}.txt", b"x") for n in range(6)], "Look.", "5"),
        ([("big.txt", b"x" * (5 * 1024 * 1024 + 1))], "Look.", "big.txt"),
    ],
)
async def test_a_file_that_cannot_be_evidence_is_refused_with_an_explanation(
    staff: Staff, files: list[tuple[str, bytes]], text: str, said: str
) -> None:
    dispute = await opened(staff.shop)
    await staff.enter()
    answer = await send(staff, dispute, "evidence", text, *files)
    assert 400 <= answer.status_code < 500
    assert said in answer.text
    assert await status_of(staff.shop, dispute) is DisputeStatus.OPEN


async def test_a_form_of_another_site_sends_no_evidence(staff: Staff) -> None:
    dispute = await opened(staff.shop)
    await staff.enter()
    answer = await send(staff, dispute, "evidence", "Forged.", csrf="0" * 64)
    assert answer.status_code == 403
    assert await status_of(staff.shop, dispute) is DisputeStatus.OPEN


async def test_a_closed_dispute_has_no_forms(staff: Staff) -> None:
    dispute = await opened(staff.shop)
    await staff.enter()
    await staff.open(path(dispute))
    action, fields = staff.page.form("accept")
    await staff.http.post(action, data={**fields, "reason": "lost"})
    page = await staff.open(path(dispute))
    for words in ("Send the evidence", "Accept and give", "Send the appeal"):
        assert words not in page.text


async def test_finance_people_can_read_disputes_but_not_answer_them(staff: Staff) -> None:
    dispute = await opened(staff.shop)
    await staff.enter(Role.FINANCE)
    page = await staff.open(path(dispute))
    assert page.status == 200
    assert "Send the evidence" not in page.text


async def test_another_merchants_dispute_is_not_found(staff: Staff, auto_merchant: Merchant) -> None:
    theirs = await disputed(auto_merchant, await auto_merchant.approved("100.00"), 4000, files=(NOTE,))
    own = await opened(staff.shop)
    await staff.enter()
    page = await staff.open(path(own))
    evidence_id = page.link("box.txt").split("/")[-2]
    assert (await staff.open(path(theirs))).status == 404
    assert (await staff.open(path(theirs, f"/files/{evidence_id}/1"))).status == 404
    assert (await staff.open(path(own, f"/files/{uuid4()}/1"))).status == 404
    assert (await staff.open(path(own, f"/files/{evidence_id}/9"))).status == 404


async def test_the_list_filters_and_says_when_it_is_empty(staff: Staff) -> None:
    await staff.enter()
    assert "No dispute yet" in (await staff.open("/desk/disputes")).text
    await opened(staff.shop)
    page = await staff.open("/desk/disputes?view=open")
    assert "Not received" in page.text
    assert "1 dispute. Show all disputes" in page.text
    assert "No dispute here" in (await staff.open("/desk/disputes?view=closed")).text
    for strange in ("view=x", "after=x", f"after={uuid4()}"):
        assert (await staff.open(f"/desk/disputes?{strange}")).status == 200
    assert "Disputes to answer 1" in (await staff.open("/desk")).text


def test_every_reason_state_outcome_and_party_has_a_text() -> None:
    assert set(dispute_view.REASONS) == set(DisputeReason)
    assert {*dispute_view.STATES, DisputeStatus.CLOSED} == set(DisputeStatus)
    assert set(dispute_view.OUTCOMES) == set(DisputeOutcome)
    assert set(dispute_view.PARTIES) == set(DisputeParty)


async def test_an_appeal_that_is_refused_has_an_entry_and_one_that_is_sent_has_its_entry_before(
    staff: Staff,
) -> None:
    dispute = await opened(staff.shop)
    await decided(staff.shop, dispute, for_consumer=True)
    await staff.enter(Role.OWNER)
    assert (await send(staff, dispute, "appeal", "")).status_code == 400
    assert (await send(staff, dispute, "appeal", "It was delivered.")).status_code == 303
    page = await staff.open("/desk/audit")
    assert "was refused" in page.text
    assert page.text.count(f"A text and 0 files for dispute {dispute.dispute_id}") == 3
