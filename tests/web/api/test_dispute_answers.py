"""A merchant accepts a dispute, sends evidence, and appeals. A repeated request never counts twice."""

from __future__ import annotations

import base64
from typing import Any

import httpx
import pytest

from cuota.core.dispute.dispute import Dispute
from cuota.flows.dispute.close_disputes import settle_due_disputes
from support.api.bodies import assert_refused, failures
from support.contract import read_json
from support.disputes import captured, charged_back, decided, disputed
from support.evidence_files import PNG
from support.makers import Merchant
from support.own_service import Own
from web.api.test_payouts import read


async def a_dispute(merchant: Merchant, cents: int = 4000) -> Dispute:
    return await disputed(merchant, await captured(merchant), cents)


async def sent(merchant: Merchant, dispute: Dispute, verb: str, body: object, **more: Any) -> httpx.Response:
    return await merchant.http.post(f"/disputes/{dispute.dispute_id}/{verb}", json=body, **more)


def a_file(name: str = "note.txt", content: bytes = b"Delivered.") -> dict[str, str]:
    return {"name": name, "content": base64.b64encode(content).decode()}


async def stored_files(merchant: Merchant, dispute: Dispute) -> int:
    row = await merchant.service.context.pool.fetchrow(
        "SELECT count(*) AS files FROM dispute_files WHERE merchant_id = $1 AND dispute_id = $2",
        merchant.merchant_id, dispute.dispute_id,
    )  # fmt: skip
    assert row is not None
    return int(row["files"])


async def test_an_accepted_dispute_is_lost_and_accepting_it_again_gets_the_same_answer(own: Own) -> None:
    dispute = await a_dispute(own.merchant)
    first = await sent(own.merchant, dispute, "accept", None)
    second = await sent(own.merchant, dispute, "accept", None)
    assert (first.status_code, second.content) == (200, first.content)
    assert first.headers["cache-control"] == "no-store"
    found = read_json(first.content)
    assert (found["status"], found["final"], found["appealBy"]) == ("lost", True, None)
    await settle_due_disputes(own.context)
    later = await sent(own.merchant, dispute, "accept", None)
    assert (later.status_code, later.json()["outcome"]) == (200, "lost")


async def test_evidence_is_shown_with_its_files_and_more_can_be_sent(merchant: Merchant) -> None:
    dispute = await a_dispute(merchant)
    files = [a_file(), a_file("photo.png", PNG)]
    answer = await sent(merchant, dispute, "evidence", {"text": "It came.\nReally.", "files": files})
    assert answer.status_code == 200, answer.text
    found = read_json(answer.content)
    assert (found["status"], "warnings" in found) == ("under_review", False)
    _, said = found["statements"]
    assert (said["party"], said["text"]) == ("merchant", "It came.\nReally.")
    assert [file["mediaType"] for file in said["files"]] == ["text/plain", "image/png"]
    again = await sent(merchant, dispute, "evidence", {"files": [a_file()]})
    assert [each["text"] for each in again.json()["statements"]] == ["Nothing came.", "It came.\nReally.", ""]
    path = f"/disputes/{dispute.dispute_id}/files/{again.json()['statements'][2]['files'][0]['fileId']}"
    assert (await merchant.http.get(path)).content == b"Delivered."


async def test_the_same_idempotency_key_sends_evidence_once(merchant: Merchant) -> None:
    dispute = await a_dispute(merchant)
    headers = {"Idempotency-Key": "evidence-1"}
    body = {"text": "A secret of the consumer", "files": [a_file()]}
    first = await sent(merchant, dispute, "evidence", body, headers=headers)
    second = await sent(merchant, dispute, "evidence", body, headers=headers)
    assert second.headers["idempotency-replayed"] == "true"
    assert second.content == first.content
    assert len((await read(merchant, f"/disputes/{dispute.dispute_id}"))["statements"]) == 2
    assert await stored_files(merchant, dispute) == 1
    other = await sent(merchant, dispute, "evidence", {"text": "x"}, headers=headers)
    assert_refused(other, 422, "idempotency_key_reused")
    row = await merchant.service.context.pool.fetchrow(
        "SELECT body FROM idempotency_keys WHERE merchant_id = $1 AND key = 'evidence-1'",
        merchant.merchant_id,
    )
    assert row is not None
    assert b"A secret" not in row["body"]


async def test_an_unknown_field_is_named_in_a_warning_and_the_evidence_is_stored(merchant: Merchant) -> None:
    dispute = await a_dispute(merchant)
    answer = await sent(merchant, dispute, "evidence", {"text": "It came.", "file": [a_file()]})
    assert answer.status_code == 200
    (warning,) = answer.json()["warnings"]
    assert (warning["field"], warning["code"]) == ("file", "unknown_field")
    assert "Did you mean files?" in warning["message"]


WRONG = [
    ({}, "validation_failed", [("text", "required")]),
    ({"text": " \n", "files": []}, "validation_failed", [("text", "required")]),
    ({"text": None, "files": None}, "validation_failed", [("text", "required")]),
    ({"text": "x" * 5001}, "validation_failed", [("text", "too_long")]),
    ({"text": "a\x07b"}, "validation_failed", [("text", "control_character")]),
    ({"text": 1}, "malformed_request", [("text", "wrong_type")]),
    ({"files": {}}, "malformed_request", [("files", "wrong_type")]),
    ({"files": ["x"]}, "malformed_request", [("files[0]", "wrong_type")]),
    ({"files": [{}]}, "validation_failed", [("files[0].name", "required"), ("files[0].content", "required")]),
    ({"files": [a_file(), {"name": "a", "content": "?"}]}, "validation_failed", [("files[1].content", "invalid")]),
    ({"files": [{"name": "a\nb", "content": "QQ=="}]}, "validation_failed", [("files[0].name", "control_character")]),
]  # fmt: skip


