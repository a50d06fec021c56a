"""The policy in force: read at the start, and kept word for word under its version."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from cuota.core.policy import BadPolicy, Policy, load_policy
from cuota.db import policies
from cuota.db.orders import Session

STANDARD = "standard.toml"


class WrongPolicy(Exception):  # noqa: N818 - the fact that stops the start
    """A policy that cannot be in force; the text names the file and what to do."""


def read_policy(path: Path | None) -> tuple[Policy, str]:
    """A policy and its text; None is the release's own. Raises WrongPolicy."""
    named = str(path) if path else STANDARD
    try:
        text = path.read_text() if path else (resources.files("cuota.policies") / STANDARD).read_text()
        return load_policy(text), text
    except (BadPolicy, OSError, UnicodeDecodeError) as problem:
        raise WrongPolicy(f"{named} is no policy that can be used: {problem}") from None


async def keep_policy(session: Session, path: Path | None) -> Policy:
    """Read it and store it once. Raises WrongPolicy: what was decided under a version must stay what it says."""
    policy, text = read_policy(path)
    if await policies.keep(session, policy.version, text) != text:
        raise WrongPolicy(
            f"{path or STANDARD} says version {policy.version}, and decisions were made under another text of that"
            " version. Give the changed policy a version of its own, or name the unchanged file: CUOTA_POLICY."
        )
    return policy
