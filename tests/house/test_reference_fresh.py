"""The served API reference has exactly the files that its lock file builds, and a release contains it."""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from cuota.web.docs.guides import listed
from support.node_sdk import check_lock, installed

ROOT = Path(__file__).resolve().parents[2]
SERVED = ROOT / "src/cuota/web/docs/reference"


def content(folder: Path) -> dict[str, bytes]:
    """Return the files, unpacked, because releases of Node compress differently."""
    return {
        str(path.relative_to(folder)): gzip.decompress(path.read_bytes())
        if path.suffix == ".gz"
        else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_committed_reference_equals_the_one_that_the_lock_file_builds(tmp_path: Path) -> None:
    folder = installed(ROOT / "reference")
    subprocess.run(["node", "build.mjs", str(tmp_path / "out")], cwd=folder, check=True, timeout=120)
    built, served = content(tmp_path / "out"), content(SERVED)
    assert set(built) == set(served), "run `make reference`"
    assert [name for name in built if built[name] != served[name]] == [], "run `make reference`"


def test_the_reference_s_lock_file_names_no_registry() -> None:
    check_lock(ROOT / "reference")


def test_a_release_contains_the_guides_and_the_reference_that_it_serves(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name in ("src", "docs", "demo"):
        shutil.copytree(
            ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source / name)
    pip = [sys.executable, "-m", "pip"] if shutil.which("pip", path=Path(sys.executable).parent) else None
    command = [*(pip or ["python3", "-m", "pip", "--python", sys.executable]), "wheel", "--quiet"]
    subprocess.run(
        [*command, "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path, source],
        check=True,
        timeout=300,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"cuota_docs/{guide.name}.md" for guide in listed()} <= names
    for folder in ("docs/reference", "docs/templates", "pages/static"):
        files = [path for path in (ROOT / "src/cuota/web" / folder).rglob("*") if path.is_file()]
        assert {str(path.relative_to(ROOT / "src")) for path in files} <= names
