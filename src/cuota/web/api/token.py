"""OAuth: `POST /oauth/token`, which issues access tokens, the public key set, and the issuer's metadata."""

from __future__ import annotations

import base64
import binascii
from typing import Any
from urllib.parse import parse_qsl, unquote_plus

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.credential import TOKEN_SCOPES
from cuota.core.refusal import Code, Refused
from cuota.core.wire.strict_json import BadJson, read_json
from cuota.db.order.documents import encode
from cuota.flows.merchant.issue_token import TokenRefused, TokenRequest, issue_token
from cuota.flows.merchant.keys import ALGORITHMS
from cuota.web.body import MOST_SMALL_BYTES, media_type, read_bytes
from cuota.web.error_form import ProblemForm
from cuota.web.problem import status_of
from cuota.web.service import service_of

NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}
LONGEST = 1024
NAMES = ("client_id", "client_secret", "audience", "grant_type")


async def token(request: Request) -> Response:
    """Issue an access token for client credentials. They may come in JSON, in a form, or as HTTP Basic."""
    service = service_of(request)
    try:
        token_request = _read(request, await read_bytes(request, MOST_SMALL_BYTES))
        issued = await issue_token(service.context, service.keys, token_request)
        request.scope["client_good"] = token_request.client_id.encode()
    except TokenRefused as refused:
        return _refusal(request, refused)
    except Refused as refused:
        if refused.code is Code.UNAVAILABLE:
            return unavailable(request, refused)
        return _refusal(request, TokenRefused("invalid_request", refused.message), status=status_of(refused))
    content = {
        "access_token": issued.access_token,
        "expires_in": issued.expires_in,
        "scope": issued.scope,
        "token_type": "Bearer",
    }
    return Response(encode(content), headers=NO_STORE, media_type="application/json")


def unavailable(request: Request, refused: Refused) -> Response:
    """Answer 503 in the error format of RFC 6749."""
    again = TokenRefused("temporarily_unavailable", refused.message, retry_after=refused.retry_after)
    return _refusal(request, again, status=503)


class OAuthForm(ProblemForm):
    """The error form for requests whose handler was not called: the format of RFC 6749.

    The handler itself answers its refusals in the same format.
    """

    def not_begun(self, request: Request, refused: Refused) -> Response:
        """Answer with `error` and `error_description`."""
        if refused.code is Code.UNAVAILABLE:
            return unavailable(request, refused)
        return _refusal(request, TokenRefused("invalid_request", refused.message), status=status_of(refused))


OAUTH_ERRORS = OAuthForm()


def _refusal(request: Request, refused: TokenRefused, status: int | None = None) -> Response:
    headers = dict(NO_STORE)
    if refused.retry_after is not None:
        status = status or 429
        headers["Retry-After"] = str(refused.retry_after)
    status = status or (401 if refused.error == "invalid_client" else 400)
    if status == 401 and request.headers.get("authorization", "").lower().startswith("basic"):
        headers["WWW-Authenticate"] = 'Basic realm="token"'
    content = encode({"error": refused.error, "error_description": refused.description})
    return Response(content, status, headers, media_type="application/json")


def _read(request: Request, body: bytes) -> TokenRequest:
    if len(request.headers.getlist("authorization")) > 1:
        raise TokenRefused(
            "invalid_client",
            "The caller could not be authenticated: the request has two Authorization headers. Send one.",
        )
    fields = _fields(request, body)
    header = request.headers.get("authorization", "")
    # Ignore a Bearer header. The HTTP client of a shop may send it with every request.
    if header[:6].lower() == "basic ":
        if "client_id" in fields or "client_secret" in fields:
            raise TokenRefused(
                "invalid_request", "Send the credentials once: in the body or as HTTP Basic, not both."
            )
        fields["client_id"], fields["client_secret"] = _basic(header)
    grant = fields.get("grant_type")
    if grant is None:
        raise TokenRefused("invalid_request", "grant_type is missing; it must be client_credentials.")
    if grant != "client_credentials":
        raise TokenRefused("unsupported_grant_type", "grant_type must be client_credentials.")
    missing = [name for name in ("client_id", "client_secret") if not fields.get(name)]
    if missing:
        verb = "are" if len(missing) > 1 else "is"
        raise TokenRefused("invalid_request", f"{' and '.join(missing)} {verb} missing.")
    return TokenRequest(fields["client_id"], fields["client_secret"], fields.get("audience") or None)


def _fields(request: Request, body: bytes) -> dict[str, str]:
    kind, charset = media_type(request)
    if kind == "application/json" and charset in {"", "utf-8", "utf8"}:
        return _texts(_json(body))
    if kind == "application/x-www-form-urlencoded":
        try:
            pairs = parse_qsl(
                body.decode("ascii"), keep_blank_values=True, strict_parsing=bool(body), max_num_fields=50
            )
        except ValueError:
            raise TokenRefused("invalid_request", "The form cannot be read.") from None
        if len({name for name, _ in pairs}) != len(pairs):
            raise TokenRefused("invalid_request", "A parameter was sent twice. Send each parameter once.")
        return _texts(dict(pairs))
    message = "Send application/json or application/x-www-form-urlencoded."
    raise Refused(Code.UNSUPPORTED_MEDIA_TYPE, message)


def _json(body: bytes) -> dict[str, Any]:
    try:
        value = read_json(body)
    except BadJson as problem:
        raise TokenRefused("invalid_request", f"The body is not readable as JSON: {problem}.") from None
    if not isinstance(value, dict):
        raise TokenRefused("invalid_request", "The body must be a JSON object.")
    return value


def _texts(fields: dict[str, Any]) -> dict[str, str]:
    given: dict[str, Any] = {name: fields[name] for name in NAMES if fields.get(name) is not None}
    for name, value in given.items():
        if not isinstance(value, str) or len(value) > LONGEST or not value.isprintable():
            raise TokenRefused(
                "invalid_request", f"{name} must be a string of at most {LONGEST} printable characters."
            )
    return given


def _basic(header: str) -> tuple[str, str]:
    encoded = header.partition(" ")[2]
    try:
        name, separator, secret = (
            base64.b64decode(encoded.strip(), validate=True).decode("utf-8").partition(":")
        )
    except (ValueError, binascii.Error):
        raise TokenRefused(
            "invalid_request", "The Authorization header is not readable as HTTP Basic."
        ) from None
    if not separator:
        raise TokenRefused("invalid_request", "The Authorization header is not readable as HTTP Basic.")
    fields = _texts({"client_id": unquote_plus(name), "client_secret": unquote_plus(secret)})
    return fields["client_id"], fields["client_secret"]


async def jwks(request: Request) -> Response:
    """Return the public keys that verify access tokens (RFC 7517)."""
    keys = service_of(request).keys
    await keys.load()
    return Response(
        encode(keys.public()), headers={"Cache-Control": "public, max-age=300"}, media_type="application/json"
    )


async def metadata(request: Request) -> Response:
    """Return the metadata of the authorization server (RFC 8414)."""
    issuer = service_of(request).settings.auth_url
    content = {
        "issuer": issuer,
        "token_endpoint": f"{issuer}/oauth/token",
        "jwks_uri": f"{issuer}/.well-known/jwks.json",
        "grant_types_supported": ["client_credentials"],
        "response_types_supported": [],
        "scopes_supported": list(dict.fromkeys(" ".join(TOKEN_SCOPES.values()).split())),
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        "access_token_signing_alg_values_supported": ALGORITHMS,
    }
    return Response(
        encode(content), headers={"Cache-Control": "public, max-age=300"}, media_type="application/json"
    )
