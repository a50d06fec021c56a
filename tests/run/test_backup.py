"""A backup is made while orders are captured, restored in another place, and started. It has all operations
acknowledged before it."""

from __future__ import annotations

import json
import secrets
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.commands import Cuota, on_a_folder
from support.serving import serving

URLS = {"redirectConfirmUrl": "http://127.0.0.1:9/yes", "redirectCancelUrl": "http://127.0.0.1:9/no"}


@dataclass
class Shop:
    """A merchant of a served sandbox."""

    listen: str
    made: dict[str, Any]

    @contextmanager
    def http(self) -> Iterator[httpx.Client]:
        with httpx.Client(base_url=self.listen, trust_env=False, timeout=60) as http:
            grant = {
                "client_id": self.made["clientId"], "client_secret": self.made["clientSecret"],
                "audience": self.made["audience"], "grant_type": "client_credentials",
            }  # fmt: skip
            token = http.post("/oauth/token", json=grant).json()["access_token"]
            http.headers["Authorization"] = f"Bearer {token}"
            yield http

    def create(self, http: httpx.Client) -> dict[str, Any]:
        body = {"amount": "1000.00", "merchantReference": "B-1", "merchant": URLS}
        return dict(http.post("/order", json=body).json())

    def capture(self, http: httpx.Client, order_id: str) -> bool:
        body = {"amount": "0.01", "merchantReference": secrets.token_hex(8)}
        return http.post(f"/order/{order_id}/capture", json=body).status_code == 200


def restored(shop: Shop, order_id: str, http: httpx.Client) -> float:
    answer = http.get(f"/order/{order_id}")
    assert answer.status_code == 200, answer.text
    return float(answer.json()["capturedAmount"])


def go_on(shop: Shop, order_id: str, stop: threading.Event, acknowledged: list[int]) -> None:
    """Capture one cent again and again, and count the acknowledged captures."""
    with shop.http() as http:
        while not stop.is_set():
            acknowledged[0] += shop.capture(http, order_id)


def test_a_backup_under_load_is_complete_after_it_is_restored_and_started(tmp_path: Path) -> None:
    file = tmp_path / "monday.cuota"
    stop, acknowledged = threading.Event(), [0]
    with on_a_folder() as original:
        with serving(original) as (line, _):
            settings = {"CUOTA_PUBLIC_URL": line["url"]}
            terms = ("--name", "Backed up", "--defer-funds-capture")
            made = json.loads(original("merchant", "create", *terms, "--json", **settings).stdout)
            shop = Shop(line["listen"], made)
            with shop.http() as http:
                busy = shop.create(http)
                walked = original(
                    "sandbox", "complete", busy["redirectUrl"], "--outcome", "approved", **settings
                )
                assert walked.returncode == 0, walked.stderr
                created = [shop.create(http)["orderId"] for _ in range(20)]

                load = threading.Thread(target=go_on, args=(shop, busy["orderId"], stop, acknowledged))
                load.start()
                while acknowledged[0] < 20 and load.is_alive():
                    stop.wait(0.01)
                before = acknowledged[0]
                done = original("backup", str(file))
                after = acknowledged[0]
                stop.set()
                load.join()
        assert (done.returncode, after > before) == (0, True), done.stderr
        assert "This file contains the secret key" in done.stdout
        assert file.stat().st_mode & 0o777 == 0o600
        assert [each.name for each in tmp_path.iterdir()] == ["monday.cuota"]
    with on_a_folder() as elsewhere:
        read = elsewhere("restore", str(file))
        assert read.returncode == 0, read.stderr
        assert "0 disagree with the ledger" in read.stdout
        assert "stop the original service for good" in read.stdout
        assert elsewhere("verify").returncode == 0
        with serving(elsewhere) as (line, _):
            made["audience"] = line["url"]
            again = Shop(line["listen"], made)
            with again.http() as http:
                captured = round(restored(again, busy["orderId"], http) * 100)
                assert before <= captured <= after + 1
                assert [restored(again, order_id, http) for order_id in created] == [0.0] * 20
                assert again.capture(http, busy["orderId"]), "it goes on where it was"
        twice = elsewhere("restore", str(file))
        assert twice.returncode == 1
        assert "There is already a database in" in twice.stderr


@pytest.fixture(scope="module")
def kept() -> Iterator[tuple[Cuota, Path]]:
    """A small sandbox and its backup."""
    with on_a_folder() as command:
        assert command("migrate").returncode == 0
        assert command("merchant", "create", "--name", "Small").returncode == 0
        file = command.data.parent / "small.cuota"
        done = command("backup", str(file), "--json")
        assert done.returncode == 0, done.stderr
        facts = json.loads(done.stdout)
        assert (facts["secretKeyInside"], facts["rows"]["orders"], facts["bytes"]) == (
            True,
            0,
            file.stat().st_size,
        )
        yield command, file


def test_an_existing_file_is_never_overwritten(kept: tuple[Cuota, Path]) -> None:
    command, file = kept
    before = file.read_bytes()
    done = command("backup", str(file))
    assert done.returncode == 1
    assert "exists already" in done.stderr
    assert file.read_bytes() == before


