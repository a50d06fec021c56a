"""Webhooks checked as merchants check them: by the official libraries, in Python and in Node."""

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
    """A folder with the pinned library in it."""

    folder: Path

    def verify(self, secret: str, came: list[Came]) -> list[dict[str, str]]:
        """What the library says of each: {"event": id} or {"refused": why}."""
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
    """`npm ci` of the lock file, without anybody's scripts, in a copy."""
    copy = folder / "node"
    shutil.copytree(NODE, copy, ignore=shutil.ignore_patterns("node_modules"))
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(command, cwd=copy, env={**os.environ, "CI": "1"}, check=True, timeout=300)
    return Node(copy)


def verified(secret: str, came: Came) -> bool:
    """Whether the Python library accepts it."""
    try:
        standardwebhooks.Webhook(secret).verify(came.body, came.headers)
    except standardwebhooks.WebhookVerificationError:
        return False
    return True
