"""The OpenAPI document as a file, and the Node tools that read it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from cuota.web.docs.contract import load_contract
from support.node_sdk import installed

HERE = Path(__file__).parent
Tool = Callable[..., str]


@pytest.fixture(scope="session")
def document(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The document as `/openapi.json` serves it."""
    path = tmp_path_factory.mktemp("openapi") / "openapi.json"
    path.write_text(json.dumps(load_contract("https://pay.example")))
    return path


@pytest.fixture(scope="session")
def tool() -> Tool:
    """Run one of the locked Node tools. Return its output. Fail unless its exit code is 0."""
    folder = installed(HERE)

    def run(name: str, *arguments: str | Path, cwd: Path = folder) -> str:
        environment = {**os.environ, "NO_COLOR": "1", "NODE_OPTIONS": ""}
        done = subprocess.run(
            [folder / "node_modules/.bin" / name, *arguments],
            cwd=cwd,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-6000:]
        return done.stdout

    return run
