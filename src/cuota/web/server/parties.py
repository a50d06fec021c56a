"""Who asks, as far as that is known without work: places are shared between parties."""

from __future__ import annotations

import hashlib
from collections import deque

MOST_KNOWN = 20_000
# Of one merchant: the newest. Otherwise one that gets token after token would make all the others unknown.
MOST_TOKENS = 100
STRANGERS = "strangers"
_OPEN = {
    "account",
    "checkout",
    "docs",
    "oauth",
    "orders",
    "sandbox",
    "sdk",
    "static",
    "texts",
    "v1",
    ".well-known",
}


def name_of(authorization: bytes | None) -> int:
    """Not the token itself: a number that tells it from others in this process only; 0 where there is none."""
    return 0 if authorization is None else hash(authorization.strip(b" \t")) or 1


class Parties:
    """A merchant whose token was good is a party; all unknown tokens are one, and so is each open part."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}
        self._tokens: dict[str, deque[int]] = {}
        self._clients: dict[bytes, str] = {}

    def client(self, client_id: bytes) -> str:
        """The party of who asks for a token in this client's name: its own, where that client succeeded lately."""
        return self._clients.get(hashlib.sha256(client_id).digest(), "oauth")

    def remember_client(self, client_id: bytes) -> None:
        """Keep that this client succeeded. Beside its merchant's own calls: who knows the id only takes no share of them."""
        name = hashlib.sha256(client_id).digest()
        if name in self._clients:
            return
        if len(self._clients) >= MOST_KNOWN:
            # The oldest half goes, and is known again with its next success.
            for old in list(self._clients)[: MOST_KNOWN // 2]:
                del self._clients[old]
        self._clients[name] = f"/oauth/{name.hex()}"

    def of(self, path: str, token: int) -> str:
        """The party of who shows this token, by its name; 0 for none."""
        if path.startswith("/checkout/"):
            # The consumers of one merchant, beside its own calls.
            return path[:46] if path[10:46] in self._tokens else "checkout"
        if token:
            return self._known.get(token, STRANGERS)
        part = path[1:].partition("/")[0]
        return part if part in _OPEN else "nobody"

    @staticmethod
    def is_open(party: str) -> bool:
        """Whether it is no merchant, nor a merchant's consumers: those have a merchant's id in their names."""
        return len(party) < 36

    def is_merchant(self, party: str) -> bool:
        """Whether it is one, or the consumers of one."""
        return party.removeprefix("/checkout/") in self._tokens

    def remember(self, token: int, merchant: str) -> None:
        """Keep that this token was good."""
        if token in self._known:
            return
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
            self._tokens.clear()
        tokens = self._tokens.setdefault(merchant, deque())
        if len(tokens) >= MOST_TOKENS:
            self._known.pop(tokens.popleft(), None)
        tokens.append(token)
        self._known[token] = merchant

    def forget(self, token: int) -> None:
        """It is good no more: whoever shows it takes nothing from its merchant's share."""
        merchant = self._known.pop(token, None)
        if merchant is not None:
            self._tokens[merchant].remove(token)
