"""Shows the progress of a long command on standard error: a live bar on a terminal, otherwise a line every few seconds.

Standard output contains only the result, so that `--json` can be piped. Without a terminal, a command that ends within a
few seconds prints no progress.

    with progress("Verifying", "orders", total=5_000) as report:
        report(1_200)
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

LINE_SECONDS = 3.0
# The remaining time is estimated only after this share of the work is done.
LEAST_SHARE = 0.1
# Redraws per second on a terminal, even while the work waits for something.
DRAWN_A_SECOND = 4


class ProgressReporter(Protocol):
    """The function that the work calls to report progress: from any thread, and as often as needed."""

    def __call__(self, done: float, total: float | None = None, note: str = "") -> None:
        """Report the units done so far and, if known, the total. `note` describes the command's current step."""


class _State:
    """The progress of one command so far."""

    def __init__(self, title: str, unit: str, total: float | None) -> None:
        self.title, self.unit = title, unit
        self.done, self.total, self.note = 0.0, total, ""
        self.started = time.monotonic()

    def __call__(self, done: float, total: float | None = None, note: str = "") -> None:
        self.done, self.note = done, note
        if total is not None:
            self.total = total

    def counted(self) -> str:
        """Return text such as `1,200 of 5,000 orders (24 %)`, or only the percentage if there is no unit."""
        if not self.total:
            return f"{self.done:,.0f} {self.unit}" if self.unit else ""
        percent = f"{100 * self.share():.0f} %"
        return f"{self.done:,.0f} of {self.total:,.0f} {self.unit} ({percent})" if self.unit else percent

    def share(self) -> float:
        """Return the share of the work that is done, from 0 to 1."""
        return min(self.done / self.total, 1.0) if self.total else 0.0

    def remaining(self) -> str:
        """Return text such as `about 1:05 left`, from the speed so far, or an empty text if it is too early to estimate."""
        if not LEAST_SHARE <= self.share() < 1:
            return ""
        spent = time.monotonic() - self.started
        return f"about {span(spent / self.share() - spent)} left"

    def spent(self) -> str:
        """Return the elapsed time, such as `0:07 so far`."""
        return f"{span(time.monotonic() - self.started)} so far"

    def line(self) -> str:
        """Return everything as one line of text."""
        parts = (self.counted(), self.note, self.spent(), self.remaining())
        return f"{self.title}: {', '.join(part for part in parts if part)}"


def span(seconds: float) -> str:
    """Format a duration as `0:07`, `12:30` or `1:02:03`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextlib.contextmanager
def progress(title: str, unit: str = "", total: float | None = None) -> Iterator[ProgressReporter]:
    """Show progress while the `with` block runs. `unit` is the plural noun of the counted things, such as `orders`."""
    state = _State(title, unit, total)
    console = Console(stderr=True)
    live = sys.stderr.isatty() and not console.is_dumb_terminal
    with _bar(state, console) if live else _lines(state):
        yield state


@contextlib.contextmanager
def _lines(state: _State) -> Iterator[None]:
    ended = threading.Event()

    def tell() -> None:
        while not ended.wait(LINE_SECONDS):
            print(state.line(), file=sys.stderr, flush=True)

    thread = threading.Thread(target=tell, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextlib.contextmanager
def _bar(state: _State, console: Console) -> Iterator[None]:
    spinner = Spinner("dots")

    def drawn() -> Table:
        bar = ProgressBar(total=state.total, completed=state.done, width=30, pulse=not state.total)
        facts = (state.counted(), state.note, state.spent(), state.remaining())
        text = Text(", ".join(fact for fact in facts if fact), no_wrap=True, overflow="ellipsis")
        grid = Table.grid(padding=(0, 1))
        grid.add_row(spinner, Text(state.title, no_wrap=True), bar, text)
        return grid

    live = Live(
        get_renderable=drawn,
        console=console,
        transient=True,
        refresh_per_second=DRAWN_A_SECOND,
        # Output that the command prints meanwhile appears above the bar, unless it goes to a file or a pipe.
        redirect_stdout=sys.stdout.isatty(),
    )
    with live:
        yield
