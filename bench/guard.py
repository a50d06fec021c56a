"""`python -m bench.guard`: measures, for every route, the most CPU time that one request without a valid credential can cost.

Sends every hostile body, query and header below to every route of a service with one worker. The cost of a request is
the worker's own CPU time, which hardly depends on other load. The smallest value of several rounds counts. Prints one
table and writes it to bench/GUARD.md.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode
from uuid import uuid4

import psutil

from bench import service
from bench.__main__ import temporary, with_postgres
from bench.report import machine
from bench.service import BenchService
from cuota.web.app import ROUTES

GOAL_MS = 10.0
OUT = Path(__file__).parent / "GUARD.md"
_SIGNATURES = (
    base64.b64encode(bytes(32)).decode(),
    base64.b64encode(b"61" * 32).decode(),
    "%41" * 340,
)


@dataclass(frozen=True)
class Attack:
    """One hostile request for any route: a name, a query, header fields, and a body with its content type."""

    name: str
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    kind: str = "application/json"
    body: bytes = b""


def json_bodies(merchant_id: str) -> Iterator[tuple[str, bytes]]:
    """Texts that are expensive to parse, in three sizes: a little below the limits of signed and of small bodies, and 4 KB."""
    named = f'{{"merchantId":"{merchant_id}",'.encode()
    for size in (130_000, 16_000, 4_000):
        n = size - 200
        yield f"{size} numbers", named + b'"a":[' + b"0," * (n // 2) + b"0]}"
        yield f"{size} decimals", named + b'"a":[' + b"1.5e9," * (min(n, 59_000) // 6) + b"0]}"
        yield f"{size} not a number", named + b'"additionalData":[' + b"NaN," * (n // 4) + b"0]}"
        yield f"{size} keys", named + b",".join(b'"k%05d":1' % i for i in range(min(n // 11, 9_900))) + b"}"
        yield f"{size} keys first", b"{" + b'"":0,' * (n // 5) + b'"z":1}'
        yield f"{size} escaped keys first", b"{" + b'"\\u0061":0,' * (n // 11) + b'"z":1}'
        yield f"{size} lists", b'{"a":[' + b"[]," * (n // 3) + b"0]," + named[1:-1] + b"}"
        yield f"{size} deep", b'{"a":' + b"[" * (n // 2) + b"]" * (n // 2) + b"," + named[1:-1] + b"}"
        yield f"{size} escapes", named + b'"a":"' + b"\\ud800" * (n // 6) + b'"}'
        yield f"{size} wide", named + b'"a":"' + "é</>&".encode() * (n // 6) + b'"}'
        yield f"{size} digits", named + b'"a":' + b"9" * n + b"}"
        yield f"{size} cards", named + b'"a":"' + b"4242 " * (n // 5) + b'"}'
        yield f"{size} spaces", b"{" + b" " * n
        yield f"{size} line ends", b"\r\n" * (n // 2)


def forms(merchant_id: str) -> Iterator[tuple[str, bytes]]:
    """Form-encoded texts, used as bodies. Those that fit into a URL are also sent as queries."""
    named = urlencode({"merchantId": merchant_id, "signature": _SIGNATURES[0]}).encode()
    for size in (65_000, 16_000, 7_000):
        n = size - len(named) - 100
        yield f"{size} percent", named + b"&a=" + b"%41" * (n // 3)
        yield f"{size} wide", named + b"&a=" + b"%c3%a9" * (n // 6)
        yield f"{size} fields", named + b"&a=" * min(n // 3, 2_990)
        yield f"{size} named fields", named + b"".join(b"&%05d=" % i for i in range(min(n // 7, 2_990)))
        yield f"{size} percent fields", named + b"&%c3%a9=%c3%a9" * min(n // 14, 2_990)
        yield f"{size} plus", named + b"&a=" + b"+" * n
        yield f"{size} empty fields", b"&" * n


def headers() -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    """Header fields that the service parses."""
    n = 15_000
    yield "cookie of backslashes", (("Cookie", 'device="' + "\\" * n + '"'),)
    yield "many cookies", (("Cookie", "a=b;" * (n // 4)),)
    yield "content type", (("Content-Type", "application/json" + ";a=b" * (n // 4)),)
    yield "accept", (("Accept", "text/html," * (n // 10)),)
    yield "languages", (("Accept-Language", "en-US;q=0.1," * (n // 12)),)
    yield "many headers", tuple((f"X-{i}", "a" * 100) for i in range(90))
    yield "tokens", (("Authorization", "Bearer " + "a" * 4_000),)
    head = base64.urlsafe_b64encode(b'{"alg":"RS256","typ":"at+jwt","kid":"none"}').rstrip(b"=").decode()
    yield "jwt", (("Authorization", f"Bearer {head}.{'a' * 3_500}.{'a' * 342}"),)
    yield "basic", (("Authorization", "Basic " + base64.b64encode(b"%41" * 3_500).decode()),)
    yield "long key", (("Idempotency-Key", "a" * n),)
    yield "etags", (("If-None-Match", '"a",' * (n // 4)),)


def attacks(merchant_id: str) -> list[Attack]:
    """Return all attacks."""
    found = [Attack("plain")]
    for number, signature in enumerate(_SIGNATURES):
        signed = (("X-Pay-Signature", signature),)
        for name, body in json_bodies(merchant_id):
            if number == 0 or name.startswith(("4000", "16000")):
                found.append(Attack(f"{name}, signature {number + 1}", headers=signed, body=body))
    for name, body in forms(merchant_id):
        found.append(Attack(f"form: {name}", kind="application/x-www-form-urlencoded", body=body))
        if len(body) < 8_000:
            found.append(Attack(f"query: {name}", query=body.decode()))
    found += [Attack(f"header: {name}", headers=given) for name, given in headers()]
    return found


def targets(merchant_id: str) -> list[tuple[str, str]]:
    """Return the method and path of every route of the application."""
    named = {"merchant_id": merchant_id, "name": "page.css", "digest": "0" * 12, "step": "pay"}
    found = []
    for route in ROUTES:
        filled = "/".join(
            named.get(part[1:-1], str(uuid4())) if part.startswith("{") else part
            for part in route.path.split("/")
        ).replace("{digest}", named["digest"])
        found += [(method, filled) for method in route.methods.split()]
    return found


def route_names() -> list[str]:
    """Return every method and path in the application's table of routes."""
    return [f"{method} {route.path}" for route in ROUTES for method in route.methods.split()]


