"""LONG is true in `make faults`, which sets FAULTS_LONG. Otherwise the suite runs a short version of each campaign."""

from __future__ import annotations

import os

LONG = bool(os.environ.get("FAULTS_LONG"))
