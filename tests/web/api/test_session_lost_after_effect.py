"""The database session is lost after a call had its effect: the caller gets the result, and the effect happens once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from cuota.flows.webhook.manage_endpoints import MOST_ENDPOINTS
from cuota.web.service import Service
from support.contract import read_json
from support.disputes import decided
from support.flows.cut_commits import CutCommits, CutReads
from support.own_service import Own
from web.api.test_dispute_answers import a_dispute, a_file, sent, stored_files
from web.api.test_payouts import read

URL = {"url": "http://127.0.0.1:9/hook"}
KEY = {"Idempotency-Key": "once"}
ADD, ROTATE = "INSERT INTO webhook_endpoints", "UPDATE webhook_endpoints"
SHOW = "AS merchant_reference, o.currency, m.reference AS refund_reference"


@contextmanager
def cutting(own: Own, pool: CutCommits | CutReads) -> Iterator[None]:
    """Let the service use this pool. It must lose a session."""
    plain: Service = own.service.app.service
    own.service.app.service = replace(plain, context=replace(own.context, pool=pool))
    try:
        yield
    finally:
        own.service.app.service = plain
    assert pool.cut == 1


async def listed(own: Own) -> list[dict[str, Any]]:
    endpoints: list[dict[str, Any]] = (await read(own.merchant, "/webhook-endpoints"))["endpoints"]
    return endpoints


@pytest.mark.parametrize("before", [0, MOST_ENDPOINTS - 1])
async def test_a_registration_whose_commit_was_not_confirmed_adds_one_endpoint(own: Own, before: int) -> None:
    for _ in range(before):
        assert (await own.merchant.http.post("/webhook-endpoints", json=URL)).status_code == 200
    with cutting(own, CutCommits(own, ADD)):
        first = await own.merchant.http.post("/webhook-endpoints", json=URL, headers=KEY)
    again = await own.merchant.http.post("/webhook-endpoints", json=URL, headers=KEY)
    assert first.status_code == 200, first.text
    assert again.content == first.content
    assert [each["id"] for each in await listed(own)][before:] == [first.json()["id"]]


async def test_a_rotation_whose_commit_was_not_confirmed_makes_one_secret_and_keeps_the_old_one(
    own: Own,
) -> None:
    made = (await own.merchant.http.post("/webhook-endpoints", json=URL)).json()
    path = f"/webhook-endpoints/{made['id']}/rotate-secret"
    with cutting(own, CutCommits(own, ROTATE)):
        first = await own.merchant.http.post(path, headers=KEY)
    again = await own.merchant.http.post(path, headers=KEY)
    assert first.status_code == 200, first.text
    assert again.content == first.content
    row = await own.context.pool.fetchrow(
        "SELECT secret, old_secret FROM webhook_endpoints WHERE merchant_id = $1", own.merchant.merchant_id
    )
    assert row is not None
    opened = [own.context.vault.decrypt(each, f"endpoint-secret:{made['id']}") for each in row]
    assert opened == [first.json()["secret"], made["secret"]]


async def test_evidence_whose_answer_could_not_be_read_at_first_is_sent_once(own: Own) -> None:
    dispute, body = await a_dispute(own.merchant), {"text": "It came.", "files": [a_file()]}
    with cutting(own, CutReads(own, SHOW)):
        first = await sent(own.merchant, dispute, "evidence", body, headers=KEY)
    again = await sent(own.merchant, dispute, "evidence", body, headers=KEY)
    assert first.status_code == 200, first.text
    assert again.content == first.content
    assert len(read_json(first.content)["statements"]) == 2
    assert await stored_files(own.merchant, dispute) == 1


async def test_an_appeal_whose_answer_could_not_be_read_at_first_is_confirmed(own: Own) -> None:
    merchant, dispute = own.merchant, await a_dispute(own.merchant)
    await sent(merchant, dispute, "evidence", {"text": "It came."})
    await decided(merchant, dispute, for_consumer=True)
    with cutting(own, CutReads(own, SHOW)):
        first = await sent(merchant, dispute, "appeal", {"text": "Look again."}, headers=KEY)
    assert first.status_code == 200, first.text
    assert read_json(first.content)["status"] == "appealed"
