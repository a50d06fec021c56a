"""Serves files that are the same for everybody, with an entity tag, and compressed if the client accepts that.

Use this only for content that has neither secrets nor text from a request. If both are compressed together, the length of
the answer reveals the secret (the BREACH attack). The API's answers and the checkout's pages are never compressed.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

_WORTH_IT = 512
"""Compressing fewer bytes than this saves nothing."""


@dataclass(frozen=True, slots=True)
class ServedFile:
    """A file to serve: its bytes, the compressed bytes (None: not smaller), its media type, and a digest of its bytes."""

    content: bytes
    gzipped: bytes | None
    kind: str
    digest: str

    @property
    def tag(self) -> str:
        """The entity tag of the plain bytes."""
        return f'"{self.digest}"'

    @property
    def gzip_tag(self) -> str:
        """The entity tag of the compressed bytes. It must differ from `tag` (RFC 9110, section 8.8.3)."""
        return f'"{self.digest}-gzip"'


def make(content: bytes, kind: str) -> ServedFile:
    """Make a file from plain bytes. They are compressed once, here, and not for each request."""
    gzipped = gzip.compress(content, 9, mtime=0) if len(content) >= _WORTH_IT else None
    smaller = gzipped if gzipped is not None and len(gzipped) < len(content) else None
    return ServedFile(content, smaller, kind, hashlib.sha256(content).hexdigest()[:16])


def make_from_gzip(gzipped: bytes, kind: str) -> ServedFile:
    """Make a file from bytes that were compressed at build time."""
    content = gzip.decompress(gzipped)
    return ServedFile(content, gzipped, kind, hashlib.sha256(content).hexdigest()[:16])


def serve(request: Request, served: ServedFile, headers: Mapping[str, str]) -> Response:
    """Answer 304 if the client has the file already; otherwise send the plain or the compressed bytes."""
    common = dict(headers)
    if served.gzipped is not None:
        common["Vary"] = "Accept-Encoding"
    compressed = served.gzipped is not None and accepts_gzip(request.headers.get("accept-encoding", ""))
    common["ETag"] = served.gzip_tag if compressed else served.tag
    if _has(request.headers.get("if-none-match", ""), {served.tag, served.gzip_tag}):
        return Response(status_code=304, headers=common)
    common["Content-Type"] = served.kind
    if served.gzipped is None or not compressed:
        return Response(served.content, headers=common)
    return Response(served.gzipped, headers={**common, "Content-Encoding": "gzip"})


def accepts_gzip(accepted: str) -> bool:
    """Return whether an Accept-Encoding header allows gzip (RFC 9110, section 12.5.3)."""
    weights: dict[str, float] = {}
    for part in accepted.lower().split(","):
        name, _, parameter = part.partition(";")
        key, _, value = parameter.strip().partition("=")
        try:
            weights[name.strip()] = float(value) if key.strip() == "q" else 1.0
        except ValueError:
            weights[name.strip()] = 0.0
    return weights.get("gzip", weights.get("*", 0.0)) > 0


def _has(given: str, tags: set[str]) -> bool:
    """Return whether an If-None-Match header names one of the tags. A proxy may have marked them as weak (`W/`)."""
    named = {part.strip().removeprefix("W/") for part in given.split(",")}
    return "*" in named or bool(named & tags)
