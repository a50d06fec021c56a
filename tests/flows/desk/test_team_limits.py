"""A team has a limited number of people, and sends a limited number of invitations a day: each is an e-mail to any address."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cuota.core.desk.role import Role
from cuota.db.desk import people
from cuota.flows.context import utc_now
from cuota.flows.desk import change_team
from cuota.flows.desk.bad_change import BadChange
from cuota.flows.desk.change_team import MOST_INVITED, MOST_PEOPLE
from cuota.flows.desk.record import OPERATOR
from support.own_service import Own

_FILL = """INSERT INTO desk_people (merchant_id, person_id, email, name, role, invited_at, removed_at)
    SELECT $1, gen_random_uuid(), 'p' || n || '@shop.example', 'Ana', 'read-only', $2, $3 FROM generate_series(1, $4::integer) n"""
_LINKS = "SELECT count(*) FROM desk_links WHERE merchant_id = $1"
LONG_AGO = timedelta(days=2)


async def fill(own: Own, count: int, invited: timedelta, *, removed: bool = False) -> None:
    """Add people to the merchant's team who were invited this long ago."""
    now = utc_now()
    async with own.owner() as owner:
        await owner.execute(_FILL, own.merchant.merchant_id, now - invited, now if removed else None, count)


async def invite(own: Own, email: str = "bo@shop.example") -> None:
    await change_team.invite(
        own.context, own.merchant.merchant_id, OPERATOR, "Bo", email, Role.SUPPORT, "new"
    )


async def test_a_team_has_a_limited_number_of_people(own: Own) -> None:
    await fill(own, MOST_PEOPLE - 1, LONG_AGO)
    await invite(own)
    with pytest.raises(BadChange, match=f"The team has {MOST_PEOPLE} people already"):
        await invite(own, "eve@shop.example")
    assert len(await people.team(own.context.pool, own.merchant.merchant_id)) == MOST_PEOPLE


async def test_a_removed_person_leaves_a_place_in_the_team(own: Own) -> None:
    await fill(own, MOST_PEOPLE - 1, LONG_AGO)
    await fill(own, MOST_PEOPLE, LONG_AGO, removed=True)
    await invite(own)


async def test_who_invites_and_removes_the_same_address_again_and_again_sends_a_limited_number_of_mails(
    own: Own,
) -> None:
    await fill(own, MOST_INVITED - 1, timedelta(hours=1), removed=True)
    await invite(own)
    with pytest.raises(BadChange, match=f"{MOST_INVITED} people were invited in the last 24 hours"):
        await invite(own, "eve@shop.example")
    async with own.owner() as owner:
        assert await owner.fetchval(_LINKS, own.merchant.merchant_id) == 1


async def test_the_invitations_of_one_merchant_do_not_limit_another_s(own: Own) -> None:
    await fill(own, MOST_INVITED, timedelta(hours=1))
    await change_team.invite(
        own.context, own.auto_merchant.merchant_id, OPERATOR, "Bo", "bo@shop.example", Role.SUPPORT, "new"
    )
