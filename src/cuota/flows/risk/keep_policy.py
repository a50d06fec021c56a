"""The policy in force: read at the start, and kept word for word under its version."""

from __future__ import annotations

import logging
from dataclasses import replace
from importlib import resources
from pathlib import Path

from cuota.core.risk.policy import BadPolicy, Policy, load_policy
from cuota.db.merchant import last_served
from cuota.db.risk import policies
from cuota.db.session import Session
from cuota.flows.context import Context

STANDARD = "standard.toml"
log = logging.getLogger("cuota.risk")


class WrongPolicy(Exception):
    """A policy that cannot be in force; the text names the file and what to do."""


def read_policy(path: Path | None) -> tuple[Policy, str]:
    """A policy and its text; None is the release's own. Raises WrongPolicy."""
    named = str(path) if path else STANDARD
    try:
        found = path or resources.files("cuota.policies") / STANDARD
        text = found.read_text(encoding="utf-8")
        return load_policy(text), text
    except UnicodeDecodeError as problem:
        line = problem.object[: problem.start].count(b"\n") + 1
        raise WrongPolicy(f"{named} is no policy that can be used: line {line}: must be UTF-8") from None
    except OSError as problem:
        raise WrongPolicy(f"{named} is no policy that can be used: {problem.strerror}") from None
    except BadPolicy as problem:
        raise WrongPolicy(f"{named} is no policy that can be used: {problem}") from None


async def keep_policy(session: Session, path: Path | None, policy: Policy) -> None:
    """Store it for the service that decides by it. Raises WrongPolicy where its version has decided by another text."""
    if await policies.keep(session, policy.version, policy.text) != policy.text:
        raise WrongPolicy(
            f"{path or STANDARD} says version {policy.version}, and decisions were made under another text of that"
            f" version (cuota policy show {policy.version}). Give the changed policy a version of its own, or name the"
            " unchanged file: CUOTA_POLICY."
        )


async def seal_policy(context: Context) -> bool:
    """Before a process decides for the first time: what was decided under a version must stay what it says.

    False where another service has put another text under the same version meanwhile: then nothing may be decided.
    """
    version = context.policy.version
    if version not in context.sealed:
        if not await policies.seal(context.pool, version, context.policy.text):
            log.critical("another text of this policy is kept", extra={"facts": {"policy": version}})
            return False
        context.sealed.add(version)
    return True


async def policy_in_force(context: Context) -> Policy:
    """What the service that ran last decides by; where none has, what the settings say. Raises WrongPolicy."""
    served = await last_served.read(context.pool)
    if served is None or served.policy_version is None:
        return read_policy(context.settings.policy)[0]
    return load_kept(served.policy_version, await policies.read(context.pool, served.policy_version))


async def under_its_policy(context: Context) -> Context:
    """For a command that judges: by the same policy as the service. Raises WrongPolicy."""
    return replace(context, policy=await policy_in_force(context))


def load_kept(version: str, text: str | None) -> Policy:
    """A stored policy. Raises WrongPolicy."""
    if text is None:
        raise WrongPolicy(f"No policy {version} is kept: no service has started with it.")
    try:
        return load_policy(text)
    except BadPolicy as problem:
        raise WrongPolicy(f"Policy {version} cannot be read by this release: {problem}") from None
