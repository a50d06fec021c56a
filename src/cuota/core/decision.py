"""Risk decisions: a pure function of facts under a named policy version. The same facts give the same outcome."""

from __future__ import annotations

from dataclasses import dataclass

from cuota.core.sandbox import APPROVED_SURNAME, DECLINED_SURNAME

POLICY_VERSION = "2026-11-sandbox-names"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known when the consumer presses the button. Cents; surname as typed."""

    amount: int
    currency: str
    surname: str
    sandbox: bool


@dataclass(frozen=True, slots=True)
class Decision:
    """Approved or declined, with every reason by its code, the inputs it was made from and the policy's version."""

    approved: bool
    reasons: tuple[str, ...]
    policy_version: str
    inputs: dict[str, object]


def decide(facts: Facts) -> Decision:
    """Decide. Surnames of the sandbox's test table steer it there, and only there."""
    inputs: dict[str, object] = {"amount": facts.amount, "currency": facts.currency, "sandbox": facts.sandbox}
    surname = facts.surname.strip().casefold()
    if facts.sandbox and surname == DECLINED_SURNAME.casefold():
        return Decision(False, ("sandbox_decline_requested",), POLICY_VERSION, {**inputs, "surname": surname})
    if facts.sandbox and surname == APPROVED_SURNAME.casefold():
        return Decision(True, ("sandbox_approve_requested",), POLICY_VERSION, {**inputs, "surname": surname})
    return Decision(True, ("within_merchant_limits",), POLICY_VERSION, inputs)
