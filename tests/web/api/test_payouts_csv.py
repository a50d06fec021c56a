"""Payouts and lines as CSV: every CSV reader can read them, no spreadsheet executes their texts, and large files need
little memory."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
import shutil
import tracemalloc
from typing import Any
from uuid import UUID, uuid4

import pytest
from starlette.requests import Request

from cuota.db.payout import listing
from cuota.db.session import Session
from cuota.web import csv_text, payout_csv
from cuota.web.api.accepted import accepts_csv
from cuota.web.body import CHECK_CALLER
from support.api.bodies import assert_refused, failures
from support.makers import Merchant
from support.settlement_rows import Row, close, paid, write_lines, write_terms

EVIL = ["=1+1", "+1", "-1", "@SUM(A1)", "'=1", '=HYPERLINK("http://x","y")', 'a,"b"', "é😀", "plain"]


async def table(merchant: Merchant, path: str, **more: str) -> list[dict[str, str]]:
    answer = await merchant.http.get(path, headers={"Accept": "text/csv", **more})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/csv; charset=utf-8; header=present"
    assert answer.headers["vary"] == "Accept"
    assert answer.content.endswith(b"\r\n")
    return list(csv.DictReader(io.StringIO(answer.content.decode("utf-8"), newline="")))


async def test_the_row_of_a_payout_has_all_parts_of_its_sum(merchant: Merchant) -> None:
    await paid(
        merchant, Row("capture", 11996), Row("fee", 0, -738), Row("refund", -2000), Row("fee_returned", 0, 100),
        Row("reserve_held", -750), Row("reserve_released", 10), Row("adjustment", -5), Row("payout_returned", 7),
    )  # fmt: skip
    (row,) = await table(merchant, "/payouts")
    terms = {
        "captures": "119.96", "refunds": "-20.00", "fees": "-7.38", "feesReturned": "1.00", "reserveHeld": "-7.50",
        "reserveReleased": "0.10", "adjustments": "-0.05", "payoutsReturned": "0.07", "disputes": "0.00", "tax": "0.00",
    }  # fmt: skip
    assert {name: row[name] for name in terms} == terms
    assert (row["amount"], row["bankAccountLast4"], row["lineCount"]) == ("86.20", "6789", "8")


async def test_the_file_has_every_payout_and_the_filter_status_applies(merchant: Merchant) -> None:
    count = payout_csv.PAYOUTS_AT_ONCE + 3
    ids = [await paid(merchant, Row("capture", 1)) for _ in range(count)]
    ids.append(await paid(merchant, Row("capture", 1), status="sent"))
    assert [row["payoutId"] for row in await table(merchant, "/payouts")] == ids[::-1]
    assert [row["payoutId"] for row in await table(merchant, "/payouts?status=sent")] == ids[-1:]


async def test_the_totals_of_large_payouts_are_read_by_several_statements(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payout_csv, "LINES_ADDED_AT_ONCE", 4)
    read: list[int] = []
    totals = listing.totals

    async def counted(session: Session, merchant_id: UUID, payout_ids: list[UUID]) -> Any:
        read.append(len(payout_ids))
        return await totals(session, merchant_id, payout_ids)

    monkeypatch.setattr(listing, "totals", counted)
    ids = [await paid(merchant, *[Row("capture", 1)] * lines) for lines in (1, 1, 2, 9, 2)]
    found = await table(merchant, "/payouts")
    assert [row["payoutId"] for row in found] == ids[::-1]
    assert [row["captures"] for row in found] == ["0.02", "0.09", "0.02", "0.01", "0.01"]
    # The newest first: 2 and 9 lines are more than 4, and so are 9 and 2.
    assert read == [1, 1, 3]


async def test_the_row_of_a_line_has_the_order_the_fee_and_the_rates(merchant: Merchant) -> None:
    await write_terms(merchant)
    order = UUID((await merchant.create("119.96", merchantReference="A-7"))["orderId"])
    payout_id = await paid(
        merchant, Row("capture", 11996, 0, order, "ship-1", sequence=3), Row("fee", 0, -738, order, "ship-1", sequence=3),
        Row("refund", -2000, 0, order, "return-1", sequence=4),
    )  # fmt: skip
    capture, fee, refund = await table(merchant, f"/payouts/{payout_id}/lines")
    assert (capture["gross"], capture["net"], capture["orderAmount"]) == ("119.96", "119.96", "119.96")
    assert (capture["merchantReference"], capture["settlementDate"]) == ("A-7", "2026-11-25")
    assert (fee["percent"], fee["fixed"], fee["fee"], fee["feeTax"]) == ("5.90", "0.30", "-7.38", "0.00")
    assert (refund["refundReference"], capture["refundReference"]) == ("return-1", "")
    assert capture["orderYear"] == capture["orderedAt"][:4]


async def test_the_columns_are_the_documented_ones() -> None:
    assert payout_csv.LINE_COLUMNS[:5] == ("payoutId", "payoutNumber", "settlementDate", "lineId", "type")
    assert (len(payout_csv.LINE_COLUMNS), len(payout_csv.PAYOUT_COLUMNS)) == (26, 23)


@pytest.mark.parametrize("text", EVIL)
async def test_a_merchant_s_text_is_never_a_formula_and_can_be_read_back(
    merchant: Merchant, text: str
) -> None:
    order = UUID((await merchant.create(merchantReference=text))["orderId"])
    payout_id = await paid(merchant, Row("capture", 100, 0, order, text))
    (row,) = await table(merchant, f"/payouts/{payout_id}/lines")
    for written in (row["merchantReference"], row["reference"]):
        assert written[0] not in "=+-@\t\r\n"
        assert written.removeprefix("'") == text


def test_text_that_begins_with_a_tab_or_a_line_break_is_escaped_too() -> None:
    assert [csv_text.safe(text) for text in ("\t=1", "\r=1", "\n=1", "\uff1d1", "", None)] == [
        "'\t=1", "'\r=1", "'\n=1", "'\uff1d1", "", "",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "Ann;=cmd|' /C calc'!A0", "Ann;+1", "Ann;-1", "Ann;@SUM(A1)", "=1;=1", ";=1", ";;=1", 'Ann;"=1', 'Ann;"";=1', "Ann;\uff1d1",
        'a,"b";=1', "Ann;'=1",
    ],
)  # fmt: skip
def test_no_cell_is_a_formula_in_a_spreadsheet_that_splits_at_semicolons_and_the_text_can_be_read_back(
    text: str,
) -> None:
    content = csv_text.rows_of([["id-1", csv_text.safe(text), "10.00"]]).decode()
    cells = next(csv.reader(io.StringIO(content, newline=""), delimiter=";"))
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\uff1d"))]
    (_, written, _) = next(csv.reader(io.StringIO(content, newline="")))
    assert re.sub("(^|;)'", r"\1", written) == text


def test_a_semicolon_before_any_other_text_changes_nothing() -> None:
    assert [csv_text.safe(text) for text in ("A;B", "A; =B", ";", 'Ann "Lee"; 3')] == [
        "A;B", "A; =B", ";", 'Ann "Lee"; 3',
    ]  # fmt: skip


@pytest.mark.skipif(shutil.which("php") is None, reason="php-cli is not installed")
async def test_another_csv_reader_reads_the_same_fields(merchant: Merchant) -> None:
    orders = [UUID((await merchant.create(merchantReference=text))["orderId"]) for text in EVIL]
    rows = [Row("capture", 100, 0, order, text) for order, text in zip(orders, EVIL, strict=True)]
    payout_id = await paid(merchant, *rows)
    content = (await merchant.http.get(f"/payouts/{payout_id}/lines?format=csv")).content
    ours = list(csv.reader(io.StringIO(content.decode(), newline="")))
    program = "while (($row = fgetcsv(STDIN, 0, ',', '\"', '')) !== false) echo json_encode($row), \"\\n\";"
    reader = await asyncio.create_subprocess_exec(
        "php", "-r", program, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await reader.communicate(content)
    assert [json.loads(line) for line in said.splitlines()] == ours


async def test_the_file_has_all_rows_so_parameters_of_pages_are_refused(merchant: Merchant) -> None:
    answer = await merchant.http.get("/payouts?format=csv&limit=5&after=x")
    assert_refused(answer, 400, "validation_failed")
    assert {field for field, _ in failures(answer)} == {"limit", "after"}


async def test_a_head_request_for_a_file_reads_no_lines(merchant: Merchant) -> None:
    payout_id = await paid(merchant, Row("capture", 1))
    head = await merchant.http.head(f"/payouts/{payout_id}/lines?format=csv")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"].startswith("text/csv")


async def test_the_parameter_takes_precedence_over_the_header(merchant: Merchant) -> None:
    answer = await merchant.http.get("/payouts?format=json", headers={"Accept": "text/csv"})
    assert answer.json()["data"] == []


@pytest.mark.parametrize(
    ("accept", "csv_wanted"),
    [
        ("text/csv", True), ("text/csv;q=0.5, application/json", False), ("TEXT/CSV; charset=utf-8", True), ("*/*", False),
        ("text/*", False), ("", False), ("text/csv;q=0", False), ("text/csv;q=x", False), ("application/json, text/csv", True),
        ("application/json;q=0.1,text/csv;q=0.2", True),
    ],
)  # fmt: skip
def test_csv_is_sent_only_to_clients_that_request_it(accept: str, *, csv_wanted: bool) -> None:
    assert accepts_csv(accept) is csv_wanted


async def test_two_hundred_thousand_lines_take_no_more_memory_than_a_few_pages(merchant: Merchant) -> None:
    count = 200_000
    for _ in range(count // 20_000):
        await write_lines(merchant, [Row("capture", 1, reference=uuid4().hex)] * 20_000)
    payout_id = UUID(await close(merchant))
    pool = merchant.service.context.pool
    found = await listing.payout(pool, merchant.merchant_id, payout_id)
    assert found is not None

    async def allowed() -> None: ...

    request = Request({"type": "http", "method": "GET", "headers": [], CHECK_CALLER: allowed})
    tracemalloc.start()
    answer = await payout_csv.lines(request, pool, found)
    rows = 0
    async for part in answer.body_iterator:  # type: ignore[attr-defined]
        rows += part.count(b"\r\n")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rows == count + 1
    # The whole file is about 40 MB large.
    assert peak < 10_000_000
