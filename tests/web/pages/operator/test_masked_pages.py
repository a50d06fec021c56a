"""No page of the operator's dashboard shows personal data to a role that may not see it.

The test opens every page of the table of routes, with ids that exist, so that it also tries a new page.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from cuota.core.consumer import Address, Profile
from cuota.core.dispute.evidence import EvidenceFile
from cuota.core.operator.role import OPERATOR_MAY, OperatorAction, OperatorRole
from cuota.flows.onboarding.read_checklist import read_checklist
from cuota.web.app import ROUTES
from cuota.web.operator_routes import OPERATOR
from support.core.values import PROFILE
from support.disputes import disputed
from support.makers import Merchant, complete
from support.onboarding import fill
from support.pages.operator_staff import OperatorStaff
from support.phones import phone_number
from support.settlement_rows import Row, paid

PERSON = replace(
    PROFILE, given_names="Zephyrine", surname="Quillfeather", email="zephyrine@quill.example",
    address=Address("77 Heliotrope Lane", "", "San Francisco", "CA", "94103"),
)  # fmt: skip
# The rights to see personal data: of consumers, and of the owners of merchants.
SEES = {OperatorAction.REVEAL_CONSUMERS, OperatorAction.DECIDE_ONBOARDING}
DECLINED = "4000 0000 0000 0002"
STATEMENT, FILE, OWNER = "My parcel went to Heliotrope Lane.", "zephyrine-receipt.txt", "Ottoline Vandersnoot"


def words_of(person: Profile, phone: str) -> list[str]:
    """Return the personal data of a consumer, in each form in which a page may show it."""
    return [
        person.given_names, person.surname, person.email, person.address.line1, phone,
        f"({phone[:3]}) {phone[3:6]}-{phone[6:]}", STATEMENT, FILE,
    ]  # fmt: skip


async def filled(shop: Merchant, phone: str) -> dict[str, str]:
    """Make one of everything that has an id, and return the ids."""
    context = shop.service.context
    order = await shop.create("80.00", merchantReference="masked-1")
    await complete(shop.service, shop.merchant_id, order, profile=PERSON, phone=phone)
    refused = await shop.create("10.00")
    await complete(shop.service, shop.merchant_id, refused, DECLINED, profile=PERSON, phone=phone)
    dispute = await disputed(
        shop, order, 1000, text=STATEMENT, files=(EvidenceFile(FILE, "text/plain", b"Paid."),)
    )
    await fill(context, shop.merchant_id, owner=OWNER)
    facts = (await read_checklist(context, shop.merchant_id)).facts
    pool = context.pool
    (file,) = await pool.fetch(
        "SELECT evidence_id FROM dispute_files WHERE dispute_id = $1", dispute.dispute_id
    )
    made = await pool.fetch(
        "SELECT decision_id, consumer_id FROM decisions WHERE order_id = $1", UUID(order["orderId"])
    )
    return {
        "order_id": order["orderId"],
        "merchant_id": str(shop.merchant_id),
        "consumer_id": str(context.vault.consumer_id(phone)),
        "decision_id": str(made[0]["decision_id"]),
        "dispute_id": str(dispute.dispute_id),
        "evidence_id": str(file["evidence_id"]),
        "number": "1",
        "payout_id": await paid(shop, Row("capture", 100)),
        "owner_id": str(facts.owners[0].owner_id),
        "document_id": str(facts.documents[0].document_id),
        "item": "business",
    }


@pytest.mark.parametrize("role", [role for role in OperatorRole if not OPERATOR_MAY[role] >= SEES])
async def test_a_role_that_may_not_see_personal_data_sees_it_on_no_page(
    operator: OperatorStaff, auto_merchant: Merchant, role: OperatorRole
) -> None:
    phone = phone_number()
    ids: dict[str, Any] = await filled(auto_merchant, phone)
    may = OPERATOR_MAY[role]
    hidden = [] if OperatorAction.REVEAL_CONSUMERS in may else words_of(PERSON, phone)
    hidden += [] if OperatorAction.DECIDE_ONBOARDING in may else [OWNER]
    await operator.enter(role)
    seen = 0
    for row in ROUTES:
        names = [part[1:-1] for part in row.path.split("/") if part.startswith("{")]
        if row.area is not OPERATOR or "GET" not in row.methods.split() or not set(names) <= set(ids):
            continue
        path = "/".join(ids[part[1:-1]] if part.startswith("{") else part for part in row.path.split("/"))
        answer = await operator.http.get(path)
        seen += answer.status_code == 200
        shown = [word for word in hidden if word in answer.text]
        assert not shown, (path, shown)
    assert seen > 15
