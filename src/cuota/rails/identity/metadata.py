"""The provider's discovery document (OpenID Connect Discovery 1.0), checked before anything in it is used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from authlib.oidc.discovery import OpenIDProviderMetadata

from cuota.rails.http import PLAIN_URL
from cuota.rails.unavailable import RailUnavailable

WELL_KNOWN = "/.well-known/openid-configuration"
# Signatures with a public key only. Never `none`, and never HS256, whose key would be the client secret.
ALGORITHMS = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
)  # fmt: skip
_ADDRESSES = ("authorization_endpoint", "token_endpoint", "jwks_uri")


@dataclass(frozen=True, slots=True)
class Metadata:
    """What Cuota uses of the document. `userinfo_endpoint` is empty if there is none.

    `algorithms` are those of the provider that Cuota accepts. `names_itself`: every answer of the authorization endpoint names the
    issuer (RFC 9207). `auth_method` is how the token endpoint wants the client's secret.
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
    """The library's checks. It insists on RS256, as the specification does; providers that sign with ES256 only exist."""

    def validate_id_token_signing_alg_values_supported(self) -> None:
        values = self.get("id_token_signing_alg_values_supported")
        if not isinstance(values, list) or not set(map(str, values)) & set(ALGORITHMS):
            raise ValueError("it signs ID tokens with no algorithm that is accepted")


def read_metadata(document: dict[str, Any], issuer: str) -> Metadata:
    """Read the document of this issuer. Raises RailUnavailable if anything in it is wrong, with the reason for the log."""
    try:
        _Document(document).validate()
    except Exception as wrong:
        # A strange document raises more than the library's ValueError.
        raise RailUnavailable(f"the discovery document is wrong: {wrong}"[:200]) from wrong
    if document.get("issuer") != issuer:
        raise RailUnavailable("the discovery document is of another issuer")
    addresses = {name: document.get(name, "") for name in (*_ADDRESSES, "userinfo_endpoint")}
    for name, address in addresses.items():
        if (address or name in _ADDRESSES) and not _usable(address, issuer):
            raise RailUnavailable(f"the discovery document has no usable {name}")
    if "S256" not in document.get("code_challenge_methods_supported", ["S256"]):
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
    """Return whether an address can be called. It is https, unless the issuer itself is not, as in the sandbox."""
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
