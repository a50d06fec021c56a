"""Runs the SDK's own tests in Node on the compiled modules, and checks its types."""

from __future__ import annotations

import re
import subprocess

from support.node_sdk import sdk


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, check=False, cwd=sdk(), capture_output=True, text=True, timeout=120)


def test_the_compiled_modules_pass_their_own_tests() -> None:
    # Each version of Node interprets a folder's name differently.
    done = run(
        "node",
        "--test",
        "--test-reporter=tap",
        *sorted(str(path) for path in (sdk() / "tests").glob("*.test.mjs")),
    )
    assert done.returncode == 0, done.stdout
    found = re.findall(r"^# (tests|pass) (\d+)$", done.stdout, re.MULTILINE)
    counted = {name: int(count) for name, count in found}
    assert counted["tests"] > 70
    assert counted["pass"] == counted["tests"]


def test_the_sources_pass_the_strict_type_check() -> None:
    done = run("node_modules/.bin/tsc", "--noEmit")
    assert done.returncode == 0, done.stdout
