"""`cuota listen --forward`: prints events for people and scripts, and forwards them with valid signatures."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from threading import Thread
from typing import Any

import httpx
from standardwebhooks import Webhook

from cuota.core.webhook.signature import pay_signature
from support.commands import Cuota
from support.serving import ORDER, serving

Got = Queue[tuple[dict[str, str], bytes]]


@contextlib.contextmanager
def receiver() -> Iterator[tuple[str, Got]]:
    """The developer's own program, which receives forwarded events."""
    got: Got = Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            got.put((headers, self.rfile.read(int(headers["content-length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hooks", got
    finally:
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def listening(cuota: Cuota, *more: str) -> Iterator[Queue[str]]:
    """Return the lines that `cuota listen` prints."""
    command = [sys.executable, "-m", "cuota", "listen", "--merchant", "Listened", *more]
    process = subprocess.Popen(command, env=cuota.environment(), stdout=subprocess.PIPE, text=True)
    lines: Queue[str] = Queue()
    assert process.stdout
    stdout = process.stdout
    reader = Thread(target=lambda: [lines.put(line) for line in stdout], daemon=True)
    reader.start()
    try:
        yield lines
    finally:
        process.terminate()
        process.wait(60)
        reader.join(60)
        stdout.close()


def create(url: str, made: dict[str, Any]) -> str:
    body = {name: made[key] for name, key in (("client_id", "clientId"), ("client_secret", "clientSecret"))}
    body |= {"audience": made["audience"], "grant_type": "client_credentials"}
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as http:
        token = http.post("/oauth/token", json=body).json()["access_token"]
        created = http.post("/order", json=ORDER, headers={"Authorization": f"Bearer {token}"}).json()
    return str(created["orderId"])


def test_events_are_printed_and_forwarded_with_both_signatures(cuota: Cuota) -> None:
    with serving(cuota) as (line, _), receiver() as (address, got):
        settings = {"CUOTA_PUBLIC_URL": line["url"]}
        made = json.loads(cuota("merchant", "create", "--name", "Listened", "--json", **settings).stdout)
        earlier = create(line["url"], made)
        with listening(cuota, "--from-start", "--json", "--forward", address) as scripts:
            event = json.loads(scripts.get(timeout=60))
            assert (event["type"], event["orderId"]) == ("order.created", earlier)
            headers, body = got.get(timeout=60)
            assert json.loads(body) == event
            Webhook(made["webhookSecret"]).verify(body, headers)
            assert headers["x-pay-signature"] == pay_signature(made["signingSecret"], body)
            later = create(line["url"], made)
            assert json.loads(scripts.get(timeout=60))["orderId"] == later
        with listening(cuota, "--from-start", "--forward", address) as people:
            words = people.get(timeout=60).split()
            assert words[1:6] == ["order.created", "100.00", earlier, "->", "204"]


def test_it_prints_the_last_events_and_ends_with_an_error_when_the_service_stops(cuota: Cuota) -> None:
    with contextlib.ExitStack() as service:
        line, _ = service.enter_context(serving(cuota))
        settings = {"CUOTA_PUBLIC_URL": line["url"]}
        made = json.loads(cuota("merchant", "create", "--name", "Stops", "--json", **settings).stdout)
        create(line["url"], made)
        command = [sys.executable, "-m", "cuota", "listen", "--merchant", "Stops", "--from-start"]
        with subprocess.Popen(
            command, env=cuota.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stdout is not None
                assert "order.created" in process.stdout.readline()
                service.close()
                _, said = process.communicate(timeout=60)
            finally:
                process.kill()
        assert process.returncode == 1
        assert "No service is running on the data in" in said
