"""Decides which party a request counts for. Admission control shares its places between parties.

The decision comes before authentication, so it uses only what is in memory: tokens and clients that were valid before.
"""

from __future__ import annotations

import hashlib
from collections import deque

from cuota.web.server.route import Area, PathParams

MOST_KNOWN = 20_000
# The service remembers at most this many tokens of one merchant, the newest ones. Without the limit, a merchant that
# requests token after token would push out the tokens of all others.
MOST_TOKENS = 100
STRANGERS = "strangers"
_CONSUMERS = "/checkout/"


def name_of(authorization: bytes | None) -> int:
    """Return a hash of the access token, so that memory need not hold the token itself; 0 without a token."""
    return 0 if authorization is None else hash(authorization.strip(b" \t")) or 1


class Parties:
    """Remembers valid tokens, and names the party of each request.

    A merchant with a valid token is a party. All unknown tokens together are one party. Each open area is one party.
    """

    def __init__(self) -> None:
        self._known: dict[int, str] = {}
        self._tokens: dict[str, deque[int]] = {}
        self._clients: dict[bytes, str] = {}

    def remember_client(self, client_id: bytes) -> None:
        """Remember that this OAuth client got a token.

        The client's token requests are a party separate from its merchant's calls. So a sender who knows only the
        client's id cannot use up the merchant's share.
        """
        name = hashlib.sha256(client_id).digest()
        if name in self._clients:
            return
        if len(self._clients) >= MOST_KNOWN:
            # Forget the older half. A forgotten client is known again when it next gets a token.
            for old in list(self._clients)[: MOST_KNOWN // 2]:
                del self._clients[old]
        self._clients[name] = f"/oauth/{name.hex()}"

    def of(self, area: Area, params: PathParams, token: int, client: bytes | None = None) -> str:
        """Return the party of a request.

        `area` and `params` belong to its route, `token` is `name_of` its token (0 without a token), and `client` is the
        OAuth client that requests a token.
        """
        if area.consumers:
            # The consumers of one merchant are a party separate from the merchant's own calls.
            merchant = params.get("merchant_id")
            return f"{_CONSUMERS}{merchant}" if merchant in self._tokens else area.party
        if client:
            # A client that got a token recently is a party of its own.
            return self._clients.get(hashlib.sha256(client).digest(), area.party)
        return self._known.get(token, STRANGERS) if token else area.party

    @staticmethod
    def is_open(party: str) -> bool:
        """Return whether the party is neither a merchant, nor a merchant's consumers, nor a known OAuth client."""
        # The names of these three kinds contain an id or a digest of at least 36 characters. The names of open parties
        # are short.
        return len(party) < 36

    def is_merchant(self, party: str) -> bool:
        """Return whether the party is a merchant or a merchant's consumers."""
        return party.removeprefix(_CONSUMERS) in self._tokens

    def remember(self, token: int, merchant: str) -> None:
        """Remember that this token was valid."""
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
        """Forget a token that is no longer valid. Requests with this token no longer count for its merchant."""
        merchant = self._known.pop(token, None)
        if merchant is not None:
            self._tokens[merchant].remove(token)
