"""Schemathesis generates requests from `/openapi.json`. No response has an undocumented status or a 5xx."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from cuota.core.dispute.evidence import EvidenceFile
from support.api.receiver import receiving
from support.disputes import captured, decided, disputed
from support.long_run import LONG
from support.makers import Merchant
from support.sending import deliver
from support.settlement_rows import Row, paid, write_terms

# JSON Schema cannot express every rule, such as tax and shipping within the amount, the merchant's range, or the amount
# left to capture.
LEFT_OUT = "positive_data_acceptance"
# The suite makes a short run, and `make faults` a long one.
EXAMPLES = "60" if LONG else "10"


async def schemathesis(
    merchant: Merchant, folder: Path, *arguments: str, phases: str = "examples,coverage,fuzzing"
) -> None:
    """Run Schemathesis against the service, in a separate process. On failure, show its output."""
    # Some dependencies of Schemathesis warn at import. This run's filter of warnings applies only to our code.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "schemathesis.cli", "--no-color", "run",
        f"{merchant.service.settings.public_url}/openapi.json",
        "--seed", "20261121", "--max-examples", EXAMPLES, "--no-shrink", "--workers", "1",
        "--phases", phases, "--exclude-checks", LEFT_OUT,
        "--suppress-health-check", "all", "--warnings", "off", "--request-timeout", "60", *arguments,
        cwd=folder, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        async with asyncio.timeout(1200):
            said, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, said.decode(errors="replace")[-6000:]


async def test_every_call_with_a_token_follows_the_contract(merchant: Merchant, tmp_path: Path) -> None:
    token = merchant.http.headers["authorization"]
    await schemathesis(
        merchant, tmp_path, "--header", f"Authorization: {token}", "--exclude-path", "/oauth/token",
        # Schemathesis would call the invented addresses of the endpoints that it registers.
        "--exclude-operation-id", "testEndpoint",
        phases="examples,coverage,fuzzing,stateful",
    )  # fmt: skip


# Each operation has its own merchant, because the contract's examples share one Idempotency-Key.
@pytest.mark.parametrize("operation", ["getOrder", "captureOrder", "voidOrder", "refundOrder"])
async def test_calls_on_a_real_order_follow_the_contract(
    merchant: Merchant, tmp_path: Path, operation: str
) -> None:
    # Invented ids get 404, so this test uses a real order that can still be captured, voided and refunded.
    order = await merchant.approved("2000.00")
    assert (await merchant.move(order, "capture", "1000.00")).status_code == 200
    (tmp_path / "schemathesis.toml").write_text(f'[parameters]\n"path.orderId" = "{order["orderId"]}"\n')
    token = merchant.http.headers["authorization"]
    await schemathesis(
        merchant, tmp_path, "--header", f"Authorization: {token}", "--include-operation-id", operation
    )
    record = await merchant.read(order)
    # Money must have moved. This proves that successful answers were checked against the contract too.
    moved = {
        "getOrder": "captures",
        "captureOrder": "captures",
        "voidOrder": "voids",
        "refundOrder": "refunds",
    }
    assert len(record[moved[operation]]) >= (2 if operation == "captureOrder" else 1)


def of(operations: str) -> list[str]:
    """Return the arguments that select these operations. Calls that change nothing can share a run, which takes two seconds."""
    return [each for operation in operations.split() for each in ("--include-operation-id", operation)]


@pytest.mark.parametrize(
    "operations",
    [
        "getEvent listDeliveries getEndpoint", "replayEvent", "changeEndpoint", "rotateSecret", "testEndpoint",
        "replayEndpoint",
    ],
)  # fmt: skip
async def test_calls_on_a_real_event_and_endpoint_follow_the_contract(
    merchant: Merchant, tmp_path: Path, operations: str
) -> None:
    async with receiving() as receiver:
        endpoint = (await merchant.http.post("/webhook-endpoints", json={"url": receiver.url})).json()
        await merchant.approved("100.00")
        await deliver(merchant)
        event = (await merchant.http.get("/events")).json()["events"][-1]
        (tmp_path / "schemathesis.toml").write_text(
            f'[parameters]\n"path.eventId" = "{event["id"]}"\n"path.endpointId" = "{endpoint["id"]}"\n'
        )
        token = merchant.http.headers["authorization"]
        await schemathesis(
            merchant, tmp_path, "--header", f"Authorization: {token}", *of(operations), phases="examples,coverage"
        )  # fmt: skip
        # Test webhooks must have arrived beside the two events, which proves that calls succeeded.
        assert (len(receiver.got) > 2) == (operations == "testEndpoint")


async def test_the_token_endpoint_follows_the_contract(merchant: Merchant, tmp_path: Path) -> None:
    await schemathesis(merchant, tmp_path, "--include-path", "/oauth/token")


async def test_calls_on_a_real_payout_follow_the_contract(merchant: Merchant, tmp_path: Path) -> None:
    await write_terms(merchant)
    payout_id = await paid(merchant, Row("capture", 11996), Row("fee", 0, -738), Row("refund", -2000))
    (tmp_path / "schemathesis.toml").write_text(f'[parameters]\n"path.payoutId" = "{payout_id}"\n')
    token = merchant.http.headers["authorization"]
    await schemathesis(
        merchant,
        tmp_path,
        "--header",
        f"Authorization: {token}",
        *of("listPayouts getPayout listPayoutLines getBalance getTerms"),
    )


@pytest.mark.parametrize(
    "operations",
    ["listDisputes getDispute getDisputeFile", "acceptDispute", "submitEvidence", "appealDispute"],
)
async def test_calls_on_a_real_dispute_follow_the_contract(
    merchant: Merchant, tmp_path: Path, operations: str
) -> None:
    file = EvidenceFile("note.txt", "text/plain", b"Delivered.")
    dispute = await disputed(merchant, await captured(merchant), 4000, files=(file,))
    if operations == "appealDispute":
        await decided(merchant, dispute, for_consumer=True)
    path = f"/disputes/{dispute.dispute_id}"
    (said,) = (await merchant.http.get(path)).json()["statements"]
    (tmp_path / "schemathesis.toml").write_text(
        f'[parameters]\n"path.disputeId" = "{dispute.dispute_id}"\n"path.fileId" = "{said["files"][0]["fileId"]}"\n'
    )
    token = merchant.http.headers["authorization"]
    await schemathesis(merchant, tmp_path, "--header", f"Authorization: {token}", *of(operations))
    # The dispute must have changed, which proves that calls succeeded.
    moved = {"acceptDispute": "lost", "submitEvidence": "under_review", "appealDispute": "appealed"}
    assert (await merchant.http.get(path)).json()["status"] == moved.get(operations, "open")
