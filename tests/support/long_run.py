"""Whether this is the long run: `make faults` sets FAULTS_LONG. The suite tries a short seed of each campaign."""

from __future__ import annotations

import os

LONG = bool(os.environ.get("FAULTS_LONG"))
