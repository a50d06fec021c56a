"""Verifies webhooks as merchants do: with the official libraries, in Python and in Node."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import standardwebhooks

from support.webhook.listeners import Came

NODE = Path(__file__).with_name("node")


@dataclass
class Node:
    """A folder in which the pinned library is installed."""

    folder: Path

    def verify(self, secret: str, came: list[Came]) -> list[dict[str, str]]:
        """Return the Node library's result for each webhook: {"event": id} or {"refused": reason}."""
        lines = [
            json.dumps(
                {"secret": secret, "headers": each.headers, "body": base64.b64encode(each.body).decode()}
            )
            for each in came
        ]
        done = subprocess.run(
            ["node", "verify.mjs"], cwd=self.folder, input="\n".join(lines), capture_output=True, text=True,
            timeout=60, check=True,
        )  # fmt: skip
        return [json.loads(line) for line in done.stdout.splitlines()]


def installed(folder: Path) -> Node:
    """Run `npm ci` with the lock file in a copy of the folder, without the packages' install scripts."""
    copy = folder / "node"
    shutil.copytree(NODE, copy, ignore=shutil.ignore_patterns("node_modules"))
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(command, cwd=copy, env={**os.environ, "CI": "1"}, check=True, timeout=300)
    return Node(copy)


def verified(secret: str, came: Came) -> bool:
    """True if the Python library accepts the webhook."""
    try:
        standardwebhooks.Webhook(secret).verify(came.body, came.headers)
    except standardwebhooks.WebhookVerificationError:
        return False
    return True
