"""System packages are installed only after a person agrees, or if no person can be asked."""

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
    """A PATH with only the programs that the script calls. `run` returns the script's output and the commands that it
    ran."""

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
    # This sudo asks for no password. With `-n`, a script checks whether sudo would ask for one.
    made.add("sudo", '[ "$1" = -n ] && exit 0; echo "sudo $*" >> "$LOG"')
    return made


def test_a_person_who_runs_the_tests_sees_the_command_and_nothing_is_installed(machine: Machine) -> None:
    said, ran = machine.run("--if-free", user=1000)
    assert ran == []
    assert f"`make test-system` does it, by: sudo apt-get update && sudo {INSTALL}\n" in said
    assert "skipped and counted" in said
    for package in ("chromium", "php-cli", "strace"):
        assert f"  {package}" in said


def test_make_test_system_says_what_it_installs_and_why_and_installs_it(machine: Machine) -> None:
    said, ran = machine.run(user=1000)
    assert ran == ["sudo apt-get -qq update", f"sudo {INSTALL}"]
    assert said.index("drive a real browser") < said.index("Installing them: sudo apt-get update")


@pytest.mark.parametrize(("user", "prefix"), [(0, ""), (1000, "sudo ")])
def test_in_ci_the_packages_are_installed_without_a_question(
    machine: Machine, user: int, prefix: str
) -> None:
    said, ran = machine.run("--if-free", user=user, CI="true")
    assert ran == [f"{prefix}apt-get -qq update", f"{prefix}{INSTALL}"]
    assert "Installing them" in said


def test_the_packages_are_installed_for_root_without_a_terminal_too(machine: Machine) -> None:
    _, ran = machine.run("--if-free", user=0)
    assert ran == ["apt-get -qq update", INSTALL]


def test_if_no_package_is_missing_nothing_is_printed(machine: Machine) -> None:
    for program in ("php", "strace", "hledger", "bean-check"):
        machine.add(program, "")
    assert machine.run("--if-free", user=0, CHROMIUM="/opt/chromium") == ("", [])


def test_on_a_machine_without_apt_the_script_prints_what_to_install(machine: Machine) -> None:
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


def test_skipped_tests_are_counted_by_their_reason() -> None:
    reasons = ["Skipped: php is missing", "Skipped: strace is missing", "Skipped: php is missing"]
    assert told(reasons) == ["2 tests skipped: php is missing", "1 test skipped: strace is missing"]
