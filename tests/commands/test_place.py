"""Every command names the data and the service that it uses, and fails if it needs a service that does not run."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from cuota.commands.place import data_of
from cuota.config import load
from cuota.db.embedded.server import open_embedded
from support.commands import Cuota, on_a_folder
from support.serving import ORDER, serving


@pytest.fixture(scope="module")
def idle() -> Iterator[Cuota]:
    """A sandbox in which a service has run, but no service is running now."""
    with on_a_folder() as command, open_embedded(command.data):
        with serving(command):
            assert command("merchant", "create", "--name", "Alder").returncode == 0
        yield command


@pytest.mark.parametrize(
    "command",
    [
        ["merchant", "create", "--name", "Alder"],
        ["merchant", "list"],
        ["sandbox", "inbox"],
        ["keys", "rotate"],
        ["time"],
        ["time", "advance", "1d"],
        ["time", "fork", "one"],
        ["approvals", "report", "Alder"],
    ],
)
def test_a_command_with_a_mistyped_folder_creates_no_new_sandbox(bare: Cuota, command: list[str]) -> None:
    done = bare(*command)
    assert done.returncode == 1
    assert f"There is no database in {bare.data}. Set CUOTA_DATA_DIR" in done.stderr
    assert "-m cuota migrate" in done.stderr
    assert not bare.data.exists()


def test_migrate_creates_a_new_database_and_says_where() -> None:
    with on_a_folder() as command:
        made = command("migrate")
        assert made.returncode == 0, made.stderr
        assert f"cuota: sandbox, data in {command.data}; no service has run on it yet.\n" in made.stderr
        assert command("merchant", "create", "--name", "Alder").returncode == 0


@pytest.mark.parametrize("command", [["merchant", "list"], ["time"], ["verify"], ["migrate"]])
def test_a_command_names_its_data_and_says_that_no_service_runs_on_it(
    idle: Cuota, command: list[str]
) -> None:
    done = idle(*command, "--json")
    assert done.returncode == 0, done.stderr
    assert f"cuota: sandbox, data in {idle.data}; service http://127.0.0.1:" in done.stderr
    assert done.stderr.endswith(" is not running.\n")
    json.loads(done.stdout)


def test_a_command_beside_a_running_service_names_the_service_s_address(idle: Cuota) -> None:
    with serving(idle) as (line, _):
        for command in (["merchant", "list"], ["time"]):
            told = idle(*command).stderr
            assert f"service {line['url']} is running.\n" in told


def test_listen_stops_if_no_service_runs_and_says_what_to_do(idle: Cuota) -> None:
    done = idle("listen", "--merchant", "Alder")
    assert done.returncode == 1
    assert f"No service is running on the data in {idle.data}" in done.stderr
    assert "Start a service with these settings" in done.stderr
    assert "CUOTA_DATA_DIR" in done.stderr


def test_a_replay_says_that_a_service_must_start_to_send_it(idle: Cuota) -> None:
    with serving(idle) as (line, _):
        made = json.loads(idle("merchant", "create", "--name", "Oak", "--json").stdout)
        order(line["url"], made)
    done = idle("webhook", "replay", "--merchant", "Oak", "--all")
    assert done.returncode == 0
    assert (
        "1 deliveries will be sent again.\nNo service is running. The deliveries will be sent when one starts"
        in done.stdout
    )


def order(url: str, made: dict[str, str]) -> None:
    """Make one order whose event has an unreachable receiver. Returns when the event is in the feed."""
    asked = {"client_id": made["clientId"], "client_secret": made["clientSecret"]}
    asked |= {"audience": made["audience"], "grant_type": "client_credentials"}
    merchant = {**ORDER["merchant"], "statusCallbackUrl": "http://127.0.0.1:9/"}
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as http:
        token = http.post("/oauth/token", json=asked).json()["access_token"]
        http.headers["Authorization"] = f"Bearer {token}"
        assert http.post("/order", json={**ORDER, "merchant": merchant}).is_success
        until = time.monotonic() + 60
        while not http.get("/events").json()["events"]:
            assert time.monotonic() < until
            time.sleep(0.1)


def test_the_error_about_an_unreachable_checkout_names_its_service(bare: Cuota) -> None:
    done = bare("sandbox", "complete", "http://127.0.0.1:9/checkout/x?a=b", "--outcome", "approved")
    assert done.returncode == 1
    assert "Is the service running at http://127.0.0.1:9/?" in done.stderr


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("postgresql://ana:s3cret@db:5432/cuota?sslmode=require", "database postgresql://db:5432/cuota"),
        ("postgresql://one:5432,two:5432/cuota", "database postgresql://one:5432,two:5432/cuota"),
        ("postgres://ana:p%40ss@db", "database postgres://db"),
    ],
)
def test_a_database_is_shown_without_its_user_and_password(tmp_path: Path, url: str, text: str) -> None:
    assert data_of(load({"CUOTA_DATABASE_URL": url, "CUOTA_DATA_DIR": str(tmp_path)})) == text
