"""What a sign-in asks the provider, and the refusal of what the provider answers. Flows use these where no provider is set, too."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """One request for a sign-in. State, nonce and verifier are random, and used once. `redirect_uri` is where the browser comes back."""

    state: str
    nonce: str
    verifier: str
    redirect_uri: str


class ProofRefused(Exception):
    """What the provider's answer says is not accepted. The text is for the log, and holds no personal data and no secret."""
