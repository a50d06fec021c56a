"""A plan has the values of its agreement, not the text, as soon as no process of an earlier release can run any more."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from cuota.core.plan.agreement import accepted_text
from cuota.db.verify.recalculate import verify
from cuota.flows.context import utc_now
from cuota.flows.plan.send_messages import send_messages
from cuota.flows.privacy.erase_consumer import erase_consumer
from cuota.flows.privacy.export_consumer import export_consumer
from cuota.rails.inbox import look
from support.flows.people import PHONE, bought, paid_off
from support.own_service import Own

FORMS = pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(hours=-1)], ids=["text", "values"])
BEGINNING = {timedelta(hours=1): "This agreement is between ", timedelta(hours=-1): "[1,"}


def from_then(own: Own, ahead: timedelta) -> None:
    """Behave like a process that stores values from this time on."""
    own.service.context = replace(own.context, agreement_values_from=utc_now() + ahead)


async def stored(own: Own, order: dict[str, Any]) -> tuple[str, str]:
    """Return the agreement of an order as it is stored, and the hash that was accepted."""
    sql = "SELECT agreement, agreement_hash FROM plans WHERE order_id = $1"
    async with own.owner() as owner:
        row = await owner.fetchrow(sql, UUID(order["orderId"]))
    assert row is not None
    return row["agreement"], row["agreement_hash"]


async def alter(own: Own, was: str, becomes: str) -> None:
    async with own.owner() as owner:
        done = await owner.execute(
            "UPDATE plans SET agreement = replace(agreement, $1, $2) WHERE position($1 IN agreement) > 0",
            was,
            becomes,
        )
    assert done == "UPDATE 1"


async def test_a_new_installation_stores_values_at_once(own: Own) -> None:
    text, _ = await stored(own, await bought(own))
    assert text.startswith("[1,")
    assert len(text.encode()) < 300


@FORMS
async def test_the_text_is_stored_before_the_time_and_the_values_from_then_on(
    own: Own, ahead: timedelta
) -> None:
    from_then(own, ahead)
    agreement, _ = await stored(own, await bought(own))
    assert agreement.startswith(BEGINNING[ahead])


@FORMS
async def test_the_sandbox_s_clock_does_not_change_the_form(own: Own, ahead: timedelta) -> None:
    from_then(own, ahead)
    own.service.clock.ahead += 48 * ahead
    agreement, _ = await stored(own, await bought(own))
    assert agreement.startswith(BEGINNING[ahead])


@FORMS
async def test_the_mail_and_the_export_have_the_text_of_either_form(own: Own, ahead: timedelta) -> None:
    from_then(own, ahead)
    agreement, _ = await stored(own, await bought(own))
    text = accepted_text(agreement)
    assert text.startswith("This agreement is between ")
    await send_messages(own.context)
    assert [each for each in await look(own.context.pool) if each.channel == "mail" and text in each.text]
    (only,) = (await export_consumer(own.context, PHONE))["orders"]
    assert only["plan"]["agreement"] == text


@FORMS
async def test_an_erasure_removes_either_form(own: Own, ahead: timedelta) -> None:
    from_then(own, ahead)
    order = await bought(own)
    _, accepted = await stored(own, order)
    await paid_off(own)
    assert (await erase_consumer(own.context, PHONE, dry_run=False)).done
    assert await stored(own, order) == ("", accepted)
    assert (await verify(own.context.pool)).disagreements == []


@pytest.mark.parametrize(
    ("ahead", "was", "becomes"),
    [
        (timedelta(hours=1), "You pay", "You owe"),
        (timedelta(hours=-1), '[2500,"', '[2501,"'),
        (timedelta(hours=-1), '"USD"', '"CAD"'),
        (timedelta(hours=-1), "]],null]", ']],[1,"0.01",7500,7501]]'),
    ],
)  # fmt: skip
async def test_verify_finds_a_changed_agreement(own: Own, ahead: timedelta, was: str, becomes: str) -> None:
    from_then(own, ahead)
    await bought(own)
    assert (await verify(own.context.pool)).disagreements == []
    await alter(own, was, becomes)
    (found,) = (await verify(own.context.pool)).disagreements
    assert (found.row, found.problem) == ("plans.agreement", "does not have the hash that was accepted")


@pytest.mark.parametrize(
    ("was", "becomes", "problem"),
    [
        ("]],null]", "]],null", "is not the values of an agreement"),
        ("[1,", "[99,", "has the words of version 99, which this release does not have. Start the newest release."),
    ],
)  # fmt: skip
async def test_verify_finds_values_that_nobody_can_read(
    own: Own, was: str, becomes: str, problem: str
) -> None:
    await bought(own)
    await alter(own, was, becomes)
    (found,) = (await verify(own.context.pool)).disagreements
    assert found.row == "plans.agreement"
    assert found.problem.startswith(problem)