def test_a_backup_of_a_folder_without_data_is_refused(bare_folder: Cuota) -> None:
    done = bare_folder("backup", "/tmp/never-written.cuota")
    assert done.returncode == 1
    assert "There is no database in" in done.stderr


@pytest.fixture
def bare_folder() -> Iterator[Cuota]:
    with on_a_folder() as command:
        yield command


def changed(file: Path, target: Path, **facts: Any) -> Path:
    """Return the same backup with another manifest."""
    with zipfile.ZipFile(file) as source, zipfile.ZipFile(target, "w") as out:
        for name in source.namelist():
            content = source.read(name)
            if name == "manifest.json":
                content = json.dumps({**json.loads(content), **facts}).encode()
            out.writestr(name, content)
    return target


def test_a_file_of_a_newer_release_is_refused(
    kept: tuple[Cuota, Path], bare_folder: Cuota, tmp_path: Path
) -> None:
    newer = changed(kept[1], tmp_path / "newer", migrations=["0001_foundation", "9999_later"])
    done = bare_folder("restore", str(newer))
    assert done.returncode == 1
    assert "newer release" in done.stderr
    assert "9999_later" in done.stderr
    later = bare_folder("restore", str(changed(kept[1], tmp_path / "later", format="cuota-backup/2")))
    assert "has the format cuota-backup/2" in later.stderr
    assert not bare_folder.data.exists()


def test_another_environment_s_backup_is_refused(
    kept: tuple[Cuota, Path], bare_folder: Cuota, tmp_path: Path
) -> None:
    other = changed(kept[1], tmp_path / "other", environment="production")
    assert "To restore it, set CUOTA_ENVIRONMENT=" in bare_folder("restore", str(other)).stderr


def test_a_damaged_or_truncated_backup_is_refused_and_nothing_is_created(
    kept: tuple[Cuota, Path], bare_folder: Cuota, tmp_path: Path
) -> None:
    whole = kept[1].read_bytes()
    cut = tmp_path / "cut"
    cut.write_bytes(whole[: len(whole) // 2])
    assert "is not a backup of Cuota" in bare_folder("restore", str(cut)).stderr
    spoiled = tmp_path / "spoiled"
    middle = len(whole) // 2
    spoiled.write_bytes(whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    done = bare_folder("restore", str(spoiled))
    assert done.returncode == 1
    assert "is damaged" in done.stderr or "is not a backup" in done.stderr
    assert "There is no file" in bare_folder("restore", str(tmp_path / "none")).stderr
    assert not (bare_folder.data / "pg").exists()


def test_the_secret_key_must_be_the_backup_s_key(kept: tuple[Cuota, Path], bare_folder: Cuota) -> None:
    other = "b3RoZXIga2V5IG9mIHRoaXJ0eS10d28gYnl0ZXMgISE="
    done = bare_folder("restore", str(kept[1]), CUOTA_SECRET_KEY=other)
    assert done.returncode == 1
    assert "is not the key with which this backup was made" in done.stderr
    assert not (bare_folder.data / "pg").exists()


def test_a_secret_key_from_the_settings_is_not_written_into_the_backup(
    kept: tuple[Cuota, Path], bare_folder: Cuota
) -> None:
    command, _ = kept
    key = (command.data / "secret.key").read_text().strip()
    file = command.data.parent / "without.cuota"
    done = command("backup", str(file), CUOTA_SECRET_KEY=key)
    assert "does not contain the secret key" in done.stdout
    with zipfile.ZipFile(file) as packed:
        assert sorted(packed.namelist()) == ["database.dump", "manifest.json"]
        assert key not in "".join(packed.read(name).decode(errors="replace") for name in packed.namelist())
    missing = bare_folder("restore", str(file))
    assert missing.returncode == 1
    assert "This file does not contain the secret key" in missing.stderr
    given = bare_folder("restore", str(file), CUOTA_SECRET_KEY=key)
    assert given.returncode == 0, given.stderr
    assert "Small" in bare_folder("merchant", "list", CUOTA_SECRET_KEY=key).stdout


def test_a_backup_from_the_middle_of_a_replacement_of_the_key_needs_both_keys(
    kept: tuple[Cuota, Path], bare_folder: Cuota
) -> None:
    command, _ = kept
    old = (command.data / "secret.key").read_text().strip()
    new = "b3RoZXIga2V5IG9mIHRoaXJ0eS10d28gYnl0ZXMgISE="
    both = {"CUOTA_SECRET_KEY": new, "CUOTA_SECRET_KEY_OLD": old}
    file = command.data.parent / "between.cuota"
    made = command("backup", str(file), **both)
    assert "one also needs the older key" in made.stdout
    done = bare_folder("restore", str(file), CUOTA_SECRET_KEY=new)
    assert done.returncode == 1
    assert "Set CUOTA_SECRET_KEY_OLD to that key" in done.stderr
    assert not (bare_folder.data / "pg").exists()
    assert bare_folder("restore", str(file), **both).returncode == 0
