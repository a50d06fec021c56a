"""Tests of the export of orders as CSV."""

from __future__ import annotations

import csv
import io
from datetime import timedelta

import httpx
import pytest

from cuota.core.desk.role import Role
from cuota.flows.context import utc_now
from cuota.web.pages.desk import export
from support.pages.staff import Staff


async def download(staff: Staff, query: str = "", **fields: str) -> httpx.Response:
    await staff.open(f"/desk/orders/export{query}")
    action, held = staff.page.form("export")
    return await staff.http.post(action, data={**held, "reason": "report", **fields})


def table(answer: httpx.Response) -> list[dict[str, str]]:
    assert answer.headers["content-type"].startswith("text/csv")
    return list(csv.DictReader(io.StringIO(answer.text)))


async def test_the_file_has_every_order_of_the_list_once_and_in_the_same_order(
    staff: Staff, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "ORDERS_AT_ONCE", 2)
    made = [await staff.shop.approved(f"{10 + n}.50") for n in range(5)]
    await staff.shop.create("99.00")
    await staff.enter(Role.FINANCE)
    rows = table(await download(staff, "?view=approved&sort=oldest"))
    assert [row["orderId"] for row in rows] == [order["orderId"] for order in made]
    assert [row["amount"] for row in rows] == ["10.50", "11.50", "12.50", "13.50", "14.50"]
    assert {row["cardLast4"] for row in rows} == {"4242"}


async def test_a_formula_in_a_name_is_not_executed_by_a_spreadsheet(staff: Staff) -> None:
    await staff.shop.create("20.00", merchantReference="=1+1")
    await staff.enter()
    (row,) = table(await download(staff))
    assert row["merchantReference"] == "'=1+1"


async def test_a_formula_behind_a_semicolon_is_not_executed_by_a_spreadsheet_that_splits_there(
    staff: Staff,
) -> None:
    await staff.shop.create("20.00", merchantReference="A-77;=cmd|' /C calc'!A0")
    await staff.enter()
    answer = await download(staff)
    cells = [cell for row in csv.reader(io.StringIO(answer.text), delimiter=";") for cell in row]
    assert not [cell for cell in cells if cell.startswith("=")]
    assert table(answer)[0]["merchantReference"] == "A-77;'=cmd|' /C calc'!A0"


async def test_an_empty_list_is_a_file_with_its_header(staff: Staff) -> None:
    await staff.enter()
    answer = await download(staff)
    assert answer.text.strip().split(",") == list(export.COLUMNS)


async def test_an_export_requires_a_reason_and_is_in_the_audit_log(staff: Staff) -> None:
    await staff.enter()
    answer = await download(staff, reason=" ")
    assert answer.status_code == 400
    await download(staff, "?view=approved", reason="tax audit")
    page = await staff.open("/desk/audit?action=orders.")
    assert "orders.export" in page.text
    assert "tax audit" in page.text


async def test_an_export_requires_a_fresh_code(staff: Staff) -> None:
    person = await staff.invited("export@shop.example", Role.FINANCE)
    await staff.sign_in(person)
    await staff.service.context.pool.fetch(
        "UPDATE desk_sessions SET proved_at = $1 WHERE person_id = $2",
        utc_now() - timedelta(minutes=6),
        person.person_id,
    )
    for code in ("", "000000"):
        answer = await download(staff, code=code)
        assert (answer.status_code, "text/html" in answer.headers["content-type"]) == (400, True)


async def test_support_people_cannot_export_orders(staff: Staff) -> None:
    await staff.enter(Role.SUPPORT)
    assert "Export as CSV" not in (await staff.open("/desk/orders")).text
    assert (await staff.open("/desk/orders/export")).status == 403
