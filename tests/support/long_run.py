"""LONG is true in `make faults`, which sets FAULTS_LONG. Otherwise the suite runs a short version of each campaign."""

from __future__ import annotations

import os
import secrets

LONG = bool(os.environ.get("FAULTS_LONG"))


def seed_of_campaign(variable: str = "FAULTS_SEED") -> int:
    """Return the seed of a campaign, and print it: the one in the environment, or another in each run of `make faults`.

    The suite takes the same seed in every run, so that it does not fail at random when nobody has changed the code.
    """
    seed = int(os.environ.get(variable) or (secrets.randbelow(10**6) + 1 if LONG else 7))
    print(f"{variable}={seed}")
    return seed
