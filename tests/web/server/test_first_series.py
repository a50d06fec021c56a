"""The series that the alerts read exist from the start: Prometheus does not see the first rise of a series that did not exist before."""

from __future__ import annotations

import subprocess
import sys

from cuota.core.order.order import Status
from cuota.core.risk.decision import APPROVAL_CODES, DECLINE_CODES

# A process of its own: other tests have counted in this one.
PROGRAM = "from cuota.web.server import metrics; print(metrics.generate_latest().decode())"


def test_each_status_and_each_reason_has_a_series_before_the_first_order() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True, timeout=120
    )
    lines = done.stdout.splitlines()
    for status in Status:
        assert f'cuota_orders_total{{status="{status}"}} 0.0' in lines
    reasons = [("approved", code) for code in (*APPROVAL_CODES, "other")]
    reasons += [(outcome, code) for outcome in ("declined", "referred") for code in (*DECLINE_CODES, "other")]
    for outcome, code in reasons:
        assert f'cuota_decisions_total{{outcome="{outcome}",reason="{code}"}} 0.0' in lines
