"""Answers with a file that somebody has sent. A browser saves it, and never shows it as a page of this service."""

from __future__ import annotations

from urllib.parse import quote

from starlette.responses import Response

from cuota.core.dispute.evidence import EvidenceFile


def download(file: EvidenceFile) -> Response:
    """Return the file to save."""
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(file.name)}",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": "no-store",
    }
    return Response(file.content, media_type=file.media_type, headers=headers)
