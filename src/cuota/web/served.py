"""Files that are the same for everybody, served with an entity tag and, to whoever accepts it, compressed.

Only for content without secrets and without anything that a caller sent: compressed together, the length of the answer
would tell the one from the other (the BREACH attack). The API's answers and the checkout's pages are never compressed.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

_WORTH_IT = 512
"""Below this many bytes compressing saves nothing."""


@dataclass(frozen=True, slots=True)
class ServedFile:
    """A file as it is served: its bytes, the same compressed (None: not worth it), its media type, its digest."""

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
        """The entity tag of the compressed bytes: other bytes, another tag (RFC 9110, section 8.8.3)."""
        return f'"{self.digest}-gzip"'


def make(content: bytes, kind: str) -> ServedFile:
    """Compress once, for all who will ask."""
    gzipped = gzip.compress(content, 9, mtime=0) if len(content) >= _WORTH_IT else None
    smaller = gzipped if gzipped is not None and len(gzipped) < len(content) else None
    return ServedFile(content, smaller, kind, hashlib.sha256(content).hexdigest()[:16])


def make_from_gzip(gzipped: bytes, kind: str) -> ServedFile:
    """From a file that was compressed when it was built."""
    content = gzip.decompress(gzipped)
    return ServedFile(content, gzipped, kind, hashlib.sha256(content).hexdigest()[:16])


def serve(request: Request, served: ServedFile, headers: Mapping[str, str]) -> Response:
    """The answer: 304 where the caller has it already, else the bytes in the form that it accepts."""
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
    """Whether an Accept-Encoding header takes gzip (RFC 9110, section 12.5.3)."""
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
    """Whether If-None-Match names one of the tags; a proxy may have made them weak."""
    named = {part.strip().removeprefix("W/") for part in given.split(",")}
    return "*" in named or bool(named & tags)
