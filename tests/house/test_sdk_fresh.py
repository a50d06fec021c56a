"""The served scripts are exactly those that the sources build."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
from pathlib import Path

from support.node_sdk import SDK, SERVED, sdk

FILES = ("pay.js", "page.js", "inspect.js", "pay.d.ts")


def test_the_committed_scripts_equal_those_that_the_sources_build(tmp_path: Path) -> None:
    subprocess.run(["node", "build.mjs", str(tmp_path)], cwd=sdk(), check=True, timeout=120)
    for name in FILES:
        assert (SERVED / name).read_bytes() == (tmp_path / name).read_bytes(), (
            f"{name} is old: run `make sdk`"
        )


def test_a_build_keeps_the_replaced_script_for_the_pages_that_pin_it(tmp_path: Path) -> None:
    for name in ("build.mjs", "src", "types", "node_modules"):
        (tmp_path / "sdk").mkdir(exist_ok=True)
        (tmp_path / "sdk" / name).symlink_to(sdk() / name)
    served = tmp_path / "src/cuota/web/pages/static"
    served.mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/sdk.md").touch()
    (served / "pay.js").write_text("earlier")
    build = ["node", "--preserve-symlinks", "--preserve-symlinks-main", "sdk/build.mjs"]
    for _ in range(2):
        subprocess.run(build, cwd=tmp_path, check=True, timeout=120)
    (kept,) = [path for path in served.glob("pay-*.js") if path.read_text() == "earlier"]
    assert kept.name == f"pay-{hashlib.sha256(b'earlier').hexdigest()[:16]}.js"


def test_an_earlier_script_has_the_address_that_pages_pin() -> None:
    for path in SERVED.glob("pay-*.js"):
        assert path.name == f"pay-{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}.js"


def test_the_docs_have_the_hash_of_the_served_script() -> None:
    content = (SERVED / "pay.js").read_bytes()
    integrity = base64.b64encode(hashlib.sha384(content).digest()).decode()
    text = (SDK.parent / "docs/sdk.md").read_text()
    assert f"/v1/pay-{hashlib.sha256(content).hexdigest()[:16]}.js" in text, "run `make sdk`"
    assert f'integrity="sha384-{integrity}"' in text, "run `make sdk`"


def test_the_sdk_s_lock_file_names_no_registry_and_has_a_hash_of_every_package() -> None:
    text = (SDK / "package-lock.json").read_text()
    assert "://" not in text
    assert "resolved" not in text
    packages = json.loads(text)["packages"]
    assert all(package["integrity"].startswith("sha512-") for name, package in packages.items() if name)
    assert "dependencies" not in json.loads((SDK / "package.json").read_text())
