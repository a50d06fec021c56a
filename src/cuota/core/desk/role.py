"""The roles of a merchant's people, and the one table that says what each role may do."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """A person's role on a merchant's team."""

    OWNER = "owner"
    ADMIN = "admin"
    DEVELOPER = "developer"
    FINANCE = "finance"
    SUPPORT = "support"
    READ_ONLY = "read-only"


class Action(StrEnum):
    """Something that a person does, or sees, in the merchant's dashboard."""

    READ_ORDERS = "orders.read"
    EXPORT_ORDERS = "orders.export"
    CAPTURE = "orders.capture"
    VOID = "orders.void"
    REFUND = "orders.refund"
    READ_PAYOUTS = "payouts.read"
    # The bank account to which the merchant is paid. Thieves try to change it.
    CHANGE_BANK = "bank.change"
    READ_DISPUTES = "disputes.read"
    ANSWER_DISPUTES = "disputes.answer"
    READ_WEBHOOKS = "webhooks.read"
    REPLAY_WEBHOOKS = "webhooks.replay"
    CHANGE_WEBHOOKS = "webhooks.change"
    READ_REQUESTS = "requests.read"
    READ_KEYS = "keys.read"
    CHANGE_KEYS = "keys.change"
    READ_SETTINGS = "settings.read"
    CHANGE_SETTINGS = "settings.change"
    READ_TEAM = "team.read"
    CHANGE_TEAM = "team.change"
    READ_AUDIT = "audit.read"
    # Enter what the provider must know about the business and its owners.
    FILL_ONBOARDING = "onboarding.fill"
    # The sandbox's clock. It does not exist in production.
    USE_SANDBOX = "sandbox.use"
    # Only an owner can make another owner, or take an owner's role away.
    CHANGE_OWNERS = "owners.change"


_READS = frozenset({Action.READ_ORDERS, Action.READ_PAYOUTS, Action.READ_DISPUTES})
_SUPPORT = _READS - {Action.READ_PAYOUTS} | {
    Action.CAPTURE,
    Action.VOID,
    Action.REFUND,
    Action.ANSWER_DISPUTES,
}
MAY: dict[Role, frozenset[Action]] = {
    Role.OWNER: frozenset(Action),
    Role.ADMIN: frozenset(Action) - {Action.CHANGE_OWNERS},
    Role.DEVELOPER: frozenset(
        {
            Action.READ_ORDERS,
            Action.READ_WEBHOOKS,
            Action.REPLAY_WEBHOOKS,
            Action.CHANGE_WEBHOOKS,
            Action.READ_REQUESTS,
            Action.READ_KEYS,
            Action.CHANGE_KEYS,
            Action.READ_SETTINGS,
            Action.USE_SANDBOX,
        }
    ),
    Role.FINANCE: _READS | {Action.EXPORT_ORDERS, Action.READ_SETTINGS, Action.READ_AUDIT},
    Role.SUPPORT: _SUPPORT,
    Role.READ_ONLY: _READS,
}
ROLE_WORDS = {
    Role.OWNER: ("Owner", "everything, and who else is an owner"),
    Role.ADMIN: ("Admin", "everything except the owners, also the bank account and the settings"),
    Role.DEVELOPER: (
        "Developer",
        "orders, webhooks, the requests and the keys of the API and the web origins; reads the settings; in the sandbox, its clock",
    ),
    Role.FINANCE: (
        "Finance",
        "orders, payouts, disputes, exports, settings and the audit log; moves no money",
    ),
    Role.SUPPORT: ("Support", "orders with capture, void and refund, and disputes"),
    Role.READ_ONLY: ("Read-only", "orders, payouts and disputes; changes nothing"),
}


def may(role: Role, action: Action) -> bool:
    """Return whether a role may do this."""
    return action in MAY[role]


def may_grant(granter: Role, role: Role) -> bool:
    """Return whether a person with the role `granter` may give this role, or take it away.

    Nobody can grant more rights than their own.
    """
    return may(granter, Action.CHANGE_TEAM) and MAY[role] <= MAY[granter]


def grantable(granter: Role) -> tuple[Role, ...]:
    """Return the roles that a person with the role `granter` may give."""
    return tuple(role for role in Role if may_grant(granter, role))
