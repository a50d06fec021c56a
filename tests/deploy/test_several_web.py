"""Several web machines on one PostgreSQL are one service: each accepts the same tokens and has the same
orders and keys.

Other tests show that two worker loops do no job twice: tests/faults/test_work_alone.py,
test_strike_collection.py, test_strike_delivery.py.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.deploy.machines import ORDER, bearer, command, folder, free_ports, merchant, script

pytestmark = pytest.mark.faults


@dataclass
class Two:
    """Two web machines, a merchant, and the settings with which a command runs as one more machine."""

    one: str
    other: str
    merchant: dict[str, Any]
    shared: dict[str, str]

    def call(self, url: str, method: str, path: str, body: object = None, **headers: str) -> httpx.Response:
        found = {**bearer(self.one, self.merchant), **headers}
        return httpx.request(method, url + path, json=body, headers=found, trust_env=False, timeout=60)

    def approved(self) -> str:
        """Create an order at one machine, and let its consumer complete it there."""
        made = self.call(self.one, "POST", "/order", ORDER).json()
        command("sandbox", "complete", made["redirectUrl"], "--outcome", "approved", **self.shared)
        return str(made["orderId"])


@pytest.fixture(scope="module")
def two() -> Iterator[Two]:
    with folder() as path:
        port = free_ports(4)
        with script("several-web.sh", str(path), "2", "1", PORT=str(port)) as ready:
            shared = {
                "CUOTA_DATABASE_URL": f"postgresql://cuota:{(path / 'password').read_text().strip()}@127.0.0.1:{port}/postgres",
                "CUOTA_SECRET_KEY": (path / "secret.key").read_text().strip(),
                "CUOTA_PUBLIC_URL": ready["urls"][0],
                "CUOTA_DATA_DIR": str(path / "command"),
            }
            yield Two(*ready["urls"], merchant(**shared), shared)
        left = [pid for pid in ready["pids"] if Path(f"/proc/{pid}").exists()]
        assert not left


def test_a_token_issued_by_one_machine_is_accepted_by_the_other(two: Two) -> None:
    for issuer, answering in ((two.one, two.other), (two.other, two.one)):
        headers = bearer(issuer, two.merchant)
        answer = httpx.get(f"{answering}/configuration", headers=headers, trust_env=False, timeout=60)
        assert answer.status_code == 200, answer.text


def test_an_order_created_at_one_machine_can_be_captured_at_the_other_and_read_at_both(two: Two) -> None:
    order = two.approved()
    body = {"amount": "40.00", "merchantReference": "first"}
    assert two.call(two.other, "POST", f"/order/{order}/capture", body).status_code == 200
    for url in (two.one, two.other):
        assert two.call(url, "GET", f"/order/{order}").json()["capturedAmount"] == 40.00
    again = two.call(two.one, "POST", f"/order/{order}/capture", body)
    assert (again.status_code, again.json()["code"]) == (422, "duplicate_reference")


def test_a_request_repeated_at_the_other_machine_with_its_idempotency_key_gets_the_same_answer(
    two: Two,
) -> None:
    key = secrets.token_hex(8)
    first = two.call(two.one, "POST", "/order", ORDER, **{"Idempotency-Key": key})
    second = two.call(two.other, "POST", "/order", ORDER, **{"Idempotency-Key": key})
    assert (first.status_code, second.status_code) == (200, 200)
    assert second.headers["Idempotency-Replayed"] == "true"
    assert second.content == first.content


def test_a_capture_sent_to_both_machines_at_once_under_one_reference_is_applied_once(two: Two) -> None:
    order = two.approved()
    body = {"amount": "1.00", "merchantReference": "at once"}
    with ThreadPoolExecutor(8) as threads:
        asked = [
            threads.submit(two.call, url, "POST", f"/order/{order}/capture", body)
            for url in (two.one, two.other) * 4
        ]
        codes = sorted(each.result().status_code for each in asked)
    assert codes == [200] + [422] * 7
    assert two.call(two.one, "GET", f"/order/{order}").json()["capturedAmount"] == 1.00


def test_after_a_command_revokes_a_merchant_both_machines_soon_refuse_it(two: Two) -> None:
    shop = merchant(**two.shared)
    headers = [(url, bearer(url, shop)) for url in (two.one, two.other)]
    for url, given in headers:
        assert (
            httpx.get(f"{url}/configuration", headers=given, trust_env=False, timeout=60).status_code == 200
        )
    command("merchant", "revoke", shop["name"], **two.shared)
    deadline = time.monotonic() + 60
    for url, given in headers:
        while (
            httpx.get(f"{url}/configuration", headers=given, trust_env=False, timeout=60).status_code != 401
        ):
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_a_merchant_suspended_by_a_command_makes_no_order_at_either_within_seconds(two: Two) -> None:
    shop = merchant(**two.shared)
    headers = [(url, bearer(url, shop)) for url in (two.one, two.other)]

    def until(status: int) -> None:
        deadline = time.monotonic() + 60
        for url, given in headers:
            while (
                httpx.post(f"{url}/order", json=ORDER, headers=given, trust_env=False).status_code != status
            ):
                assert time.monotonic() < deadline
                time.sleep(0.1)

    until(200)
    command("merchant", "suspend", shop["name"], "--reason", "complaints", **two.shared)
    until(403)
    command("merchant", "resume", shop["name"], "--reason", "answered", **two.shared)
    until(200)


def test_the_books_of_all_machines_agree(two: Two) -> None:
    assert "0 disagree" in command("verify", **two.shared)
