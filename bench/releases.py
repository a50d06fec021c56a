"""`python -m bench.releases FOLDER`: compares this checkout with another one on the same machine, in alternating rounds.

FOLDER is a checkout of the other commit with its own .venv (`git worktree add FOLDER COMMIT; make -C FOLDER
.venv/dev`). Both services run at the same time, each on its own PostgreSQL, but only one of them gets requests at a
time. Takes about three minutes and prints a table; `--write FILE` also saves it. On a busy machine, the CPU time of a
request is the steadier measure.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from statistics import median
from typing import Self

from bench import report

ROOT = Path(__file__).parent.parent
WORKS, CLIENTS = ("create", "read", "capture"), (1, 32)
TURNS = 5
COUNT = {1: 3_000, 32: 9_000}
MEASURES = ("rps", "p99_ms", "web_ms", "sql_ms")
ReleaseRates = dict[tuple[str, int, str], list[dict[str, float]]]


class ReleaseSide(AbstractContextManager["ReleaseSide"]):
    """The service of one checkout, measured by a process with that checkout's own interpreter."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder

    def __enter__(self) -> Self:
        environment = {**os.environ, "PYTHONPATH": str(self._folder)}
        command = [
            str(self._folder / ".venv/bin/python"),
            str(self._folder / "bench" / "side.py"),
            str(TURNS * sum(COUNT.values()) + 10),
        ]
        self._process = subprocess.Popen(
            command,
            cwd=self._folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer()
        return self

    def ask(self, work: str, clients: int, first: int) -> dict[str, float]:
        """Measure one operation for two seconds."""
        assert self._process.stdin is not None
        asked = {"work": work, "clients": clients, "first": first, "count": COUNT[clients]}
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> dict[str, float]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"The service of {self._folder} ended; the reason is printed above.")
        return dict(json.loads(line))

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(120)


def commit(folder: Path) -> str:
    """Return the commit of a checkout."""
    command = ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.releases", description=__doc__)
    parser.add_argument("folder", type=Path, help="the checkout of the other commit")
    parser.add_argument("--write", type=Path, help="keep the table in this file")
    options = parser.parse_args()
    found: ReleaseRates = defaultdict(list)
    with ExitStack() as stack:
        sides = [
            stack.enter_context(ReleaseSide("old", options.folder.resolve())),
            stack.enter_context(ReleaseSide("new", ROOT)),
        ]
        first = 1
        for turn in range(TURNS):
            for clients in CLIENTS:
                for work in WORKS:
                    for side in sides if turn % 2 else reversed(sides):
                        found[work, clients, side.name].append(side.ask(work, clients, first))
                first += COUNT[clients]
            print(f"releases: turn {turn + 1} of {TURNS}", file=sys.stderr, flush=True)
    text = table(found, commit(options.folder), commit(ROOT))
    print(text)
    if options.write:
        options.write.write_text(text)


def table(found: ReleaseRates, old: str, new: str) -> str:
    """Return the medians of the rounds, and the ratio of the new release to the old one."""
    lines = []
    for clients in CLIENTS:
        for work in WORKS:
            before, after = (
                [median(turn[measure] for turn in found[work, clients, side]) for measure in MEASURES]
                for side in ("old", "new")
            )
            lines.append(
                f"| {work} | {clients} | {before[0]:,.0f} | {after[0]:,.0f} | {after[0] / before[0]:.2f} "
                f"| {before[2]:.3f} | {after[2]:.3f} | {after[2] / before[2]:.2f} "
                f"| {before[3]:.3f} | {after[3]:.3f} | {after[3] / before[3]:.2f} |"
            )
    return (
        f"# Two releases side by side\n\n{report.measured_by('python -m bench.releases FOLDER')}; old is {old}, new is {new}. "
        f"One web worker, the load on the same cores. Medians of {TURNS} alternating turns of 2 s each.\n\n"
        "| work | clients | old/s | new/s | ratio | web CPU ms old | new | ratio | PostgreSQL CPU ms old | new | ratio |\n"
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n" + "\n".join(lines) + "\n"
    )


if __name__ == "__main__":
    main()
