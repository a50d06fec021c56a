"""The current policy: it is read at the start, and its exact text is stored under its version."""

from __future__ import annotations

import logging
from dataclasses import replace
from importlib import resources
from pathlib import Path

from cuota.core.expected_failure import ExpectedFailure
from cuota.core.risk.policy import BadPolicy, Policy, load_policy
from cuota.db.merchant import last_served
from cuota.db.risk import policies
from cuota.db.session import Session
from cuota.flows.context import Context

STANDARD = "standard.toml"
log = logging.getLogger("cuota.risk")


class WrongPolicy(ExpectedFailure):
    """A policy that cannot be used. The text names the file and says what to do."""


def read_policy(path: Path | None) -> tuple[Policy, str]:
    """Read a policy file and return the policy and its text. None is the policy of this release. Raises WrongPolicy."""
    named = str(path) if path else STANDARD
    try:
        found = path or resources.files("cuota.policies") / STANDARD
        text = found.read_text(encoding="utf-8")
        return load_policy(text), text
    except UnicodeDecodeError as problem:
        line = problem.object[: problem.start].count(b"\n") + 1
        raise WrongPolicy(f"Cannot use {named} as a policy: line {line} must be UTF-8") from None
    except OSError as problem:
        raise WrongPolicy(f"Cannot use {named} as a policy: {problem.strerror}") from None
    except BadPolicy as problem:
        raise WrongPolicy(f"Cannot use {named} as a policy: {problem}") from None


async def keep_policy(session: Session, path: Path | None, policy: Policy) -> None:
    """Store the policy with which this service decides.

    Raises WrongPolicy if decisions were already made by another text with the same version.
    """
    if await policies.keep(session, policy.version, policy.text) != policy.text:
        raise WrongPolicy(
            f"{path or STANDARD} has version {policy.version}, but decisions were already made by another text of that"
            f" version (cuota policy show {policy.version}). Give the changed policy a new version, or set CUOTA_POLICY to"
            " the unchanged file."
        )


async def seal_policy(context: Context) -> bool:
    """Fix the text of the policy's version before this process decides for the first time.

    From then on the version always means this text. Returns False if another service has stored another text under
    the same version; then this process must not decide anything.
    """
    version = context.policy.version
    if version not in context.sealed:
        if not await policies.seal(context.pool, version, context.policy.text):
            log.critical(
                "another text is stored under this policy version", extra={"facts": {"policy": version}}
            )
            return False
        context.sealed.add(version)
    return True


async def policy_in_force(context: Context) -> Policy:
    """Return the policy of the service that ran last. If none has run, return the policy in the settings. Raises WrongPolicy."""
    served = await last_served.read(context.pool)
    if served is None or served.policy_version is None:
        return read_policy(context.settings.policy)[0]
    return load_kept(served.policy_version, await policies.read(context.pool, served.policy_version))


async def under_its_policy(context: Context) -> Context:
    """Return the context of a command with the same policy as the service's. Raises WrongPolicy."""
    return replace(context, policy=await policy_in_force(context))


def load_kept(version: str, text: str | None) -> Policy:
    """Return a stored policy. Raises WrongPolicy if there is none, or this release cannot read it."""
    if text is None:
        raise WrongPolicy(f"There is no stored policy {version}: no service has started with that version.")
    try:
        return load_policy(text)
    except BadPolicy as problem:
        raise WrongPolicy(f"This release cannot read policy {version}: {problem}") from None
