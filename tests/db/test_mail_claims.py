"""The claims of sign-in mails: each mail is claimed by one worker at a time, and retried later and later."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from uuid import UUID

from cuota.core.desk.role import Role
from cuota.db.desk import sessions
from cuota.flows.context import utc_now
from cuota.flows.desk.change_team import invite
from cuota.flows.desk.record import OPERATOR
from support.own_service import Own

LEASE, LINKS = timedelta(minutes=2), 12


async def test_of_many_workers_one_claims_each_mail_and_the_lease_grows_with_the_tries(own: Own) -> None:
    for number in range(LINKS):
        await invite(
            own.context,
            own.merchant.merchant_id,
            OPERATOR,
            "Bo",
            f"bo{number}@shop.example",
            Role.READ_ONLY,
            "new",
        )
    now, pool = utc_now() + timedelta(seconds=1), own.context.pool
    for tries in range(4):
        claims = await asyncio.gather(*(sessions.claim_mail(pool, now, LEASE, 5) for _ in range(8)))
        assert max(map(len, claims)) <= 5
        taken: Counter[UUID] = Counter(link.link_id for claim in claims for _, link in claim)
        # Workers that met others' locks may have taken fewer.
        while rest := await sessions.claim_mail(pool, now, LEASE, LINKS):
            taken.update(link.link_id for _, link in rest)
        assert sorted(taken.values()) == [1] * LINKS
        async with own.owner() as owner:
            rows = await owner.fetch("SELECT mail_at, tries FROM desk_links")
        later = now + LEASE + tries * timedelta(seconds=30)
        assert {(row["mail_at"], row["tries"]) for row in rows} == {(later, tries + 1)}
        now = later + timedelta(seconds=1)
