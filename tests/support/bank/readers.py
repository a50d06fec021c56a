"""Programs that read bank files and were written by others: carta-ach, libxml2 with ISO's schema, camt053, and @ach/ach."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

from support.tool_environment import ROOT, ToolEnvironment

ENVIRONMENT = ToolEnvironment("bank-readers", "tests/rails/bank/requirements.lock")
NODE_READER = Path(__file__).with_name("read_nacha.mjs")
SECONDS = 300


async def read(**files: list[str]) -> dict[str, list[Any]]:
    """Return what the Python programs read, by the kind of file: nacha, pain001, camt053."""
    python = await asyncio.to_thread(ENVIRONMENT.python)
    found: dict[str, list[Any]] = await _run(
        [str(python), str(Path(__file__).with_name("read_files.py"))], files
    )
    return found


async def read_with_node(files: list[str]) -> list[Any]:
    """Return what @ach/ach reads from NACHA files."""
    found: list[Any] = await _run(["node", str(NODE_READER)], files)
    return found


async def _run(command: list[str], asked: object) -> Any:
    done = await asyncio.to_thread(
        subprocess.run,
        command,
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        cwd=ROOT / "tests/openapi",
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)
