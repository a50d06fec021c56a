"""Runs `python -m cuota` quickly: one process imports the program once, and forks a child for each command.

Each child is a process of its own, with its own arguments, environment, working folder and output, and it ends as any
Python program does. Only the import is not repeated; it takes most of a short command's time.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import BinaryIO

TESTS = Path(__file__).parents[1]
NUMBER = struct.Struct("!i")


class CommandServer:
    """The process that forks the commands. It ends when the process that started it ends."""

    def __init__(self) -> None:
        self._sending = Lock()
        self._socket, theirs = socket.socketpair()
        path = filter(None, [os.environ.get("PYTHONPATH")])
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "support.command_server", str(theirs.fileno())],
                # The caller's own path stays: it may name the sources of another checkout.
                env={**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *path])},
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
            )

    def run(
        self, arguments: Sequence[str], environment: dict[str, str], seconds: float
    ) -> subprocess.CompletedProcess[str]:
        """Run one command to its end. If it takes longer than `seconds`, kill it and raise TimeoutError."""
        asked = json.dumps([list(arguments), environment, str(Path.cwd())]).encode()
        ours, theirs = socket.socketpair()
        with ours, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            with self._sending, theirs:
                files = [out.fileno(), err.fileno(), theirs.fileno()]
                socket.send_fds(self._socket, [NUMBER.pack(len(asked))], files)
                self._socket.sendall(asked)
            pid = _number(ours)
            ended, _, _ = select.select([ours], [], [], seconds)
            if not ended:
                os.kill(pid, signal.SIGKILL)
            code = _number(ours)
            if not ended:
                raise TimeoutError(f"cuota {arguments} did not end within {seconds} seconds")
            return subprocess.CompletedProcess(list(arguments), code, _text(out), _text(err))


def _number(told: socket.socket) -> int:
    return int(NUMBER.unpack(told.recv(NUMBER.size, socket.MSG_WAITALL))[0])


def _text(stream: BinaryIO) -> str:
    stream.seek(0)
    return stream.read().decode()


@cache
def command_server() -> CommandServer:
    """The server of this test process. The first command starts it."""
    return CommandServer()


def _serve(client: socket.socket) -> list[str]:
    """Fork a process for each command. Returns in that process, with the command's arguments."""
    # Ctrl-C ends the tests, and the closed socket then ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        size, files, _, _ = socket.recv_fds(client, NUMBER.size, 3)
        if not size:
            sys.exit(0)
        asked = client.recv(NUMBER.unpack(size)[0], socket.MSG_WAITALL)
        if os.fork() == 0:
            client.close()
            _wait_for_a_child(socket.socket(fileno=files.pop()))
            return _become(asked, files)
        for file in files:
            os.close(file)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _wait_for_a_child(client: socket.socket) -> None:
    """Fork, and return in the child. The parent reports the child's id and exit code, and ends, so that
    commands may overlap."""
    pid = os.fork()
    if pid == 0:
        client.close()
        return
    client.sendall(NUMBER.pack(pid))
    client.sendall(NUMBER.pack(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
    os._exit(0)


def _become(asked: bytes, streams: list[int]) -> list[str]:
    """Set this process's environment, folder and output to the command's, and return the command's
    arguments."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    arguments, environment, folder = json.loads(asked)
    for stream, number in zip(streams, (1, 2), strict=True):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    # A new Python process searches the working folder first.
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    os.chdir(folder)
    # Python opens its output in this way if the output goes into a file.
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    return list(arguments)


def _main() -> None:
    from cuota.cli import make_parser

    # This loads the code of every command, once for all of them.
    make_parser()

    # A child that ends collects garbage. Without this line, each child would search all objects of the program for it.
    gc.freeze()
    arguments = _serve(socket.socket(fileno=int(sys.argv[1])))
    sys.argv = ["cuota", *arguments]
    runpy.run_module("cuota", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()
