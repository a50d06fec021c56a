"""`cuota card-refunds settle`, as an operator uses it."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import uuid4

from cuota import config
from cuota.db.embedded.server import open_embedded
from cuota.run import runtime
from support.commands import Cuota
from support.own_service import opened_own
from support.refused_refund import refuse_refund


async def refused_refund(command: Cuota, where: dict[str, Any]) -> None:
    """Make an order whose card refuses a refund of 15.00."""
    settings = config.load({"CUOTA_DATA_DIR": str(command.data)})
    await runtime.migrated(settings, where)
    async with opened_own(settings, where) as own:
        await refuse_refund(own)


def test_a_refund_that_the_operator_paid_in_another_way_is_settled_once_and_the_reason_is_in_the_log(
    cuota: Cuota,
) -> None:
    with open_embedded(cuota.data) as embedded:
        asyncio.run(refused_refund(cuota, dict(embedded.dsn_kwargs)))
    listed = cuota("card-refunds", "--json")
    assert listed.stdout, listed.stderr
    (found,) = json.loads(listed.stdout)
    refund = found["cardRefundId"]
    assert cuota("card-refunds", "settle", refund).returncode == 2
    done = cuota("card-refunds", "settle", refund, "--reason", "bank transfer 4711", "--json")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"cardRefundId": refund, "settledNow": True})
    none = cuota("card-refunds")
    assert (none.returncode, none.stdout) == (0, "No card has refused money back.\n")
    (entry,) = json.loads(cuota("desk", "log", "--json").stdout)[:1]
    assert (entry["action"], entry["reason"]) == ("card-refunds.settle", "bank transfer 4711")
    again = cuota("card-refunds", "settle", refund, "--reason", "again")
    assert again.returncode == 0
    assert f"Card refund {refund} was settled before." in again.stdout
    unknown = cuota("card-refunds", "settle", str(uuid4()), "--reason", "paid")
    assert unknown.returncode == 1
    assert "List the failed ones with: cuota card-refunds" in unknown.stderr
    assert cuota("verify").returncode == 0