def request(method: str, path: str, attack: Attack) -> bytes:
    """Return the bytes of the request. The connection is closed after the answer."""
    given = dict(attack.headers)
    given.setdefault("Content-Type", attack.kind)
    target = f"{path}?{attack.query}" if attack.query else path
    body = attack.body if method not in {"GET", "OPTIONS"} else b""
    lines = [
        f"{method} {target} HTTP/1.1",
        "Host: 127.0.0.1",
        "Connection: close",
        f"Content-Length: {len(body)}",
    ]
    lines += [f"{name}: {value}" for name, value in given.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def exchange(port: int, content: bytes) -> bytes:
    """Send the request, read the whole answer, and return its first line."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        # The service may refuse the request before the whole body has arrived.
        with contextlib.suppress(OSError):
            connection.sendall(content)
        answer = b""
        with contextlib.suppress(OSError):
            while part := connection.recv(65536):
                answer = answer or part
    return answer.partition(b"\r\n")[0]


def cpu_ms(worker: psutil.Process) -> float:
    """Return the CPU time of all threads of a process, in milliseconds, with nanosecond precision (Linux)."""
    files = Path(f"/proc/{worker.pid}/task").glob("*/schedstat")
    return sum(int(file.read_text().split()[0]) for file in files) / 1e6


def cost_of(port: int, worker: psutil.Process, content: bytes, rounds: int) -> tuple[float, bytes]:
    """Return the smallest CPU time of these rounds, and the first line of the answer."""
    least, said = float("inf"), b""
    for _ in range(rounds):
        before = cpu_ms(worker)
        said = exchange(port, content)
        least = min(least, cpu_ms(worker) - before)
        if least < GOAL_MS / 4:
            break
    return least, said


def measure(
    port: int, worker: psutil.Process, merchant_id: str, rounds: int
) -> list[tuple[str, str, float, str]]:
    """Return, for each route, the attack that cost the most: route, attack, milliseconds, answer."""
    rows = []
    every = attacks(merchant_id)
    for name, (method, path) in zip(route_names(), targets(merchant_id), strict=True):
        # Skip bodies that no code reads.
        usable = [attack for attack in every if not attack.body or method not in {"GET", "OPTIONS"}]
        exchange(port, request(method, path, every[0]))
        worst = ("", 0.0, b"")
        for attack in usable:
            cost, said = cost_of(port, worker, request(method, path, attack), rounds)
            worst = max(worst, (attack.name, cost, said), key=lambda row: row[1])
        rows.append((name, worst[0], worst[1], worst[2].decode()[9:]))
        print(f"bench: {name}: {worst[1]:.2f} ms ({worst[0]}; {rows[-1][3]})", flush=True)
    return rows


def write(rows: list[tuple[str, str, float, str]], seconds: float) -> None:
    """Write the table, most expensive route first."""
    lines = ["# The highest cost of one request without a credential", ""]
    lines += [
        f"- Measured by `python -m bench.guard` in {seconds:.0f} s.",
        *(f"- {line}" for line in machine()),
    ]
    lines += [
        f"- CPU time of the only worker for one request without a credential; the goal is less than {GOAL_MS:g} ms for each.",
        "- Every route gets every hostile body, query and header of `bench/guard.py`; the table shows the most expensive one.",
        "- `/metrics` adds up the counters of all workers. However often it is requested, this takes at most a tenth of a worker's time.",
        "", "| route | worst request | CPU ms | answer |", "|---|---|--:|---|",
    ]  # fmt: skip
    ordered = sorted(rows, key=lambda row: -row[2])
    lines += [f"| `{name}` | {attack} | {cost:.2f} | {said} |" for name, attack, cost, said in ordered]
    OUT.write_text("\n".join(lines) + "\n")


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.guard", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="how often each request is sent (default 5)")
    options = parser.parse_args()
    started = time.monotonic()
    with temporary() as folder:
        place = BenchService(folder / "data", service.free_port())
        with with_postgres(place):
            merchant_id = str(service.merchant(place)["merchantId"])
            with service.serving(place, 1) as workers:
                rows = measure(place.port, workers[0], merchant_id, options.rounds)
    write(rows, time.monotonic() - started)
    dear = [name for name, _, cost, _ in rows if cost >= GOAL_MS]
    print(
        f"bench: {len(rows)} routes; over {GOAL_MS:g} ms: {', '.join(dear) or 'none'}; written to {OUT.name}"
    )


if __name__ == "__main__":
    main()