@pytest.mark.parametrize(("body", "code", "wrong"), WRONG)
async def test_a_body_that_breaks_a_rule_is_refused_and_the_error_names_the_field(
    merchant: Merchant, body: object, code: str, wrong: list[tuple[str, str]]
) -> None:
    dispute = await a_dispute(merchant)
    answer = await sent(merchant, dispute, "evidence", body)
    assert_refused(answer, 400, code)
    assert failures(answer) == wrong
    assert (await read(merchant, f"/disputes/{dispute.dispute_id}"))["status"] == "open"


BAD_FILES = [
    [a_file("a.pdf", b"")],
    [a_file("a.pdf", b"MZ\x90\x00")],
    [a_file("page.html", b"\x00<script>")],
    [a_file()] * 6,
    [a_file("big.txt", b"x" * (5 * 1024 * 1024 + 1))],
    [a_file("big.txt", b"x" * (3_500_000))] * 3,
]


@pytest.mark.parametrize("files", BAD_FILES, ids=["empty", "program", "binary", "six", "large", "together"])
async def test_a_file_of_a_wrong_type_is_refused_whatever_its_name_is(
    merchant: Merchant, files: list[dict[str, str]]
) -> None:
    dispute = await a_dispute(merchant)
    answer = await sent(merchant, dispute, "evidence", {"text": "x", "files": files})
    assert_refused(answer, 422, "bad_file")
    assert await stored_files(merchant, dispute) == 0


async def test_two_files_of_five_mebibytes_are_accepted_and_can_be_downloaded_unchanged(
    merchant: Merchant,
) -> None:
    dispute = await a_dispute(merchant)
    contents = [letter * (5 * 1024 * 1024) for letter in (b"a", b"b")]
    files = [a_file("big.txt", content) for content in contents]
    answer = await sent(merchant, dispute, "evidence", {"files": files})
    assert answer.status_code == 200, answer.text
    shown = answer.json()["statements"][1]["files"]
    for file, content in zip(shown, contents, strict=True):
        got = await merchant.http.get(f"/disputes/{dispute.dispute_id}/files/{file['fileId']}")
        assert got.content == content


async def test_a_caller_without_a_token_cannot_send_a_large_body(merchant: Merchant) -> None:
    dispute = await a_dispute(merchant)
    async with merchant.service.client() as stranger:
        large = {"text": "x" * (3 * 1024 * 1024)}
        answer = await stranger.post(f"/disputes/{dispute.dispute_id}/evidence", json=large)
        assert_refused(answer, 401, "unauthorized")


async def test_a_decision_can_be_appealed_once_and_only_by_the_losing_side(own: Own) -> None:
    merchant, dispute = own.merchant, await a_dispute(own.merchant)
    early = await sent(merchant, dispute, "appeal", {"text": "No!", "files": [a_file()]})
    assert_refused(early, 409, "dispute_state")
    assert early.json()["disputeStatus"] == "open"
    await decided(merchant, dispute, for_consumer=True)
    answer = await sent(merchant, dispute, "appeal", {"text": "Look again."})
    found = read_json(answer.content)
    assert (found["status"], found["appealedBy"]) == ("appealed", "merchant")
    await decided(merchant, dispute, for_consumer=True)
    late = await sent(merchant, dispute, "appeal", {"text": "Again."})
    assert_refused(late, 409, "dispute_state")
    assert late.json()["disputeStatus"] == "lost"
    won = await a_dispute(merchant)
    await decided(merchant, won, for_consumer=False)
    assert_refused(await sent(merchant, won, "appeal", {"text": "?"}), 409, "dispute_state")
    assert await stored_files(merchant, dispute) == 0


async def test_evidence_for_a_decided_dispute_is_refused_and_no_file_is_stored(merchant: Merchant) -> None:
    dispute = await a_dispute(merchant)
    await decided(merchant, dispute, for_consumer=False)
    for verb, body in (("evidence", {"text": "x", "files": [a_file()]}), ("accept", None)):
        answer = await sent(merchant, dispute, verb, body)
        assert_refused(answer, 409, "dispute_state")
        assert answer.json()["disputeStatus"] == "won"
    assert await stored_files(merchant, dispute) == 0


async def test_a_chargeback_accepts_evidence_but_no_appeal(merchant: Merchant) -> None:
    dispute = await charged_back(merchant, await captured(merchant), 2500)
    appealed = await sent(merchant, dispute, "appeal", {"text": "x"})
    assert_refused(appealed, 422, "dispute_not_possible")
    answer = await sent(merchant, dispute, "evidence", {"text": "It was delivered."})
    assert (answer.json()["kind"], answer.json()["status"]) == ("chargeback", "under_review")


async def test_a_body_that_is_not_json_or_too_large_is_refused(merchant: Merchant) -> None:
    dispute = await a_dispute(merchant)
    path = f"/disputes/{dispute.dispute_id}/evidence"
    assert_refused(await merchant.http.post(path, content=b"text=x"), 415, "unsupported_media_type")
    headers = {"Content-Type": "application/json"}
    assert_refused(await merchant.http.post(path, content=b"[]", headers=headers), 400, "malformed_request")
    many = b'{"text":"' + b"x" * (14 * 1024 * 1024) + b'"}'
    assert_refused(await merchant.http.post(path, content=many, headers=headers), 413, "body_too_large")
