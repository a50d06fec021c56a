"""System packages are installed only after a person agrees, or where no person can be asked."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.needed import needed, told

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tests" / "system_packages.sh"
INSTALL = (
    "apt-get install --yes --no-install-recommends chromium fonts-liberation php-cli strace hledger beancount"
)


@dataclass
class Machine:
    """A PATH with nothing but what the script calls; `ran` is what was installed, as it was called."""

    folder: Path

    def add(self, name: str, script: str) -> None:
        program = self.folder / name
        program.write_text(f"#!{shutil.which('bash')}\n{script}\n")
        program.chmod(0o755)

    def run(self, *arguments: str, user: int, **environment: str) -> tuple[str, list[str]]:
        self.add("id", f"echo {user}")
        done = subprocess.run(
            [str(shutil.which("bash")), str(SCRIPT), *arguments],
            env={"PATH": str(self.folder), "LOG": str(self.folder / "log"), **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        log = self.folder / "log"
        return done.stdout, log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    made.add("apt-get", 'echo "apt-get $*" >> "$LOG"')
    # Asks for no password; `-n` is how somebody looks whether it would.
    made.add("sudo", '[ "$1" = -n ] && exit 0; echo "sudo $*" >> "$LOG"')
    return made


def test_a_person_who_runs_the_tests_is_told_the_command_and_nothing_is_installed(machine: Machine) -> None:
    said, ran = machine.run("--if-free", user=1000)
    assert ran == []
    assert f"`make test-system` does it, by: sudo apt-get update && sudo {INSTALL}\n" in said
    assert "skipped and counted" in said
    for package in ("chromium", "php-cli", "strace"):
        assert f"  {package}" in said


def test_their_own_target_says_what_and_why_and_installs_them(machine: Machine) -> None:
    said, ran = machine.run(user=1000)
    assert ran == ["sudo apt-get -qq update", f"sudo {INSTALL}"]
    assert said.index("drive a real browser") < said.index("Installing them: sudo apt-get update")


@pytest.mark.parametrize(("user", "prefix"), [(0, ""), (1000, "sudo ")])
def test_in_ci_they_are_installed_without_a_question(machine: Machine, user: int, prefix: str) -> None:
    said, ran = machine.run("--if-free", user=user, CI="true")
    assert ran == [f"{prefix}apt-get -qq update", f"{prefix}{INSTALL}"]
    assert "Installing them" in said


def test_root_without_a_terminal_gets_them_too(machine: Machine) -> None:
    _, ran = machine.run("--if-free", user=0)
    assert ran == ["apt-get -qq update", INSTALL]


def test_where_all_is_there_nothing_is_said(machine: Machine) -> None:
    for program in ("php", "strace", "hledger", "bean-check"):
        machine.add(program, "")
    assert machine.run("--if-free", user=0, CHROMIUM="/opt/chromium") == ("", [])


def test_a_machine_without_apt_is_told_what_to_install(machine: Machine) -> None:
    (machine.folder / "apt-get").unlink()
    said, ran = machine.run("--if-free", user=0, CI="true")
    assert ran == []
    assert "with this machine's package manager" in said


def test_a_missing_program_skips_a_test_and_fails_it_in_ci(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="php is missing"):
        needed("php")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="chromium is missing"):
        needed("chromium")


def test_what_was_skipped_is_counted_by_its_reason() -> None:
    reasons = ["Skipped: php is missing", "Skipped: strace is missing", "Skipped: php is missing"]
    assert told(reasons) == ["2 tests skipped: php is missing", "1 test skipped: strace is missing"]
