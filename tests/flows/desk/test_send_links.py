"""Mails with sign-in links are sent several at a time, so that a slow mail server delays nobody for long."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace

from cuota.core.desk.role import Role
from cuota.core.message import Message
from cuota.core.operator.role import OperatorRole
from cuota.flows.context import Context
from cuota.flows.desk.change_team import invite
from cuota.flows.desk.record import OPERATOR
from cuota.flows.desk.send_links import BATCH, send_links
from cuota.flows.operator.change_operators import invite_operator
from cuota.flows.operator.log_action import OperatorActor
from cuota.flows.operator.send_operator_links import send_operator_links
from cuota.rails.unavailable import RailUnavailable
from support.own_service import Own


class SlowMails:
    """A mail server that accepts no mail before `most` mails are on their way to it at the same time."""

    shown_code = None

    def __init__(self, most: int, refuses: str = "") -> None:
        self.sent: Counter[str] = Counter()
        self._all = asyncio.Barrier(most)
        self._refuses = refuses

    async def send(self, message: Message) -> None:
        assert message.email is not None
        async with asyncio.timeout(20):
            await self._all.wait()
        if message.email == self._refuses:
            raise RailUnavailable("refused")
        self.sent[message.email] += 1

    def of(self, context: Context) -> Context:
        """Return the context with this rail."""
        return replace(context, rails=replace(context.rails, message=self))  # type: ignore[arg-type]


def emails(count: int) -> list[str]:
    return [f"person-{number}@shop.example" for number in range(count)]


async def invite_all(own: Own, addresses: list[str]) -> None:
    """Invite each person, half of them to each of two merchants."""
    for number, email in enumerate(addresses):
        merchant = (own.merchant, own.auto_merchant)[number % 2]
        await invite(own.context, merchant.merchant_id, OPERATOR, "Ana", email, Role.READ_ONLY, "new")


async def test_the_mails_of_a_batch_are_sent_at_the_same_time_for_all_merchants(own: Own) -> None:
    slow = SlowMails(BATCH)
    await invite_all(own, emails(BATCH))
    assert await send_links(slow.of(own.context)) == BATCH
    assert slow.sent == Counter(emails(BATCH))
    assert await send_links(own.context) == 0


async def test_a_batch_has_no_more_mails_than_are_sent_at_the_same_time(own: Own) -> None:
    slow = SlowMails(BATCH)
    await invite_all(own, emails(BATCH + 1))
    assert await send_links(slow.of(own.context)) == BATCH
    assert await send_links(own.context) == 1


async def test_a_mail_that_the_server_refuses_waits_and_delays_no_other_mail(own: Own) -> None:
    first, *others = emails(3)
    slow = SlowMails(3, refuses=first)
    await invite_all(own, [first, *others])
    assert await send_links(slow.of(own.context)) == 3
    assert slow.sent == Counter(others)
    rows = await own.context.pool.fetch(
        "SELECT mail_at > now() AS later FROM desk_links WHERE mail_at IS NOT NULL"
    )
    assert [row["later"] for row in rows] == [True]


async def test_the_mails_to_the_operators_people_are_sent_at_the_same_time(own: Own) -> None:
    slow = SlowMails(BATCH)
    for email in emails(BATCH + 1):
        await invite_operator(own.context, OperatorActor(None), "Bo", email, OperatorRole.RISK, "new")
    assert await send_operator_links(slow.of(own.context)) == BATCH
    assert set(slow.sent.values()) == {1}
    assert await send_operator_links(own.context) == 1
