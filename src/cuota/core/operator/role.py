"""The roles of the operator's people, and the one table that says what each role may do."""

from __future__ import annotations

from enum import StrEnum


class OperatorRole(StrEnum):
    """The role of a person in the operator's team."""

    OWNER = "owner"
    SUPPORT = "support"
    RISK = "risk"
    FINANCE = "finance"
    READ_ONLY = "read-only"


class OperatorAction(StrEnum):
    """An action in the operator's dashboard. An action changes something or shows something."""

    READ_ORDERS = "orders.read"
    READ_CONSUMERS = "consumers.read"
    # Without this, a consumer's name, phone number and e-mail address are masked.
    REVEAL_CONSUMERS = "consumers.reveal"
    ERASE_CONSUMERS = "consumers.erase"
    BLOCK_CONSUMERS = "consumers.block"
    # Hardship: move dates, pause, smaller payments, waive a fee. The hardship policy limits every role.
    CHANGE_PLANS = "plans.change"
    READ_MERCHANTS = "merchants.read"
    CHANGE_MERCHANTS = "merchants.change"
    SUSPEND_MERCHANTS = "merchants.suspend"
    # Fill in the onboarding for a merchant, see owners' names and documents, and accept or reject items.
    DECIDE_ONBOARDING = "onboarding.decide"
    READ_DISPUTES = "disputes.read"
    DECIDE_DISPUTES = "disputes.decide"
    READ_RISK = "risk.read"
    # The orders that risk referred to a person.
    READ_REVIEWS = "reviews.read"
    ANSWER_REVIEWS = "reviews.answer"
    READ_MONEY = "money.read"
    ADJUST_MONEY = "money.adjust"
    RELEASE_PAYOUTS = "payouts.release"
    READ_SYSTEM = "system.read"
    # Move the sandbox's clock, and save and restore its forks. Production has neither.
    USE_SANDBOX = "sandbox.use"
    READ_TEAM = "team.read"
    CHANGE_TEAM = "team.change"
    READ_AUDIT = "audit.read"


_A = OperatorAction
_EVERYBODY = frozenset(
    {_A.READ_ORDERS, _A.READ_CONSUMERS, _A.READ_MERCHANTS, _A.READ_DISPUTES, _A.READ_SYSTEM}
)
# Everybody who may change something may also use the sandbox.
_ACTS = _EVERYBODY | {_A.USE_SANDBOX}
OPERATOR_MAY: dict[OperatorRole, frozenset[OperatorAction]] = {
    OperatorRole.OWNER: frozenset(OperatorAction),
    OperatorRole.SUPPORT: _ACTS | {_A.REVEAL_CONSUMERS, _A.CHANGE_PLANS, _A.DECIDE_DISPUTES},
    OperatorRole.RISK: _ACTS
    | {
        _A.REVEAL_CONSUMERS,
        _A.BLOCK_CONSUMERS,
        _A.READ_RISK,
        _A.DECIDE_DISPUTES,
        _A.READ_REVIEWS,
        _A.ANSWER_REVIEWS,
        _A.SUSPEND_MERCHANTS,
        _A.DECIDE_ONBOARDING,
    },
    OperatorRole.FINANCE: _ACTS | {_A.READ_MONEY, _A.ADJUST_MONEY, _A.RELEASE_PAYOUTS, _A.READ_AUDIT},
    OperatorRole.READ_ONLY: _EVERYBODY | {_A.READ_RISK, _A.READ_REVIEWS, _A.READ_MONEY},
}
OPERATOR_WORDS = {
    OperatorRole.OWNER: ("Owner", "everything"),
    OperatorRole.SUPPORT: (
        "Support",
        "orders, consumers with their names, plans of consumers in hardship, and disputes with their decision",
    ),
    OperatorRole.RISK: (
        "Risk",
        "orders, consumers with their names, blocks, disputes with their decision, the decisions, reviews with their answer, the policy, approvals and suspensions of merchants",
    ),
    OperatorRole.FINANCE: (
        "Finance",
        "money, corrections of a merchant's balance, held payouts, and the audit log",
    ),
    OperatorRole.READ_ONLY: ("Read-only", "looks at everything except names, the team and the audit log"),
}


def operator_may(role: OperatorRole, action: OperatorAction) -> bool:
    """Return whether a role may do this."""
    return action in OPERATOR_MAY[role]


def operator_grantable(granter: OperatorRole) -> tuple[OperatorRole, ...]:
    """Return the roles that a person with the role `granter` may give and take away.

    Nobody can grant more rights than their own.
    """
    if not operator_may(granter, OperatorAction.CHANGE_TEAM):
        return ()
    return tuple(role for role in OperatorRole if OPERATOR_MAY[role] <= OPERATOR_MAY[granter])
