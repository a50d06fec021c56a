"""The scopes of a merchant's credential: which calls of the API it may make."""

from __future__ import annotations

from enum import StrEnum

from cuota.core.refusal import Code, Refused


class Scope(StrEnum):
    """The scope of a credential. Every scope may read."""

    FULL = "full"
    READ = "read"
    CAPTURE = "capture"
    REFUND = "refund"


# The value of `scope` in a token.
TOKEN_SCOPES = {
    Scope.FULL: "merchant orders",
    Scope.READ: "orders.read",
    Scope.CAPTURE: "orders.read orders.capture",
    Scope.REFUND: "orders.read orders.refund",
}
SCOPE_WORDS = {
    Scope.FULL: ("Everything", "create, capture, void and refund orders, and manage webhook endpoints"),
    Scope.READ: ("Read only", "read orders, events, payouts and disputes"),
    Scope.CAPTURE: ("Capture only", "read, and capture orders"),
    Scope.REFUND: ("Refund only", "read, and refund orders"),
}
_MOVES = {Scope.CAPTURE: "/order/{order_id}/capture", Scope.REFUND: "/order/{order_id}/refund"}


def credential_name(name: str) -> str:
    """Return the name that pages show for a credential. The first credential of a merchant has no name of its own."""
    return name or "first credential"


def require_scope(scope: Scope, method: str, path: str) -> None:
    """Raise Refused unless a credential of this scope may send this request.

    `path` is the path of the route, such as `/order/{order_id}`.
    """
    if scope is Scope.FULL or method in {"GET", "HEAD"} or _MOVES.get(scope) == path:
        return
    message = (
        f"This credential may only {SCOPE_WORDS[scope][1]}. Nothing was changed. Use a credential with the scope that this call"
        " needs; the dashboard makes one under Developers."
    )
    raise Refused(Code.INSUFFICIENT_SCOPE, message)
