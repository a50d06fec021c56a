"""`python -m bench.workers`: measures the start of `cuota serve`, its memory, and the time until a killed worker is replaced.

For one and four workers: the seconds from the command to the line of JSON (the database exists already), and the memory of all
Python processes together. Shared memory counts once (the sum of PSS). For one worker also: the seconds from its kill until the
service answers again, as the median and the slowest of TRIES. Prints a table, within a minute.
"""

from __future__ import annotations

import os
import signal
import statistics
import time

import httpx
import psutil

from bench import report, service
from bench.__main__ import temporary, with_postgres
from bench.service import BenchService
from cuota.run.serve import YOUNG_SECONDS

WORKERS, TRIES = (1, 4), 9
TIMEOUT = 60.0


def main() -> None:
    rows = []
    with temporary() as folder:
        place = BenchService(folder / "data", service.free_port())
        with with_postgres(place):
            for workers in WORKERS:
                started = time.monotonic()
                with service.serving(place, workers) as web:
                    seconds = time.monotonic() - started
                    parent = next(each for each in web[0].parents() if "serve" in each.cmdline())
                    time.sleep(2)  # every worker has loaded what it needs at its start
                    rows.append([str(workers), f"{seconds:.2f}", f"{memory(parent):.0f}", "", ""])
                    if workers == 1:
                        waits = sorted(replaced(place, parent) for _ in range(TRIES))
                        rows[-1][3:] = f"{statistics.median(waits):.2f}", f"{waits[-1]:.2f}"
    print(report.measured_by("python -m bench.workers") + ".\n")
    print("| workers | start s | memory MiB | replaced s, median | slowest |\n|--:|--:|--:|--:|--:|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


def memory(parent: psutil.Process) -> float:
    """Return the MiB of `cuota serve` and all its Python processes."""
    family = [parent, *parent.children(recursive=True)]
    python = [each for each in family if "python" in each.name()]
    return float(sum(each.memory_full_info().pss for each in python)) / 2**20


def replaced(place: BenchService, parent: psutil.Process) -> float:
    """Kill the only worker, and return the seconds until the service answers."""
    time.sleep(YOUNG_SECONDS)
    (worker,) = service.workers_of(parent.pid)
    os.kill(worker.pid, signal.SIGKILL)
    started = time.monotonic()
    while time.monotonic() - started < TIMEOUT:
        try:
            # Without a worker, the connection waits in the listening socket.
            if httpx.get(f"{place.url}/health/ready", trust_env=False, timeout=TIMEOUT).status_code == 200:
                return time.monotonic() - started
        except httpx.TransportError:
            time.sleep(0.005)
    raise RuntimeError("the service did not answer again")


if __name__ == "__main__":
    main()
