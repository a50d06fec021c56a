"""The provider's discovery document (OpenID Connect Discovery 1.0), which is checked before use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from authlib.oidc.discovery import OpenIDProviderMetadata

from cuota.rails.http import PLAIN_URL
from cuota.rails.unavailable import RailUnavailable

WELL_KNOWN = "/.well-known/openid-configuration"
# Only signatures with a public key are allowed. `none` is not, and neither is HS256, whose key would be the client secret.
ALGORITHMS = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
)  # fmt: skip
_ADDRESSES = ("authorization_endpoint", "token_endpoint", "jwks_uri")


@dataclass(frozen=True, slots=True)
class Metadata:
    """The parts of the document that Cuota uses. `userinfo_endpoint` is empty if there is none.

    `algorithms` are the provider's algorithms that Cuota accepts. `names_itself`: every answer of the authorization endpoint
    names the issuer (RFC 9207). `auth_method` is the way in which the token endpoint expects the client secret.
    """

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str
    algorithms: tuple[str, ...]
    names_itself: bool
    auth_method: str


class _Document(OpenIDProviderMetadata):  # type: ignore[misc] # the library has no types
    """The library's checks. The library requires RS256, as the specification does, but some providers sign only with ES256."""

    def validate_id_token_signing_alg_values_supported(self) -> None:
        values = self.get("id_token_signing_alg_values_supported")
        if not isinstance(values, list) or not set(map(str, values)) & set(ALGORITHMS):
            raise ValueError("it signs ID tokens with no algorithm that is accepted")


def read_metadata(document: dict[str, Any], issuer: str) -> Metadata:
    """Read the document of this issuer. Raises RailUnavailable if any part is wrong, with the reason for the log."""
    try:
        _Document(document).validate()
    except Exception as wrong:
        # A malformed document can raise other exceptions than the library's ValueError.
        raise RailUnavailable(f"the discovery document is wrong: {wrong}"[:200]) from wrong
    if document.get("issuer") != issuer:
        raise RailUnavailable("the discovery document is of another issuer")
    addresses = {name: document.get(name, "") for name in (*_ADDRESSES, "userinfo_endpoint")}
    for name, address in addresses.items():
        if (address or name in _ADDRESSES) and not _usable(address, issuer):
            raise RailUnavailable(f"the discovery document has no usable {name}")
    # Some providers write null instead of leaving the member out.
    methods = document.get("code_challenge_methods_supported")
    if methods is not None and not (isinstance(methods, list) and "S256" in methods):
        raise RailUnavailable("the provider does not support PKCE with S256")
    return Metadata(
        issuer=issuer,
        **addresses,
        algorithms=tuple(
            name for name in ALGORITHMS if name in document["id_token_signing_alg_values_supported"]
        ),
        names_itself=document.get("authorization_response_iss_parameter_supported") is True,
        auth_method=_auth_method(document),
    )


def _usable(address: object, issuer: str) -> bool:
    """Return whether Cuota may call an address: it uses https, or the issuer itself uses http, as in the sandbox."""
    secure = ("https://",) if issuer.startswith("https://") else ("https://", "http://")
    return (
        isinstance(address, str)
        and PLAIN_URL.fullmatch(address) is not None
        and address.startswith(secure)
        and "#" not in address
    )


def _auth_method(document: dict[str, Any]) -> str:
    offered = document.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
    for method in ("client_secret_basic", "client_secret_post"):
        if method in offered:
            return method
    raise RailUnavailable("the provider accepts the client secret neither in the header nor in the form")
