#!/usr/bin/env python3
"""Receives Cuota's webhooks: Python 3.9 or later, nothing to install.

WEBHOOK_SECRET=whsec_... SIGNING_SECRET=signing_... PORT=8400 INBOX=inbox python3 receiver.py
While the signing secret is replaced, SIGNING_SECRET holds the old and the new one, separated by a space.
"""

import base64
import hashlib
import hmac
import json
import os
import re
import sys
import time
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import NamedTemporaryFile

WEBHOOK_KEY = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))
SIGNING_KEYS = [secret.encode() for secret in os.environ["SIGNING_SECRET"].split()]
INBOX = Path(os.environ.get("INBOX", "inbox"))
TOLERANCE = 300  # seconds
MOST_BYTES = 1024 * 1024
if not WEBHOOK_KEY or not SIGNING_KEYS:
    sys.exit("An empty secret proves nothing.")


def genuine(headers: Message, body: bytes) -> bool:
    """True if both signatures match exactly these bytes, and the timestamp is less than five minutes off."""
    name, sent_at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not re.fullmatch(r"\w{1,100}", name, re.ASCII) or not re.fullmatch(r"[0-9]{1,12}", sent_at):
        return False
    if abs(time.time() - int(sent_at)) > TOLERANCE:
        return False
    wanted = "v1," + sign(WEBHOOK_KEY, f"{name}.{sent_at}.".encode() + body)
    # During a rotation the header has two signatures, and one of them must match. Compare all, each in constant time.
    fits = [same(given, wanted) for given in headers.get("webhook-signature", "").split(" ")]
    ours = [same(headers.get("X-Pay-Signature", ""), sign(key, body)) for key in SIGNING_KEYS]
    return any(fits) and any(ours)


def sign(key: bytes, message: bytes) -> str:
    """Return the base64 of HMAC-SHA256."""
    return base64.b64encode(hmac.new(key, message, hashlib.sha256).digest()).decode()


def same(given: str, wanted: str) -> bool:
    """Compare in constant time, as bytes, because the headers may contain anything."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), wanted.encode())


def keep(name: str, body: bytes) -> bool:
    """Store the event in the inbox, on the disk, under its id. Return False if it is already there."""
    with NamedTemporaryFile(dir=INBOX, prefix=".new-") as new:
        new.write(body)
        new.flush()
        os.fsync(new.fileno())
        try:
            os.link(new.name, INBOX / f"{name}.json")
        except FileExistsError:
            return False
    return True


class Receiver(BaseHTTPRequestHandler):
    """Stores genuine webhooks and answers at once. The work is done later, from the inbox."""

    timeout = 10

    def do_POST(self) -> None:
        """Answer at once, without a body."""
        self.send_response(self.receive())
        self.end_headers()

    def receive(self) -> int:
        """Answer 204 for a webhook that is stored now or was stored before, and 401 for one whose signature is wrong."""
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch(r"[0-9]{1,7}", length) or int(length) > MOST_BYTES:
            return 413
        body = self.rfile.read(int(length))
        if not genuine(self.headers, body):
            return 401
        if keep(self.headers["webhook-id"], body):
            event = json.loads(body)
            print(event["type"], event["id"], flush=True)
        return 204


if __name__ == "__main__":
    INBOX.mkdir(parents=True, exist_ok=True)
    ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8400"))), Receiver).serve_forever()
