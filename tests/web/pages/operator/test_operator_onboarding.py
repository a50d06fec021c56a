"""A merchant's onboarding in the operator's dashboard: the checklist, the decisions, and their entries in the log."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from cuota.core.merchant import Onboarding
from cuota.core.onboarding.checklist import DECIDABLE, Item, ItemState
from cuota.core.operator.role import OPERATOR_MAY, OperatorAction, OperatorRole
from cuota.core.payout.bank_account import read_bank_details
from cuota.core.sandbox import TEST_ACCOUNTS, TEST_ROUTING
from cuota.db.onboarding import onboardings
from cuota.flows.context import Context
from cuota.flows.onboarding.read_checklist import read_checklist
from cuota.flows.onboarding.screen_names import screen_merchant
from cuota.flows.payout.change_bank_account import change_bank_account
from support.evidence_files import PDF
from support.makers import Merchant
from support.onboarding import BUSINESS, OWNER, decide, fill, stored
from support.pages.operator_staff import OperatorStaff

PRIVATE = ("Jordan Rivera", "03/09/1979", "1979-03-09")


@pytest.fixture
def context(merchant: Merchant) -> Context:
    return merchant.service.context


@pytest.fixture
async def new(merchant: Merchant, context: Context) -> UUID:
    """A merchant that is not approved yet."""
    await onboardings.set_standing(context.pool, merchant.merchant_id, Onboarding.OPEN)
    return merchant.merchant_id


def at(merchant_id: UUID, more: str = "") -> str:
    return f"/operator/merchants/{merchant_id}/onboarding{more}"


async def logged(context: Context, merchant_id: UUID) -> list[tuple[str, str]]:
    """The actions about a merchant in the operator's log, as (action, reason)."""
    rows = await context.pool.fetch(
        "SELECT action, reason FROM operator_log WHERE about = $1 ORDER BY entry_id", merchant_id
    )
    return [(row["action"], row["reason"]) for row in rows]


async def test_an_operator_enters_all_data_and_accepts_every_item_and_the_merchant_is_approved(
    operator: OperatorStaff, context: Context, new: UUID
) -> None:
    await change_bank_account(context, new, read_bank_details(TEST_ROUTING, TEST_ACCOUNTS[0].number))
    await operator.enter(OperatorRole.RISK)
    page = await operator.open(at(new))
    assert page.text.count("Missing") == 4
    await operator.open(at(new, "/business"))
    page = await operator.press("business", **BUSINESS, reason="by phone")
    assert "The item must be checked now" in page.text
    await operator.open(at(new, "/owners"))
    await operator.press("owners", **OWNER, reason="by phone")
    answer = await operator.upload(
        at(new, "/documents"), ("register.pdf", PDF), kind="registration", reason="by mail"
    )
    assert answer.headers["location"].endswith("?said=sent")
    assert await screen_merchant(context, new) is None
    for item in sorted(DECIDABLE):
        assert (await stored(context, new)).onboarding is Onboarding.OPEN
        await operator.open(at(new, f"/items/{item}"))
        page = await operator.press(str(item), do="accept", reason=f"checked the {item}")
    assert "with it the merchant is approved" in page.text
    assert (await stored(context, new)).onboarding is Onboarding.APPROVED
    assert (await operator.open(f"/operator/merchants/{new}")).text.count("approved") == 1
    log = await logged(context, new)
    assert log[-2] == ("onboarding.accept", "checked the owners")
    assert log[-1][0] == "merchant.approve"
    entered = ("onboarding.business", "onboarding.owner.add", "onboarding.document.add")
    assert [each for each in log if each[0] in entered] == [
        (entered[0], "by phone"), (entered[1], "by phone"), (entered[2], "by mail"),
    ]  # fmt: skip


async def test_a_rejection_ends_an_approval_and_the_checklist_shows_its_reason(
    operator: OperatorStaff, context: Context, new: UUID
) -> None:
    await fill(context, new)
    await onboardings.set_standing(context.pool, new, Onboarding.APPROVED)
    await operator.enter(OperatorRole.RISK)
    page = await operator.open(at(new, "/items/documents"))
    assert "the approval ends" in page.text
    assert (await operator.press("documents", do="reject", reason=" ")).status == 400
    page = await operator.press("documents", do="reject", reason="The picture is cut off.")
    assert "The merchant reads the reason" in page.text
    assert "The picture is cut off." in page.text
    assert (await stored(context, new)).onboarding is Onboarding.OPEN
    assert "refused until the merchant is approved" not in (await operator.open(at(new))).text


