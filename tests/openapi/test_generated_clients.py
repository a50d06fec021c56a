"""Client generators turn the OpenAPI document into clients that compile and work, without warnings. The linter finds
nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from support.makers import Merchant
from support.node_sdk import check_lock

HERE = Path(__file__).parent
Tool = Callable[..., str]
GENERATOR = Path(sys.executable).with_name("openapi-python-client")


@pytest.fixture(scope="module")
def python_client(document: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder with the generated package `merchant_api_client`, which tests can import."""
    folder = tmp_path_factory.mktemp("python") / "out"
    path = os.pathsep.join([str(GENERATOR.parent), os.environ["PATH"]])
    done = subprocess.run(
        [GENERATOR, "generate", "--path", document, "--output-path", folder, "--fail-on-warning"],
        env={**os.environ, "PATH": path},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    assert "warning" not in done.stdout.lower(), done.stdout
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


def test_spectral_finds_no_problem(document: Path, tool: Tool) -> None:
    said = tool("spectral", "lint", "--fail-severity", "hint", "--ruleset", HERE / "spectral.yaml", document)
    assert "No results" in said, said


def test_a_client_of_openapi_typescript_compiles(document: Path, tool: Tool, tmp_path: Path) -> None:
    said = tool("openapi-typescript", document, "--output", tmp_path / "schema.d.ts")
    assert "warn" not in said.lower(), said
    compiled(tool, tmp_path, "uses_types.ts")


def test_a_client_of_hey_api_compiles(document: Path, tool: Tool, tmp_path: Path) -> None:
    said = tool("openapi-ts", "--input", document, "--output", tmp_path / "hey", "--no-log-file")
    assert "Done!" in said
    assert "warn" not in said.lower(), said
    assert "⚠" not in said, said
    compiled(tool, tmp_path, "uses_client.ts")


def compiled(tool: Tool, folder: Path, *names: str) -> None:
    for name in ("tsconfig.json", *names):
        shutil.copy(HERE / name, folder / name)
    (folder / "package.json").write_text('{"type": "module"}')
    assert tool("tsc", "--project", folder, cwd=folder) == ""


def test_a_client_of_openapi_python_client_passes_a_strict_type_check(python_client: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, "merchant_api_client"],
        cwd=python_client,
        text=True,
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


async def test_the_generated_python_client_gets_a_token_and_moves_money(
    python_client: Path, merchant: Merchant
) -> None:
    def part(name: str) -> Any:
        return import_module(f"merchant_api_client.{name}")

    models = part("models")
    url = merchant.service.settings.public_url
    asked = models.TokenRequest(
        client_id=merchant.client_id,
        client_secret=merchant.client_secret,
        audience=merchant.service.settings.audience,
        grant_type="client_credentials",
    )
    async with part("client").Client(url) as client:
        token = await part("api.token.issue_token").asyncio(client=client, body=asked)
    order = await merchant.approved("100.00")
    capture = part("api.money.capture_order").asyncio
    body = models.MovementRequest(amount=40, merchant_reference="ship-1")
    async with part("client").AuthenticatedClient(url, token=token.access_token) as client:
        dry = await capture(order["orderId"], client=client, body=body, dry_run=True)
        assert isinstance(dry, models.DryRunResult)
        assert (dry.before.balances.capturable, dry.after.balances.capturable) == (100, 60)

        done = await capture(order["orderId"], client=client, body=body)
        assert isinstance(done, models.Movement)
        assert done.merchant_reference == "ship-1"

        again = await capture(order["orderId"], client=client, body=body)
        assert isinstance(again, models.DuplicateProblem)
        assert again.original.same_request

        read = await part("api.orders.get_order").asyncio(order["orderId"], client=client)
        assert read.captured_amount == 40


def test_the_document_names_its_license_and_a_contact(document: Path) -> None:

    info = json.loads(document.read_text())["info"]
    assert info["license"]["identifier"] == "Apache-2.0"
    assert info["contact"]["url"] == "https://pay.example/docs"


def test_the_lock_file_of_the_tools_names_no_registry() -> None:
    check_lock(HERE)
