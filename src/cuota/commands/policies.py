"""`cuota policy check` and `show`: a draft before it is in force, and what is."""

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

# Cents: what a new consumer is likely to begin with, and what costs hardly a point.
TYPICAL, SMALLEST = 15_000, 1


def policy_check(options: argparse.Namespace) -> int:
    """`cuota policy check`."""
    policy, text = read_policy(options.file)
    own, own_text = read_policy(None)
    if policy.version == own.version and text != own_text:
        raise WrongPolicy(
            f"{options.file} says version {policy.version}, which is the release's own and has another text."
            " Give the changed policy a version of its own."
        )
    exposure, needed = policy.exposure, policy.score.threshold
    typical, warning = _begins(policy, TYPICAL), _warning(policy)
    facts = {
        "version": policy.version,
        "newConsumerLimit": money.text_of(exposure.new),
        "ceiling": money.text_of(exposure.ceiling),
        "steps": len(exposure.steps),
        "threshold": needed,
        "newConsumer": {
            "amount": money.text_of(TYPICAL),
            "base": policy.score.base,
            "score": typical.score,
            "approved": typical.approved,
            "reasons": list(typical.reasons),
        },
        "warnings": [warning] if warning else [],
    }
    word = "approved" if typical.approved else f"declined ({', '.join(typical.reasons)})"
    lines = [
        f"{options.file} is policy {policy.version}.",
        f"A new consumer may owe {money.shown(exposure.new)}, nobody more than {money.shown(exposure.ceiling)}.",
        f"A score of {needed} is needed. A new consumer begins at {policy.score.base}.",
        f"With an order of {money.shown(TYPICAL)} and nothing else against it that is {typical.score}: {word}.",
    ]
    show(options, facts, [*lines, f"Warning: {warning}"] if warning else lines)
    return 0


def _begins(policy: Policy, amount: int) -> Decision:
    """What the very first order of a consumer comes to, with nothing against it."""
    return decide(Facts(amount, money.CURRENCY, 0, amount), policy)


def _warning(policy: Policy) -> str:
    if not _begins(policy, SMALLEST).approved:
        return (
            "a new consumer is always declined, whatever the order: so nobody ever comes to have a history."
        )
    if not _begins(policy, TYPICAL).approved:
        return f"a new consumer is declined with an order of {money.shown(TYPICAL)}; only smaller ones are approved."
    return ""


def policy_show(options: argparse.Namespace) -> int:
    """`cuota policy show`: to the letter."""
    require_database()

    async def flow(context: Context) -> Policy:
        if options.version is None:
            return await policy_in_force(context)
        return load_kept(options.version, await policies.read(context.pool, options.version))

    policy = run(flow)
    show(options, {"version": policy.version, "text": policy.text}, [policy.text.removesuffix("\n")])
    return 0
