"""A long download ends when its caller may not read the file any more."""

from __future__ import annotations

import pytest

from cuota.core.desk.role import Role
from cuota.db.desk import people, sessions
from cuota.flows.context import utc_now
from cuota.flows.merchant.manage_merchants import revoke_merchant
from cuota.web import payout_csv
from cuota.web.pages.desk import export
from support.makers import Merchant
from support.pages.staff import Staff
from support.pages.watched_download import Download, watch
from support.settlement_rows import Row, paid

ORDERS = 8
# The header and the first page are read before the answer begins.
FIRST = 2


async def exporting(staff: Staff, role: Role) -> dict[str, str]:
    for number in range(ORDERS):
        await staff.shop.create(f"{10 + number}.00")
    await staff.enter(role)
    await staff.open("/desk/orders/export")
    return {**staff.page.form("export")[1], "reason": "report"}


@pytest.mark.parametrize("how", ["signed out", "removed", "support"])
async def test_an_export_ends_when_its_person_may_not_export_any_more(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(export, "ORDERS_AT_ONCE", 1)
    async with merchant.service.client() as http:
        staff = Staff(http, merchant)
        form, pool = await exporting(staff, Role.FINANCE), merchant.service.context.pool
        person = (await staff.visit()).person

        async def change(seen: Download) -> None:
            if len(seen.parts) != FIRST:
                return
            ids = merchant.merchant_id, person.person_id
            if how == "signed out":
                await sessions.end_all(pool, *ids, utc_now())
            elif how == "removed":
                await people.remove(pool, *ids, utc_now())
            else:
                await people.change_role(pool, *ids, Role.SUPPORT)

        seen = await watch(
            merchant.service, http.build_request("POST", "/desk/orders/export", data=form), change
        )
    assert (seen.status, len(seen.parts), seen.complete) == (200, FIRST, False)


async def test_an_export_of_a_person_who_stays_signed_in_is_complete(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "ORDERS_AT_ONCE", 1)

    async def nothing(seen: Download) -> None:
        del seen

    async with merchant.service.client() as http:
        staff = Staff(http, merchant)
        form = await exporting(staff, Role.FINANCE)
        asked = http.build_request("POST", "/desk/orders/export", data=form)
        seen = await watch(merchant.service, asked, nothing)
    assert seen.complete
    assert len(seen.text.splitlines()) == 1 + ORDERS


async def test_a_csv_file_of_the_api_ends_when_its_credential_is_revoked(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payout_csv, "LINES_AT_ONCE", 1)
    payout_id = await paid(merchant, *(Row("capture", 100 + number) for number in range(ORDERS)))

    async def revoke(seen: Download) -> None:
        if len(seen.parts) == FIRST:
            await revoke_merchant(merchant.service.context, str(merchant.merchant_id))
            # The process reads a credential again after two seconds. This is the same without the wait.
            merchant.service.app.service.callers.forget()

    asked = merchant.http.build_request("GET", f"/payouts/{payout_id}/lines", headers={"Accept": "text/csv"})
    seen = await watch(merchant.service, asked, revoke)
    assert (seen.status, len(seen.parts), seen.complete) == (200, FIRST, False)