async def test_a_rejected_bank_account_that_is_entered_again_shows_the_reason_of_the_rejection(
    operator: OperatorStaff, context: Context, new: UUID
) -> None:
    numbers = read_bank_details(TEST_ROUTING, TEST_ACCOUNTS[0].number)
    await change_bank_account(context, new, numbers)
    await decide(context, new, Item.BANK, accepted=False, reason="the voided check has another name")
    await change_bank_account(context, new, numbers)
    await operator.enter(OperatorRole.RISK)
    page = await operator.open(at(new, "/items/bank"))
    assert "Entered again" in page.text
    assert "rejected on" in page.text
    assert "the voided check has another name" in page.text


@pytest.mark.parametrize("form", [{"do": ""}, {"do": "approve"}, {"reason": "x" * 501}])
async def test_an_invalid_decision_changes_nothing(
    operator: OperatorStaff, context: Context, new: UUID, form: dict[str, str]
) -> None:
    await fill(context, new)
    await operator.enter(OperatorRole.OWNER)
    await operator.open(at(new, "/items/business"))
    assert (await operator.press("business", **{"do": "accept", "reason": "checked", **form})).status == 400
    checklist = (await read_checklist(context, new)).checklist
    assert checklist[Item.BUSINESS].state is ItemState.TO_CHECK


async def test_nobody_can_accept_data_that_changed_while_they_looked_at_it(
    operator: OperatorStaff, context: Context, new: UUID
) -> None:
    await fill(context, new)
    await operator.enter(OperatorRole.OWNER)
    await operator.open(at(new, "/owners"))
    once = operator.page.form("owners")
    await operator.open(at(new, "/items/owners"))
    action, held = operator.page.form("owners")
    await operator.http.post(once[0], data={**once[1], **OWNER, "share": "30", "reason": "another"})
    answer = await operator.http.post(action, data={**held, "do": "accept", "reason": "checked"})
    assert answer.status_code == 400
    assert "has changed" in answer.text
    # The page of the refusal shows the current data.
    assert "30.00 %" in answer.text
    assert (await read_checklist(context, new)).checklist[Item.OWNERS].state is ItemState.TO_CHECK


async def test_names_are_masked_until_a_person_who_decides_gives_a_reason(
    operator: OperatorStaff, context: Context, new: UUID
) -> None:
    await fill(context, new)
    await operator.enter(OperatorRole.RISK)
    for path in ("", "/items/owners", "/owners", "/items/screening"):
        page = await operator.open(at(new, path))
        assert not any(each in page.text for each in PRIVATE), path
    (owner,) = (await read_checklist(context, new)).facts.owners
    page = await operator.open(at(new, f"/owners/{owner.owner_id}"))
    assert not any(each in page.answer.text for each in PRIVATE)
    await operator.open(at(new, "/items/owners"))
    assert (await operator.press("reveal", reason="")).status == 400
    assert await logged(context, new) == []
    page = await operator.press("reveal", reason="compared with the passport")
    assert "Jordan Rivera" in page.text
    assert "03/09/1979" in page.text
    assert (await logged(context, new))[-1] == ("onboarding.reveal", "compared with the passport")
    assert page.answer.headers["cache-control"] == "no-store"


async def test_an_operator_changes_an_owner_without_seeing_the_name(
    operator: OperatorStaff, context: Context, new: UUID
) -> None:
    await fill(context, new)
    (before,) = (await read_checklist(context, new)).facts.owners
    await operator.enter(OperatorRole.RISK)
    await operator.open(at(new, f"/owners/{before.owner_id}"))
    await operator.press(str(before.owner_id), do="save", share="55", reason="new register")
    (after,) = (await read_checklist(context, new)).facts.owners
    assert (after.details.name, after.details.born) == (before.details.name, before.details.born)
    assert after.details.share == 5500
    await operator.open(at(new, f"/owners/{before.owner_id}"))
    page = await operator.press(str(before.owner_id), do="save", share="101", reason="new register")
    assert page.status == 400
    await operator.press(str(before.owner_id), do="remove", reason="sold the shares")
    assert (await read_checklist(context, new)).facts.owners == []


