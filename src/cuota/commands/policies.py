"""`cuota policy check` and `show`: check a policy file before it is used, and print a stored policy."""

from __future__ import annotations

import argparse

from cuota.commands.common import require_database, run, show
from cuota.core import money
from cuota.core.risk.decision import Decision, decide
from cuota.core.risk.facts import Facts
from cuota.core.risk.policy import Policy
from cuota.db.risk import policies
from cuota.flows.context import Context
from cuota.flows.risk.keep_policy import WrongPolicy, load_kept, policy_in_force, read_policy

# In cents: a typical first order of a new consumer, and the smallest order, which costs almost no points.
TYPICAL, SMALLEST = 15_000, 1


def policy_check(options: argparse.Namespace) -> int:
    """`cuota policy check`."""
    policy, text = read_policy(options.file)
    own, own_text = read_policy(None)
    if policy.version == own.version and text != own_text:
        raise WrongPolicy(
            f"{options.file} has version {policy.version}, but the policy of this release has the same version and another"
            " text. Give the changed policy a new version."
        )
    exposure, needed = policy.exposure, policy.score.threshold
    typical, warning = _first_order(policy, TYPICAL), _warning(policy)
    facts = {
        "version": policy.version,
        "newConsumerLimit": money.text_of(exposure.new),
        "ceiling": money.text_of(exposure.ceiling),
        "steps": len(exposure.steps),
        "threshold": needed,
        "referFrom": policy.score.refer_from,
        "newConsumer": {
            "amount": money.text_of(TYPICAL),
            "base": policy.score.base,
            "score": typical.score,
            "approved": typical.approved,
            "outcome": typical.outcome,
            "reasons": list(typical.reasons),
        },
        "warnings": [warning] if warning else [],
    }
    word = "approved" if typical.approved else f"{typical.outcome} ({', '.join(typical.reasons)})"
    refer_from = policy.score.refer_from
    referring = "" if refer_from is None else f" An order with {refer_from} or more is referred to a person."
    lines = [
        f"{options.file} is policy {policy.version}.",
        f"A new consumer may owe at most {money.shown(exposure.new)}, any consumer at most {money.shown(exposure.ceiling)}.",
        f"An approval needs a score of at least {needed}.{referring} A new consumer starts with {policy.score.base}.",
        f"A new consumer's first order of {money.shown(TYPICAL)} has the score {typical.score}: {word}.",
    ]
    show(options, facts, [*lines, f"Warning: {warning}"] if warning else lines)
    return 0


def _first_order(policy: Policy, amount: int) -> Decision:
    """Decide the first order of a consumer about whom nothing negative is known. `amount` is in cents."""
    return decide(Facts(amount, money.CURRENCY, 0, amount), policy)


def _warning(policy: Policy) -> str:
    smallest, typical = _first_order(policy, SMALLEST), _first_order(policy, TYPICAL)
    if smallest.outcome == "declined":
        return "this policy declines every order of a new consumer, so no consumer can ever build a payment history."
    if not smallest.approved:
        return "this policy refers every order of a new consumer to a person."
    if typical.outcome == "declined":
        return f"this policy declines a new consumer's order of {money.shown(TYPICAL)} and approves only smaller ones."
    return ""


def policy_show(options: argparse.Namespace) -> int:
    """`cuota policy show`: print the policy's text exactly as it was stored."""
    require_database()

    async def flow(context: Context) -> Policy:
        if options.version is None:
            return await policy_in_force(context)
        return load_kept(options.version, await policies.read(context.pool, options.version))

    policy = run(flow)
    show(options, {"version": policy.version, "text": policy.text}, [policy.text.removesuffix("\n")])
    return 0
