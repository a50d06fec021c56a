"""commands/progress: a bar on a terminal, plain lines elsewhere, and nothing on standard output."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time

import pytest

from cuota.commands import progress as module
from cuota.commands.progress import progress, span

WORK = """
import sys, time
from cuota.commands.progress import progress
with progress("Copying", "tables", total=4) as told:
    for done in range(5):
        told(done, note=f"table {done}")
        time.sleep(0.3)
print('{"done": true}')
"""


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINE_SECONDS", 0.01)


def printed_until(
    wanted: str, capsys: pytest.CaptureFixture[str], told: module.ProgressReporter, *said: object
) -> str:
    printed, until = "", time.monotonic() + 30
    while wanted not in printed:
        assert time.monotonic() < until, printed
        told(*said)  # type: ignore[arg-type]
        printed += capsys.readouterr().err
    return printed


@pytest.mark.usefixtures("often")
def test_without_a_terminal_plain_lines_give_the_count_the_share_and_the_time(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with progress("Verifying", "orders", total=5_000) as told:
        printed = printed_until("left", capsys, told, 1_200, None, "merchant 2")
    line = next(line for line in printed.splitlines() if "left" in line)
    assert line.startswith("Verifying: 1,200 of 5,000 orders (24 %), merchant 2, 0:0")
    assert " so far, about 0:0" in line
    assert "\x1b" not in printed


@pytest.mark.usefixtures("often")
def test_without_a_known_total_no_share_or_remaining_time_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with progress("Exporting", "rows") as told:
        line = printed_until("12", capsys, told, 12).splitlines()[-1]
    assert line.startswith("Exporting: 12 rows, 0:0")
    assert "%" not in line
    assert "left" not in line


@pytest.mark.usefixtures("often")
def test_progress_lines_continue_while_the_work_reports_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("Waiting") as told:
        printed_until("Waiting", capsys, told, 0)
        printed_until("Waiting", capsys, lambda *_: None)


def test_a_command_that_ends_soon_prints_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("Verifying", "orders", total=3) as told:
        told(3)
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal_there_is_a_bar_and_standard_output_stays_clean() -> None:
    reader, writer = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    try:
        ran = subprocess.run(
            [sys.executable, "-c", WORK], stdout=subprocess.PIPE, stderr=writer, env=environment, check=True
        )
    finally:
        os.close(writer)
    shown = read_all(reader)
    assert ran.stdout == b'{"done": true}\n'
    assert "Copying" in shown
    assert "of 4 tables" in shown
    assert "\x1b[" in shown


def read_all(reader: int) -> str:
    found = b""
    with os.fdopen(reader, "rb", buffering=0) as file:
        while True:
            try:
                piece = file.read(65536)
            except OSError:  # the error by which a terminal reports that the other side is closed
                piece = b""
            if not piece:
                return found.decode()
            found += piece


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (7.4, "0:07"), (65, "1:05"), (3_723, "1:02:03")])
def test_a_span_of_time_is_printed_as_minutes_and_seconds(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_no_remaining_time_is_predicted_during_the_first_ten_percent() -> None:
    state = module._State("Verifying", "orders", 100)
    state(9)
    assert state.remaining() == ""
    state(10)
    assert state.remaining().startswith("about ")
    state(100)
    assert state.remaining() == ""