async def test_the_log_records_the_download_and_the_removal_of_a_document(
    operator: OperatorStaff, context: Context, new: UUID
) -> None:
    await fill(context, new)
    await decide(context, new, Item.DOCUMENTS)
    await operator.enter(OperatorRole.RISK)
    document_id = str((await read_checklist(context, new)).facts.documents[0].document_id)
    page = await operator.open(at(new, "/items/documents"))
    answer = await operator.http.get(page.link("registration.txt"))
    assert answer.content == b"Registered in California."
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert (await logged(context, new))[-1][0] == "onboarding.document.read"
    page = await operator.open(at(new, "/documents"))
    await operator.open(page.link("Remove"))
    assert (await operator.press(document_id, reason="")).status == 400
    page = await operator.press(document_id, reason="wrong person")
    assert "No document was sent yet" in page.text
    assert (await logged(context, new))[-1] == ("onboarding.document.remove", "wrong person")


@pytest.mark.parametrize(
    ("files", "fields", "said"),
    [
        ((("register.pdf", PDF),), {"kind": "registration"}, "reason"),
        ((), {"kind": "registration", "reason": "r"}, "Choose"),
        ((("a.pdf", b"MZ\x90\x00 a program"),), {"kind": "registration", "reason": "r"}, "a.pdf"),
        ((("register.pdf", PDF),), {"kind": "passport", "reason": "r"}, "what the document proves"),
    ],
    ids=["no-reason", "no-file", "program", "kind"],
)
async def test_a_wrong_upload_is_refused_and_stores_nothing(
    operator: OperatorStaff,
    context: Context,
    new: UUID,
    files: tuple[tuple[str, bytes], ...],
    fields: dict[str, str],
    said: str,
) -> None:
    await operator.enter(OperatorRole.RISK)
    answer = await operator.upload(at(new, "/documents"), *files, **fields)
    assert answer.status_code == 400
    assert said in answer.text
    assert (await read_checklist(context, new)).facts.documents == []


@pytest.mark.parametrize("role", list(OperatorRole))
async def test_only_a_person_who_decides_sees_documents_and_forms(
    operator: OperatorStaff, context: Context, new: UUID, role: OperatorRole
) -> None:
    await fill(context, new)
    decides = OperatorAction.DECIDE_ONBOARDING in OPERATOR_MAY[role]
    if OperatorAction.READ_MERCHANTS not in OPERATOR_MAY[role]:
        return
    await operator.enter(role)
    page = await operator.open(at(new, "/items/documents"))
    assert ("registration.txt" in page.text, "Decide" in page.text) == (decides, decides)
    page = await operator.open(at(new, "/items/business"))
    assert ("12-3456789" in page.text, "Enter or change" in page.text) == (decides, decides)
    assert "Northwind Outfitters LLC" in page.text


async def test_an_unknown_item_and_another_merchants_ids_are_not_found(
    operator: OperatorStaff, context: Context, new: UUID, auto_merchant: Merchant
) -> None:
    await fill(context, new)
    facts = (await read_checklist(context, new)).facts
    owner, document = facts.owners[0].owner_id, facts.documents[0].document_id
    other = auto_merchant.merchant_id
    await operator.enter()
    for path in (
        at(new, "/items/passport"), at(uuid4()), at(other, f"/owners/{owner}"), at(other, f"/documents/{document}"),
        at(other, f"/documents/{document}/remove"), at(new, f"/findings/{uuid4()}"),
    ):  # fmt: skip
        assert (await operator.open(path)).status == 404, path


async def test_a_person_who_signed_in_by_mail_enters_a_fresh_code_for_each_decision(
    operator: OperatorStaff, context: Context, new: UUID
) -> None:
    await fill(context, new)
    await operator.sign_in(
        await operator.invited(f"risk-{uuid4().hex[:8]}@operator.example", OperatorRole.RISK)
    )
    await context.pool.execute("UPDATE operator_sessions SET proved_at = now() - interval '6 minutes'")
    await operator.open(at(new, "/items/business"))
    page = await operator.press("business", do="accept", reason="checked")
    assert "Enter the code of your authenticator app" in page.text
    assert (await read_checklist(context, new)).checklist[Item.BUSINESS].state is ItemState.TO_CHECK


async def test_waiting_merchants_are_counted_on_the_first_page_and_listed(
    operator: OperatorStaff, context: Context, new: UUID
) -> None:
    await fill(context, new)
    name = (await stored(context, new)).name
    await operator.enter(OperatorRole.RISK)
    page = await operator.open("/operator")
    page = await operator.open(page.link("Merchants to check"))
    assert name in page.text
    for item in DECIDABLE:
        await decide(context, new, item, accepted=False)
    await screen_merchant(context, new)
    assert name not in (await operator.open("/operator/merchants?state=check")).text
