"""Performs the action of a form in the operator's dashboard, which needs a fresh code and a reason. Returns the form's errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request

from cuota.core.onboarding.problem import BadOnboarding
from cuota.flows.desk.change_team import BadTeam
from cuota.flows.merchant.manage_merchants import BadMerchant
from cuota.flows.operator.change_operators import reason_of
from cuota.web.pages.operator.visit import OperatorDesk, prove


async def acted(
    request: Request, desk: OperatorDesk, act: Callable[[str], Awaitable[object]]
) -> dict[str, str]:
    """Check the second factor and the reason, and do the action with the reason.

    Return the errors; empty if the action was done.
    """
    if errors := await prove(request, desk):
        return errors
    try:
        await act(reason_of(desk.form.get("reason", "")))
    except BadTeam as bad:
        return {bad.name: str(bad)}
    except BadMerchant as bad:
        return {"": str(bad)}
    except BadOnboarding as bad:
        return bad.errors
    return {}
