"""The request of a sign-in to the provider, and the refusal of an answer. Flows also use these if no provider is set."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """One request for a sign-in. State, nonce and verifier are random and used once. The browser returns to `redirect_uri`."""

    state: str
    nonce: str
    verifier: str
    redirect_uri: str


class ProofRefused(Exception):
    """The provider's answer is refused. The text is for the log, and contains no personal data and no secret."""
