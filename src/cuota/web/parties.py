"""Who asks, as far as that is known without work: places are shared between parties."""

from __future__ import annotations

MOST_KNOWN = 20_000
STRANGERS = "strangers"
_OPEN = {"account", "checkout", "docs", "oauth", "orders", "sandbox", "sdk", "static", "v1", ".well-known"}


class Parties:
    """A merchant whose token was good is a party; all unknown tokens are one, and so is each open part."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}
        self._merchants: set[str] = set()

    def of(self, path: str, authorization: bytes | None) -> tuple[str, int]:
        """The party; and a name for its token, where that is to be remembered should it be good."""
        if path.startswith("/checkout/"):
            # The consumers of one merchant, beside its own calls.
            return (path[:46] if path[10:46] in self._merchants else "checkout"), 0
        if authorization is not None:
            # Not the token itself: a number that tells it from others in this process only.
            token = hash(authorization)
            known = self._known.get(token)
            return (known, 0) if known else (STRANGERS, token)
        part = path[1:].partition("/")[0]
        return (part if part in _OPEN else "nobody"), 0

    def remember(self, token: int, merchant: str) -> None:
        """Keep that this token was good."""
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
            self._merchants.clear()
        self._known[token] = merchant
        self._merchants.add(merchant)
