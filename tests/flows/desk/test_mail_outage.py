"""A mail server that is down for a day costs nobody an invitation, and the mail says how long its link still works."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from cuota.core.desk.role import Role
from cuota.core.message import Message
from cuota.core.operator.role import OperatorRole
from cuota.db.desk import sessions
from cuota.db.operator import operator_sessions
from cuota.flows.context import Context, utc_now
from cuota.flows.desk.change_team import invite
from cuota.flows.desk.record import OPERATOR
from cuota.flows.desk.send_links import life_words, send_links
from cuota.flows.operator.change_operators import invite_operator
from cuota.flows.operator.log_action import OperatorActor
from cuota.flows.operator.send_operator_links import send_operator_links
from cuota.rails.unavailable import RailUnavailable
from support.own_service import Own

EMAIL = "bo@shop.example"


class Mails:
    """A mail server that is down until `up` is set."""

    shown_code = None

    def __init__(self) -> None:
        self.up, self.tried = False, 0
        self.texts: list[str] = []

    async def send(self, message: Message) -> None:
        self.tried += 1
        if not self.up:
            raise RailUnavailable("the server is down")
        self.texts.append(message.text)

    def of(self, context: Context) -> Context:
        """Return the context with this rail."""
        return replace(context, rails=replace(context.rails, message=self))  # type: ignore[arg-type]


async def passes(own: Own, table: str, time: timedelta) -> None:
    """Let time pass for the links. Links live by the real clock, so their times are moved back."""
    change = f"UPDATE {table} SET mail_at = $2, ends_at = $3 WHERE link_id = $1"
    async with own.owner() as owner:
        # On a Citus cluster, an UPDATE cannot compute these times.
        for link_id, mail_at, ends_at in await owner.fetch(f"SELECT link_id, mail_at, ends_at FROM {table}"):
            await owner.execute(change, link_id, mail_at and mail_at - time, ends_at - time)


@pytest.mark.parametrize("team", ["desk_links", "operator_links"])
async def test_an_invitation_is_mailed_after_an_outage_of_a_day(own: Own, team: str) -> None:
    mails = Mails()
    context = mails.of(own.context)
    if team == "desk_links":
        merchant_id = own.merchant.merchant_id
        await invite(own.context, merchant_id, OPERATOR, "Bo", EMAIL, Role.READ_ONLY, "new")
        send = send_links
    else:
        await invite_operator(own.context, OperatorActor(None), "Bo", EMAIL, OperatorRole.RISK, "new")
        send = send_operator_links
    for _ in range(24 * 12):
        await send(context)
        await passes(own, team, timedelta(minutes=5))
    # The server is asked often at first, and rarely after some hours.
    assert 20 < mails.tried < 100
    mails.up = True
    for _ in range(24):
        await send(context)
        await passes(own, team, timedelta(minutes=5))
    assert len(mails.texts) == 1
    assert "for 6 days" in mails.texts[0]


async def test_a_link_that_has_ended_is_not_mailed(own: Own) -> None:
    mails = Mails()
    context = mails.of(own.context)
    await invite(own.context, own.merchant.merchant_id, OPERATOR, "Bo", EMAIL, Role.READ_ONLY, "new")
    await send_links(context)
    await passes(own, "desk_links", timedelta(days=8))
    mails.up = True
    await send_links(context)
    assert mails.texts == []
    await passes(own, "desk_links", timedelta(days=1))
    assert await send_links(context) == 0


@pytest.mark.parametrize("team", ["desk_links", "operator_links"])
async def test_a_link_that_was_used_is_not_mailed_again_although_the_server_s_answer_was_lost(
    own: Own, team: str
) -> None:
    mails = Mails()
    context, merchant_id = mails.of(own.context), own.merchant.merchant_id
    if team == "desk_links":
        await invite(own.context, merchant_id, OPERATOR, "Bo", EMAIL, Role.READ_ONLY, "new")
        send = send_links
    else:
        await invite_operator(own.context, OperatorActor(None), "Bo", EMAIL, OperatorRole.RISK, "new")
        send = send_operator_links
    # The mail arrives, but the service does not know.
    assert await send(context) == 1
    async with own.owner() as owner:
        link_id = await owner.fetchval(f"SELECT link_id FROM {team} WHERE mail_at IS NOT NULL")
    if team == "desk_links":
        assert await sessions.use_link(own.context.pool, merchant_id, link_id, utc_now())
    else:
        assert await operator_sessions.use_link(own.context.pool, link_id, utc_now()) is not None
    mails.up = True
    await passes(own, team, timedelta(hours=2))
    assert await send(context) == 0
    assert mails.texts == []


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (timedelta(days=7, seconds=-2), "7 days"),
        (timedelta(days=6, hours=1), "6 days"),
        (timedelta(hours=30), "30 hours"),
        (timedelta(minutes=100), "1 hour"),
        (timedelta(minutes=15, seconds=-1), "15 minutes"),
        (timedelta(minutes=6, seconds=10), "7 minutes"),
        (timedelta(seconds=20), "1 minute"),
    ],
)
def test_the_words_say_how_long_a_link_still_works(left: timedelta, words: str) -> None:
    assert life_words(left) == words
