"""The fork server of `cuota serve`: it forks the workers, and replaces those that were killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from support.db.embedded_processes import lives
from support.faults.served import Service, children, fork_servers_of, service, until, workers_of

ASKED = 40


@pytest.fixture(scope="module")
def served() -> Iterator[Service]:
    with service() as made:
        yield made


@pytest.fixture
def running(served: Service) -> Service:
    if not served.started or served.started[-1].poll() is not None:
        served.start(workers=2)
    return served


def replaced(running: Service, killed: int) -> list[int]:
    """Wait until two workers run again, and return them."""
    until(lambda: len(running.workers()) == 2 and killed not in running.workers())
    until(running.answers)
    return running.workers()


def counted(running: Service) -> int:
    """Return how many requests for a page of the documentation all workers have counted together."""
    text = httpx.get(f"{running.url}/metrics", trust_env=False, timeout=60).text
    found = re.search(r'cuota_requests_total\{method="GET",route="/docs",status="200"\} ([0-9.]+)', text)
    return int(float(found[1])) if found else 0


def listening(pid: int) -> bool:
    """True if a process holds a listening socket."""
    return any(each.status == psutil.CONN_LISTEN for each in psutil.Process(pid).net_connections("tcp"))


def test_the_same_fork_server_replaces_a_killed_worker_and_each_worker_counts_for_itself(
    running: Service,
) -> None:
    parent = running.started[-1].pid
    (fork_server,) = fork_servers_of(parent)
    killed, kept = running.workers()
    os.kill(killed, signal.SIGKILL)
    assert kept in replaced(running, killed)
    # The fork server may say how the worker ended after the next worker has begun.
    until(lambda: f"worker process {killed} ended (signal 9, SIGKILL)" in running.errors())
    assert fork_servers_of(parent) == [fork_server]
    before = counted(running)
    for _ in range(ASKED):
        # A new connection for each request, so that both workers get some.
        assert httpx.get(f"{running.url}/docs", trust_env=False, timeout=60).status_code == 200
    # The metrics may be added up a moment later.
    until(lambda: counted(running) >= before + ASKED)
    assert counted(running) == before + ASKED


def test_without_the_fork_server_the_workers_go_on_and_another_fork_server_replaces_them(
    running: Service,
) -> None:
    parent, before = running.started[-1].pid, running.workers()
    (fork_server,) = fork_servers_of(parent)
    os.kill(fork_server, signal.SIGKILL)
    until(lambda: fork_servers_of(parent) not in ([], [fork_server]))
    assert running.answers()
    assert all(Path(f"/proc/{worker}").exists() for worker in before)
    for worker in before:
        os.kill(worker, signal.SIGKILL)
    until(lambda: len(workers_of(parent)) == 2)
    until(running.answers)
    process = running.started[-1]
    process.terminate()
    assert process.wait(60) == 0


def test_the_fork_server_holds_no_listening_socket_in_which_connections_could_wait_during_a_stop(
    running: Service,
) -> None:
    (fork_server,) = fork_servers_of(running.started[-1].pid)
    assert listening(running.workers()[0])
    assert not listening(fork_server)


def test_a_fork_server_that_hangs_delays_no_stop_and_no_worker_outlives_the_service(running: Service) -> None:
    process, (killed, _) = running.started[-1], running.workers()
    (fork_server,) = fork_servers_of(process.pid)
    os.kill(fork_server, signal.SIGSTOP)
    # The next worker cannot start.
    os.kill(killed, signal.SIGKILL)
    until(lambda: f"worker process {killed} ended" in running.errors())
    started = [*workers_of(process.pid), fork_server]
    process.terminate()
    assert process.wait(60) == 0
    until(lambda: not any(lives(pid) for pid in started))


@pytest.mark.parametrize(
    ("number", "whole_group"),
    [(signal.SIGTERM, True), (signal.SIGINT, True), (signal.SIGTERM, False), (signal.SIGKILL, False)],
)
def test_an_end_while_the_fork_server_loads_leaves_no_process_and_prints_nothing(
    served: Service, number: signal.Signals, *, whole_group: bool
) -> None:
    for process in served.started:
        process.terminate()
        process.wait(60)
    before = served.errors() if served.started else ""
    with (served.data.parent / "errors.log").open("a") as errors:
        parent = subprocess.Popen(
            [sys.executable, "-m", "cuota", "serve", "--port", str(served.port), "--workers", "2"],
            env=served.environment, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True,
        )  # fmt: skip
    until(lambda: fork_servers_of(parent.pid))
    started = children(parent.pid)
    if whole_group:
        os.killpg(parent.pid, number)
    else:
        parent.send_signal(number)
    assert parent.wait(60) == (-number if number is signal.SIGKILL else 0)
    until(lambda: not any(lives(pid) for pid in started))
    assert served.errors() == before


def test_two_forks_make_different_request_ids() -> None:
    program = """
import os
from cuota.web.server.request_id import new_request_id
for _ in range(2):
    if os.fork() == 0:
        print(new_request_id()[-17:], flush=True)
        os._exit(0)
    os.wait()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=120
    )
    first, second = done.stdout.split()
    assert first != second
