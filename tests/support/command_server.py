"""Runs `python -m cuota` quickly: one process imports the program once, and forks a child for each command.

Each child is a process of its own, with its own arguments, environment, working folder and output, and it ends as any
Python program does. Only the import is not repeated; it takes most of a short command's time.
"""

from __future__ import annotations

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
        self._one_at_a_time = Lock()
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "support.command_server", str(theirs.fileno())],
                env={**os.environ, "PYTHONPATH": str(TESTS)},
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
            )

    def run(
        self, arguments: Sequence[str], environment: dict[str, str], seconds: float
    ) -> subprocess.CompletedProcess[str]:
        """Run one command to its end. Kill it and raise TimeoutError when it takes longer than `seconds`."""
        asked = json.dumps([list(arguments), environment, str(Path.cwd())]).encode()
        with self._one_at_a_time, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            socket.send_fds(self._socket, [NUMBER.pack(len(asked))], [out.fileno(), err.fileno()])
            self._socket.sendall(asked)
            pid = self._number()
            ended, _, _ = select.select([self._socket], [], [], seconds)
            if not ended:
                os.kill(pid, signal.SIGKILL)
            code = self._number()
            if not ended:
                raise TimeoutError(f"cuota {arguments} did not end within {seconds} seconds")
            return subprocess.CompletedProcess(list(arguments), code, _text(out), _text(err))

    def _number(self) -> int:
        return int(NUMBER.unpack(self._socket.recv(NUMBER.size, socket.MSG_WAITALL))[0])


def _text(stream: BinaryIO) -> str:
    stream.seek(0)
    return stream.read().decode()


@cache
def command_server() -> CommandServer:
    """The server of this test process. The first command starts it."""
    return CommandServer()


def _serve(client: socket.socket) -> list[str]:
    """Fork a child for each command and tell its exit code. Returns in the child, with the command's arguments."""
    # Ctrl-C ends the tests, and the closed socket then ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        size, streams, _, _ = socket.recv_fds(client, NUMBER.size, 2)
        if not size:
            sys.exit(0)
        asked = client.recv(NUMBER.unpack(size)[0], socket.MSG_WAITALL)
        pid = os.fork()
        if pid == 0:
            client.close()
            return _become(asked, streams)
        for stream in streams:
            os.close(stream)
        client.sendall(NUMBER.pack(pid))
        client.sendall(NUMBER.pack(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))


def _become(asked: bytes, streams: list[int]) -> list[str]:
    """Take the command's environment, folder and output; return its arguments."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    arguments, environment, folder = json.loads(asked)
    for stream, number in zip(streams, (1, 2), strict=True):
        os.dup2(stream, number)
        os.close(stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    # As Python opens them for a program whose output goes into a file.
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    return list(arguments)


def _main() -> None:
    import cuota.cli  # noqa: F401 - once, for all commands

    arguments = _serve(socket.socket(fileno=int(sys.argv[1])))
    sys.argv = ["cuota", *arguments]
    runpy.run_module("cuota", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _main()
