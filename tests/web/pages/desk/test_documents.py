"""The documents that a merchant sends: checked by their content, downloaded, removed."""

from __future__ import annotations

from uuid import UUID

import pytest

from cuota.core.onboarding.checklist import Item
from cuota.core.onboarding.document import MOST_DOCUMENTS
from cuota.flows.context import Context
from cuota.flows.onboarding.read_checklist import read_checklist
from support.evidence_files import JPEG, PDF, PNG, TEXT, WEBP
from support.makers import Merchant
from support.onboarding import decide, fill
from support.pages.staff import Staff

ADDRESS = "/desk/onboarding/documents"


@pytest.fixture
def context(merchant: Merchant) -> Context:
    return merchant.service.context


@pytest.fixture
def merchant_id(merchant: Merchant) -> UUID:
    return merchant.merchant_id


@pytest.mark.parametrize(
    ("name", "content"), [("a.pdf", PDF), ("b.png", PNG), ("c.jpg", JPEG), ("d.webp", WEBP), ("e.txt", TEXT)]
)
async def test_every_allowed_type_is_accepted_and_returned_as_a_download(
    staff: Staff, name: str, content: bytes
) -> None:
    await staff.enter()
    assert (await staff.upload(ADDRESS, (name, content), kind="other")).status_code == 303
    page = await staff.open(ADDRESS)
    answer = await staff.http.get(page.link(name))
    assert answer.content == content
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ((), "tax"),
        ((("page.pdf", b"<html><script>alert(1)</script>"),), "tax"),
        ((("program.png", b"\x7fELF\x02\x01\x01\x00"),), "tax"),
        ((("big.txt", b"x" * (5 * 1024 * 1024 + 1)),), "tax"),
        (tuple((f"{number}.pdf", PDF) for number in range(6)), "tax"),
        ((("right.pdf", PDF),), "secret"),
    ],
    ids=["none", "html", "program", "large", "many", "kind"],
)
async def test_the_content_and_the_size_of_a_file_are_checked(
    staff: Staff, context: Context, merchant_id: UUID, files: tuple[tuple[str, bytes], ...], kind: str
) -> None:
    await staff.enter()
    answer = await staff.upload(ADDRESS, *files, kind=kind)
    assert answer.status_code in {400, 413}
    assert (await read_checklist(context, merchant_id)).facts.documents == []


async def test_the_number_of_documents_is_limited(staff: Staff, context: Context, merchant_id: UUID) -> None:
    await staff.enter()
    for _ in range(MOST_DOCUMENTS // 5):
        files = [(f"{number}.txt", b"one") for number in range(5)]
        assert (await staff.upload(ADDRESS, *files, kind="other")).status_code == 303
    page = await staff.open(ADDRESS)
    assert "No more documents fit" in page.text
    csrf = page.form("leave")[1]["csrf"]
    answer = await staff.http.post(
        ADDRESS, data={"csrf": csrf, "kind": "other"}, files=[("files", ("one.txt", b"one"))]
    )
    assert answer.status_code == 400
    assert len((await read_checklist(context, merchant_id)).facts.documents) == MOST_DOCUMENTS


async def test_a_document_is_removed_after_a_confirmation_and_an_accepted_document_stays(
    staff: Staff, context: Context, merchant_id: UUID
) -> None:
    await fill(context, merchant_id)
    await staff.enter()
    page = await staff.open(ADDRESS)
    await staff.open(page.link("Remove"))
    document_id = str((await read_checklist(context, merchant_id)).facts.documents[0].document_id)
    await decide(context, merchant_id, Item.DOCUMENTS)
    page = await staff.press(document_id)
    assert page.status == 400
    assert "has accepted this document" in page.text
    await decide(context, merchant_id, Item.DOCUMENTS, accepted=False)
    page = await staff.press(document_id)
    assert "No document was sent yet" in page.text
