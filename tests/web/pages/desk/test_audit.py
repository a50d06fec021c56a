"""The page of the audit log, for a log that is longer than a search reads at once."""

from __future__ import annotations

from cuota.core.desk.role import Role
from cuota.db.desk import audit
from support.db.long_logs import audited
from support.pages.staff import Staff


async def test_a_search_for_a_person_reaches_the_oldest_entries(staff: Staff) -> None:
    pool, merchant_id = staff.service.context.pool, staff.shop.merchant_id
    await audited(pool, merchant_id, "Ana Silva", range(1, 2))
    await audited(pool, merchant_id, "Bo", range(2, 2 + audit.SCANNED))
    await staff.enter(Role.OWNER)
    page = await staff.open("/desk/audit?person=ana+silva")
    assert "Earlier ones have not been searched yet" in page.text
    page = await staff.open(page.link("Look further back"))
    assert "Ana Silva" in page.text
    assert "Look further back" not in page.text
    page = await staff.open("/desk/audit?person=nobody")
    page = await staff.open(page.link("Look further back"))
    assert "Nothing matches." in page.text
