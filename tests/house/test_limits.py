"""The docs have the same limits of a connection as the code."""

from __future__ import annotations

import re
from pathlib import Path

from cuota.core.dispute.evidence_file import MOST_TOTAL_BYTES
from cuota.core.wire.strict_json import MOST_VALUES
from cuota.web import body
from cuota.web.api.evidence_body import MOST_EVIDENCE_BYTES
from cuota.web.api.gateway_form import MOST_FIELDS
from cuota.web.server import bounds, deadlines, last_word, protocol
from cuota.web.upload import MOST_UPLOAD_BYTES

ROOT = Path(__file__).resolve().parents[2]
RUNNING = (ROOT / "docs" / "running.md").read_text()


def test_running_md_lists_every_reason_for_which_the_service_closes_a_connection() -> None:
    said = {refusal.reason for refusal in vars(last_word).values() if isinstance(refusal, last_word.Refusal)}
    for counted in re.findall(r"ENDED\.labels\((.*)\)\.inc", Path(protocol.__file__).read_text()):
        said.update(re.findall(r'"(\w+)"', counted))
    assert len(said) > 10
    for reason in said:
        assert re.search(rf"^\|.* \| `{reason}` \|$", RUNNING, re.MULTILINE), reason


def test_running_md_has_the_limits_of_a_connection_of_the_code() -> None:
    for row in (
        f"| the first byte, from connecting | {deadlines.HEAD_SECONDS} s |",
        f"| the head of a request, from its first byte | {deadlines.HEAD_SECONDS} s |",
        f"| its body, from the end of the head | {deadlines.BODY_SECONDS} s |",
        f"| something of an answer is read | {deadlines.READ_SECONDS} s |",
        f"| the address of a request (path and query) | {last_word.MOST_URL_BYTES // 1024} KiB |",
        f"| header fields | {last_word.MOST_HEADERS}, and {last_word.MOST_HEADER_BYTES // 1024} KiB together |",
        f"| a body with an access token | {body.MOST_BYTES // 1024} KiB |",
        f"JSON to `/orders/authorize` | {body.MOST_SIGNED_BYTES // 1024} KiB |",
        f"| a form to `/orders/authorize` | {body.MOST_FORM_BYTES // 1024} KiB, {MOST_FIELDS:,} fields |",
        f"a body to `/sandbox/cards` | {body.MOST_SMALL_BYTES // 1024} KiB |",
        f"(members of objects and of lists) | {MOST_VALUES:,} |",
        f"| evidence or an appeal as JSON, with an access token | {MOST_EVIDENCE_BYTES // 1024**2} MiB, {deadlines.UPLOAD_SECONDS} s |",
        f"| {MOST_TOTAL_BYTES // 1024**2} MiB and {(MOST_UPLOAD_BYTES - MOST_TOTAL_BYTES) // 1024} KiB, {deadlines.UPLOAD_SECONDS} s |",
        f"| {bounds.MOST_MESSAGE_BYTES // 1024**2} MiB |",
        f"| requests sent ahead of an answer | {bounds.MOST_PIPELINED} |",
        f"| {deadlines.MOST_OPEN:,}, and {deadlines.RESERVED_FILES} fewer",
        f"| {deadlines.STOPPING_SECONDS} s after the drain |",
    ):
        assert row in RUNNING, f"docs/running.md lacks: {row}"
    assert "timeout_keep_alive=30," in (ROOT / "src" / "cuota" / "run" / "process.py").read_text()
